"""The keys of Delta and of tablelog that have an effect, in alphabetical order. Defaults are Delta's."""

from typing import Final

from ..errors import LogStoreConfigurationError
from .setting import BYTES, FLAG, MEBIBYTES, POSITIVE, RATIO, TEXT, WHOLE, Family, Setting, choice

DELTA: Final = "spark.databricks.delta."
"""The prefix of Delta's keys."""
TABLELOG: Final = "spark.tablelog."
"""The prefix of tablelog's own keys."""
PREFIXES: Final = ("spark.delta.", "delta.", DELTA, "spark.io.delta.", "io.delta.", "spark.hadoop.delta.")
"""The prefixes of all keys that can affect the handle of a table, in addition to Hadoop's."""
_DYNAMODB: Final = "spark.io.delta.storage.S3DynamoDBLogStore."
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30

# --- spark.databricks.delta ---------------------------------------------------------------------------------------

CHECKSUM_LISTS_FILES = Setting[bool](
    f"{DELTA}allFilesInCrc.enabled",
    True,
    FLAG,
    "Whether the version checksum of a small table lists the table's files.",
)
CHECKSUM_MAX_FILES = Setting[int](
    f"{DELTA}allFilesInCrc.thresholdNumFiles",
    50,
    WHOLE,
    "A version checksum lists the files of tables with at most this many files.",
    "files",
)
ALLOW_ARBITRARY_PROPERTIES = Setting[bool](
    f"{DELTA}allowArbitraryProperties.enabled",
    False,
    FLAG,
    "Whether unknown `delta.*` table properties are accepted and stored; otherwise they are an error.",
)
AUTO_COMPACT = Setting[str | None](
    f"{DELTA}autoCompact.enabled",
    None,
    choice("true", "auto", "false"),
    "Whether small files are compacted after a commit.",
    shown_default="the table's `delta.autoOptimize.autoCompact`",
)
AUTO_COMPACT_MAX_FILE_SIZE = Setting[int](
    f"{DELTA}autoCompact.maxFileSize",
    128 * _MIB,
    BYTES,
    "The target size of the files that auto compaction writes.",
    "bytes",
)
AUTO_COMPACT_MIN_FILE_SIZE = Setting[int | None](
    f"{DELTA}autoCompact.minFileSize",
    None,
    BYTES,
    "Auto compaction rewrites files smaller than this.",
    "bytes",
    shown_default="half of `autoCompact.maxFileSize`",
)
AUTO_COMPACT_MIN_NUM_FILES = Setting[int](
    f"{DELTA}autoCompact.minNumFiles",
    50,
    WHOLE,
    "Auto compaction compacts a partition that has at least this many small files.",
    "files",
)
CHANGE_FEED_SCHEMA_MODE = Setting[str](
    f"{DELTA}changeDataFeed.defaultSchemaModeForColumnMappingTable",
    "endVersion",
    choice("endVersion", "latest", "legacy"),
    "For a table with column mapping: the version whose schema the change data feed has.",
)
CHANGE_FEED_OUT_OF_RANGE = Setting[bool](
    f"{DELTA}changeDataFeed.timestampOutOfRange.enabled",
    False,
    FLAG,
    "Whether a change data feed that starts after the newest version is empty; otherwise it is an error.",
)
CHECKPOINT_PART_SIZE = Setting[int | None](
    f"{DELTA}checkpoint.partSize",
    None,
    POSITIVE,
    "The maximum number of actions in one file of a checkpoint.",
    "actions",
    shown_default="no limit",
)
CHECKPOINT_V2_FORMAT = Setting[str | None](
    f"{DELTA}checkpointV2.topLevelFileFormat",
    None,
    choice("json", "parquet"),
    "The format of the top-level file of a V2 checkpoint.",
    shown_default="depends on the number of actions",
)
USER_METADATA = Setting[str | None](
    f"{DELTA}commitInfo.userMetadata",
    None,
    TEXT,
    "The `userMetadata` of each commit, as the history shows it.",
    per_operation=True,
)
BYPASS_LOCATION_SCHEMA_CHECK = Setting[bool](
    f"{DELTA}alterLocation.bypassSchemaCheck",
    False,
    FLAG,
    "Whether ALTER TABLE SET LOCATION accepts a location whose table has other columns; otherwise it is an error.",
)
DROP_CONSTRAINT_IF_EXISTS = Setting[bool](
    f"{DELTA}constraints.assumesDropIfExists.enabled",
    False,
    FLAG,
    "Whether dropping a constraint that the table doesn't have is accepted; otherwise it is an error.",
)
CONVERT_IGNORES_CAST_FAILURE = Setting[bool](
    f"{DELTA}convert.partitionValues.ignoreCastFailure",
    False,
    FLAG,
    "Whether convertToDelta reads a partition value that can't be cast to the column's type as null; "
    "otherwise it is an error.",
)
DELETE_BY_VECTORS = Setting[bool](
    f"{DELTA}delete.deletionVectors.persistent",
    True,
    FLAG,
    "Whether DELETE writes deletion vectors, for tables that have them enabled.",
)
COMPACTED_LOG_READS = Setting[bool](
    f"{DELTA}deltaLog.minorCompaction.useForReads", True, FLAG, "Whether tablelog reads log compaction files."
)
COMPACTED_LOG_WRITES = Setting[bool](
    f"{DELTA}deltaLog.minorCompaction.useForWrites",
    False,
    FLAG,
    "Whether tablelog writes log compaction files after commits.",
)
DYNAMIC_OVERWRITE = Setting[bool](
    f"{DELTA}dynamicPartitionOverwrite.enabled", True, FLAG, "Whether dynamic partition overwrites are allowed."
)
FORMAT_CHECK = Setting[bool](
    f"{DELTA}formatCheck.enabled",
    True,
    FLAG,
    "Whether a write in another format into the directory of a Delta table is an error.",
)
GENERATED_PARTITION_FILTERS = Setting[bool](
    f"{DELTA}generatedColumn.partitionFilterOptimization.enabled",
    True,
    FLAG,
    "Whether filters on a column also become filters on the partition columns that are generated from it.",
)
MAX_COMMIT_ATTEMPTS = Setting[int](
    f"{DELTA}maxCommitAttempts",
    10_000_000,
    WHOLE,
    "How often a commit is tried again after another writer committed its version first.",
    "attempts",
)
MERGE_BY_VECTORS = Setting[bool](
    f"{DELTA}merge.deletionVectors.persistent",
    True,
    FLAG,
    "Whether MERGE writes deletion vectors, for tables that have them enabled.",
)
MERGE_REPARTITION = Setting[bool](
    f"{DELTA}merge.repartitionBeforeWrite.enabled",
    True,
    FLAG,
    "Whether MERGE into a partitioned table shuffles the rows by the partition columns before it writes them.",
)
OPTIMIZE_BATCH_SIZE = Setting[int](
    f"{DELTA}optimize.batchSize",
    0,
    BYTES,
    "OPTIMIZE commits after each batch of this many bytes; 0: one commit for everything.",
    "bytes",
)
CLUSTERING_TARGET_CUBE_SIZE = Setting[int](
    f"{DELTA}optimize.clustering.mergeStrategy.minCubeSize.targetCubeSize",
    150 * _GIB,
    BYTES,
    "The target size of a ZCube, the group of files that OPTIMIZE clusters together.",
    "bytes",
)
CLUSTERING_MIN_CUBE_SIZE = Setting[int](
    f"{DELTA}optimize.clustering.mergeStrategy.minCubeSize.threshold",
    100 * _GIB,
    BYTES,
    "OPTIMIZE doesn't cluster a ZCube of at least this size again.",
    "bytes",
)
OPTIMIZE_MAX_DELETED_RATIO = Setting[float](
    f"{DELTA}optimize.maxDeletedRowsRatio",
    0.05,
    RATIO,
    "OPTIMIZE rewrites a file if a larger share of its rows is deleted by a deletion vector.",
)
OPTIMIZE_MAX_FILE_SIZE = Setting[int](
    f"{DELTA}optimize.maxFileSize", _GIB, BYTES, "The target size of the files that OPTIMIZE writes.", "bytes"
)
OPTIMIZE_MIN_FILE_SIZE = Setting[int](
    f"{DELTA}optimize.minFileSize", _GIB, BYTES, "OPTIMIZE rewrites files smaller than this.", "bytes"
)
OPTIMIZE_REPARTITION = Setting[bool](
    f"{DELTA}optimize.repartition.enabled",
    False,
    FLAG,
    "Whether OPTIMIZE shuffles the rows of each file that it writes; otherwise one task reads them.",
)
ZORDER_CHECKS_STATISTICS = Setting[bool](
    f"{DELTA}optimize.zorder.checkStatsCollection.enabled",
    True,
    FLAG,
    "Whether ZORDER BY a column without statistics is an error.",
)
OPTIMIZE_WRITE_BIN_SIZE = Setting[int](
    f"{DELTA}optimizeWrite.binSize",
    512 * _MIB,
    MEBIBYTES,
    "The amount of shuffled data that an optimized write puts into one file.",
    "bytes",
)
OPTIMIZE_WRITE = Setting[bool | None](
    f"{DELTA}optimizeWrite.enabled",
    None,
    FLAG,
    "Whether a write shuffles the rows first (optimized write), so that it writes fewer and larger files.",
    shown_default="the table's `delta.autoOptimize.optimizeWrite`",
)
PROPERTY_DEFAULTS = Family(
    f"{DELTA}properties.defaults.", "<property>", "The default of the table property `delta.<property>` for new tables."
)
REPLACE_WHERE_CHECK = Setting[bool](
    f"{DELTA}replaceWhere.constraintCheck.enabled",
    True,
    FLAG,
    "Whether a replaceWhere write with rows that don't match its condition is an error.",
)
REPLACE_WHERE_DATA_COLUMNS = Setting[bool](
    f"{DELTA}replaceWhere.dataColumns.enabled",
    True,
    FLAG,
    "Whether the condition of replaceWhere may use columns that aren't partition columns.",
)
RESTORE_DOWNGRADES = Setting[bool](
    f"{DELTA}restore.protocolDowngradeAllowed",
    False,
    FLAG,
    "Whether RESTORE also restores the protocol of the version, which may have fewer table features.",
)
RETENTION_CHECK = Setting[bool](
    f"{DELTA}retentionDurationCheck.enabled",
    True,
    FLAG,
    "Whether VACUUM with a retention shorter than the table's is an error.",
)
AUTO_MERGE = Setting[bool](
    f"{DELTA}schema.autoMerge.enabled",
    False,
    FLAG,
    "Whether writes and MERGE add new columns of the data to the table (schema evolution).",
)
SNAPSHOT_PARTITIONS = Setting[int](
    f"{DELTA}snapshotPartitions", 50, WHOLE, "The number of Spark tasks that read a large log.", "tasks"
)
CORRUPTION_IS_FATAL = Setting[bool](
    f"{DELTA}state.corruptionIsFatal",
    True,
    FLAG,
    "Whether reading a version that contradicts its version checksum is an error; otherwise it is a warning.",
)
STREAMING_COLUMN_CHANGES = Family(
    f"{DELTA}streaming.allowSourceColumn",
    "<change>",
    "Whether streams with a schema log go on after a `<change>` of columns: `Rename`, `Drop`, `TypeChange` or "
    "`RenameAndDrop`. The value is `always`; with the suffix that the error names, it is for one query, and may be a "
    "version ([streams](guide/streaming.md#changes-of-columns)).",
)
STREAMING_LOG_ANYWHERE = Setting[bool](
    f"{DELTA}streaming.allowSchemaLocationOutsideCheckpointLocation",
    False,
    FLAG,
    "Whether `schemaTrackingLocation` of a stream may be outside its checkpoint location; otherwise it is an error.",
    per_operation=True,
)
STREAMING_MERGES_CHANGES = Setting[bool](
    f"{DELTA}streaming.schemaTracking.mergeConsecutiveSchemaChanges.enabled",
    True,
    FLAG,
    "Whether a stream with a schema log follows successive changes of the schema, without rows between them, at once.",
    per_operation=True,
)
EVENT_TIME_ORDER = Setting[bool](
    f"{DELTA}withEventTimeOrder.enabled",
    False,
    FLAG,
    "Whether streams with a watermark first read the table in the order of event time, unless the option "
    "`withEventTimeOrder` is set ([streams](guide/streaming.md#the-order-of-event-time)).",
    per_operation=True,
)
STATS_SKIPPING = Setting[bool](f"{DELTA}stats.skipping", True, FLAG, "Whether reads skip files by their statistics.")
TIME_TRAVEL_IN_PATHS = Setting[bool](
    f"{DELTA}timeTravel.resolveOnIdentifier.enabled",
    True,
    FLAG,
    "Whether `@v3` or `@20240501000000000` at the end of a path selects a version.",
)
AUTOMATIC_WIDENING = Setting[str](
    f"{DELTA}typeWidening.allowAutomaticWidening",
    "always",
    choice("always", "same_family_type", "never"),
    "Which type changes schema evolution applies to existing columns.",
)
UPDATE_BY_VECTORS = Setting[bool](
    f"{DELTA}update.deletionVectors.persistent",
    True,
    FLAG,
    "Whether UPDATE writes deletion vectors, for tables that have them enabled.",
)
VACUUM_LITE = Setting[bool](
    f"{DELTA}vacuum.lite.enabled",
    False,
    FLAG,
    "Whether VACUUM finds the unused files in the log and doesn't list the table's directory (VACUUM LITE).",
)
VACUUM_LOGGED = Setting[bool | None](
    f"{DELTA}vacuum.logging.enabled",
    None,
    FLAG,
    "Whether VACUUM writes commits that record its start and end.",
    shown_default="true on stores that several writers may share",
)
VACUUM_PARALLEL = Setting[bool](
    f"{DELTA}vacuum.parallelDelete.enabled",
    False,
    FLAG,
    "Whether VACUUM sends several delete requests at the same time.",
)
VACUUM_PARALLELISM = Setting[int | None](
    f"{DELTA}vacuum.parallelDelete.parallelism",
    None,
    WHOLE,
    "How many delete requests VACUUM sends at the same time, at most 64.",
    "requests",
    shown_default="`spark.sql.shuffle.partitions`",
)
TXN_APP_ID = Setting[str | None](
    f"{DELTA}write.txnAppId", None, TEXT, "The application id of an idempotent write.", per_operation=True
)
TXN_VERSION = Setting[str | None](
    f"{DELTA}write.txnVersion",
    None,
    TEXT,
    "The version of an idempotent write: a whole number that increases with each write of the application.",
    per_operation=True,
)
TXN_VERSION_RESET = Setting[bool](
    f"{DELTA}write.txnVersion.autoReset.enabled",
    False,
    FLAG,
    "Whether tablelog unsets `write.txnVersion` after each write.",
    per_operation=True,
)
WRITE_CHECKSUM = Setting[bool](
    f"{DELTA}writeChecksumFile.enabled", True, FLAG, "Whether a commit writes a version checksum."
)

