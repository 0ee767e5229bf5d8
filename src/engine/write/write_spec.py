"""The description of one write (schema, options, statistics), and of its finished files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ...core.protocol import partition_values, paths, properties
from ...core.protocol.actions import AddFile, Metadata
from ...core.protocol.column_mapping import ColumnMapping
from ...core.protocol.properties import TableProperties
from ...core.protocol.schema import (
    BINARY,
    STRING,
    PrimitiveType,
    StructField,
    StructType,
    check_partition_columns,
    indexed_leaves,
)
from ...core.skipping.stats_writer import stats_json
from ...errors import InvalidArgumentError, SchemaMismatchError
from ...settings.spark_own import MAX_RECORDS_PER_FILE, PARQUET_COMPRESSION
from ..jvm.connection import settings
from ..sql import conform
from ..sql.column_names import columns_written
from ..storage import parquet_footers

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql import DataFrame
    from pyspark.sql.conf import RuntimeConfig

CODEC_PROPERTY = "delta.parquet.compression.codec"
FORMAT_PROPERTY = "delta.parquet.format.version"
_SECOND_VERSION = (2, 12, 0)  # of the Parquet format; as in Delta, older versions are written as version 1
_CODECS = ("none", "uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4", "lz4_raw", "zstd")


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options for data files.

    `compression` is one of Spark's codec names (default: the table property, else the session's).
    `max_records_per_file` limits the rows of a file (default or 0: `spark.sql.files.maxRecordsPerFile` of the session).
    `balanced`: shuffle the rows first to get large files (default: the session's or the table's setting). `durable`:
    sync the files to disk before `write_files` returns. `small_frames`: the driver may write a small frame itself.
    """

    compression: str | None = None
    max_records_per_file: int | None = None
    parquet_version: str | None = None
    balanced: bool | None = None
    durable: bool = True
    small_frames: bool = True

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "WriteOptions":
        """The options for data files among a user's write options; keys are case-insensitive, others are ignored."""
        folded = {key.lower(): value for key, value in options.items()}
        limit = folded.get("maxrecordsperfile")
        if limit is not None and not str(limit).strip().lstrip("-").isdigit():
            raise InvalidArgumentError(f"maxRecordsPerFile is {limit!r}: it needs to be a whole number")
        codec = folded.get("compression")
        return cls(
            compression=_codec(codec, "the option compression") if codec is not None else None,
            max_records_per_file=int(limit) if limit is not None else None,
            parquet_version=folded.get("parquet.writer.version"),
            balanced=None if (asked := folded.get("optimizewrite")) is None else asked.lower() == "true",
        )


@dataclass(frozen=True, slots=True)
class DataFile:
    """A finished data file.

    `name` is relative to the table, `partition` has the partition values as text as in the log, `stats` is the
    statistics JSON. `size` is in bytes, `modified_ms` in milliseconds since the epoch.
    """

    name: str
    partition: tuple[str | None, ...]
    size: int
    modified_ms: int
    rows: int
    stats: str

    def add(self, partition_columns: Sequence[str], data_change: bool) -> AddFile:
        """The `add` action for the file."""
        return AddFile(
            path=paths.encode(self.name),
            partition_values=dict(zip(partition_columns, self.partition, strict=True)),
            size=self.size,
            modification_time=self.modified_ms,
            data_change=data_change,
            stats=self.stats,
        )


