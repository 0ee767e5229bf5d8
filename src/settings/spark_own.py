"""Spark's own settings that tablelog reads, or sets for a query or a write of its own.

Defaults are those of a session that doesn't set the key. Where a setting is read from a session by
`engine.jvm.settings.in_force`, Spark's default counts.
"""

from typing import Final

from .setting import FLAG, INTEGER, TEXT, WHOLE, Family, Setting, choice

HADOOP = Family(
    "spark.hadoop.",
    "<key>",
    "Hadoop's `fs.*`, `dfs.*`, `hadoop.*` and `google.cloud.auth.*`, which say how storage is reached; also without "
    "`spark.hadoop.`, and as options of a read or write ([stores.md](stores.md)).",
)

ADVISORY_PARTITION_SIZE = Setting[int | None](
    "spark.sql.adaptive.advisoryPartitionSizeInBytes", None, WHOLE, "Set to `optimizeWrite.binSize` for a write."
)
AUTO_BROADCAST = Setting[str | None](
    "spark.sql.autoBroadcastJoinThreshold", None, TEXT, "A negative one forbids MERGE to broadcast its source."
)
CASE_SENSITIVE = Setting[bool](
    "spark.sql.caseSensitive", False, FLAG, "Whether names of columns that differ by case alone are different columns."
)
CATALOG = Setting[str](
    "spark.sql.catalog.spark_catalog", "", TEXT, "`enable` refuses a session that has delta-spark's catalog."
)
EXECUTION_ID = Setting[str | None](
    "spark.sql.execution.id", None, TEXT, "Spark's number of the query that runs: all its scans read one version."
)
EXTENSIONS = Setting[str]("spark.sql.extensions", "", TEXT, "`enable` refuses a session that has delta-spark's.")
IGNORE_CORRUPT_FILES = Setting[bool](
    "spark.sql.files.ignoreCorruptFiles", False, FLAG, "convertToDelta leaves out files that are not Parquet."
)
IGNORE_MISSING_FILES = Setting[bool](
    "spark.sql.files.ignoreMissingFiles", False, FLAG, "RESTORE brings back the files that are still there."
)
INTERRUPT_ON_CANCEL = Setting[bool](
    "spark.job.interruptOnCancel", False, FLAG, "Set for the jobs of commands, so that Ctrl-C ends their tasks."
)
LISTING_PARALLELISM = Setting[int | None](
    "spark.sql.sources.parallelPartitionDiscovery.parallelism",
    None,
    WHOLE,
    "How many listings of one table run at once, at most 16.",
)
MAX_RECORDS_PER_FILE = Setting[int](
    "spark.sql.files.maxRecordsPerFile", 0, INTEGER, "The most rows in a data file; 0 or less: no limit.", "rows"
)
MAX_TO_STRING_FIELDS = Setting[int](
    "spark.sql.debug.maxToStringFields", 25, INTEGER, "How much of a condition the history shows.", "fields"
)
PARQUET_COMMITTER = Setting[str](
    "spark.sql.parquet.output.committer.class", "", TEXT, "Set for a write by s3a's magic committer."
)
PARQUET_COMPRESSION = Setting[str](
    "spark.sql.parquet.compression.codec", "snappy", TEXT, "The codec of data files, unless the table or a write says."
)
PARQUET_FIELD_IDS = Setting[bool](
    "spark.sql.parquet.fieldId.read.enabled", False, FLAG, "Set for reads of tables with column mapping by id."
)
PARQUET_LEGACY_FORMAT = Setting[bool](
    "spark.sql.parquet.writeLegacyFormat", False, FLAG, "Set to false for the data files."
)
PARQUET_OPTIONS: Final = "spark.sql.parquet."
"""Options of a write may begin so; see `PARQUET_TIMESTAMPS`."""
PARQUET_REBASE = Setting[str](
    "spark.sql.parquet.datetimeRebaseModeInWrite", "EXCEPTION", TEXT, "Set to CORRECTED for the data files."
)
PARQUET_TIMESTAMPS = Setting[str](
    "spark.sql.parquet.outputTimestampType", "INT96", TEXT, "Set to TIMESTAMP_MICROS for the data files."
)
PARTITION_OVERWRITE_MODE = Setting[str](
    "spark.sql.sources.partitionOverwriteMode",
    "static",
    choice("static", "dynamic"),
    "Whether an overwrite replaces the table, or the partitions that it writes to.",
)
PYTHON_FILTER_PUSHDOWN = Setting[bool](
    "spark.sql.python.filterPushdown.enabled", False, FLAG, "Whether the route `arrow` gets filters, to skip files."
)
SESSION_TIME_ZONE = Setting[str](
    "spark.sql.session.timeZone", "UTC", TEXT, "The zone of timestamps without one.", shown_default="the JVM's zone"
)
SHUFFLE_PARTITIONS = Setting[int](
    "spark.sql.shuffle.partitions", 200, WHOLE, "The default of `vacuum.parallelDelete.parallelism`.", "tasks"
)
SOURCE_COMMIT_PROTOCOL = Setting[str](
    "spark.sql.sources.commitProtocolClass", "", TEXT, "Set for a write to a file system that isn't local."
)
SOURCE_DEFAULT = Setting[str](
    "spark.sql.sources.default", "parquet", TEXT, "The format of reads, writes and statements that name none."
)
STORE_ASSIGNMENT = Setting[str](
    "spark.sql.storeAssignmentPolicy", "ANSI", TEXT, "How UPDATE and MERGE cast values to the types of columns."
)
VARIANT_SHREDDING = Setting[bool](
    "spark.sql.variant.writeShredding.enabled", True, FLAG, "Set to false for data files with variants."
)

SETTINGS: Final[dict[str, Setting[object]]] = {
    one.key: one for one in list(globals().values()) if isinstance(one, Setting)
}
"""All settings of this module by their keys."""
