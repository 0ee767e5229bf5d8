"""The files of a version replaced by those of another one, read from checkpoints in pieces.

For RESTORE and clones with millions of files. A file of both versions, by its path and deletion vector, stays as it is.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

from ..log.replay import NO_FILES, CommitOverlay, Header, Totals
from ..protocol import iceberg_compat, row_tracking
from ..protocol.actions import Action, AddFile, Metadata, Protocol, RemoveFile
from ..protocol.codec import serialise
from ..protocol.column_mapping import ColumnMapping
from ..protocol.record_count import num_records
from ..table.replayed_files import ReplayedFiles
from ..table.snapshot import Snapshot
from .bulk_actions import LINES, is_large
from .bulk_removal import removed_rows
from .prepare import check_partition_values

if TYPE_CHECKING:
    import pyarrow as pa

    from ..log_maintenance.compared_files import Comparison


@dataclass(frozen=True)
class _NewRowIds:
    """The row ids that the added files need: `num_rows` new ones, above `highest`, which some of them have already."""

    num_rows: int = 0
    highest: int = -1


@dataclass(frozen=True)
class FileReplacement:
    """An `add` for each file of `source` that `now` lacks, and a `remove` for each file of `now` that `source` lacks.

    `converted` returns files of `source` as new files of the table; `now` is None for a new table. `totals` are those
    of `source`. `partition_columns` are physical names, `removed_at` is in milliseconds. `comparison` is None if all
    files are added, `row_ids` is None if the table has none. `unnumbered` is the number of files that stay and have no
    row ids, if the commit enables row tracking. `version`, `first_row_id` and `row_id_mark` are those of an attempt.
    """

    source: Snapshot
    converted: "Callable[[pa.Table], pa.Table]"
    table: str
    now: Snapshot | None
    partition_columns: tuple[str, ...]
    removed_at: int
    totals: Totals
    comparison: "Comparison | None"
    row_ids: _NewRowIds | None = None
    unnumbered: int = 0
    version: int = 0
    first_row_id: int = 0
    row_id_mark: int | None = None
    every_file: ClassVar[bool] = True

    @property
    def num_added(self) -> int:
        """The number of files that the commit adds."""
        return self.totals.num_files if self.comparison is None else self.comparison.num_added

    @property
    def added_bytes(self) -> int:
        """Their bytes."""
        return self.totals.size_in_bytes if self.comparison is None else self.comparison.added_bytes

    @property
    def num_removed(self) -> int:
        """The number of files that the commit removes."""
        return 0 if self.comparison is None else self.comparison.num_removed

    @property
    def removed_bytes(self) -> int:
        """Their bytes."""
        return 0 if self.comparison is None else self.comparison.removed_bytes

    @property
    def data_change(self) -> bool:
        """Whether a file is added or removed: the actions change data."""
        return bool(self.num_added or self.num_removed)

    @property
    def more_actions(self) -> tuple[Action, ...]:
        """The high-water mark of the row ids, if it moves."""
        return () if self.row_id_mark is None else (row_tracking.mark(self.row_id_mark),)

    def at(self, version: int, highest_row_id: int) -> "FileReplacement":
        """See `BulkActions.at`."""
        if self.row_ids is None:
            return replace(self, version=version)
        first = max(highest_row_id, self.row_ids.highest) + 1
        last = first + self.row_ids.num_rows - 1
        mark = None if last == highest_row_id else last
        return replace(self, version=version, first_row_id=first, row_id_mark=mark)

    def lines(self) -> Iterator[bytes]:
        """The lines of the commit, in pieces; the same bytes at each call. Raises InvalidArgumentError."""
        from ..log.columns import adds_of, removes_of

        columns = frozenset(self.partition_columns)
        for piece in self.added_pieces(with_stats=True):
            piece = piece.set_column(piece.column_names.index("stats"), "stats", _texts(piece))
            for start in range(0, piece.num_rows, LINES):
                adds = adds_of(piece.slice(start, LINES))
                for add in adds:
                    check_partition_values(add, columns, self.table)
                yield serialise(adds)
        for piece in self.removed_pieces():
            for start in range(0, piece.num_rows, LINES):
                yield serialise(removes_of(piece.slice(start, LINES)))

    def added_pieces(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """The files that the commit adds; see `Snapshot.pieces`."""
        numbered = self.row_ids is not None
        next_row_id = self.first_row_id
        for piece in self._new_pieces(with_stats=with_stats or numbered):
            if numbered:
                piece, next_row_id = _with_row_ids(piece, next_row_id, self.version)
            yield piece if with_stats else piece.drop_columns([n for n in piece.column_names if n.startswith("stats")])

    def _new_pieces(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """`added_pieces` with the row ids of the source."""
        pieces = self.source.pieces(with_stats=with_stats)
        if self.comparison is not None:
            pieces = self.comparison.added.filtered(pieces, flagged=True)
        return map(self.converted, pieces)

    def kept_pieces(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """The files that stay; see `Snapshot.pieces`."""
        if self.now is None or self.comparison is None:
            return iter(())
        return self.comparison.removed.filtered(self.now.pieces(with_stats=with_stats), flagged=False)

    def removed_pieces(self) -> "Iterator[pa.Table]":
        """The removes as rows with the columns of `REMOVE_SCHEMA`."""
        if self.now is None or self.comparison is None or not self.num_removed:
            return
        for piece in self.comparison.removed.filtered(self.now.pieces(with_stats=False), flagged=True):
            yield removed_rows(piece, self.removed_at, data_change=True)

    def tombstone_pieces(self) -> "Iterator[pa.Table]":
        """The older tombstones of files that the commit doesn't add again."""
        if self.now is None or self.comparison is None:
            return iter(())
        return self.comparison.revived.filtered(self.now.tombstone_pieces(), flagged=False)

    def after(self, commits: Sequence[Sequence[Action]], version: int, time_ms: int) -> Snapshot | None:
        """See `BulkActions.after`. None if a concurrent commit has files, which may be files of this one."""
        if any(isinstance(action, AddFile | RemoveFile) for actions in commits for action in actions):
            return None
        if self.now is not None:
            return self.now.replaced(version, commits, _FilesAfter(self))
        header = Header()
        for actions in commits:
            header = header.after(actions)
        return Snapshot(
            self.table,
            version,
            header,
            CommitOverlay(self.table),
            None,
            timestamp=lambda _: time_ms,
            totals=self.totals,
            replayed=_FilesAfter(self),
        )


