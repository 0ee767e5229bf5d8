"""Rows become data files of a table, with the `add` actions that a commit will name them by.

Spark writes them itself (`df.write.parquet`) into a staging directory inside the table; then they are renamed into
place, and their statistics come from their footers. A frame that surely is small is collected as Arrow, and the driver
writes it. Nothing is visible to a reader before the commit. After a failure nothing is left.
"""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..core.protocol import partition_values, paths
from ..core.protocol.actions import AddFile, Metadata
from ..core.protocol.properties import TableProperties
from ..core.protocol.schema import (
    BINARY,
    STRING,
    PrimitiveType,
    StructType,
    check_parquet_names,
    check_partition_columns,
    indexed_leaves,
    parse_schema,
)
from ..core.protocol.stats_writer import stats_json
from ..errors import ConstraintViolationError, InvalidArgumentError, SchemaMismatchError
from . import conform, footers, interrupts, plans, small_frame, staging
from .violations import translated

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

logger = logging.getLogger(__name__)

CODEC_PROPERTY = "delta.parquet.compression.codec"
_CODECS = ("none", "uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4", "lz4_raw", "zstd")

_SETTINGS = {"spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED"}
"""What no write option can say: dates before 1582 are written as they are, as every other Delta engine reads them."""

_OPTIONS = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # INT96 has no statistics
    "spark.sql.parquet.writeLegacyFormat": "false",
    "timeZone": "UTC",  # of timestamps in the names of partition directories
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # No checksum file beside each data file: a third less time for small ones, and none goes stale by a rename.
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How data files are made.

    `compression` is a codec as Spark calls it (unset: the table's property, else the session's). `max_records_per_file`
    bounds the rows of a file (unset or 0: the session's `spark.sql.files.maxRecordsPerFile`). `durable`: the files are
    on disk before `write_files` returns. `small_frames`: the driver may write a small frame itself.
    """

    compression: str | None = None
    max_records_per_file: int | None = None
    parquet_version: str | None = None
    durable: bool = True
    small_frames: bool = True

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "WriteOptions":
        """What a user's write options, whatever the case of their keys, say of data files; others are ignored."""
        folded = {key.lower(): value for key, value in options.items()}
        limit = folded.get("maxrecordsperfile")
        if limit is not None and not str(limit).strip().lstrip("-").isdigit():
            raise InvalidArgumentError(f"maxRecordsPerFile is {limit!r}: it needs to be a whole number")
        codec = folded.get("compression")
        return cls(
            compression=_codec(codec, "the option compression") if codec is not None else None,
            max_records_per_file=int(limit) if limit is not None else None,
            parquet_version=folded.get("parquet.writer.version"),
        )


@dataclass(frozen=True, slots=True)
class Written:
    """Files that lie in a table and that no commit names yet. `bytes` is their size, `rows` what they hold."""

    table: str
    adds: list[AddFile] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0


def write_files(
    df: "DataFrame",
    *,
    table: str,
    metadata: Metadata,
    options: WriteOptions | None = None,
    data_change: bool = True,
) -> Written:
    """Write the rows of `df` as data files of the table at the root URI `table`; no file for no rows.

    `df` has the columns of `metadata`'s schema, in its order, with its types and without its void columns, as
    `conform.conform` gives it. `data_change` goes into the `add` actions. Raises ConstraintViolationError for a row
    that the table can't hold, InvalidArgumentError for columns that no file can hold, UnsupportedEnvironmentError on
    Spark Connect or a file system that isn't local. PROTOCOL.md, "Add File", "Per-file Statistics".
    """
    options = options or WriteOptions()
    job = _Job.of(df, table, metadata, options)
    directory = staging.new_directory(job.root)
    with _cleared(df.sparkSession, directory), translated(table, job.schema):
        files = _write_small(df, job, directory) if options.small_frames else None
        if files is None:
            files = _write_natively(df, job, directory)
        _check_nulls(files, job)
        staging.publish(directory, job.root, [one.name for one in files], durable=options.durable)
    adds = [job.add(one, data_change) for one in files]
    return Written(table, adds, sum(one.rows for one in files), sum(one.size for one in files))


def discard(written: Written) -> None:
    """Delete files that surely no commit names: after a failed commit, never after `CommitStateUnknownError`."""
    root = staging.local_root(written.table)
    staging.remove(root, [paths.decode(add.path) for add in written.adds])


@dataclass(frozen=True, slots=True)
class _Job:
    root: str
    table: str
    schema: StructType  # without void columns
    partition_columns: tuple[str, ...]
    leaves: list[footers.Leaf]
    prefix: int  # of strings, in their bounds
    codec: str
    options: WriteOptions

    @classmethod
    def of(cls, df: "DataFrame", table: str, metadata: Metadata, options: WriteOptions) -> "_Job":
        whole = parse_schema(metadata.schema_string)
        schema = conform.without_void(whole)
        check_parquet_names(schema)
        check_partition_columns(schema, metadata.partition_columns)
        if not len(schema):
            raise InvalidArgumentError(f"{table}: there is no column to write (void columns are not in data files)")
        if list(df.columns) != list(schema.names):
            raise SchemaMismatchError(
                f"{table}: the data's columns are {', '.join(df.columns)}, the table's are {', '.join(schema.names)}"
            )
        properties = TableProperties.of(metadata)
        columns = properties.data_skipping_stats_columns
        indexed = indexed_leaves(whole, metadata.partition_columns, properties.data_skipping_num_indexed_cols, columns)
        data = schema.without(metadata.partition_columns)
        codec = options.compression or metadata.configuration.get(CODEC_PROPERTY)
        if codec is None:
            codec = df.sparkSession.conf.get("spark.sql.parquet.compression.codec") or "snappy"
        return cls(
            staging.local_root(table),
            table,
            schema,
            tuple(metadata.partition_columns),
            footers.locate(data, [name for name, _ in indexed]),
            properties.data_skipping_string_prefix_length,
            _codec(codec, "the compression codec"),
            options,
        )

    @property
    def partition_types(self) -> list[PrimitiveType]:
        found = [self.schema.get(name, case_sensitive=True) for name in self.partition_columns]
        return [f.data_type for f in found if f is not None and isinstance(f.data_type, PrimitiveType)]

    def add(self, file: staging.DataFile, data_change: bool) -> AddFile:
        return AddFile(
            path=paths.encode(file.name),
            partition_values=dict(zip(self.partition_columns, file.partition, strict=True)),
            size=file.size,
            modification_time=file.modified_ms,
            data_change=data_change,
            stats=file.stats,
        )


def _codec(name: str, what: str) -> str:
    folded = str(name).strip().lower()
    if folded not in _CODECS:
        raise InvalidArgumentError(f"{what} is {name!r}: Spark writes Parquet with {', '.join(_CODECS)}")
    return folded


@contextmanager
def _cleared(spark: "SparkSession", directory: str) -> Iterator[None]:
    """In the end the staging directory is gone; after an interrupt the Spark jobs inside have ended before."""
    tag = os.path.basename(directory)
    context: Any = spark.sparkContext
    context.addJobTag(tag)
    try:
        yield
    except KeyboardInterrupt:
        interrupts.stop(spark, tag)
        raise
    finally:
        staging.clear(directory)
        context.removeJobTag(tag)


def _write_small(df: "DataFrame", job: _Job, directory: str) -> list[staging.DataFile] | None:
    """The files of a frame that surely is small; `None` when it isn't, or when Spark's writer is needed for it."""
    limit = job.options.max_records_per_file or int(df.sparkSession.conf.get("spark.sql.files.maxRecordsPerFile") or 0)
    if job.codec not in small_frame.CODECS or job.options.parquet_version or not small_frame.is_exact(job.schema):
        return None
    bounded = plans.bounded(df)
    if bounded is None:
        return None
    batches = plans.collected(bounded)
    count = sum(len(batch) for batch in batches)
    if count > plans.MAX_ROWS or 0 < limit < count:
        return None
    return small_frame.write(
        batches,
        job.schema,
        job.partition_columns,
        directory,
        [(leaf.column, leaf.field) for leaf in job.leaves],
        codec=job.codec,
        prefix=job.prefix,
        spark_version=df.sparkSession.version,
    )


def _write_natively(df: "DataFrame", job: _Job, directory: str) -> list[staging.DataFile]:
    from pyspark.sql import functions as F

    options = {
        **_OPTIONS,
        "parquet.statistics.truncate.length": str(footers.string_bytes(job.prefix)),
        "compression": job.codec,
    }
    if job.options.max_records_per_file:
        options["maxRecordsPerFile"] = str(job.options.max_records_per_file)
    if job.options.parquet_version:
        options["parquet.writer.version"] = job.options.parquet_version
    frame = _without_the_name_of_null(df, job)
    for name, data_type in zip(job.partition_columns, job.partition_types, strict=True):
        if data_type == BINARY:
            # Bytes that are no UTF-8 have no name: two values could share a directory, and a file name with it.
            frame = frame.withColumn(name, F.hex(_quoted(name)))
    frame = plans.with_settings(frame, _SETTINGS)
    writer = frame.write.format("parquet").mode("append").options(**options)
    if job.partition_columns:
        writer = writer.partitionBy(*job.partition_columns)
    writer.save(directory)
    found = staging.find(directory, job.partition_columns)
    known = staging.in_parallel(lambda file: footers.read(f"{directory}/{file.name}", job.leaves), found)
    texts = _log_texts([file.partition for file in found], job)
    # An empty partition of the frame leaves a file with no row: it goes with the staging directory.
    return [
        staging.DataFile(
            file.name, text, file.size, file.modified_ms, rows, stats_json(rows, columns, prefix=job.prefix)
        )
        for file, text, (rows, columns) in zip(found, texts, known, strict=True)
        if rows
    ]


def _quoted(name: str) -> "Column":
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")


def _without_the_name_of_null(df: "DataFrame", job: _Job) -> "DataFrame":
    """`df`, whose job fails at a partition value spelt as the directory of nulls is: Spark would make it a null.

    The check rides on a data column, for by a partition column's own order Spark knows that rows are sorted already.
    """
    types = zip(job.partition_columns, job.partition_types, strict=True)
    texts = [name for name, data_type in types if data_type == STRING]
    if not texts:
        return df
    safe = ~_quoted(texts[0]).eqNullSafe(paths.NULL_PARTITION)
    for name in texts[1:]:
        safe &= ~_quoted(name).eqNullSafe(paths.NULL_PARTITION)
    message = f"{paths.NULL_PARTITION} can't be a value of the partition column {', '.join(texts)}: it is a null's name"
    return conform.checked(df, safe, message, on=job.schema.without(job.partition_columns).names[0])


def _check_nulls(files: Sequence[staging.DataFile], job: _Job) -> None:
    """ConstraintViolationError for a null, which an empty text has become, in a partition column that is NOT NULL."""
    for i, name in enumerate(job.partition_columns):
        declared = job.schema.get(name, case_sensitive=True)
        if declared is not None and not declared.nullable and any(file.partition[i] is None for file in files):
            raise ConstraintViolationError(
                f"{job.table}: the partition column {name} is NOT NULL, and the data has a null or an empty text there "
                "(which is a null in a partition column); nothing was written"
            )


def _log_texts(spellings: Sequence[tuple[str | None, ...]], job: _Job) -> list[tuple[str | None, ...]]:
    """The partition values as the log spells them, from the names that Spark gave directories."""
    import pyarrow as pa

    if not job.partition_columns:
        return list(spellings)
    columns = []
    for i, data_type in enumerate(job.partition_types):
        texts = [spelling[i] for spelling in spellings]
        if data_type == BINARY:
            typed = pa.array([bytes.fromhex(text) if text is not None else None for text in texts], pa.binary())
        else:
            typed = partition_values.typed(pa.array(texts, pa.string()), data_type)
        columns.append(partition_values.serialise(typed, data_type).to_pylist())
    return list(zip(*columns, strict=True))