# --- stores -------------------------------------------------------------------------------------------------------

LOG_STORE = Family(
    "spark.delta.logStore.",
    "<scheme>.impl",
    "The class of the log store for a URI scheme. `spark.delta.logStore.class` sets it for all schemes "
    "([stores.md](stores.md)). The keys also work without `spark.`.",
)
SECOND_DRIVER = Setting[str](
    f"{LOG_STORE.prefix}s3SingleDriver.secondDriver",
    "refuse",
    choice("refuse", "warn"),
    "What S3SingleDriverLogStore does if it detects a second driver. Also works without `spark.`.",
    error=LogStoreConfigurationError,
)
DYNAMODB_PROVIDER = Setting[str](
    f"{_DYNAMODB}credentials.provider",
    "",
    TEXT,
    "The class of the credentials provider for DynamoDB.",
    shown_default="the credentials for S3",
    error=LogStoreConfigurationError,
)
DYNAMODB_REGION = Setting[str](
    f"{_DYNAMODB}ddb.region", "us-east-1", TEXT, "The AWS region of DynamoDB.", error=LogStoreConfigurationError
)
DYNAMODB_TABLE = Setting[str](
    f"{_DYNAMODB}ddb.tableName",
    "delta_log",
    TEXT,
    "The DynamoDB table that holds the commits.",
    error=LogStoreConfigurationError,
)
DYNAMODB_TTL = Setting[int](
    f"{_DYNAMODB}ddb.ttl",
    24 * 60 * 60,
    WHOLE,
    "How long DynamoDB keeps the item of a completed commit.",
    "seconds",
    error=LogStoreConfigurationError,
)
DYNAMODB_READ_UNITS = Setting[int](
    f"{_DYNAMODB}provisionedThroughput.rcu",
    5,
    POSITIVE,
    "The read capacity, if tablelog creates the DynamoDB table.",
    "units",
    error=LogStoreConfigurationError,
)
DYNAMODB_WRITE_UNITS = Setting[int](
    f"{_DYNAMODB}provisionedThroughput.wcu",
    5,
    POSITIVE,
    "The write capacity, if tablelog creates the DynamoDB table.",
    "units",
    error=LogStoreConfigurationError,
)
DYNAMODB_READ_RETRIES = Setting[str](
    f"{_DYNAMODB}read.retries",
    "",
    TEXT,
    "No effect; accepted because Delta has this key.",
    error=LogStoreConfigurationError,
)
DYNAMODB = (
    DYNAMODB_PROVIDER,
    DYNAMODB_REGION,
    DYNAMODB_TABLE,
    DYNAMODB_TTL,
    DYNAMODB_READ_UNITS,
    DYNAMODB_WRITE_UNITS,
    DYNAMODB_READ_RETRIES,
)
"""The settings of S3DynamoDBLogStore; each also without `spark.`."""

