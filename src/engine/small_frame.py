"""A small frame written by the driver itself, for a Spark write job costs more than all its work.

The files are what Spark's writer would have made: the same physical types (decimals as integers where they fit,
timestamps in microseconds), three-level lists, and the mark that dates are of the proleptic calendar.
"""

import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..core.protocol import partition_values, paths
from ..core.protocol.schema import (
    VARIANT,
    VOID,
    Column,
    DataType,
    PrimitiveType,
    StructType,
    UserDefinedType,
    arrow_schema,
    contains,
    to_json,
)
from . import footers
from .staging import StagedFile

if TYPE_CHECKING:
    import pyarrow as pa

CODECS: Mapping[str, str] = {
    "none": "none",
    "uncompressed": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "zstd": "zstd",
}
"""Compression as Spark calls it, where Arrow's is the same: (Spark's name, Arrow's name)."""

_SUFFIXES = {"none": "", "uncompressed": "", "snappy": ".snappy", "gzip": ".gz", "zstd": ".zstd"}


def is_exact(schema: StructType) -> bool:
    """Whether every type of the schema goes through Arrow with nothing lost or changed."""

    def differs(data_type: DataType) -> bool:
        return isinstance(data_type, UserDefinedType) or data_type in (VOID, VARIANT) or data_type == StructType()

    return not contains(schema, differs)


def nullable(schema: StructType) -> StructType:
    """The schema with every top-level column nullable."""
    return StructType(tuple(replace(f, nullable=True) for f in schema.fields))


def write(
    rows: "pa.Table",
    schema: StructType,
    partition_columns: Sequence[str],
    directory: str,
    leaves: Sequence[footers.Leaf],
    *,
    codec: str,
    spark_version: str,
) -> list[tuple[StagedFile, footers.FileStats]]:
    """Write the rows below `directory`, a file for each combination of partition values; none for no rows.

    `schema` is that of the table's columns in `rows`; `codec` is one of `CODECS`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = pa.table(
        [_column(rows.column(i), field.type) for i, field in enumerate(arrow_schema(nullable(schema)))],
        schema=arrow_schema(nullable(schema)),
    )
    data_schema = schema.without(partition_columns)
    job = uuid.uuid4()
    written = []
    for number, (texts, part) in enumerate(_by_partition(rows, schema, partition_columns)):
        below = paths.partition_directory(partition_columns, dict(zip(partition_columns, texts, strict=True)))
        base = f"part-{number:05d}-{job}{'.' if below else '-'}c000{_SUFFIXES[codec]}.parquet"
        name = f"{below}/{base}" if below else base
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        data = part.select(list(data_schema.names)).replace_schema_metadata(
            {
                "org.apache.spark.version": spark_version,
                "org.apache.spark.sql.parquet.row.metadata": to_json(data_schema),
            }
        )
        footer: list[Any] = []
        pq.write_table(
            data,
            path,
            compression=CODECS[codec],
            version="2.6",
            store_schema=False,
            store_decimal_as_integer=True,
            write_statistics=True,
            metadata_collector=footer,
        )
        stats = _without_hidden_nan(footers.of_metadata(footer[0], leaves), data, leaves)
        status = os.stat(path)
        staged = StagedFile(name, tuple(texts), status.st_size, status.st_mtime_ns // 1_000_000)
        written.append((staged, stats))
    return written


def _column(column: "pa.ChunkedArray", target: "pa.DataType") -> "pa.ChunkedArray":
    # Spark labels a timestamp with the session's time zone: the label changes here, the instant doesn't.
    return column if column.type == target else column.cast(target)


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


def _without_hidden_nan(
    stats: footers.FileStats, data: "pa.Table", leaves: Sequence[footers.Leaf]
) -> footers.FileStats:
    """Arrow leaves NaN out of its statistics, where Spark takes it for the largest number: then no maximum is known."""
    import pyarrow.compute as pc

    corrected: dict[Column, footers.LeafStats] = {}
    for leaf in leaves:
        known = stats.leaves[leaf.column]
        if isinstance(leaf.data_type, PrimitiveType) and leaf.data_type.is_floating and known.maximum is not None:
            column = data.column(leaf.column[0])
            for part in leaf.column[1:]:
                column = pc.struct_field(column, part)
            if pc.any(pc.is_nan(column)).as_py():
                corrected[leaf.column] = known._replace(maximum=None)
    return replace(stats, leaves={**stats.leaves, **corrected}) if corrected else stats
