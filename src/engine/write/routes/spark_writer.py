"""Runs Spark's own Parquet writer, into a directory of a JVM file system."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....core.protocol import partition_values, paths
from ....core.protocol.schema import BINARY, STRING, VARIANT, contains
from ....errors import UnsupportedEnvironmentError
from ....logstore.common.uri import shown
from ....settings.spark_own import PARQUET_LEGACY_FORMAT, PARQUET_REBASE, PARQUET_TIMESTAMPS, VARIANT_SHREDDING
from ...connect.server_errors import text_of
from ...jvm import file_writes, plans
from ...jvm.connection.messages import chain
from ...jvm.connection.sessions import is_classic
from ...sql import checks
from ...sql.hidden_names import free_names
from ...sql.resolution import column_named
from ...storage import parquet_footers
from ..write_spec import DataFile, WriteSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.conf import RuntimeConfig

_SETTINGS = {PARQUET_REBASE.key: "CORRECTED"}
"""Session settings without a write option: dates before 1582 are written without rebasing, as other engines expect."""

_UNSHREDDED = {VARIANT_SHREDDING.key: "false"}
"""Disables shredding, which the feature variantType doesn't allow; tables with shredding may have unshredded values."""

_FORMAT = {
    PARQUET_TIMESTAMPS.key: "TIMESTAMP_MICROS",  # INT96 has no statistics
    PARQUET_LEGACY_FORMAT.key: "false",
}
"""Options of the writer; Spark 4.1 only reads them from the session."""

_OPTIONS = {
    **_FORMAT,
    "timeZone": "UTC",  # for timestamps in the names of partition directories
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}

COMMITTER = {"mapreduce.fileoutputcommitter.algorithm.version": "1"}  # version 2 exposes files of failed task attempts

_NO_NAME = "a partition value can't be the name of a directory"


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file written by a job. `name` is relative to the directory of the job.

    `partition` has each partition value as text, unescaped from the directory name; `None` is null. `size` is in bytes,
    `modified_ms` in milliseconds since the epoch.
    """

    name: str
    partition: tuple[str | None, ...]
    size: int
    modified_ms: int


def value_of_directory(name: str) -> str | None:
    """The value in the name `column=value` of a partition directory; `None` is null."""
    text = name.partition("=")[2]
    return None if text == paths.NULL_PARTITION else paths.hive_unescape(text)


def run(
    df: "DataFrame", spec: WriteSpec, directory: str, *, options: Mapping[str, str], settings: Mapping[str, str]
) -> int | None:
    """Write the rows into `directory` by a Spark job.

    `options` are options of the writer, `settings` of its session. Returns the number of rows that Spark's tasks wrote,
    for `data_files`; `None` if it isn't known.
    """
    from pyspark.sql import functions as F

    options = {
        **_OPTIONS,
        **options,
        "parquet.statistics.truncate.length": str(parquet_footers.string_bytes(spec.prefix)),
        "compression": spec.codec,
    }
    if spec.options.max_records_per_file:
        options["maxRecordsPerFile"] = str(spec.options.max_records_per_file)
    if spec.options.parquet_version:
        options["parquet.writer.version"] = spec.options.parquet_version
    frame = _with_names_for_values(df, spec)
    # Spark omits the partition columns from the files.
    directories = list(spec.partition_columns)
    if spec.materialised:
        directories = list(free_names([f"by_{name}" for name in directories], spec.schema.names))
    if spec.materialised:
        frame = frame.select(*map(column_named, spec.data_schema.names))
    for name, directory_column, data_type in zip(
        spec.partition_columns, directories, spec.partition_types, strict=True
    ):
        if data_type == BINARY or (data_type == STRING and spec.hex_names):
            # Bytes that aren't valid UTF-8 have no distinct text: two values could get the same directory.
            frame = frame.withColumn(directory_column, F.hex(column_named(name)))
        elif directory_column != name:
            frame = frame.withColumn(directory_column, column_named(name))
    by_session = _FORMAT if df.sparkSession.version.startswith("4.1.") else {}
    variants = _UNSHREDDED if contains(spec.schema, lambda data_type: data_type == VARIANT) else {}
    needed = {**_SETTINGS, **by_session, **variants, **settings}
    if is_classic(df.sparkSession):
        frame = plans.with_settings(frame, needed)
    else:
        _check_settings(df, needed)
    return file_writes.append(frame, directory, directories, options)


def _check_settings(df: "DataFrame", needed: Mapping[str, str]) -> None:
    """Raise UnsupportedEnvironmentError if the session has other settings: on Spark Connect, a write can't set them."""
    conf = df.sparkSession.conf
    wrong = {key: value for key, value in needed.items() if not _is_set(conf, key, value)}
    if wrong:
        asked = ", ".join(f"{key}={value}" for key, value in wrong.items())
        raise UnsupportedEnvironmentError(
            f"on Spark Connect, a write to a Delta table needs settings that this session doesn't have: {asked}. Set "
            "them in the session; nothing was written"
        )


