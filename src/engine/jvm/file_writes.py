"""Spark's own write of files, with the number of rows that its tasks report."""

from collections.abc import Mapping, Sequence
from inspect import unwrap
from typing import TYPE_CHECKING

from . import plans
from .connection import frames, sessions
from .connection.gateway import Gateway, JavaObject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS = "numOutputRows"
_WITHIN = {"AdaptiveSparkPlanExec": "executedPlan", "ResultQueryStageExec": "plan"}
"""The method for the plan inside a node of adaptive execution."""


def append(df: "DataFrame", directory: str, by: Sequence[str], options: Mapping[str, str]) -> int | None:
    """Add the rows of `df` to `directory` as Parquet files, partitioned `by` columns.

    Returns the number of rows in the files of all successful tasks, as these report it; `None` if the tasks run in the
    driver's own process, or if the session is of Spark Connect.
    """
    spark = df.sparkSession
    writer = df.write.format("parquet").mode("append").options(**options)
    writer = writer.partitionBy(*by) if by else writer
    if not sessions.is_classic(spark) or sessions.scala_context(spark).isLocal():
        # PySpark's own method: the one of `enable` refuses other formats in the directory of a Delta table.
        unwrap(type(writer).save)(writer, directory)
        return None
    # What `save` does. It doesn't return its query, which has the number.
    option = Gateway.of(spark).jvm.scala.Option
    command = frames.java_writer(writer).saveCommand(option.apply(directory))
    done = plans.frame_of(spark, command, frames.session_of(df))
    return _rows(frames.command_executed(done).commandPhysicalPlan())


def _rows(plan: JavaObject) -> int | None:
    metric = plan.metrics().get(_ROWS)
    if metric.isDefined():
        return int(metric.get().value())
    within = _WITHIN.get(plan.getClass().getSimpleName())
    return None if within is None else _rows(getattr(plan, within)())
