"""Spark's own settings that tablelog reads, or sets for one query or write.

`default` is the value if the session doesn't set the key. `engine.jvm.connection.settings.in_force` uses Spark's
default instead.
"""

from typing import Final

from .setting import FLAG, INTEGER, TEXT, WHOLE, Family, Setting, choice

HADOOP = Family(
    "spark.hadoop.",
    "<key>",
    "Hadoop's `fs.*`, `dfs.*`, `hadoop.*` and `google.cloud.auth.*` keys, which configure access to storage. They also "
    "work without `spark.hadoop.`, and as options of a read or write ([stores.md](stores.md)).",
)

ADVISORY_PARTITION_SIZE = Setting[int | None](
    "spark.sql.adaptive.advisoryPartitionSizeInBytes", None, WHOLE, "Set to `optimizeWrite.binSize` for a write."
)
ANSI = Setting[bool](
    "spark.sql.ansi.enabled",
    True,
    FLAG,
    "Whether a cast that fails is an error. On Spark Connect, a write of other types than the table's needs it.",
)
AUTO_BROADCAST = Setting[str | None](
    "spark.sql.autoBroadcastJoinThreshold", None, TEXT, "If it is negative, MERGE doesn't broadcast its source."
)
CASE_SENSITIVE = Setting[bool](
    "spark.sql.caseSensitive", False, FLAG, "Whether column names that differ only in case are different columns."
)
CATALOG = Setting[str](
    "spark.sql.catalog.spark_catalog",
    "",
    TEXT,
    "`enable` refuses a session that has delta-spark's catalog, and replaces the setting where its jar is missing.",
)
CONSOLE_PROGRESS = Setting[bool](
    "spark.ui.showConsoleProgress",
    False,
    FLAG,
    "Whether Spark shows its progress bar on the terminal. If so, the progress of commands has lines of its own.",
)
CHECKPOINT_LOCATION = Setting[str](
    "spark.sql.streaming.checkpointLocation",
    "",
    TEXT,
    "Where a stream into a table on Spark Connect keeps its checkpoint, without the option `checkpointLocation`.",
)
EXECUTION_ID = Setting[str | None](
    "spark.sql.execution.id",
    None,
    TEXT,
    "Identifies the running query: all its scans read the same version of a table.",
)
STREAMING_QUERY_ID = Setting[str | None](
    "sql.streaming.queryId",
    None,
    TEXT,
    "Set by Spark while a batch of a stream runs: the id of the query, under which a table stores its batches.",
)
EXTENSIONS = Setting[str](
    "spark.sql.extensions",
    "",
    TEXT,
    "`enable` refuses a session that has delta-spark's extension; without its jar the setting has no effect.",
)
IGNORE_CORRUPT_FILES = Setting[bool](
    "spark.sql.files.ignoreCorruptFiles",
    False,
    FLAG,
    "Whether convertToDelta skips files that aren't valid Parquet files.",
)
IGNORE_MISSING_FILES = Setting[bool](
    "spark.sql.files.ignoreMissingFiles",
    False,
    FLAG,
    "Whether RESTORE restores the files that still exist if others are missing.",
)
INTERRUPT_ON_CANCEL = Setting[bool](
    "spark.job.interruptOnCancel", False, FLAG, "Set for the jobs of commands, so that Ctrl-C ends their tasks."
)
LISTING_PARALLELISM = Setting[int | None](
    "spark.sql.sources.parallelPartitionDiscovery.parallelism",
    None,
    WHOLE,
    "How many directories of one table are listed at the same time, at most 16.",
)
MAX_RECORDS_PER_FILE = Setting[int](
    "spark.sql.files.maxRecordsPerFile",
    0,
    INTEGER,
    "The maximum number of rows in a data file; 0 or less: no limit.",
    "rows",
)
MAX_TO_STRING_FIELDS = Setting[int](
    "spark.sql.debug.maxToStringFields",
    25,
    INTEGER,
    "The maximum number of fields of a condition in the history.",
    "fields",
)
PARQUET_COMMITTER = Setting[str](
    "spark.sql.parquet.output.committer.class", "", TEXT, "Set for a write with s3a's magic committer."
)
PARQUET_COMPRESSION = Setting[str](
    "spark.sql.parquet.compression.codec",
    "snappy",
    TEXT,
    "The compression codec of data files, unless the table or the write sets one.",
)
MAX_RESULT_SIZE = Setting[str](
    "spark.driver.maxResultSize",
    "1g",
    TEXT,
    "If the files that executors find in a large log are more than this, the driver reads the log.",
)
PARQUET_FIELD_IDS = Setting[bool](
    "spark.sql.parquet.fieldId.read.enabled", False, FLAG, "Set for reads of tables with column mapping in mode `id`."
)
PARQUET_LEGACY_FORMAT = Setting[bool](
    "spark.sql.parquet.writeLegacyFormat", False, FLAG, "Set to false for writes of data files."
)
PARQUET_OPTIONS: Final = "spark.sql.parquet."
"""A prefix of options of a write, such as `PARQUET_TIMESTAMPS`."""
PARQUET_REBASE = Setting[str](
    "spark.sql.parquet.datetimeRebaseModeInWrite", "EXCEPTION", TEXT, "Set to CORRECTED for writes of data files."
)
PARQUET_TIMESTAMPS = Setting[str](
    "spark.sql.parquet.outputTimestampType", "INT96", TEXT, "Set to TIMESTAMP_MICROS for writes of data files."
)
PARTITION_OVERWRITE_MODE = Setting[str](
    "spark.sql.sources.partitionOverwriteMode",
    "static",
    choice("static", "dynamic"),
    "Whether an overwrite replaces the whole table or only the partitions that it writes to.",
)
PYTHON_FILTER_PUSHDOWN = Setting[bool](
    "spark.sql.python.filterPushdown.enabled",
    False,
    FLAG,
    "Whether Spark passes filters to the read route `arrow`, which skips files by them.",
)
SESSION_TIME_ZONE = Setting[str](
    "spark.sql.session.timeZone",
    "UTC",
    TEXT,
    "The time zone of timestamp values that contain no time zone.",
    shown_default="the JVM's zone",
)
SHUFFLE_PARTITIONS = Setting[int](
    "spark.sql.shuffle.partitions", 200, WHOLE, "The default of `vacuum.parallelDelete.parallelism`.", "tasks"
)
SOURCE_COMMIT_PROTOCOL = Setting[str](
    "spark.sql.sources.commitProtocolClass", "", TEXT, "Set for writes to file systems other than the local one."
)
SOURCE_DEFAULT = Setting[str](
    "spark.sql.sources.default", "parquet", TEXT, "The format of reads, writes and statements that don't name a format."
)
SPECULATION = Setting[bool](
    "spark.speculation",
    False,
    FLAG,
    "Whether a slow task may run twice: a write then waits until the attempts that another one overtook have ended.",
)
SUBMITTED_PYTHON = Setting[str](
    "spark.submit.pyFiles", "", TEXT, "`enable` gives Spark's Python workers the wheel of tablelog among `--py-files`."
)
STORE_ASSIGNMENT = Setting[str](
    "spark.sql.storeAssignmentPolicy",
    "ANSI",
    TEXT,
    "How writes, INSERT, UPDATE and MERGE cast values to the types of the columns.",
)
VARIANT_SHREDDING = Setting[bool](
    "spark.sql.variant.writeShredding.enabled", True, FLAG, "Set to false for writes of data files with variants."
)

SETTINGS: Final[dict[str, Setting[object]]] = {
    setting.key: setting for setting in list(globals().values()) if isinstance(setting, Setting)
}
"""All settings of this module by their keys."""

LOCAL_SESSION: Final = {
    "spark.ui.enabled": "false",
    CONSOLE_PROGRESS.key: "false",
    "spark.log.level": "ERROR",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
"""Settings of the session that the command `tablelog` starts. It prints nothing, and only this machine reaches it."""