def _is_set(conf: "RuntimeConfig", key: str, value: str) -> bool:
    from pyspark.errors import PySparkException

    try:
        current = (conf.get(key) or "").upper()
    except PySparkException:  # this version of Spark has no such setting
        return True
    # EXCEPTION refuses the dates that LEGACY would change.
    return current == value.upper() or (key == PARQUET_REBASE.key and current == "EXCEPTION")


def check_found(df: "DataFrame", staged: Sequence[StagedFile], table: str) -> None:
    """Raise UnsupportedEnvironmentError if the job of a Spark Connect server wrote files that this process can't find.

    A commit would then lose the rows. It costs a small job, only where no file was found.
    """
    if not staged and not is_classic(df.sparkSession) and not df.isEmpty():
        raise UnsupportedEnvironmentError(
            f"Spark wrote files for {shown(table)}, but this process finds none there: the Spark Connect server and "
            "its client reach different storage by this path (a disk of their own, or another endpoint). Use a path "
            "that names the same place for both; nothing was committed"
        )


def elsewhere(table: str, what: str) -> UnsupportedEnvironmentError:
    """The error for executors whose files this process doesn't find; `what` says what they did."""
    return UnsupportedEnvironmentError(
        f"{shown(table)}: Spark's executors {what}: by this path, executors and the driver reach different storage (a "
        "disk of their own, or another endpoint). Use a path or URL that is the same storage on each machine, such as "
        "hdfs:, s3a: or a shared mount. Nothing was committed; files may remain on disks of the executors"
    )


def data_files(
    spec: WriteSpec,
    staged: Sequence[StagedFile],
    described: Sequence[tuple[int, str]],
    prefix: str,
    wrote: int | None = None,
) -> list[DataFile]:
    """The data files of a finished job, with `prefix` before their names; files without rows are left out.

    `described` has the row count and the statistics JSON of each staged file (`WriteSpec.described`), and `wrote` is
    the result of `run`. Raises UnsupportedEnvironmentError if this process doesn't find all rows that the tasks wrote.
    """
    found = sum(rows for rows, _ in described)
    if wrote is not None and wrote != found:
        raise elsewhere(spec.table, f"wrote {wrote} rows, and the driver finds files with {found} of them")
    texts = spec.texts_of_names([file.partition for file in staged])
    # An empty partition of the frame may produce a file without rows.
    return [
        DataFile(prefix + file.name, text, file.size, file.modified_ms, rows, stats)
        for file, text, (rows, stats) in zip(staged, texts, described, strict=True)
        if rows
    ]


def _with_names_for_values(df: "DataFrame", spec: WriteSpec) -> "DataFrame":
    """Add checks that fail the job for strings in partition columns that can't be directory names.

    A string that isn't valid UTF-8 can't be in the log: the error contains `partition_values.NO_TEXT`. A string with a
    NUL, or equal to the name of the directory for nulls, needs a job with `hex_names`; `needs_hex_names` recognizes
    that error. The first attempt doesn't use `hex_names`, because a new partition column would hide from Spark that
    the rows are sorted. For the same reason, the checks are attached to a data column.
    """
    from pyspark.sql import functions as F

    types = zip(spec.partition_columns, spec.partition_types, strict=True)
    texts = [column_named(name) for name, data_type in types if data_type == STRING]
    if not texts:
        return df
    valid, safe = F.lit(True), F.lit(True)
    for text in texts:
        valid &= F.coalesce(F.is_valid_utf8(text), F.lit(True))
        safe &= ~(text.eqNullSafe(paths.NULL_PARTITION) | F.coalesce(F.contains(text, F.char(F.lit(0))), F.lit(False)))
    on = spec.data_schema.names[0]
    df = checks.checked(df, valid, partition_values.NO_TEXT, on=on)
    return df if spec.hex_names else checks.checked(df, safe, _NO_NAME, on=on)


def needs_hex_names(error: BaseException) -> bool:
    """Whether a write failed at a string that needs a job with `hex_names`."""
    return any(_NO_NAME in text_of(cause) for cause in chain(error))
