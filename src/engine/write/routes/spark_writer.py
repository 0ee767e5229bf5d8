"""Spark's own Parquet writer, into a directory of a file system that the JVM has."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....core.protocol import partition_values, paths
from ....core.protocol.schema import BINARY, STRING, VARIANT, contains
from ....settings.spark_own import PARQUET_LEGACY_FORMAT, PARQUET_REBASE, PARQUET_TIMESTAMPS, VARIANT_SHREDDING
from ...jvm import plans
from ...jvm.messages import chain
from ...sql import checks
from ...sql.hidden_names import free_names
from ...storage import parquet_footers as footers
from ...storage.parallel import in_parallel
from .job import DataFile, Job

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from pyspark.sql import Column, DataFrame

_SETTINGS = {PARQUET_REBASE.key: "CORRECTED"}
"""What no write option can say: dates before 1582 are written as they are, as every other Delta engine reads them."""

_UNSHREDDED = {VARIANT_SHREDDING.key: "false"}
"""Variants as the feature variantType has them; a table that allows shredded ones may hold these too."""

_FORMAT = {
    PARQUET_TIMESTAMPS.key: "TIMESTAMP_MICROS",  # INT96 has no statistics
    PARQUET_LEGACY_FORMAT.key: "false",
}
"""Options of the writer; Spark 4.1 looks for them in the session alone."""

_OPTIONS = {
    **_FORMAT,
    "timeZone": "UTC",  # of timestamps in the names of partition directories
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


_NO_NAME = "a partition value can't be the name of a directory"


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file of a job. `name` is relative to the directory of the job.

    `partition` holds the text of each partition column's value as the directories spell it, unescaped; `None` is null.
    `size` is in bytes, `modified_ms` in milliseconds.
    """

    name: str
    partition: tuple[str | None, ...]
    size: int
    modified_ms: int


def value_of_directory(name: str) -> str | None:
    """The text behind the name `column=value` of a partition directory; `None` is null."""
    text = name.partition("=")[2]
    return None if text == paths.NULL_PARTITION else paths.hive_unescape(text)


def write(
    df: "DataFrame",
    job: Job,
    directory: str,
    *,
    options: Mapping[str, str],
    settings: Mapping[str, str],
    find: Callable[[Sequence[str]], Sequence[StagedFile]],
    footer: "Callable[[StagedFile], pq.FileMetaData]",
) -> list[DataFile]:
    """Have Spark write the rows into `directory`; the files, whose names are relative to it.

    `options` are of the writer, `settings` of the session that it runs in. `find` gives, for the partition columns,
    the files of the finished job, and `footer` reads that of one.
    """
    from pyspark.sql import functions as F

    options = {
        **_OPTIONS,
        **options,
        "parquet.statistics.truncate.length": str(footers.string_bytes(job.prefix)),
        "compression": job.codec,
    }
    if job.options.max_records_per_file:
        options["maxRecordsPerFile"] = str(job.options.max_records_per_file)
    if job.options.parquet_version:
        options["parquet.writer.version"] = job.options.parquet_version
    frame = _with_names_for_values(df, job)
    # Spark leaves the columns that make directories out of the files.
    directories = list(job.partition_columns)
    if job.materialised:
        directories = list(free_names([f"by_{name}" for name in directories], job.schema.names))
    if job.materialised:
        frame = frame.select(*map(_quoted, job.data_schema.names))
    for name, made, data_type in zip(job.partition_columns, directories, job.partition_types, strict=True):
        if data_type == BINARY or (data_type == STRING and job.hex_names):
            # Bytes that are no UTF-8 have no name: two values could share a directory, and a file name with it.
            frame = frame.withColumn(made, F.hex(_quoted(name)))
        elif made != name:
            frame = frame.withColumn(made, _quoted(name))
    by_session = _FORMAT if df.sparkSession.version.startswith("4.1.") else {}
    variants = _UNSHREDDED if contains(job.schema, lambda data_type: data_type == VARIANT) else {}
    frame = plans.with_settings(frame, {**_SETTINGS, **by_session, **variants, **settings})
    writer = frame.write.format("parquet").mode("append").options(**options)
    if directories:
        writer = writer.partitionBy(*directories)
    writer.save(directory)
    found = find(job.partition_columns)
    known = in_parallel(lambda file: job.described(footer(file)), found)
    texts = job.texts_of_names([file.partition for file in found])
    # An empty partition of the frame leaves a file with no row.
    return [
        DataFile(file.name, text, file.size, file.modified_ms, rows, stats)
        for file, text, (rows, stats) in zip(found, texts, known, strict=True)
        if rows
    ]


def _quoted(name: str) -> "Column":
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")


def _with_names_for_values(df: "DataFrame", job: Job) -> "DataFrame":
    """`df`, whose job fails at a text in a partition column that can't be the name of a directory.

    One that is no UTF-8 can be in no log either: the error says `partition_values.NO_TEXT`. One that has the name of
    the directory of nulls, which Spark would make a null, or a NUL, is written by a job with `hex_names`:
    `needs_hex_names` knows the error. No job is such a one at first, for the column is then made anew, and Spark
    doesn't know by the old one's order that rows are sorted. The checks ride on a data column for the same reason.
    """
    from pyspark.sql import functions as F

    types = zip(job.partition_columns, job.partition_types, strict=True)
    texts = [_quoted(name) for name, data_type in types if data_type == STRING]
    if not texts:
        return df
    valid, safe = F.lit(True), F.lit(True)
    for text in texts:
        valid &= F.coalesce(F.is_valid_utf8(text), F.lit(True))
        safe &= ~(text.eqNullSafe(paths.NULL_PARTITION) | F.coalesce(F.contains(text, F.char(F.lit(0))), F.lit(False)))
    on = job.data_schema.names[0]
    df = checks.checked(df, valid, partition_values.NO_TEXT, on=on)
    return df if job.hex_names else checks.checked(df, safe, _NO_NAME, on=on)


def needs_hex_names(error: BaseException) -> bool:
    """Whether a write failed at a partition value that can't be the name of a directory as it is."""
    return any(_NO_NAME in str(one) for one in chain(error))
