"""The removal of very many files of a version, read from its checkpoint in pieces."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from ..log.replay import NO_FILES, CommitOverlay, Totals
from ..protocol.actions import Action, Metadata
from ..protocol.codec import serialise
from ..table.replayed_files import ReplayedFiles
from .bulk_actions import LINES, is_large

if TYPE_CHECKING:
    import pyarrow as pa

    from ..table.snapshot import Snapshot


Mask: TypeAlias = "Callable[[pa.Table], pa.BooleanArray]"
"""Tells for each file of a piece of a version's files whether it is removed."""


class FileChoice(Protocol):
    """Tells which files of a version a commit removes."""

    def filtered(self, pieces: "Iterable[pa.Table]", *, flagged: bool) -> "Iterator[pa.Table]":
        """The files that are removed; if `flagged` is false, those that stay.

        `pieces` are all of `Snapshot.pieces`. Raises CorruptLogError if their order matters and isn't as before.
        """


@dataclass(frozen=True)
class MaskedFiles:
    """The files for which a mask is true, such as those of some partitions."""

    mask: Mask

    def filtered(self, pieces: "Iterable[pa.Table]", *, flagged: bool) -> "Iterator[pa.Table]":
        """See `FileChoice.filtered`."""
        import pyarrow.compute as pc

        for piece in pieces:
            removed = self.mask(piece)
            yield piece.filter(removed if flagged else pc.invert(removed))


@dataclass(frozen=True)
class FilesAddedAgain:
    """Files that a removal adds again with new deletion vectors; `tables` reads them, with their statistics as text."""

    count: int
    tables: "Callable[[], Iterator[pa.Table]]"


