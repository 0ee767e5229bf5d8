"""Spark removes executors that are idle, between and within commands, and starts others."""

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from support.commands import KINDS, ROWS, copy_of, made, nothing_is_left_behind, rows_of
from support.spark_tables import Table
from support.table_work import STEPS, by_route, settings

SETTINGS = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.initialExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": "2",
    "spark.dynamicAllocation.executorIdleTimeout": "1s",
    "spark.dynamicAllocation.shuffleTracking.timeout": "1s",
    "spark.dynamicAllocation.cachedExecutorIdleTimeout": "1s",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",  # Spark refuses a part of a second
    "spark.scheduler.minRegisteredResourcesRatio": "0",
}
_MOST_SECONDS = 60.0


def without_executors(spark: SparkSession) -> None:
    """Return when Spark has removed every executor."""
    tracker: Any = spark.sparkContext._jsc.sc().statusTracker()
    until = time.monotonic() + _MOST_SECONDS
    while len(tracker.getExecutorInfos()) > 1:
        assert time.monotonic() < until, "idle executors stay"
        time.sleep(0.1)


def run_without_executors(spark: SparkSession, directory: Path, route: str) -> None:
    """Run commands each of which begins when there is no executor."""
    base = made(spark, directory)
    with settings(spark, by_route(route)):
        for name in ("delete", "merge", "zorder"):
            without_executors(spark)
            table = copy_of(base, name)
            KINDS[name].run(table)
            assert rows_of(table) == KINDS[name].leaves(ROWS)
            nothing_is_left_behind(table)


@pytest.mark.parametrize("route", ["native", "arrow"])
def test_executors_go_between_commands(spark: SparkSession, tmp_path: Path, route: str) -> None:
    run_without_executors(spark, tmp_path, route)


def test_executors_go_with_the_rows_of_a_merge(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that store rows of the source are removed like idle ones: the MERGE starts again."""
    from tablelog.dml.merge import source as merge_source

    stored: list[bool] = []
    original = merge_source.StoredFrame

    def storing(frame: Any, *, replicated: bool = False) -> Any:
        held = original(frame, replicated=replicated)
        stored.append(replicated)
        if len(stored) == 1:
            without_executors(spark)
        return held

    monkeypatch.setattr(merge_source, "StoredFrame", storing)
    table = Table(spark, tmp_path / "table")
    table.write(spark.range(0, 40, 1, 2).repartition(2))
    source = spark.range(30, 60, 1, 2).repartition(2).withColumn("n", F.rand())
    merge = table.delta.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedDelete().whenNotMatchedInsert(values={"id": "s.id"}).execute()
    assert stored == [False, True]
    assert table.rows() == [*range(30), *range(40, 60)]
    nothing_is_left_behind(table)


def test_the_whole_work(spark: SparkSession, tmp_path: Path) -> None:
    STEPS["commands"](spark, f"file://{tmp_path}/a table", {})
