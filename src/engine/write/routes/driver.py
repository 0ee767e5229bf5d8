"""The driver writes the files of a small frame itself, because a Spark write job would cost more than the write.

The files equal those of Spark's writer: the same physical types (decimals as integers where they fit, timestamps in
microseconds), three-level lists, and metadata that declares dates to be in the proleptic Gregorian calendar.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....core.protocol import nested_ids, partition_values, paths
from ....core.protocol.column_mapping import FIELD_ID
from ....core.protocol.schema import (
    VARIANT,
    VOID,
    ArrayType,
    Column,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    UserDefinedType,
    arrow_type,
    contains,
    to_json,
)
from ....core.skipping.stats_writer import collect
from ...storage.parallel import in_parallel
from ..write_spec import DataFile

if TYPE_CHECKING:
    import pyarrow as pa

    from .write_route import WriteRoute

CODECS: Mapping[str, str] = {
    "none": "none",
    "uncompressed": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "zstd": "zstd",
}
"""Spark's codec names mapped to Arrow's, for codecs that both write identically."""

SUFFIXES: Mapping[str, str] = {"none": "", "uncompressed": "", "snappy": ".snappy", "gzip": ".gz", "zstd": ".zstd"}

PARQUET: Mapping[str, Any] = {"version": "2.6", "store_schema": False, "store_decimal_as_integer": True}
"""Options by which Arrow's writer uses the same physical types as Spark's."""


def dictionary_paths(schema: "pa.Schema") -> list[str]:
    """The paths of the Parquet columns that may be dictionary-encoded: all but floating-point columns.

    -0.0 and 0.0 are equal, but distinct dictionary entries: a reader that looks up one of them in the dictionary, as
    Spark does, would skip a row group with the other.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_metadata(schema, sink)
    parquet_schema = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    columns = [parquet_schema.column(i) for i in range(len(parquet_schema))]
    floating = {column.path for column in columns if column.physical_type in ("FLOAT", "DOUBLE")}
    return [column.path for column in columns if column.path not in floating]


def is_exact(schema: StructType) -> bool:
    """Whether Arrow represents every type of the schema exactly."""

    def differs(data_type: DataType) -> bool:
        return isinstance(data_type, UserDefinedType) or data_type in (VOID, VARIANT) or data_type == StructType()

    return not contains(schema, differs)


def file_schema(schema: StructType) -> "pa.Schema":
    """The Arrow schema of the files: all columns nullable, with their field IDs."""
    import pyarrow as pa

    return pa.schema([_file_field(f) for f in schema])


def _file_field(field: StructField) -> "pa.Field":
    import pyarrow as pa

    # All nullable, as in Delta's files: readers must not rely on a frame's claim to have no nulls.
    number = field.metadata.get(FIELD_ID)
    inside = field.metadata.get(nested_ids.PARQUET_KEY) or {}
    return pa.field(field.name, _file_type(field.data_type, field.name, inside), True, _field_id(number))


def _field_id(number: int | None) -> dict[str, str] | None:
    return None if number is None else {"PARQUET:field_id": str(number)}


def _file_type(data_type: DataType, path: str, ids: Mapping[str, int]) -> "pa.DataType":
    """The Arrow type of files; `ids` has the field IDs of elements, keys and values by their paths."""
    import pyarrow as pa

    def part(name: str, inner: DataType, nullable: bool = True) -> "pa.Field":
        where = f"{path}.{name}"
        return pa.field(name, _file_type(inner, where, ids), nullable, _field_id(ids.get(where)))

    if isinstance(data_type, StructType):
        return pa.struct([_file_field(f) for f in data_type])
    if isinstance(data_type, ArrayType):
        return pa.list_(part("element", data_type.element_type))
    if isinstance(data_type, MapType):
        return pa.map_(part("key", data_type.key_type, False), part("value", data_type.value_type))
    return arrow_type(data_type)


def marks(data_schema: StructType, spark_version: str) -> dict[str, str]:
    """The key-value metadata that Spark writes; without it, readers assume the legacy calendar for dates."""
    return {
        "org.apache.spark.version": spark_version,
        "org.apache.spark.sql.parquet.row.metadata": to_json(data_schema),
    }


def write(
    batches: "Sequence[pa.RecordBatch]",
    schema: StructType,
    data_schema: StructType,
    partition_columns: Sequence[str],
    route: "WriteRoute",
    indexed: Sequence[tuple[Column, StructField]],
    *,
    codec: str,
    prefix: int,
    spark_version: str,
) -> list[DataFile]:
    """Write the rows to `route`, one file per combination of partition values; no file for no rows.

    `schema` is the schema of `batches`, `data_schema` that of the files, `indexed` the leaf columns with statistics,
    whose string bounds are truncated to `prefix` characters; `codec` is a key of `CODECS`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not batches:
        return []
    wanted = file_schema(schema)
    collected = pa.Table.from_batches(batches)
    # Spark labels timestamps with the session's time zone; only the label changes, not the instant.
    rows = pa.table([collected.column(i).cast(f.type) for i, f in enumerate(wanted)], schema=wanted)
    job = uuid.uuid4()
    notes = marks(data_schema, spark_version)
    dictionaries = dictionary_paths(file_schema(data_schema))

    def written(numbered: "tuple[int, tuple[tuple[str | None, ...], pa.Table]]") -> DataFile:
        number, (texts, part) = numbered
        below = paths.partition_directory(partition_columns, dict(zip(partition_columns, texts, strict=True)))
        base = f"part-{number:05d}-{job}{'.' if below else '-'}c000{SUFFIXES[codec]}.parquet"
        name = f"{route.prefix}{below}/{base}" if below else route.prefix + base
        data = part.select(list(data_schema.names))

        def fill(stream: "pa.NativeFile") -> None:
            with pq.ParquetWriter(
                stream,
                data.schema,
                compression=CODECS[codec],
                use_dictionary=dictionaries,
                # Arrow omits NaN from a footer's bounds, and Spark, for which NaN is the largest number, would skip
                # rows.
                write_statistics=not any(map(_has_nan, data.columns)),
                **PARQUET,
            ) as file:
                file.write_table(data)
                file.add_key_value_metadata(notes)

        size, modified = route.save(name, fill)
        return DataFile(name, texts, size, modified, len(data), collect(data, indexed, prefix=prefix))

    return in_parallel(written, list(enumerate(_by_partition(rows, schema, partition_columns))))


def _has_nan(values: "pa.ChunkedArray | pa.Array") -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(values.type):
        return bool(pc.any(pc.is_nan(values)).as_py())
    if pa.types.is_struct(values.type):
        return any(_has_nan(pc.struct_field(values, [i])) for i in range(values.type.num_fields))
    return False


def _by_partition(
    rows: "pa.Table", schema: StructType, partition_columns: Sequence[str]
) -> list[tuple[tuple[str | None, ...], "pa.Table"]]:
    """(partition values as text, rows) for each combination, in the order of their first rows."""
    if not len(rows):
        return []
    if not partition_columns:
        return [((), rows)]
    texts = []
    for name in partition_columns:
        partition_field = schema.get(name, case_sensitive=True)
        assert partition_field is not None
        assert isinstance(partition_field.data_type, PrimitiveType)
        texts.append(partition_values.serialise(rows.column(name), partition_field.data_type).to_pylist())
    indices: dict[tuple[str | None, ...], list[int]] = {}
    for i, key in enumerate(zip(*texts, strict=True)):
        indices.setdefault(key, []).append(i)
    return [(key, rows.take(chosen)) for key, chosen in indices.items()]
