"""Passes the session's configuration to tables' handles, and caches one handle per table and configuration."""

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock

from pyspark.sql import SparkSession

from ..core.deltalog import DeltaLog
from ..engine.jvm import builders
from ..engine.storage import hadoop_log, hadoop_settings
from .log_once import log_once

_PREFIXES = (
    *("spark.delta.", "delta.", "spark.databricks.delta.", "spark.io.delta.", "io.delta.", "spark.hadoop.delta."),
    *(
        f"{of_session}{kind}."
        for of_session in ("", "spark.hadoop.")
        for kind in ("fs", "dfs", "hadoop", "google.cloud.auth")
    ),
)
_DELTA = "spark.databricks.delta."
_HONOURED = (
    "changeDataFeed.defaultSchemaModeForColumnMappingTable changeDataFeed.timestampOutOfRange.enabled "
    "allFilesInCrc.enabled allFilesInCrc.thresholdNumFiles checkpoint.partSize checkpointV2.topLevelFileFormat "
    "deltaLog.minorCompaction.useForReads deltaLog.minorCompaction.useForWrites "
    "allowArbitraryProperties.enabled autoCompact.enabled autoCompact.maxFileSize autoCompact.minFileSize "
    "autoCompact.minNumFiles optimizeWrite.binSize optimizeWrite.enabled "
    "commitInfo.userMetadata constraints.assumesDropIfExists.enabled "
    "generatedColumn.partitionFilterOptimization.enabled delete.deletionVectors.persistent "
    "dynamicPartitionOverwrite.enabled maxCommitAttempts merge.deletionVectors.persistent "
    "merge.repartitionBeforeWrite.enabled "
    "optimize.batchSize optimize.clustering.minCubeSize optimize.clustering.targetCubeSize "
    "optimize.maxDeletedRowsRatio optimize.maxFileSize optimize.minFileSize optimize.repartition.enabled "
    "optimize.zorder.checkStatsCollection.enabled "
    "replaceWhere.constraintCheck.enabled replaceWhere.dataColumns.enabled schema.autoMerge.enabled "
    "snapshotPartitions state.corruptionIsFatal stats.skipping timeTravel.resolveOnIdentifier.enabled "
    "update.deletionVectors.persistent typeWidening.allowAutomaticWidening write.txnAppId write.txnVersion "
    "write.txnVersion.autoReset.enabled writeChecksumFile.enabled retentionDurationCheck.enabled vacuum.lite.enabled "
    "vacuum.logging.enabled vacuum.parallelDelete.enabled vacuum.parallelDelete.parallelism "
    "restore.protocolDowngradeAllowed convert.partitionValues.ignoreCastFailure"
).split()
_HONOURED_BELOW = ("properties.defaults.",)
_PER_OPERATION = ("spark.databricks.delta.commitInfo.", "spark.databricks.delta.write.")
_KEPT = 256
_KEPT_OF_A_PATH = 8
"""The maximum number of handles per path: each configuration has its own, also if credentials change."""

_handles: OrderedDict[tuple[str, frozenset[tuple[str, str]]], DeltaLog] = OrderedDict()
_handles_lock = Lock()


def session_conf(spark: SparkSession, path: str = "") -> dict[str, str]:
    """The session's configuration; keys of Delta that tablelog ignores are logged once.

    It includes the Hadoop configuration for the storage of `path`; keys of Spark's configuration take precedence.
    """
    hadoop_log.serve(spark)
    conf = builders.session_conf(spark)
    conf = {**hadoop_settings.of_hadoop(spark, path), **conf}
    for key in conf:
        name = key.removeprefix(_DELTA)
        if name != key and name not in _HONOURED and not name.startswith(_HONOURED_BELOW):
            log_once(f"conf {key}", "%s is set, but has no effect in this version of tablelog.", key)
    return conf


def relevant(conf: Mapping[str, str]) -> dict[str, str]:
    """The keys on which a table's handle depends: those of Delta, except settings of single operations."""
    return {
        key: value for key, value in conf.items() if key.startswith(_PREFIXES) and not key.startswith(_PER_OPERATION)
    }


def delta_log(path: str, conf: Mapping[str, str], extra: Mapping[str, str] | None = None) -> DeltaLog:
    """The handle of the table at `path`, shared by all threads with the same configuration."""
    settings = {**relevant(conf), **(extra or {})}
    key = path, frozenset(settings.items())
    with _handles_lock:
        log = _handles.get(key)
        if log is not None:
            _handles.move_to_end(key)
            return log
    log = DeltaLog.for_path(path, conf=settings)
    with _handles_lock:
        log = _handles.setdefault(key, log)
        of_path = [one for one in _handles if one[0] == path]
        for one in of_path[:-_KEPT_OF_A_PATH]:
            del _handles[one]
        while len(_handles) > _KEPT:
            _handles.popitem(last=False)
    return log


def forget(path: str | None = None) -> None:
    """Drop the cached handles of one path, spelled as before, or of all paths."""
    with _handles_lock:
        for key in [key for key in _handles if path is None or key[0] == path]:
            del _handles[key]
