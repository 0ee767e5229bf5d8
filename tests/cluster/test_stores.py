"""The work of a table on the cluster where its files are on HDFS or S3, by Spark's own clients and by the workers'."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.commands import KINDS, ROWS, made, nothing_is_left_behind
from support.copied_streams import copied_by_streams
from support.spark_tables import Table
from support.table_work import STEPS, Work, settings
from tablelog.core.log import checkpoint
from tablelog.settings.declarations import LOG_DRIVER_BYTES, READ_ROUTE, RETENTION_CHECK, SNAPSHOT_PARTITIONS
from tablelog.spark import conf

from .stored import stored_copy

ROUTES = [("minio", "native"), ("minio", "arrow"), ("hdfs", "native"), ("hdfs", "arrow")]

pytestmark = pytest.mark.parametrize("place", ROUTES, ids=" by ".join, indirect=True)


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return made(spark, tmp_path_factory.mktemp("stores"))


@pytest.mark.parametrize("name", KINDS)
def test_each_command(base: Table, place: Any, name: str) -> None:
    table = stored_copy(base, place)
    KINDS[name].run(table)
    assert table.rows("id", "p") == list(KINDS[name].leaves(ROWS))
    nothing_is_left_behind(table)


@pytest.mark.parametrize("step", STEPS)
def test_the_whole_work(spark: SparkSession, place: Any, step: str) -> None:
    STEPS[step](spark, place.url("a table"), place.conf)


def test_a_large_log(spark: SparkSession, place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "_AT_ONCE", 0)
    work = Work(spark, place.url("a table"), place.conf, by_job=True)
    properties = {"delta.enableDeletionVectors": "true", "delta.checkpointPolicy": "v2"}
    work.write(work.frame(0, 40), **properties)
    work.log.checkpoint()
    conf.forget()
    with settings(spark, {LOG_DRIVER_BYTES.key: "0", SNAPSHOT_PARTITIONS.key: "2"}):
        assert work.read().where("id >= 30").count() == 10
        base = conf.delta_log(work.url, conf.session_conf(spark, work.url)).snapshot().base
        assert base is not None
        # Executors plan the query, and the driver doesn't load the files' columns; it does for a read by `arrow`.
        assert base.loaded == (spark.conf.get(READ_ROUTE.key) == "arrow")
        work.delta.delete("id = 3")
        work.delta.optimize().executeZOrderBy("x")
        assert work.ids() == [*range(3), *range(4, 40)]
        version = work.log.snapshot().version
        work.delta.update("id = 4", {"id": "400", "x": "600"})
        work.write(work.frame(50, 52))
        work.delta.optimize().executeCompaction()
        assert work.ids() == [*range(3), *range(5, 40), 50, 51, 400]
        work.delta.restoreToVersion(version)
        with settings(spark, {RETENTION_CHECK.key: "false"}):
            work.delta.vacuum(0)
        assert work.ids() == [*range(3), *range(4, 40)]


def test_streams(spark: SparkSession, place: Any, tmp_path: Path) -> None:
    copied_by_streams(spark, place.url("source"), tmp_path)