def file_replacement(
    source: Snapshot,
    table: str,
    now: Snapshot | None,
    protocol: Protocol,
    metadata: Metadata,
    *,
    converted: "Callable[[pa.Table], pa.Table]",
    removed_at: int,
    check: "Callable[[pa.Table, pa.Table], None] | None" = None,
) -> FileReplacement | None:
    """The replacement of all files in pieces; None if the logs are small, or a checkpoint is damaged.

    The files are counted, and compared with the checksums of their versions.

    Args:
        source: The version whose files the table gets.
        table: The table's root.
        now: The version of the table that is read; None for a new table.
        protocol: That of the table after the commit.
        metadata: That of the table after the commit. With Iceberg's metadata, its compatibility or manifests, each file
            is needed as an action: then, the result is None too.
        converted: Returns files of `source` as new files of the table.
        removed_at: The time of removal, in milliseconds.
        check: Gets each piece of `source`, before and after `converted`.

    Raises:
        ChecksumMismatchError: A state doesn't match its checksum.
        InvalidArgumentError: Two files have one path, or a file has no number of rows in a table with row tracking.
        Exception: An error of `check`.
    """
    metadatas = [metadata, *([] if now is None else [now.metadata])]
    if not (is_large(source, *metadatas) or (now is not None and is_large(now, *metadatas))):
        return None
    if any(iceberg_compat.versions(one.configuration) for one in metadatas):
        return None
    from ..log.checkpoint_file import DamagedCheckpointError

    numbered = row_tracking.supported(protocol)
    if numbered and row_tracking.suspended(metadata):
        numbered, converted = False, _without_row_ids(converted)
    columns = ColumnMapping.of(protocol, metadata).physical_partition_columns
    try:
        totals, comparison = _compared(source, table, now, converted, check)
        result = FileReplacement(source, converted, table, now, tuple(columns), removed_at, totals, comparison)
        if numbered:
            result = replace(result, row_ids=_new_row_ids(result._new_pieces(with_stats=True)))
        if now is not None and _enables_row_tracking(protocol, metadata, now):
            nulls = (piece.column("baseRowId").null_count for piece in result.kept_pieces(with_stats=False))
            result = replace(result, unnumbered=sum(nulls))
    except DamagedCheckpointError:
        return None  # the versions are read from other files of the log, with all columns
    return result


def _enables_row_tracking(protocol: Protocol, metadata: Metadata, now: Snapshot) -> bool:
    return row_tracking.enabled(protocol, metadata) and not row_tracking.enabled(now.protocol, now.metadata)


