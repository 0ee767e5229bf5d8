"""The files of another table, for a clone with millions of them: added in pieces, read from the source's checkpoint."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ..log.replay import NO_FILES, CommitOverlay, Header, Totals
from ..protocol import deletion_vectors, iceberg_compat, paths, properties, row_tracking
from ..protocol.actions import Action, DeletionVectorDescriptor, Metadata, Protocol
from ..protocol.codec import serialise
from ..protocol.column_mapping import ColumnMapping
from ..protocol.record_count import num_records
from ..table.replayed_files import ReplayedFiles
from ..table.snapshot import Snapshot
from .bulk_actions import LINES, is_large
from .prepare import check_partition_values

if TYPE_CHECKING:
    import pyarrow as pa

# Such a path is the same in a URI: it is relative, in normal form, and without escapes.
_PLAIN = r"^[\w=-][\w=.-]*(/[\w=-][\w=.-]*)*$"


@dataclass(frozen=True)
class AdoptedFiles:
    """An `add` for each live file of `source`, with an absolute path, for the first version of the table `table`.

    `row_ids`: the files get row ids from 0 on; `last_row_id` is the last one. `partition_columns` are physical names.
    """

    source: Snapshot
    table: str
    partition_columns: tuple[str, ...]
    row_ids: bool
    totals: Totals
    last_row_id: int = -1
    removes: ClassVar[bool] = False
    data_change: ClassVar[bool] = True

    @property
    def num_files(self) -> int:
        """The number of files."""
        return self.totals.num_files

    @property
    def more_actions(self) -> tuple[Action, ...]:
        """The high-water mark of the row ids."""
        return (row_tracking.mark(self.last_row_id),) if self.last_row_id >= 0 else ()

    def lines(self) -> Iterator[bytes]:
        """The lines of the commit, in pieces; the same bytes at each call. Raises InvalidArgumentError."""
        from ..log.columns import adds_of

        columns = frozenset(self.partition_columns)
        for piece in self.pieces(with_stats=True):
            piece = piece.set_column(piece.column_names.index("stats"), "stats", _texts(piece))
            for start in range(0, piece.num_rows, LINES):
                adds = adds_of(piece.slice(start, LINES))
                for add in adds:
                    check_partition_values(add, columns, self.table)
                yield serialise(adds)

    def pieces(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """See `Snapshot.pieces`."""
        first = 0
        for piece in self.source.pieces(with_stats=with_stats or self.row_ids):
            piece = adopted(piece, self.source.table)
            if self.row_ids:
                piece, first = _with_row_ids(piece, first)
            yield piece if with_stats else piece.drop_columns([n for n in piece.column_names if n.startswith("stats")])

    def after(self, commits: Sequence[Sequence[Action]], version: int, time_ms: int) -> Snapshot:
        """See `BulkActions.after`."""
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


def adopted_files(
    source: Snapshot,
    table: str,
    protocol: Protocol,
    metadata: Metadata,
    check: "Callable[[pa.Table, pa.Table], None]",
) -> AdoptedFiles | None:
    """The files of `source` for a new table, in pieces; None if its log is small, or its checkpoint is damaged.

    `protocol` and `metadata` are those of the new table; None also if it needs each file as an action. The files are
    counted and compared with the source's checksum. `check` gets each piece as it is in the source, and as it will be
    in the new table. Raises its errors, ChecksumMismatchError, and InvalidArgumentError for a file without its number
    of rows in a table with row tracking.
    """
    if not is_large(source, metadata) or iceberg_compat.versions(metadata.configuration):
        return None
    from ..log.checkpoint_file import DamagedCheckpointError
    from ..log.columns import totals_of

    suspended = bool(properties.get(metadata.configuration, "rowTrackingSuspended"))
    row_ids = row_tracking.supported(protocol) and not suspended
    totals, next_row_id = NO_FILES, 0
    try:
        for piece in source.pieces(with_stats=row_ids):
            totals += totals_of(piece.column("size"), piece.column("deletionVector"))
            new = adopted(piece, source.table)
            check(piece, new)
            if row_ids:
                next_row_id = _with_row_ids(new, next_row_id)[1]
    except DamagedCheckpointError:
        return None  # the version is read from other files of the log, with all columns
    source.verify(totals)
    columns = ColumnMapping.of(protocol, metadata).physical_partition_columns
    return AdoptedFiles(source, table, tuple(columns), row_ids, totals, next_row_id - 1)


def adopted_vector(vector: DeletionVectorDescriptor | None, source: str) -> DeletionVectorDescriptor | None:
    """A deletion vector of the table at `source` for another table: with an absolute path, unless it is inline."""
    if vector is None or vector.storage_type == "i":
        return vector
    place = paths.absolute_uri(source, deletion_vectors.path_of(vector))
    return DeletionVectorDescriptor("p", place, vector.size_in_bytes, vector.cardinality, vector.offset)


def adopted(files: "pa.Table", source: str) -> "pa.Table":
    """Rows of the table at `source` for another table: with absolute paths, as new data, and without row ids."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from ..log.columns import DELETION_VECTOR, deletion_vector_of, vector_struct

    names, rows = files.column_names, files.num_rows
    vectors = files.column("deletionVector")
    storage = pc.struct_field(vectors, "storageType")
    if pc.any(pc.not_equal(storage, "i")).as_py():
        moved = [vector_struct(adopted_vector(deletion_vector_of(one), source)) for one in vectors.to_pylist()]
        files = files.set_column(names.index("deletionVector"), "deletionVector", pa.array(moved, DELETION_VECTOR))
    for name, value in (
        ("path", _absolute(files.column("path"), source)),
        ("dataChange", pa.repeat(pa.scalar(True), rows)),
        ("baseRowId", pa.nulls(rows, pa.int64())),
        ("defaultRowCommitVersion", pa.nulls(rows, pa.int64())),
    ):
        files = files.set_column(names.index(name), name, value)
    return files


