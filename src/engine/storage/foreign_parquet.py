"""Parquet files of other writers: their schemas as Spark reads them, and the statistics in their footers.

A footer depends on its writer: bounds may have other units, use an older calendar, or ignore NaN. Statistics whose
meaning is uncertain are omitted.
"""

import json
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.protocol.schema import (
    DATE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Column,
    DataType,
    PrimitiveType,
    StructField,
    StructType,
    contains,
    parse_schema,
)
from ...core.schema_evolution.merging import as_nullable
from ...core.skipping.stats_writer import ColumnStats, stats_json
from ..connect.plain_paths import without_pattern
from ..jvm.connection.sessions import is_classic
from ..jvm.hadoop import parquet_schema
from ..jvm.types import table_schema
from . import parquet_footers

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from pyspark.sql import SparkSession

_ROW = b"org.apache.spark.sql.parquet.row.metadata"
_VERSION = b"org.apache.spark.version"
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
# For values before these (days and microseconds since 1970), an older calendar would have another meaning.
_DAY_OF_1900, _INSTANT_OF_1900 = -25_567, -2_208_988_800_000_000
_TIMES = (TIMESTAMP, TIMESTAMP_NTZ)
_COMMENT = "comment"


def key_of(footer: "pq.FileMetaData") -> str:
    """A key that is equal for files with the same schema."""
    row_metadata = (footer.metadata or {}).get(_ROW)
    return (
        row_metadata.decode("utf-8", "replace") if row_metadata is not None else str(footer.schema).partition("\n")[2]
    )


def schema_of(footer: "pq.FileMetaData") -> StructType | None:
    """The schema that Spark stored in a file that it wrote, all nullable; `None` if there is no usable one."""
    row_metadata = (footer.metadata or {}).get(_ROW)
    if row_metadata is None:
        return None
    try:
        schema = parse_schema(json.dumps(json.loads(row_metadata)))
    except Exception:  # metadata of another program: Spark infers the schema instead
        return None
    if contains(schema, lambda t: not isinstance(t, PrimitiveType) and type(t).__name__ == "UserDefinedType"):
        return None
    return _plain(as_nullable(schema))


def schema_by_spark(spark: "SparkSession", footer: "pq.FileMetaData", location: str) -> StructType:
    """The schema that Spark infers from this footer; works also if the JVM can't access the file itself.

    On Spark Connect, Spark reads the footer of the file at `location`.
    """
    if not is_classic(spark):
        reader = spark.read.option("recursiveFileLookup", "true")  # no columns from the names of directories
        return _plain(as_nullable(table_schema(reader.parquet(without_pattern(location)).schema)))
    with tempfile.TemporaryDirectory(prefix="tablelog-footer-") as directory:
        alone = Path(directory) / "footer.parquet"
        footer.write_metadata_file(str(alone))
        schema_json = parquet_schema(spark, alone.as_uri())
    return _plain(as_nullable(parse_schema(schema_json)))


def _plain(schema: StructType) -> StructType:
    """The schema with only the comments of the columns as metadata."""
    return StructType(
        tuple(replace(f, metadata={k: v for k, v in f.metadata.items() if k == _COMMENT}) for f in schema.fields)
    )


class Statistics:
    """Extracts the statistics of files that share one schema. Shared by threads."""

    def __init__(self, schema: StructType, indexed: Sequence[Column], prefix: int) -> None:
        self._leaves = parquet_footers.locate(schema, indexed)
        self._prefix = prefix
        self._lock = threading.Lock()
        self._trusted: Sequence[parquet_footers.Leaf] | None = None

    def of(self, footer: "pq.FileMetaData") -> str:
        """The JSON text of `add.stats`."""
        with self._lock:
            if self._trusted is None:
                self._trusted = [
                    leaf for leaf in self._leaves if leaf.field.data_type in _TIMES or _signed(footer, leaf)
                ]
        # Files with the same Spark schema may have either physical type for timestamps.
        leaves = [leaf for leaf in self._trusted if leaf.field.data_type not in _TIMES or _in_micros(footer, leaf)]
        rows, columns = parquet_footers.of_metadata(footer, leaves)
        notes = footer.metadata or {}
        by_java = (footer.created_by or "").startswith("parquet-mr")
        current = _VERSION in notes and not any(key in notes for key in _LEGACY)
        if not (by_java and current):
            columns = [_certain(column, by_java=by_java, current=current) for column in columns]
        return stats_json(rows, columns, prefix=self._prefix)


def _signed(footer: "pq.FileMetaData", leaf: parquet_footers.Leaf) -> bool:
    logical_type = json.loads(footer.schema.column(leaf.position).logical_type.to_json())
    return not (logical_type.get("Type") == "Int" and not logical_type.get("isSigned", True))


def _in_micros(footer: "pq.FileMetaData", leaf: parquet_footers.Leaf) -> bool:
    column = footer.schema.column(leaf.position)
    if column.physical_type == "INT96":
        return False
    return bool(json.loads(column.logical_type.to_json()).get("timeUnit") == "microseconds")


def _certain(stats: ColumnStats, *, by_java: bool, current: bool) -> ColumnStats:
    """Omit statistics that other writers define differently: maxima that ignore NaN, dates of another calendar."""
    if not by_java and isinstance(stats.data_type, PrimitiveType) and stats.data_type.is_floating:
        return replace(stats, max=None)
    if not current and stats.min is not None:
        oldest = _OLDEST.get(stats.data_type)
        if oldest is not None and int(stats.min) < oldest:
            return replace(stats, min=None, max=None)
    return stats


_OLDEST: dict[DataType, int] = {
    DATE: _DAY_OF_1900,
    TIMESTAMP: _INSTANT_OF_1900,
    TIMESTAMP_NTZ: _INSTANT_OF_1900,
}


def fits(kept: DataType, file_type: DataType, widens: Callable[[DataType, DataType], bool]) -> bool:
    """Whether a file column of the type `file_type` can be read as the table's type `kept`."""
    if isinstance(kept, StructType) and isinstance(file_type, StructType):
        pairs: list[tuple[StructField | None, StructField]] = [(kept.get(f.name), f) for f in file_type.fields]
        return all(k is not None and fits(k.data_type, f.data_type, widens) for k, f in pairs)
    if type(kept) is type(file_type) and not isinstance(kept, PrimitiveType):
        return _inner(kept, file_type, widens)
    return kept == file_type or widens(file_type, kept)


def _inner(kept: DataType, file_type: DataType, widens: Callable[[DataType, DataType], bool]) -> bool:
    names = ("element_type",) if hasattr(kept, "element_type") else ("key_type", "value_type")
    return all(fits(getattr(kept, name), getattr(file_type, name), widens) for name in names)
