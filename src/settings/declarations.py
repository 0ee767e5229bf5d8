"""The keys of Delta and of tablelog that tablelog honours, in the order of the alphabet.

Defaults are Delta's, unless a line says otherwise. "The handle's configuration" is also what `DeltaLog.for_path` takes
as `conf`.
"""

from typing import Final

from ..errors import LogStoreConfigurationError
from .setting import BYTES, FLAG, MEBIBYTES, POSITIVE, RATIO, TEXT, WHOLE, Family, Setting, choice

DELTA: Final = "spark.databricks.delta."
"""Before all keys of Delta."""
TABLELOG: Final = "spark.tablelog."
"""Before all keys of tablelog."""
PREFIXES: Final = ("spark.delta.", "delta.", DELTA, "spark.io.delta.", "io.delta.", "spark.hadoop.delta.")
"""Before all keys that the handle of a table may depend on, beside those of Hadoop."""
_DYNAMODB: Final = "spark.io.delta.storage.S3DynamoDBLogStore."
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30

# --- spark.databricks.delta ---------------------------------------------------------------------------------------

CHECKSUM_LISTS_FILES = Setting[bool](
    f"{DELTA}allFilesInCrc.enabled", True, FLAG, "Whether the checksum of a small version lists its files."
)
CHECKSUM_MAX_FILES = Setting[int](
    f"{DELTA}allFilesInCrc.thresholdNumFiles", 50, WHOLE, "Up to how many files a checksum lists them.", "files"
)
ALLOW_ARBITRARY_PROPERTIES = Setting[bool](
    f"{DELTA}allowArbitraryProperties.enabled",
    False,
    FLAG,
    "Whether `delta.*` properties that tablelog doesn't know are stored; else they are refused.",
)
AUTO_COMPACT = Setting[str | None](
    f"{DELTA}autoCompact.enabled",
    None,
    choice("true", "auto", "false"),
    "Whether small files are compacted after a commit.",
    shown_default="the table's `delta.autoOptimize.autoCompact`",
)
AUTO_COMPACT_MAX_FILE_SIZE = Setting[int](
    f"{DELTA}autoCompact.maxFileSize", 128 * _MIB, BYTES, "The size of the files that auto compaction writes.", "bytes"
)
AUTO_COMPACT_MIN_FILE_SIZE = Setting[int | None](
    f"{DELTA}autoCompact.minFileSize",
    None,
    BYTES,
    "Files below this size are small ones for auto compaction.",
    "bytes",
    shown_default="half of `autoCompact.maxFileSize`",
)
AUTO_COMPACT_MIN_NUM_FILES = Setting[int](
    f"{DELTA}autoCompact.minNumFiles", 50, WHOLE, "From how many small files on a partition is compacted.", "files"
)
CHANGE_FEED_SCHEMA_MODE = Setting[str](
    f"{DELTA}changeDataFeed.defaultSchemaModeForColumnMappingTable",
    "endVersion",
    choice("endVersion", "latest", "legacy"),
    "Which version's columns the change feed of a table with column mapping has.",
)
CHANGE_FEED_OUT_OF_RANGE = Setting[bool](
    f"{DELTA}changeDataFeed.timestampOutOfRange.enabled",
    False,
    FLAG,
    "Whether a change feed that starts after the newest version is empty; else it is an error.",
)
CHECKPOINT_PART_SIZE = Setting[int | None](
    f"{DELTA}checkpoint.partSize",
    None,
    POSITIVE,
    "The largest number of actions in one file of a checkpoint.",
    "actions",
    shown_default="no limit",
)
CHECKPOINT_V2_FORMAT = Setting[str | None](
    f"{DELTA}checkpointV2.topLevelFileFormat",
    None,
    choice("json", "parquet"),
    "The format of the top-level file of a V2 checkpoint.",
    shown_default="by its number of actions",
)
USER_METADATA = Setting[str | None](
    f"{DELTA}commitInfo.userMetadata", None, TEXT, "A text for the history of each commit.", per_operation=True
)
DROP_CONSTRAINT_IF_EXISTS = Setting[bool](
    f"{DELTA}constraints.assumesDropIfExists.enabled",
    False,
    FLAG,
    "Whether DROP CONSTRAINT accepts a constraint that the table doesn't have.",
)
CONVERT_IGNORES_CAST_FAILURE = Setting[bool](
    f"{DELTA}convert.partitionValues.ignoreCastFailure",
    False,
    FLAG,
    "Whether convertToDelta takes a partition value that has not the column's type as null.",
)
DELETE_BY_VECTORS = Setting[bool](
    f"{DELTA}delete.deletionVectors.persistent",
    True,
    FLAG,
    "Whether DELETE writes deletion vectors where the table allows it.",
)
COMPACTED_LOG_READS = Setting[bool](
    f"{DELTA}deltaLog.minorCompaction.useForReads", True, FLAG, "Whether log compactions are read."
)
COMPACTED_LOG_WRITES = Setting[bool](
    f"{DELTA}deltaLog.minorCompaction.useForWrites", False, FLAG, "Whether log compactions are written after commits."
)
DYNAMIC_OVERWRITE = Setting[bool](
    f"{DELTA}dynamicPartitionOverwrite.enabled", True, FLAG, "Whether dynamic partition overwrites are allowed."
)
FORMAT_CHECK = Setting[bool](
    f"{DELTA}formatCheck.enabled",
    True,
    FLAG,
    "Whether writes of other formats into the directory of a Delta table are refused.",
)
GENERATED_PARTITION_FILTERS = Setting[bool](
    f"{DELTA}generatedColumn.partitionFilterOptimization.enabled",
    True,
    FLAG,
    "Whether filters of partitions are derived from generation expressions.",
)
MAX_COMMIT_ATTEMPTS = Setting[int](
    f"{DELTA}maxCommitAttempts",
    10_000_000,
    WHOLE,
    "How often a commit is tried again after other writers took its version.",
    "attempts",
)
MERGE_BY_VECTORS = Setting[bool](
    f"{DELTA}merge.deletionVectors.persistent",
    True,
    FLAG,
    "Whether MERGE writes deletion vectors where the table allows it.",
)
MERGE_REPARTITION = Setting[bool](
    f"{DELTA}merge.repartitionBeforeWrite.enabled",
    True,
    FLAG,
    "Whether MERGE shuffles the rows by the partition columns before it writes them.",
)
OPTIMIZE_BATCH_SIZE = Setting[int](
    f"{DELTA}optimize.batchSize",
    0,
    BYTES,
    "After how many bytes OPTIMIZE makes a commit; 0: one commit for all.",
    "bytes",
)
CLUSTERING_TARGET_CUBE_SIZE = Setting[int](
    f"{DELTA}optimize.clustering.mergeStrategy.minCubeSize.targetCubeSize",
    150 * _GIB,
    BYTES,
    "The size of what OPTIMIZE clusters together.",
    "bytes",
)
CLUSTERING_MIN_CUBE_SIZE = Setting[int](
    f"{DELTA}optimize.clustering.mergeStrategy.minCubeSize.threshold",
    100 * _GIB,
    BYTES,
    "From this size on, files that were clustered together are left alone.",
    "bytes",
)
OPTIMIZE_MAX_DELETED_RATIO = Setting[float](
    f"{DELTA}optimize.maxDeletedRowsRatio",
    0.05,
    RATIO,
    "OPTIMIZE rewrites files of which a larger share of the rows is deleted.",
)
OPTIMIZE_MAX_FILE_SIZE = Setting[int](
    f"{DELTA}optimize.maxFileSize", _GIB, BYTES, "The size of the files that OPTIMIZE writes.", "bytes"
)
OPTIMIZE_MIN_FILE_SIZE = Setting[int](
    f"{DELTA}optimize.minFileSize", _GIB, BYTES, "OPTIMIZE rewrites files below this size.", "bytes"
)
OPTIMIZE_REPARTITION = Setting[bool](
    f"{DELTA}optimize.repartition.enabled",
    False,
    FLAG,
    "Whether OPTIMIZE shuffles the rows of a file that it writes; else one task reads them.",
)
ZORDER_CHECKS_STATISTICS = Setting[bool](
    f"{DELTA}optimize.zorder.checkStatsCollection.enabled",
    True,
    FLAG,
    "Whether ZORDER BY refuses columns without statistics.",
)
OPTIMIZE_WRITE_BIN_SIZE = Setting[int](
    f"{DELTA}optimizeWrite.binSize",
    512 * _MIB,
    MEBIBYTES,
    "How much shuffled data an optimized write puts into a file.",
    "bytes",
)
OPTIMIZE_WRITE = Setting[bool | None](
    f"{DELTA}optimizeWrite.enabled",
    None,
    FLAG,
    "Whether a write shuffles the rows first, so that its files are few and large.",
    shown_default="the table's `delta.autoOptimize.optimizeWrite`",
)
PROPERTY_DEFAULTS = Family(
    f"{DELTA}properties.defaults.", "<property>", "The table property `delta.<property>` of each new table."
)
REPLACE_WHERE_CHECK = Setting[bool](
    f"{DELTA}replaceWhere.constraintCheck.enabled",
    True,
    FLAG,
    "Whether a replaceWhere refuses rows for which its condition isn't true.",
)
REPLACE_WHERE_DATA_COLUMNS = Setting[bool](
    f"{DELTA}replaceWhere.dataColumns.enabled",
    True,
    FLAG,
    "Whether the condition of a replaceWhere may name columns that the table isn't partitioned by.",
)
RESTORE_DOWNGRADES = Setting[bool](
    f"{DELTA}restore.protocolDowngradeAllowed",
    False,
    FLAG,
    "Whether RESTORE takes the table's features back to those of the version.",
)
RETENTION_CHECK = Setting[bool](
    f"{DELTA}retentionDurationCheck.enabled",
    True,
    FLAG,
    "Whether VACUUM refuses a retention that is shorter than the table's.",
)
AUTO_MERGE = Setting[bool](
    f"{DELTA}schema.autoMerge.enabled", False, FLAG, "Whether writes and MERGE add the columns that only the data has."
)
SNAPSHOT_PARTITIONS = Setting[int](
    f"{DELTA}snapshotPartitions", 50, WHOLE, "The number of tasks that read a large log.", "tasks"
)
CORRUPTION_IS_FATAL = Setting[bool](
    f"{DELTA}state.corruptionIsFatal",
    True,
    FLAG,
    "Whether a version that contradicts its checksum can't be read; else there is a warning.",
)
STATS_SKIPPING = Setting[bool](f"{DELTA}stats.skipping", True, FLAG, "Whether statistics decide which files are read.")
TIME_TRAVEL_IN_PATHS = Setting[bool](
    f"{DELTA}timeTravel.resolveOnIdentifier.enabled",
    True,
    FLAG,
    "Whether `@v3` or `@20240501000000000` at the end of a path names a version.",
)
AUTOMATIC_WIDENING = Setting[str](
    f"{DELTA}typeWidening.allowAutomaticWidening",
    "always",
    choice("always", "same_family_type", "never"),
    "Which columns schema evolution widens.",
)
UPDATE_BY_VECTORS = Setting[bool](
    f"{DELTA}update.deletionVectors.persistent",
    True,
    FLAG,
    "Whether UPDATE writes deletion vectors where the table allows it.",
)
VACUUM_LITE = Setting[bool](
    f"{DELTA}vacuum.lite.enabled", False, FLAG, "Whether VACUUM takes its files from the log and lists nothing."
)
VACUUM_LOGGED = Setting[bool | None](
    f"{DELTA}vacuum.logging.enabled",
    None,
    FLAG,
    "Whether VACUUM makes commits that record it.",
    shown_default="true where the store lets several writers commit",
)
VACUUM_PARALLEL = Setting[bool](
    f"{DELTA}vacuum.parallelDelete.enabled", False, FLAG, "Whether VACUUM sends several requests to delete at once."
)
VACUUM_PARALLELISM = Setting[int | None](
    f"{DELTA}vacuum.parallelDelete.parallelism",
    None,
    WHOLE,
    "How many requests to delete VACUUM sends at once, at most 64.",
    "requests",
    shown_default="`spark.sql.shuffle.partitions`",
)
TXN_APP_ID = Setting[str | None](
    f"{DELTA}write.txnAppId", None, TEXT, "The application of an idempotent write.", per_operation=True
)
TXN_VERSION = Setting[str | None](
    f"{DELTA}write.txnVersion",
    None,
    TEXT,
    "The number of an idempotent write: a whole number that grows.",
    per_operation=True,
)
TXN_VERSION_RESET = Setting[bool](
    f"{DELTA}write.txnVersion.autoReset.enabled",
    False,
    FLAG,
    "Whether `write.txnVersion` is unset after each write.",
    per_operation=True,
)
WRITE_CHECKSUM = Setting[bool](
    f"{DELTA}writeChecksumFile.enabled", True, FLAG, "Whether a commit writes a version checksum."
)

