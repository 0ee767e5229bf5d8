"""File actions as columns: the Arrow types of `add` and `remove`, and conversions between actions and columns."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..protocol.actions import AddFile, DeletionVectorDescriptor, FileAction, RemoveFile
from .replay import DELETED_BINS, SIZE_BINS, Totals

STRING_MAP = pa.map_(pa.string(), pa.string())
DELETION_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)

FILE_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("partitionValues", STRING_MAP),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("deletionVector", DELETION_VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
        ("tags", STRING_MAP),
        ("clusteringProvider", pa.string()),
    ]
)
"""The columns of `Snapshot.files`."""

ADD_TYPES: Mapping[str, pa.DataType] = {**{f.name: f.type for f in FILE_SCHEMA}, "stats": pa.string()}

REMOVE_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()),
        ("partitionValues", STRING_MAP),
        ("size", pa.int64()),
        ("deletionVector", DELETION_VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
        ("tags", STRING_MAP),
        ("stats", pa.string()),
    ]
)
"""The columns of `Snapshot.tombstones`; a checkpoint doesn't keep their tags and stats."""


def mask_of(flags: bytearray) -> pa.BooleanArray:
    """A boolean mask from bytes that are 0 or 1."""
    return pa.Array.from_buffers(pa.uint8(), len(flags), [None, pa.py_buffer(flags)]).cast(pa.bool_())


_MOST_SLICES = 256


def without(column: pa.ChunkedArray, rows: Sequence[int]) -> pa.ChunkedArray:
    """`column` without these rows (ascending indices). For a few rows the remaining slices are shared, not copied."""
    if not rows:
        return column
    if len(rows) > _MOST_SLICES:
        keep = bytearray(b"\x01") * len(column)
        for row in rows:
            keep[row] = 0
        return column.filter(mask_of(keep))
    chunks: list[pa.Array] = []
    start = 0
    for row in (*rows, len(column)):
        chunks.extend(column.slice(start, row - start).chunks if row > start else ())
        start = row + 1
    return pa.chunked_array(chunks, column.type)


def _pairs(values: Mapping[str, str | None] | None) -> Any:
    return None if values is None else list(values.items())


def vector_struct(dv: DeletionVectorDescriptor | None) -> dict[str, Any] | None:
    """A deletion vector as its struct."""
    if dv is None:
        return None
    return {
        "storageType": dv.storage_type,
        "pathOrInlineDv": dv.path_or_inline_dv,
        "offset": dv.offset,
        "sizeInBytes": dv.size_in_bytes,
        "cardinality": dv.cardinality,
    }


_GETTERS: Mapping[str, Callable[[Any], Any]] = {
    "path": lambda f: f.path,
    "partitionValues": lambda f: _pairs(f.partition_values),
    "size": lambda f: f.size,
    "modificationTime": lambda f: f.modification_time,
    "deletionTimestamp": lambda f: f.deletion_timestamp,
    "dataChange": lambda f: f.data_change,
    "extendedFileMetadata": lambda f: f.extended_file_metadata,
    "deletionVector": lambda f: vector_struct(f.deletion_vector),
    "baseRowId": lambda f: f.base_row_id,
    "defaultRowCommitVersion": lambda f: f.default_row_commit_version,
    "tags": lambda f: _pairs(f.tags),
    "clusteringProvider": lambda f: f.clustering_provider,
    "stats": lambda f: f.stats,
}


def column_of(files: Sequence[FileAction], name: str, type_: pa.DataType) -> pa.Array:
    """One column of actions; a column that actions don't have (`stats_parsed`) is null."""
    get = _GETTERS.get(name)
    if get is None:
        return pa.nulls(len(files), type_)
    return pa.array([get(file) for file in files], type_)


def table_of(files: Sequence[FileAction], schema: pa.Schema) -> pa.Table:
    """Actions as columns, in order."""
    return pa.table([column_of(files, field.name, field.type) for field in schema], schema=schema)


def deletion_vector_of(value: Mapping[str, Any] | None) -> DeletionVectorDescriptor | None:
    """A deletion vector from its struct; a struct of nulls, which some writers write, stands for no vector."""
    if value is None or value["storageType"] is None:
        return None
    return DeletionVectorDescriptor(
        value["storageType"],
        value["pathOrInlineDv"],
        value["sizeInBytes"],
        value["cardinality"],
        value["offset"],
    )


_ID_FIELDS = ("storageType", "pathOrInlineDv", "offset")


