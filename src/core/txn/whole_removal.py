"""The removal of every file of a version, read from its checkpoint in pieces: for commits with millions of removes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from ..log.replay import NO_FILES, CommitOverlay, Totals
from ..protocol.actions import Action, Metadata
from ..protocol.codec import serialise
from ..table.replayed_files import ReplayedFiles
from .bulk_actions import LINES, is_large

if TYPE_CHECKING:
    import pyarrow as pa

    from ..table.snapshot import Snapshot


@dataclass(frozen=True)
class WholeRemoval:
    """A `remove` for each live file of `snapshot`, without its statistics.

    `deletion_timestamp` is in milliseconds. `num_records` is the number of rows by the statistics, deleted rows
    left out; None: unknown, or not counted.
    """

    snapshot: "Snapshot"
    deletion_timestamp: int
    data_change: bool
    num_files: int
    size_in_bytes: int
    num_vectors: int
    num_records: int | None
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

    def pieces(self) -> "Iterator[pa.Table]":
        """The removes as rows with the columns of `REMOVE_SCHEMA`."""
        for piece in self.snapshot.pieces(with_stats=False):
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
) -> WholeRemoval | None:
    """The removal of all files of a version in pieces; None if its log is small, or its checkpoint is damaged.

    Also None for a table with Iceberg's metadata or manifests, which need each removed file; `after` is the metadata
    after the commit. The files are counted and compared with the checksum. Raises ChecksumMismatchError.
    """
    if not is_large(snapshot, snapshot.metadata, after):
        return None
    from ..log.checkpoint_file import DamagedCheckpointError
    from ..log.columns import counted
    from ..skipping import stats

    totals, records = Totals(), 0 if count_rows else None
    try:
        for piece in snapshot.pieces(with_stats=count_rows):
            totals += counted(piece)
            if records is not None:
                counts = stats.read(piece, (), snapshot.mapping.physical).num_records
                records = None if counts.null_count else records + sum(counts.to_pylist())
    except DamagedCheckpointError:
        return None  # the version is read from other files of the log, with all columns
    snapshot.verify(totals)
    return WholeRemoval(
        snapshot,
        deletion_timestamp,
        data_change,
        totals.num_files,
        totals.size_in_bytes,
        totals.num_deletion_vectors,
        None if records is None else records - totals.num_deleted_records,
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
    """The files after a whole removal: those that `later` commits add; the other commits may be concurrent ones."""

    def __init__(self, table: str, removal: WholeRemoval, later: CommitOverlay) -> None:
        super().__init__(table, later, None)
        self._removal = removal
        self._later = later

    def totals(self) -> Totals:
        """The number and the bytes of the added files."""
        return NO_FILES.changed((1, file.size, file.deletion_vector) for file in self.added)

    def tombstone_pieces(self) -> "Iterator[pa.Table]":
        """The older tombstones, the removed files, and what the later commits removed."""
        from ..log.checkpoint_shares import left

        older = chain(self._removal.snapshot.tombstone_pieces(), self._removal.pieces())
        yield from left(older, self._table, self._later.merged())
        yield from super().tombstone_pieces()