@dataclass(frozen=True)
class BulkRemoval:
    """A `remove` for each chosen file of `snapshot`, without its statistics, and an `add` for each file of `added`.

    `deletion_timestamp` is in milliseconds. `num_records` is the number of rows by the statistics, deleted rows
    left out; None: unknown, or not counted. `chosen` tells which files are removed; None: every file.
    """

    snapshot: "Snapshot"
    deletion_timestamp: int
    data_change: bool
    num_files: int
    size_in_bytes: int
    num_vectors: int
    num_records: int | None
    chosen: FileChoice | None = None
    added: FilesAddedAgain | None = None
    unnumbered: ClassVar[int] = 0
    more_actions: ClassVar[tuple[Action, ...]] = ()

    @property
    def num_removed(self) -> int:
        """The number of files that are removed."""
        return self.num_files

    @property
    def num_added(self) -> int:
        """The number of files that are added again."""
        return 0 if self.added is None else self.added.count

    def at(self, version: int, highest_row_id: int) -> "BulkRemoval":
        """See `BulkActions.at`: the same for each version."""
        return self

    def lines(self) -> Iterator[bytes]:
        """The lines of the commit, in pieces; the same bytes at each call."""
        from ..log.columns import adds_of, removes_of

        for piece in self.pieces():
            for start in range(0, piece.num_rows, LINES):
                yield serialise(removes_of(piece.slice(start, LINES)))
        for piece in self.added_pieces(with_stats=True):
            for start in range(0, piece.num_rows, LINES):
                yield serialise(adds_of(piece.slice(start, LINES)))

    @property
    def every_file(self) -> bool:
        """See `BulkActions.every_file`."""
        return self.chosen is None

    def files(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """The files that are removed; see `Snapshot.pieces`."""
        pieces = self.snapshot.pieces(with_stats=with_stats)
        return pieces if self.chosen is None else self.chosen.filtered(pieces, flagged=True)

    def kept(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """The files of the version that stay; see `Snapshot.pieces`."""
        if self.chosen is None:
            return iter(())
        return self.chosen.filtered(self.snapshot.pieces(with_stats=with_stats), flagged=False)

    def pieces(self) -> "Iterator[pa.Table]":
        """The removes as rows with the columns of `REMOVE_SCHEMA`."""
        for piece in self.files(with_stats=False):
            yield removed_rows(piece, self.deletion_timestamp, data_change=self.data_change)

    def added_pieces(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """The files that are added again; see `Snapshot.pieces`."""
        if self.added is not None:
            for table in self.added.tables():
                yield table if with_stats else table.drop_columns(["stats"])

    def after(self, commits: Sequence[Sequence[Action]], version: int, time_ms: int) -> "Snapshot":
        """See `BulkActions.after`."""
        later = CommitOverlay(self.snapshot.table)
        for actions in commits:
            later = later.extend(actions)
        return self.snapshot.replaced(version, commits, _FilesAfter(self.snapshot.table, self, later))


def bulk_removal(
    snapshot: "Snapshot",
    after: Metadata,
    deletion_timestamp: int,
    *,
    data_change: bool = True,
    count_rows: bool = False,
    mask: "Mask | None" = None,
) -> BulkRemoval | None:
    """The removal of all files of a version, or of those for which `mask` is true, in pieces.

    None if its log is small, or its checkpoint is damaged, or for a table with Iceberg's metadata or manifests, which
    need each removed file. `after` is the metadata after the commit. The files are counted and compared with the
    checksum. Raises ChecksumMismatchError.
    """
    if not is_large(snapshot, snapshot.metadata, after):
        return None
    from ..log.checkpoint_file import DamagedCheckpointError
    from ..log.columns import counted
    from ..skipping import stats

    chosen = None if mask is None else MaskedFiles(mask)
    there, totals, records = Totals(), Totals(), 0 if count_rows else None
    try:
        for piece in snapshot.pieces(with_stats=count_rows):
            there += counted(piece)
            for files in [piece] if chosen is None else chosen.filtered([piece], flagged=True):
                totals += counted(files)
                if records is not None:
                    counts = stats.read(files, (), snapshot.mapping.physical).num_records
                    records = None if counts.null_count else records + sum(counts.to_pylist())
    except DamagedCheckpointError:
        return None  # the version is read from other files of the log, with all columns
    snapshot.verify(there)
    return BulkRemoval(
        snapshot,
        deletion_timestamp,
        data_change,
        totals.num_files,
        totals.size_in_bytes,
        totals.num_deletion_vectors,
        None if records is None else records - totals.num_deleted_records,
        chosen,
    )


def removed_rows(files: "pa.Table", deletion_timestamp: int, *, data_change: bool) -> "pa.Table":
    """The removes of files, as rows with the columns of `REMOVE_SCHEMA`, without statistics."""
    import pyarrow as pa

    from ..log.columns import REMOVE_SCHEMA

    rows = files.num_rows
    more: dict[str, Any] = {
        "deletionTimestamp": pa.repeat(pa.scalar(deletion_timestamp, pa.int64()), rows),
        "dataChange": pa.repeat(pa.scalar(data_change), rows),
        "extendedFileMetadata": pa.repeat(pa.scalar(True), rows),
        "stats": pa.nulls(rows, pa.string()),
    }
    columns = [more[f.name] if f.name in more else files.column(f.name) for f in REMOVE_SCHEMA]
    return pa.table(columns, schema=REMOVE_SCHEMA)


class _FilesAfter(ReplayedFiles):
    """The files after a removal: those that stay, those that it adds again, and those that `later` commits add.

    The later commits may be concurrent ones.
    """

    def __init__(self, table: str, removal: BulkRemoval, later: CommitOverlay) -> None:
        super().__init__(table, later, None)
        self._removal = removal
        self._later = later

    def totals(self) -> Totals:
        """The number and the bytes of the files."""
        from ..log.columns import totals_of

        totals = NO_FILES
        for piece in chain(self._kept(with_stats=False), self._removal.added_pieces(with_stats=False)):
            totals += totals_of(piece.column("size"), piece.column("deletionVector"))
        return totals.changed((1, file.size, file.deletion_vector) for file in self.added)

    def pieces(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """See `Snapshot.pieces`."""
        yield from self._kept(with_stats=with_stats)
        yield from self._removal.added_pieces(with_stats=with_stats)
        yield from self.newer_pieces(with_stats=with_stats)

    def _kept(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        from ..log.checkpoint_shares import left

        return left(self._removal.kept(with_stats=with_stats), self._table, self._later.merged())

    def tombstone_pieces(self) -> "Iterator[pa.Table]":
        """The older tombstones, the removed files, and what the later commits removed."""
        from ..log.checkpoint_shares import left

        older = chain(self._removal.snapshot.tombstone_pieces(), self._removal.pieces())
        yield from left(older, self._table, self._later.merged())
        yield from super().tombstone_pieces()
