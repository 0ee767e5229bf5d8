"""Every command by every route, run by executors that are processes of their own, in directories of their own."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from support.commands import KINDS, ROWS, copy_of, made, nothing_is_left_behind, rows_of
from support.copied_streams import copied_by_streams
from support.spark_tables import Table
from support.table_work import STEPS, by_route, settings
from tablelog.core import DeltaLog
from tablelog.core.log import checkpoint
from tablelog.settings.declarations import LOG_DRIVER_BYTES, READ_ROUTE, READ_SCRATCH, SNAPSHOT_PARTITIONS
from tablelog.spark import DeltaTable, conf

from .standalone import WORKERS

ROUTES = ["native", "arrow"]


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return made(spark, tmp_path_factory.mktemp("cluster"))


@pytest.fixture(params=ROUTES)
def route(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    with settings(spark, by_route(request.param)):
        yield request.param


def executors(spark: SparkSession) -> set[tuple[int, str]]:
    """The process and the working directory of each executor, as tasks see them: a task on each at once."""

    def seen(_: Any) -> Iterator[tuple[int, str]]:
        from pyspark import BarrierTaskContext

        BarrierTaskContext.get().barrier()
        yield os.getppid(), os.getcwd()

    return set(spark.sparkContext.parallelize(range(WORKERS), WORKERS).barrier().mapPartitions(seen).collect())


@pytest.mark.smoke
def test_tasks_run_in_other_processes_and_directories(spark: SparkSession) -> None:
    found = executors(spark)
    assert len({process for process, _ in found}) == WORKERS
    assert os.getpid() not in {process for process, _ in found}
    assert len({directory for _, directory in found} | {os.getcwd()}) == WORKERS + 1


@pytest.mark.parametrize("step", [pytest.param(s, marks=pytest.mark.smoke if s == "commands" else ()) for s in STEPS])
def test_the_whole_work(spark: SparkSession, tmp_path: Path, route: str, step: str) -> None:
    STEPS[step](spark, f"file://{tmp_path}/a table", {})


@pytest.mark.parametrize("name", KINDS)
def test_each_command(base: Table, route: str, name: str) -> None:
    table = copy_of(base, f"{name} by {route}")
    KINDS[name].run(table)
    assert rows_of(table) == KINDS[name].leaves(ROWS)
    nothing_is_left_behind(table)


def test_streams(spark: SparkSession, tmp_path: Path, route: str) -> None:
    copied_by_streams(spark, f"file://{tmp_path}/source", tmp_path / "checkpoints")


def test_reading_by_a_manifest(spark: SparkSession, base: Table, tmp_path: Path) -> None:
    with settings(spark, {READ_ROUTE.key: "manifest", READ_SCRATCH.key: str(tmp_path)}):
        assert base.rows() == list(ROWS)


@pytest.mark.smoke
def test_a_large_log(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "_AT_ONCE", 0)
    table = Table(spark, tmp_path / "table")
    rows = spark.range(40).select("id", (F.col("id") % 4).alias("p"))
    table.write(rows.repartition(2), by=("p",), **{"delta.enableDeletionVectors": "true"})
    DeltaLog.for_path(table.path).checkpoint()
    conf.forget()
    with settings(spark, {LOG_DRIVER_BYTES.key: "0", SNAPSHOT_PARTITIONS.key: "2"}):
        delta = table.delta
        table.write(spark.range(1000, 1001).select("id", F.lit(1).cast("long").alias("p")))
        assert table.read().where("p = 1 and id >= 1000").count() == 1
        snapshot_base = conf.delta_log(table.path, conf.session_conf(spark, table.path)).snapshot().base
        assert snapshot_base is not None
        assert not snapshot_base.loaded  # executors planned the query, and not the driver
        delta.delete("id = 3")
        source = spark.range(5, 7).select("id", (F.col("id") % 4).alias("p"))
        delta.alias("t").merge(source.alias("s"), "t.id = s.id and t.p = s.p").whenMatchedDelete().execute()
        delta.optimize().executeZOrderBy("id")
        assert table.rows("id") == [*sorted({*range(40)} - {3, 5, 6}), 1000]


def test_row_ids_and_changes(spark: SparkSession, tmp_path: Path, route: str) -> None:
    table = Table(spark, tmp_path / "table")
    properties = {"delta.enableRowTracking": "true", "delta.enableChangeDataFeed": "true"}
    table.write(spark.range(0, 6, 1, 2), **properties)
    before = {row.id: row._row_id for row in table.read(readRowIds="true").collect()}
    table.delta.update("id = 2", {"id": "id + 100"})
    table.delta.delete("id = 3")
    after = {row.id: row._row_id for row in table.read(readRowIds="true").collect()}
    assert after == {id_ + (100 if id_ == 2 else 0): row for id_, row in before.items() if id_ != 3}
    feed = table.read(readChangeFeed="true", startingVersion="1").select("id", "_change_type", "_commit_version")
    assert sorted(tuple(row) for row in feed.collect()) == [
        (2, "update_preimage", 1),
        (3, "delete", 2),
        (102, "update_postimage", 1),
    ]


def test_a_table_of_the_catalog(spark: SparkSession, route: str) -> None:
    spark.range(0, 4, 1, 2).write.format("delta").saveAsTable("of_the_cluster")
    assert spark.table("of_the_cluster").count() == 4
    DeltaTable.forName(spark, "of_the_cluster").delete("id = 1")
    assert spark.table("of_the_cluster").count() == 3
    spark.sql("DROP TABLE of_the_cluster")
