"""A small frame written by the driver itself, for a Spark write job costs more than all its work.

The files are what Spark's writer would have made: the same physical types (decimals as integers where they fit,
timestamps in microseconds), three-level lists, and the mark that dates are of the proleptic calendar.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....core.protocol import partition_values, paths
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
from .job import DataFile

if TYPE_CHECKING:
    import pyarrow as pa

    from .placement import Placement

CODECS: Mapping[str, str] = {
    "none": "none",
    "uncompressed": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "zstd": "zstd",
}
"""Spark's name of a compression to Arrow's, where they are the same."""

SUFFIXES: Mapping[str, str] = {"none": "", "uncompressed": "", "snappy": ".snappy", "gzip": ".gz", "zstd": ".zstd"}

PARQUET: Mapping[str, Any] = {"version": "2.6", "store_schema": False, "store_decimal_as_integer": True}
"""How Arrow's writer makes the physical types that Spark's has."""


def dictionary_paths(schema: "pa.Schema") -> list[str]:
    """What Parquet calls the columns of a file that may have a dictionary: all but floating numbers.

    -0.0 and 0.0 are equal, and two entries of a dictionary: a reader that looks for one of them there, as Spark's
    does, skips a row group that holds the other.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_metadata(schema, sink)
    found = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    columns = [found.column(i) for i in range(len(found))]
    floating = {column.path for column in columns if column.physical_type in ("FLOAT", "DOUBLE")}
    return [column.path for column in columns if column.path not in floating]


def is_exact(schema: StructType) -> bool:
    """Whether every type of the schema goes through Arrow with nothing lost or changed."""

    def differs(data_type: DataType) -> bool:
        return isinstance(data_type, UserDefinedType) or data_type in (VOID, VARIANT) or data_type == StructType()

    return not contains(schema, differs)


def file_schema(schema: StructType) -> "pa.Schema":
    """The Arrow types that are written for the columns, all of them nullable, with the columns' field ids."""
    import pyarrow as pa

    return pa.schema([_file_field(f) for f in schema])


def _file_field(f: StructField) -> "pa.Field":
    import pyarrow as pa

    # As Delta writes files: a reader must not trust a frame that says there is no null.
    number = f.metadata.get(FIELD_ID)
    marks = None if number is None else {"PARQUET:field_id": str(number)}
    return pa.field(f.name, _file_type(f.data_type), True, marks)


def _file_type(data_type: DataType) -> "pa.DataType":
    import pyarrow as pa

    if isinstance(data_type, StructType):
        return pa.struct([_file_field(f) for f in data_type])
    if isinstance(data_type, ArrayType):
        return pa.list_(pa.field("element", _file_type(data_type.element_type)))
    if isinstance(data_type, MapType):
        return pa.map_(_file_type(data_type.key_type), pa.field("value", _file_type(data_type.value_type)))
    return arrow_type(data_type)


def marks(data_schema: StructType, spark_version: str) -> dict[str, str]:
    """What Spark notes in the files that it writes; without it a reader takes dates to be of the old calendar."""
    return {
        "org.apache.spark.version": spark_version,
        "org.apache.spark.sql.parquet.row.metadata": to_json(data_schema),
    }


def write(
    batches: "Sequence[pa.RecordBatch]",
    schema: StructType,
    data_schema: StructType,
    partition_columns: Sequence[str],
    placement: "Placement",
    indexed: Sequence[tuple[Column, StructField]],
    *,
    codec: str,
    prefix: int,
    spark_version: str,
) -> list[DataFile]:
    """Write the rows to `placement`, a file for each combination of partition values; none for no rows.

    `schema` is that of the columns in `batches`, `data_schema` that of the columns in the files, `indexed` the leaves
    that statistics are kept of, with bounds of strings cut to `prefix`; `codec` is one of `CODECS`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not batches:
        return []
    wanted = file_schema(schema)
    collected = pa.Table.from_batches(batches)
    # Spark labels a timestamp with the session's time zone: the label changes here, the instant doesn't.
    rows = pa.table([collected.column(i).cast(f.type) for i, f in enumerate(wanted)], schema=wanted)
    job = uuid.uuid4()
    notes = marks(data_schema, spark_version)
    dictionaries = dictionary_paths(file_schema(data_schema))

    def written(numbered: "tuple[int, tuple[tuple[str | None, ...], pa.Table]]") -> DataFile:
        number, (texts, part) = numbered
        below = paths.partition_directory(partition_columns, dict(zip(partition_columns, texts, strict=True)))
        base = f"part-{number:05d}-{job}{'.' if below else '-'}c000{SUFFIXES[codec]}.parquet"
        name = f"{placement.prefix}{below}/{base}" if below else placement.prefix + base
        data = part.select(list(data_schema.names))

        def fill(stream: "pa.NativeFile") -> None:
            with pq.ParquetWriter(
                stream,
                data.schema,
                compression=CODECS[codec],
                use_dictionary=dictionaries,
                # Arrow leaves NaN out of a footer's bounds, by which Spark would then skip rows: NaN is its largest
                # number.
                write_statistics=not any(map(_has_nan, data.columns)),
                **PARQUET,
            ) as file:
                file.write_table(data)
                file.add_key_value_metadata(notes)

        size, modified = placement.save(name, fill)
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
    """(the texts of the partition values, the rows) for each combination, in the order of their first rows."""
    if not len(rows):
        return []
    if not partition_columns:
        return [((), rows)]
    texts = []
    for name in partition_columns:
        found = schema.get(name, case_sensitive=True)
        assert found is not None
        assert isinstance(found.data_type, PrimitiveType)
        texts.append(partition_values.serialise(rows.column(name), found.data_type).to_pylist())
    indices: dict[tuple[str | None, ...], list[int]] = {}
    for i, key in enumerate(zip(*texts, strict=True)):
        indices.setdefault(key, []).append(i)
    return [(key, rows.take(chosen)) for key, chosen in indices.items()]
