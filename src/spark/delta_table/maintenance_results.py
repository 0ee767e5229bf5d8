"""The result frames of maintenance commands; they need no Spark job."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from ...core.deltalog import DeltaLog
from ...core.protocol import paths
from ...dml.maintain.vacuum import Vacuumed
from .describe import local_frame


def removable(spark: SparkSession, log: DeltaLog, result: Vacuumed, *, shown: bool) -> DataFrame:
    """The paths that VACUUM can delete, if `shown`; else a frame without columns, as in Delta."""
    if not shown:
        return spark.createDataFrame([], StructType())
    names = (*result.files, *result.directories)
    rows = [(paths.absolute(log.table, paths.encode(name)),) for name in names]
    return local_frame(spark, rows, StructType([StructField("path", StringType())]))


_RESTORED = {
    "table_size_after_restore": "tableSizeAfterRestore",
    "num_of_files_after_restore": "numOfFilesAfterRestore",
    "num_removed_files": "numRemovedFiles",
    "num_restored_files": "numRestoredFiles",
    "removed_files_size": "removedFilesSize",
    "restored_files_size": "restoredFilesSize",
}


def restored(spark: SparkSession, metrics: Mapping[str, int]) -> DataFrame:
    """The metrics of a RESTORE, by the names of their columns."""
    row = tuple(metrics[name] for name in _RESTORED.values())
    return local_frame(spark, [row], StructType([StructField(name, LongType()) for name in _RESTORED]))
