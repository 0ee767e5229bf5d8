"""The removal of every file of a version, or of whole partitions, read from its checkpoint in pieces: for commits with
millions of removes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

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


@dataclass(frozen=True)
class WholeRemoval:
    """A `remove` for each live file of `snapshot`, without its statistics.

    `deletion_timestamp` is in milliseconds. `num_records` is the number of rows by the statistics, deleted rows
    left out; None: unknown, or not counted. `partitions` gives a mask of the files in the partitions to remove; None:
    every file is removed.
    """

    snapshot: "Snapshot"
    deletion_timestamp: int
    data_change: bool
    num_files: int
    size_in_bytes: int
    num_vectors: int
    num_records: int | None
    partitions: "Mask | None" = None
    num_added: ClassVar[int] = 0
    unnumbered: ClassVar[int] = 0
    more_actions: ClassVar[tuple[Action, ...]] = ()

    @property
    def num_removed(self) -> int:
        """The number of files."""
        return self.num_files

    def at(self, version: int, highest_row_id: int) -> "WholeRemoval":
        """See `BulkActions.at`: the same for each version."""
        return self

    def lines(self) -> Iterator[bytes]:
        """The lines of the commit, in pieces; the same bytes at each call."""
        from ..log.columns import removes_of

        for piece in self.pieces():
            for start in range(0, piece.num_rows, LINES):
                yield serialise(removes_of(piece.slice(start, LINES)))

    @property
    def every_file(self) -> bool:
        """See `BulkActions.every_file`."""
        return self.partitions is None

    def files(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """The files that are removed; see `Snapshot.pieces`."""
        return _chosen(self.snapshot.pieces(with_stats=with_stats), self.partitions)

    def kept(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """The files of the version that stay; see `Snapshot.pieces`."""
        if self.partitions is None:
            return
        import pyarrow.compute as pc

        for piece in self.snapshot.pieces(with_stats=with_stats):
            yield piece.filter(pc.invert(self.partitions(piece)))

    def pieces(self) -> "Iterator[pa.Table]":
        """The removes as rows with the columns of `REMOVE_SCHEMA`."""
        for piece in self.files(with_stats=False):
            yield removed_rows(piece, self.deletion_timestamp, data_change=self.data_change)

    def after(self, commits: Sequence[Sequence[Action]], version: int, time_ms: int) -> "Snapshot":
        """See `BulkActions.after`."""
        later = CommitOverlay(self.snapshot.table)
        for actions in commits:
            later = later.extend(actions)
        return self.snapshot.replaced(version, commits, _FilesAfter(self.snapshot.table, self, later))


def whole_removal(
    snapshot: "Snapshot",
    after: Metadata,
    deletion_timestamp: int,
    *,
    data_change: bool = True,
    count_rows: bool = False,
    partitions: "Mask | None" = None,
) -> WholeRemoval | None:
    """The removal of all files of a version, or of some partitions, in pieces.

    None if its log is small, or its checkpoint is damaged, or for a table with Iceberg's metadata or manifests, which
    need each removed file. `after` is the metadata after the commit; `partitions`: as in `WholeRemoval`. The files are
    counted and compared with the checksum. Raises ChecksumMismatchError.
    """
    if not is_large(snapshot, snapshot.metadata, after):
        return None
    from ..log.checkpoint_file import DamagedCheckpointError
    from ..log.columns import counted
    from ..skipping import stats

    there, totals, records = Totals(), Totals(), 0 if count_rows else None
    try:
        for piece in snapshot.pieces(with_stats=count_rows):
            there += counted(piece)
            for files in _chosen(iter([piece]), partitions):
                totals += counted(files)
                if records is not None:
                    counts = stats.read(files, (), snapshot.mapping.physical).num_records
                    records = None if counts.null_count else records + sum(counts.to_pylist())
    except DamagedCheckpointError:
        return None  # the version is read from other files of the log, with all columns
    snapshot.verify(there)
    return WholeRemoval(
        snapshot,
        deletion_timestamp,
        data_change,
        totals.num_files,
        totals.size_in_bytes,
        totals.num_deletion_vectors,
        None if records is None else records - totals.num_deleted_records,
        partitions,
    )


def _chosen(pieces: "Iterator[pa.Table]", partitions: "Mask | None") -> "Iterator[pa.Table]":
    return pieces if partitions is None else (piece.filter(partitions(piece)) for piece in pieces)


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
    """The files after a removal: those that stay, and those that `later` commits add; these may be concurrent ones."""

    def __init__(self, table: str, removal: WholeRemoval, later: CommitOverlay) -> None:
        super().__init__(table, later, None)
        self._removal = removal
        self._later = later

    def totals(self) -> Totals:
        """The number and the bytes of the files."""
        from ..log.columns import totals_of

        totals = NO_FILES
        for piece in self._kept(with_stats=False):
            totals += totals_of(piece.column("size"), piece.column("deletionVector"))
        return totals.changed((1, file.size, file.deletion_vector) for file in self.added)

    def pieces(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """See `Snapshot.pieces`."""
        yield from self._kept(with_stats=with_stats)
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