# --- stores -------------------------------------------------------------------------------------------------------

LOG_STORE = Family(
    "spark.delta.logStore.",
    "<scheme>.impl",
    "The class of the log store for a scheme; `spark.delta.logStore.class` is one for all ([stores.md](stores.md)). "
    "Each key also without `spark.`.",
)
SECOND_DRIVER = Setting[str](
    f"{LOG_STORE.prefix}s3SingleDriver.secondDriver",
    "refuse",
    choice("refuse", "warn"),
    "What S3SingleDriverLogStore does about a second driver. Also without `spark.`.",
    error=LogStoreConfigurationError,
)
DYNAMODB_PROVIDER = Setting[str](
    f"{_DYNAMODB}credentials.provider",
    "",
    TEXT,
    "The class of the credentials for DynamoDB.",
    shown_default="the credentials for S3",
    error=LogStoreConfigurationError,
)
DYNAMODB_REGION = Setting[str](
    f"{_DYNAMODB}ddb.region", "us-east-1", TEXT, "The region of DynamoDB.", error=LogStoreConfigurationError
)
DYNAMODB_TABLE = Setting[str](
    f"{_DYNAMODB}ddb.tableName", "delta_log", TEXT, "DynamoDB's table of items.", error=LogStoreConfigurationError
)
DYNAMODB_TTL = Setting[int](
    f"{_DYNAMODB}ddb.ttl",
    24 * 60 * 60,
    WHOLE,
    "How long DynamoDB keeps the item of a commit that is complete.",
    "seconds",
    error=LogStoreConfigurationError,
)
DYNAMODB_READ_UNITS = Setting[int](
    f"{_DYNAMODB}provisionedThroughput.rcu",
    5,
    POSITIVE,
    "Read capacity of a table of items that is made.",
    "units",
    error=LogStoreConfigurationError,
)
DYNAMODB_WRITE_UNITS = Setting[int](
    f"{_DYNAMODB}provisionedThroughput.wcu",
    5,
    POSITIVE,
    "Write capacity of a table of items that is made.",
    "units",
    error=LogStoreConfigurationError,
)
DYNAMODB_READ_RETRIES = Setting[str](
    f"{_DYNAMODB}read.retries",
    "",
    TEXT,
    "Accepted because Delta has this key; it has no effect.",
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
    "Which files outside of a table's directory are read: any, those of the same scheme and bucket, container or host, "
    "or none ([decision 50](decisions/0050-files-outside-of-a-table.md)).",
)
LOG_DRIVER_BYTES = Setting[int](
    f"{TABLELOG}log.driverBytes",
    _GIB,
    BYTES,
    "From which size of checkpoint on Spark's executors read the log ([scale.md](scale.md)).",
    "bytes",
)
READ_ROUTE = Setting[str](
    f"{TABLELOG}read.route",
    "auto",
    choice("auto", "native", "manifest", "arrow", empty="auto"),
    "How data files are read: by Spark's own scan (`native`), by one over a manifest, or by Python workers (`arrow`).",
)
READ_SCRATCH = Setting[str | None](
    f"{TABLELOG}read.scratch",
    None,
    TEXT,
    "The directory for the manifests of the route `manifest`, which this process and Spark share.",
)
TRUSTED_FUNCTIONS = Setting[str](
    f"{TABLELOG}trustedFunctions",
    "",
    TEXT,
    "Functions, by name and with commas between them, that rules of tables may call beside Spark's own "
    "([columns](guide/columns.md#rules-of-tables-that-arent-yours)).",
)
WRITE_ROUTE = Setting[str](
    f"{TABLELOG}write.route",
    "auto",
    choice("auto", "native", "arrow", empty="auto"),
    "How data files are written: by Spark's own writer (`native`) or by Python workers (`arrow`) "
    "([stores.md](stores.md#data-files)).",
)

SETTINGS: Final[dict[str, Setting[object]]] = {
    one.key: one for one in list(globals().values()) if isinstance(one, Setting)
}
"""All settings of this module by their keys."""
FAMILIES: Final = (PROPERTY_DEFAULTS, LOG_STORE)
PER_OPERATION: Final = frozenset(key for key, one in SETTINGS.items() if one.per_operation)


def has_effect(key: str) -> bool:
    """Whether a key is declared here."""
    return key in SETTINGS or any(key.startswith(one.prefix) for one in FAMILIES)
