"""The target layout of OPTIMIZE: sizes of files, and the columns by which rows are laid out."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from ...core.protocol import properties, schema
from ...core.table.snapshot import Snapshot
from ...engine.jvm.connection import settings
from ...errors import InvalidArgumentError
from ...settings import declarations
from ..command.command import Command
from . import cluster_by


@dataclass(frozen=True, slots=True)
class OptimizeLayout:
    """The target layout of OPTIMIZE. Sizes are in bytes.

    Files below `smallest`, or with more than the ratio `deleted_ratio` of their rows deleted, are rewritten into files
    of up to `largest`. `by` are the columns of ZORDER BY. `full`: on a clustered table, also recluster files that were
    clustered by other columns. `purge`: rewrite only the files with deleted rows, or with `for_iceberg` those that were
    not written for Iceberg. There is one commit for each `batch` bytes (`None`: one commit).
    """

    smallest: int = declarations.OPTIMIZE_MIN_FILE_SIZE.default
    largest: int = declarations.OPTIMIZE_MAX_FILE_SIZE.default
    deleted_ratio: float = declarations.OPTIMIZE_MAX_DELETED_RATIO.default
    by: tuple[str, ...] = ()
    full: bool = False
    purge: bool = False
    for_iceberg: bool = False
    auto: bool = False
    batch: int | None = None

    @classmethod
    def of(
        cls, spark: SparkSession, *, by: Sequence[str] = (), full: bool = False, purge: bool = False
    ) -> "OptimizeLayout":
        """The layout by the session's settings `spark.databricks.delta.optimize.*`."""
        return cls(
            smallest=settings.of(spark, declarations.OPTIMIZE_MIN_FILE_SIZE),
            largest=max(1, settings.of(spark, declarations.OPTIMIZE_MAX_FILE_SIZE)),
            deleted_ratio=settings.of(spark, declarations.OPTIMIZE_MAX_DELETED_RATIO),
            by=tuple(by),
            full=full,
            purge=purge,
            batch=settings.of(spark, declarations.OPTIMIZE_BATCH_SIZE) or None,
        )


def columns_of(command: Command, layout: OptimizeLayout) -> list[schema.Column]:
    """The columns by which rows are laid out; empty for a compaction. Raises InvalidArgumentError."""
    clustered = cluster_by.current(command.snapshot)
    if clustered and not layout.purge and not layout.auto:
        if layout.by:
            raise InvalidArgumentError(
                f"{command.log.table} is clustered by {', '.join(map(schema.dotted, clustered))}: OPTIMIZE doesn't "
                "support ZORDER BY on a clustered table",
                condition="DELTA_CLUSTERING_WITH_ZORDER_BY",
                parameters={"zOrderBy": ", ".join(layout.by)},
            )
        return clustered
    if layout.full:
        raise InvalidArgumentError(
            f"{command.log.table} isn't clustered: OPTIMIZE FULL requires a clustered table",
            condition="DELTA_OPTIMIZE_FULL_NOT_SUPPORTED",
        )
    return [_ordered_by(command, text) for text in layout.by]


def _ordered_by(command: Command, text: str) -> schema.Column:
    snapshot = command.snapshot
    try:
        (wanted,) = properties.column_list(text)
    except ValueError:
        raise InvalidArgumentError(f"ZORDER BY needs column names, not {text!r}") from None
    match = schema.find(snapshot.schema, wanted)
    if match is None:
        raise InvalidArgumentError(
            f"{command.log.table} has no column {text} for ZORDER BY",
            condition="DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
            parameters={"columnName": text},
        )
    column = match[0]
    if column[0] in snapshot.partition_columns:
        raise InvalidArgumentError(
            f"{text} is a partition column of {command.log.table}: ZORDER BY a partition column has no effect",
            condition="DELTA_ZORDERING_ON_PARTITION_COLUMN",
            parameters={"colName": text},
        )
    checks = settings.of(command.spark, declarations.ZORDER_CHECKS_STATISTICS)
    if checks and column not in _indexed(snapshot):
        raise InvalidArgumentError(
            f"{command.log.table} has no statistics for {text}, so ZORDER BY it wouldn't help any filter: see the "
            "table properties delta.dataSkippingNumIndexedCols and delta.dataSkippingStatsColumns",
            condition="DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS",
            parameters={"cols": text, "zorderColStatKey": declarations.ZORDER_CHECKS_STATISTICS.key},
        )
    return column


def _indexed(snapshot: Snapshot) -> set[schema.Column]:
    """The columns for which statistics are collected."""
    known = snapshot.properties
    leaves = schema.indexed_leaves(
        snapshot.schema,
        snapshot.partition_columns,
        known.data_skipping_num_indexed_cols,
        known.data_skipping_stats_columns,
    )
    return {column for column, _ in leaves}