# --- spark.tablelog -----------------------------------------------------------------------------------------------

ENABLED = Setting[bool](
    f"{TABLELOG}enabled", False, FLAG, "Set by `enable(spark)` and unset by `disable(spark)`; not for users to set."
)
EXTERNAL_PATHS = Setting[str](
    f"{TABLELOG}externalPaths",
    "sameStore",
    choice("allow", "sameStore", "refuse"),
    "Which files outside the table's directory are read: any file (`allow`), files with the same scheme and bucket, "
    "container or host (`sameStore`), or none (`refuse`) "
    "([decision 50](decisions/0050-files-outside-the-table-directory.md)).",
)
LOG_DRIVER_BYTES = Setting[int](
    f"{TABLELOG}log.driverBytes",
    _GIB,
    BYTES,
    "If a checkpoint is larger than this, Spark's executors read the log, not the driver ([scale.md](scale.md)).",
    "bytes",
)
READ_ROUTE = Setting[str](
    f"{TABLELOG}read.route",
    "auto",
    choice("auto", "native", "manifest", "arrow", empty="auto"),
    "How data files are read: by Spark's Parquet scan (`native`), by a Spark scan over a manifest (`manifest`), or by "
    "Python workers (`arrow`).",
)
READ_SCRATCH = Setting[str | None](
    f"{TABLELOG}read.scratch",
    None,
    TEXT,
    "The directory for the manifests of the read route `manifest`. The Python process and Spark must both reach it.",
)
SHOW_PROGRESS = Setting[bool](
    f"{TABLELOG}showProgress",
    True,
    FLAG,
    "Whether a terminal or a notebook shows what a long command does ([log records and metrics](guide/logging.md)).",
)
TRUSTED_FUNCTIONS = Setting[str](
    f"{TABLELOG}trustedFunctions",
    "",
    TEXT,
    "A comma-separated list of functions that constraints, generation expressions and defaults of tables may call, in "
    "addition to Spark's built-in functions ([columns](guide/columns.md#rules-of-tables-that-arent-yours)).",
)
WRITE_ROUTE = Setting[str](
    f"{TABLELOG}write.route",
    "auto",
    choice("auto", "native", "arrow", empty="auto"),
    "How data files are written: by Spark's Parquet writer (`native`) or by Python workers (`arrow`) "
    "([stores.md](stores.md#data-files)).",
)

SETTINGS: Final[dict[str, Setting[object]]] = {
    setting.key: setting for setting in list(globals().values()) if isinstance(setting, Setting)
}
"""All settings of this module by their keys."""
FAMILIES: Final = (PROPERTY_DEFAULTS, STREAMING_COLUMN_CHANGES, LOG_STORE)
PER_OPERATION: Final = frozenset(key for key, setting in SETTINGS.items() if setting.per_operation)


def has_effect(key: str) -> bool:
    """Whether this module declares a key."""
    return key in SETTINGS or any(key.startswith(family.prefix) for family in FAMILIES)
