"""`DeltaTable.optimize()`: the builder, and the frame of metrics that it returns."""

from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from ...core.deltalog import DeltaLog
from ...dml.maintain.optimize import optimize
from ...dml.maintain.optimize_layout import OptimizeLayout
from ...dml.maintain.optimize_result import FileCounts, OptimizeResult
from ...errors import InvalidArgumentError
from ..arguments import checked, names_of
from ..boundary import with_pyspark_errors
from ..writer import commit_of
from .describe import local_frame


def _struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


_LONG = LongType()
_SIZES = _struct(min=_LONG, max=_LONG, avg=DoubleType(), totalFiles=_LONG, totalSize=_LONG)
_FILES = _struct(num=_LONG, size=_LONG)
_ZORDER = _struct(
    strategyName=StringType(),
    inputCubeFiles=_FILES,
    inputOtherFiles=_FILES,
    inputNumCubes=_LONG,
    mergedFiles=_FILES,
    numOutputCubes=_LONG,
    mergedNumCubes=_LONG,
)
_LOOKUPS = _struct(
    column=StringType(),
    filesBefore=DoubleType(),
    filesAfter=DoubleType(),
    bytesBefore=DoubleType(),
    bytesAfter=DoubleType(),
)
METRICS = _struct(
    numFilesAdded=_LONG,
    numFilesRemoved=_LONG,
    filesAdded=_SIZES,
    filesRemoved=_SIZES,
    partitionsOptimized=_LONG,
    zOrderStats=_ZORDER,
    numBins=_LONG,
    numBatches=_LONG,
    totalConsideredFiles=_LONG,
    totalFilesSkipped=_LONG,
    preserveInsertionOrder=BooleanType(),
    startTimeMs=_LONG,
    endTimeMs=_LONG,
    deletionVectorStats=_struct(numDeletionVectorsRemoved=_LONG, numDeletionVectorRowsRemoved=_LONG),
    numTableColumns=_LONG,
    lookups=ArrayType(_LOOKUPS),
)
RESULT = _struct(path=StringType(), metrics=METRICS)


@with_pyspark_errors
@checked
class DeltaOptimizeBuilder:
    """Defines and runs OPTIMIZE; created by `DeltaTable.optimize()`."""

    def __init__(self, spark: SparkSession, log: DeltaLog) -> None:
        self._spark = spark
        self._log = log
        self._where: str | None = None

    def where(self, partitionFilter: str) -> "DeltaOptimizeBuilder":
        """Restrict to the partitions for which this condition on partition columns is TRUE."""
        self._where = partitionFilter
        return self

    def executeCompaction(self) -> DataFrame:
        """Merge small files into larger ones; cluster the unclustered files of a clustered table.

        Returns:
            One row of metrics.
        """
        return self._run(OptimizeLayout.of(self._spark))

    def executeZOrderBy(self, *cols: str | list[str] | tuple[str, ...]) -> DataFrame:
        """Lay out the rows of each partition by several columns (Z-order).

        Args:
            cols: column names, or one list of them.

        Returns:
            One row of metrics. `metrics.lookups` has, for each column, the average number of files and bytes that a
            filter for one of its values reads, before and after; it is empty if there are several commits.
        """
        names = names_of(cols)
        if not names:
            raise InvalidArgumentError("executeZOrderBy needs at least one column name.")
        return self._run(OptimizeLayout.of(self._spark, by=names))

    def executeFull(self) -> DataFrame:
        """Recluster all files of a clustered table, also those clustered by other columns (OPTIMIZE ... FULL).

        Returns:
            One row of metrics.
        """
        return self._run(OptimizeLayout.of(self._spark, full=True))

    def _run(self, layout: OptimizeLayout) -> DataFrame:
        return run_optimize(self._spark, self._log, layout, self._where)


def run_optimize(spark: SparkSession, log: DeltaLog, layout: OptimizeLayout, where: str | Column | None) -> DataFrame:
    """Run OPTIMIZE or REORG; returns its metrics as a frame with one row."""
    return frame_of(spark, optimize(spark, log, layout, where, options=commit_of(spark)))


def frame_of(spark: SparkSession, outcome: OptimizeResult) -> DataFrame:
    """The table and its metrics as a frame with one row."""
    return local_frame(spark, [(outcome.table, _metrics(outcome))], RESULT)


def _metrics(outcome: OptimizeResult) -> dict[str, Any]:
    removed, partitions = outcome.removed, len(outcome.partitions)
    merged = {"num": removed.num, "size": removed.size}
    return {
        "numFilesAdded": outcome.added.num,
        "numFilesRemoved": removed.num,
        "filesAdded": _sizes(outcome.added),
        "filesRemoved": _sizes(removed),
        "partitionsOptimized": partitions,
        "zOrderStats": {
            "strategyName": "all",
            "inputCubeFiles": {"num": 0, "size": 0},
            "inputOtherFiles": merged,
            "inputNumCubes": 0,
            "mergedFiles": merged,
            "numOutputCubes": partitions,
            "mergedNumCubes": None,
        }
        if outcome.by and not outcome.clustered
        else None,
        "numBins": outcome.num_bins,
        "numBatches": len(outcome.versions),
        "totalConsideredFiles": outcome.considered,
        "totalFilesSkipped": outcome.considered - removed.num,
        "preserveInsertionOrder": False,
        "startTimeMs": outcome.began_ms,
        "endTimeMs": outcome.ended_ms,
        "deletionVectorStats": {
            "numDeletionVectorsRemoved": removed.vectors,
            "numDeletionVectorRowsRemoved": removed.deleted_rows,
        }
        if removed.vectors
        else None,
        "numTableColumns": outcome.columns,
        "lookups": [
            {
                "column": column,
                "filesBefore": before.files,
                "filesAfter": after.files,
                "bytesBefore": before.bytes,
                "bytesAfter": after.bytes,
            }
            for column, (before, after) in outcome.lookups.items()
        ],
    }


def _sizes(files: FileCounts) -> dict[str, Any]:
    return {
        "min": files.smallest,
        "max": files.largest,
        "avg": files.size / files.num if files.num else 0.0,
        "totalFiles": files.num,
        "totalSize": files.size,
    }