@dataclass(frozen=True)
class WriteSpec:
    """The description of a write of rows of `schema`: the table's without void columns, by physical names.

    `leaves` are the columns with statistics, whose string bounds are truncated to `prefix` characters. `codec` is one
    of Spark's codec names; `max_records` limits the rows of a file (0: no limit). `materialised`: the files also
    contain the partition columns, after all others. `hex_names`: partition directories for strings are named by the
    hexadecimal digits of their bytes, like those for binary values.
    """

    table: str
    mapping: ColumnMapping
    schema: StructType
    partition_columns: tuple[str, ...]
    leaves: Sequence[parquet_footers.Leaf]
    prefix: int
    codec: str
    max_records: int
    options: WriteOptions
    materialised: bool
    hex_names: bool = False

    @classmethod
    def of(
        cls,
        df: "DataFrame",
        table: str,
        metadata: Metadata,
        mapping: ColumnMapping,
        options: WriteOptions,
        extra: Sequence[StructField] = (),
        *,
        materialised: bool = False,
    ) -> "WriteSpec":
        """The description for a frame whose columns have the physical names of `mapping`.

        No statistics are collected for the columns `extra`, which are not in the table.
        """
        schema = columns_written(mapping) if mapping.active else conform.without_void(mapping.logical)
        partition_columns = mapping.physical_partition_columns
        check_partition_columns(schema, partition_columns)
        if not len(schema):
            raise InvalidArgumentError(f"{table}: there is no column to write (void columns are not in data files)")
        if list(df.columns) != list(schema.names):
            raise SchemaMismatchError(
                f"{table}: the data's columns are {', '.join(df.columns)}, the table's are {', '.join(schema.names)}"
            )
        known = TableProperties.of(metadata)
        columns = known.data_skipping_stats_columns
        indexed = indexed_leaves(
            mapping.logical.without([f.name for f in extra]),
            mapping.partition_columns,
            known.data_skipping_num_indexed_cols,
            columns,
        )
        data = _in_files(schema, partition_columns, materialised)
        conf = df.sparkSession.conf
        if options.parquet_version is None and _second_version(metadata, conf):
            options = replace(options, parquet_version="v2")
        codec = options.compression or metadata.configuration.get(CODEC_PROPERTY)
        if codec is None:
            codec = settings.in_force(df.sparkSession, PARQUET_COMPRESSION) or PARQUET_COMPRESSION.default
        return cls(
            table,
            mapping,
            schema,
            partition_columns,
            parquet_footers.locate(data, [mapping.to_physical(name) for name, _ in indexed]),
            known.data_skipping_string_prefix_length,
            _codec(codec, "the compression codec"),
            options.max_records_per_file or settings.in_force(df.sparkSession, MAX_RECORDS_PER_FILE),
            options,
            materialised,
        )

    @cached_property
    def data_schema(self) -> StructType:
        """The columns of the files, in their order."""
        return _in_files(self.schema, self.partition_columns, self.materialised)

    @cached_property
    def partition_types(self) -> list[PrimitiveType]:
        """The types of the partition columns."""
        partition_fields = [self.schema.get(name, case_sensitive=True) for name in self.partition_columns]
        return [f.data_type for f in partition_fields if f is not None and isinstance(f.data_type, PrimitiveType)]

    def described(self, footer: "pq.FileMetaData") -> tuple[int, str]:
        """The row count of a file and its statistics JSON, by its footer."""
        rows, columns = parquet_footers.of_metadata(footer, self.leaves)
        return rows, stats_json(rows, columns, prefix=self.prefix)

    def texts_of_names(self, spellings: Sequence[tuple[str | None, ...]]) -> list[tuple[str | None, ...]]:
        """Partition values as text for the log, from the names of the directories that Spark created.

        Names of binary values are hexadecimal digits; with `hex_names`, names of strings are too.
        """
        import pyarrow as pa

        columns = []
        for i, data_type in enumerate(self.partition_types):
            texts = [spelling[i] for spelling in spellings]
            if data_type == BINARY or (data_type == STRING and self.hex_names):
                typed = pa.array([bytes.fromhex(text) if text is not None else None for text in texts], pa.binary())
            else:
                # `spark_writer` writes timestamps in directory names in UTC, without a time zone.
                typed = partition_values.typed(pa.array(texts, pa.string()), data_type, time_zone="UTC")
            columns.append(typed)
        return self.texts_of(columns, len(spellings))

    def texts_of(self, columns: "Sequence[pa.Array | pa.ChunkedArray]", count: int) -> list[tuple[str | None, ...]]:
        """Partition values as text for the log, from a typed column for each partition column."""
        if not columns:
            return [()] * count
        texts = [
            partition_values.serialise(column, data_type).to_pylist()
            for column, data_type in zip(columns, self.partition_types, strict=True)
        ]
        return list(zip(*texts, strict=True))


def _in_files(schema: StructType, partition_columns: Sequence[str], materialised: bool) -> StructType:
    data = schema.without(partition_columns)
    if not materialised:
        return data
    partition_fields = [schema.get(name, case_sensitive=True) for name in partition_columns]
    return StructType((*data.fields, *(f for f in partition_fields if f is not None)))


def _second_version(metadata: Metadata, conf: "RuntimeConfig") -> bool:
    """Whether the table, else the session, requires Parquet format version 2."""
    if FORMAT_PROPERTY not in metadata.configuration:
        return str(conf.get("parquet.writer.version", "v1")).lower() in ("v2", "parquet_2_0")
    text = str(properties.get(metadata.configuration, "parquet.format.version"))
    return tuple(map(int, text.split("."))) >= _SECOND_VERSION


def _codec(name: str, setting: str) -> str:
    folded = str(name).strip().lower()
    if folded not in _CODECS:
        raise InvalidArgumentError(f"{setting} is {name!r}: Spark writes Parquet with {', '.join(_CODECS)}")
    return folded