def _compared(
    source: Snapshot,
    table: str,
    now: Snapshot | None,
    converted: "Callable[[pa.Table], pa.Table]",
    check: "Callable[[pa.Table, pa.Table], None] | None",
) -> "tuple[Totals, Comparison | None]":
    """The totals of `source`, and its comparison with `now`; both are compared with their checksums."""
    from ..log.columns import totals_of
    from ..log_maintenance.compared_files import compared

    wanted, there = NO_FILES, NO_FILES

    def new_files() -> "Iterator[pa.Table]":
        nonlocal wanted
        for piece in source.pieces(with_stats=False):
            wanted += totals_of(piece.column("size"), piece.column("deletionVector"))
            new = converted(piece)
            if check is not None:
                check(piece, new)
            yield new.append_column("original", piece.column("path"))

    def old_files(now: Snapshot) -> "Iterator[pa.Table]":
        nonlocal there
        for piece in now.pieces(with_stats=False):
            there += totals_of(piece.column("size"), piece.column("deletionVector"))
            yield piece

    if now is None:
        for _ in new_files():
            pass
        comparison = None
    else:
        size = sum(one.base.size_in_bytes for one in (source, now) if one.base is not None)
        comparison = compared(table, new_files(), old_files(now), now.tombstone_pieces(), size)
        now.verify(there)
    source.verify(wanted)
    return wanted, comparison


def _without_row_ids(converted: "Callable[[pa.Table], pa.Table]") -> "Callable[[pa.Table], pa.Table]":
    import pyarrow as pa

    def without(files: "pa.Table") -> "pa.Table":
        files = converted(files)
        for name in ("baseRowId", "defaultRowCommitVersion"):
            files = files.set_column(files.column_names.index(name), name, pa.nulls(files.num_rows, pa.int64()))
        return files

    return without


def _texts(piece: "pa.Table") -> "pa.ChunkedArray":
    texts = piece.column("stats")
    if "stats_parsed" not in piece.column_names:
        return texts
    from ..skipping.stats_text import stats_texts

    return stats_texts(texts, piece.column("stats_parsed"))


def _new_row_ids(pieces: "Iterator[pa.Table]") -> _NewRowIds:
    """The row ids that these files need. Raises InvalidArgumentError for a file without its number of rows."""
    num_rows, highest = 0, -1
    for piece in pieces:
        for path, base, text in _numbers(piece):
            count = num_records(text)
            if base is not None:
                highest = max(highest, base + (count or 0) - 1)
            elif count is None:
                raise row_tracking.unknown_count(path)
            else:
                num_rows += count
    return _NewRowIds(num_rows, highest)


def _numbers(piece: "pa.Table") -> "Iterator[tuple[str, int | None, str | None]]":
    """The path, the first row id and the statistics of each file."""
    texts = _texts(piece).to_pylist()
    return zip(piece.column("path").to_pylist(), piece.column("baseRowId").to_pylist(), texts, strict=True)


def _with_row_ids(piece: "pa.Table", next_row_id: int, version: int) -> "tuple[pa.Table, int]":
    """The files with row ids from `next_row_id` on, where they have none, and the next free row id."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = piece.column_names
    if piece.column("baseRowId").null_count:
        ids: list[int] = []
        for _, base, text in _numbers(piece):
            ids.append(next_row_id if base is None else base)
            next_row_id += (num_records(text) or 0) if base is None else 0
        piece = piece.set_column(names.index("baseRowId"), "baseRowId", pa.array(ids, pa.int64()))
    since = pc.fill_null(piece.column("defaultRowCommitVersion"), pa.scalar(version, pa.int64()))
    return piece.set_column(names.index("defaultRowCommitVersion"), "defaultRowCommitVersion", since), next_row_id


class _FilesAfter(ReplayedFiles):
    """The files after the commit, for its checkpoint."""

    def __init__(self, change: FileReplacement) -> None:
        super().__init__(change.table, CommitOverlay(change.table), None)
        self._change = change

    def totals(self) -> Totals:
        """The number and the bytes of the files: those of the source."""
        return self._change.totals

    def pieces(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """See `Snapshot.pieces`."""
        yield from self._change.kept_pieces(with_stats=with_stats)
        yield from self._change.added_pieces(with_stats=with_stats)

    def tombstone_pieces(self) -> "Iterator[pa.Table]":
        """See `Snapshot.tombstone_pieces`."""
        return chain(self._change.tombstone_pieces(), self._change.removed_pieces())