def vector_ids(vectors: pa.StructArray) -> pa.Array:
    """`replay.vector_id` of each deletion vector struct."""
    storage, where, offset = (vectors.flatten()[vectors.type.get_field_index(n)] for n in _ID_FIELDS)
    base = pc.binary_join_element_wise(storage, where, "")
    with_offset = pc.binary_join_element_wise(base, offset.cast(pa.string()), "@")
    return pc.if_else(offset.is_valid(), with_offset, base)


def _mapping(value: Any) -> dict[str, Any] | None:
    return None if value is None else dict(value)


def adds_of(table: pa.Table) -> list[AddFile]:
    """The rows as actions, with `stats` if the table has that column."""
    stats = table.column("stats").to_pylist() if "stats" in table.column_names else [None] * len(table)
    rows = zip(*(table.column(name).to_pylist() for name in FILE_SCHEMA.names), stats, strict=True)
    return [
        AddFile(
            path=path,
            partition_values=_mapping(values) or {},
            size=size,
            modification_time=modified,
            data_change=bool(change),
            stats=text,
            tags=_mapping(tags),
            deletion_vector=deletion_vector_of(vector),
            base_row_id=row_id,
            default_row_commit_version=row_version,
            clustering_provider=clustering,
        )
        for path, values, size, modified, change, vector, row_id, row_version, tags, clustering, text in rows
    ]


def removes_of(table: pa.Table) -> list[RemoveFile]:
    """The rows of `REMOVE_SCHEMA` as actions."""
    rows = zip(*(table.column(name).to_pylist() for name in REMOVE_SCHEMA.names), strict=True)
    return [
        RemoveFile(
            path=path,
            deletion_timestamp=deleted,
            data_change=bool(change),
            extended_file_metadata=extended,
            partition_values=_mapping(values),
            size=size,
            stats=stats,
            tags=_mapping(tags),
            deletion_vector=deletion_vector_of(vector),
            base_row_id=row_id,
            default_row_commit_version=row_version,
        )
        for path, deleted, change, extended, values, size, vector, row_id, row_version, tags, stats in rows
    ]


def counted(files: pa.Table) -> Totals:
    """The number, bytes, deletion vectors and deleted rows of files, without size classes."""
    cardinality = pc.struct_field(files.column("deletionVector"), "cardinality").drop_null()
    return Totals(files.num_rows, exact_sum(files.column("size")), len(cardinality), exact_sum(cardinality))


def exact_sum(numbers: pa.Array | pa.ChunkedArray) -> int:
    """The sum of whole numbers. Arrow's own sum of 64-bit integers overflows without an error."""
    least, most = pc.min_max(numbers).as_py().values()
    if most is not None and len(numbers) * max(most, -least) >= 1 << 63:
        numbers = numbers.cast(pa.decimal128(38))
    return int(pc.sum(numbers).as_py() or 0)


_FEW = 10_000


def totals_of(sizes: pa.ChunkedArray, vectors: pa.ChunkedArray) -> Totals:
    """The totals of files, from their columns `size` and `deletionVector`."""
    counts, sums = [0] * len(SIZE_BINS), [0] * len(SIZE_BINS)
    least, most = pc.min_max(sizes).as_py().values()
    if len(sizes) <= _FEW:
        # No number is passed to Arrow, which would import pandas where it is installed: half a second.
        for size in sizes.drop_null().to_pylist():
            index = bisect_right(SIZE_BINS, size) - 1
            counts[index] += 1
            sums[index] += size
    elif least is not None:
        for index in range(max(bisect_right(SIZE_BINS, least) - 1, 0), bisect_right(SIZE_BINS, most)):
            inside = pc.greater_equal(sizes, SIZE_BINS[index])
            if index + 1 < len(SIZE_BINS):
                inside = pc.and_(inside, pc.less(sizes, SIZE_BINS[index + 1]))
            part = sizes.filter(inside)
            counts[index], sums[index] = len(part), exact_sum(part)
    cardinality = pc.struct_field(vectors, "cardinality").drop_null()
    deleted, num_deleted = [0] * len(DELETED_BINS), 0
    deleted[0] = len(sizes) - len(cardinality)
    for group in cardinality.value_counts().to_pylist():
        deleted[bisect_right(DELETED_BINS, group["values"]) - 1] += group["counts"]
        num_deleted += group["values"] * group["counts"]
    return Totals(
        len(sizes),
        sum(sums),
        len(cardinality),
        num_deleted,
        tuple(counts),
        tuple(sums),
        tuple(deleted),
    )