def _absolute(column: "pa.ChunkedArray", source: str) -> "pa.Array":
    """`paths.absolute_uri` of each path."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = column.combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    result = pc.binary_join_element_wise(paths.absolute_uri(source, "x")[:-1], values, "")
    odd = pc.invert(pc.match_substring_regex(values, _PLAIN))
    if not pc.any(odd).as_py():
        return result
    fixed = [paths.absolute_uri(source, path) for path in values.filter(odd).to_pylist()]
    return pc.replace_with_mask(result, odd, pa.array(fixed, result.type))


def _texts(piece: "pa.Table") -> "pa.ChunkedArray":
    texts = piece.column("stats")
    if "stats_parsed" not in piece.column_names:
        return texts
    from ..skipping.stats_text import stats_texts

    return stats_texts(texts, piece.column("stats_parsed"))


def _with_row_ids(piece: "pa.Table", first: int) -> "tuple[pa.Table, int]":
    """The files with the row ids from `first` on, as files of version 0, and the next free row id."""
    import pyarrow as pa

    ids: list[int] = []
    for path, text in zip(piece.column("path").to_pylist(), _texts(piece).to_pylist(), strict=True):
        ids.append(first)
        count = num_records(text)
        if count is None:
            raise row_tracking.unknown_count(path)
        first += count
    names, versions = piece.column_names, pa.repeat(pa.scalar(0, pa.int64()), len(ids))
    piece = piece.set_column(names.index("baseRowId"), "baseRowId", pa.array(ids, pa.int64()))
    return piece.set_column(names.index("defaultRowCommitVersion"), "defaultRowCommitVersion", versions), first


class _FilesAfter(ReplayedFiles):
    """The files of the new table, for its checkpoint."""

    def __init__(self, files: AdoptedFiles) -> None:
        super().__init__(files.table, CommitOverlay(files.table), None)
        self._files = files

    def totals(self) -> Totals:
        """The number and the bytes of the files."""
        return self._files.totals

    def pieces(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """See `Snapshot.pieces`."""
        return self._files.pieces(with_stats=with_stats)
