"""An executor is killed in each action of each command, on a shared path, on MinIO and on HDFS."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.commands import KINDS, ROWS, Table, copy_of, made, nothing_is_left_behind, rows_of
from support.table_work import by_route, settings
from tablelog.core import DeltaLog
from tablelog.settings.declarations import LOG_DRIVER_BYTES, SNAPSHOT_PARTITIONS
from tablelog.spark import conf

from .lost import SETTINGS, lose_in_each_action, losing, wait_for_executors
from .standalone import Cluster
from .stored import stored_copy

__all__ = ["SETTINGS"]


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return made(spark, tmp_path_factory.mktemp("lost"))


WITH_JOBS = ["dynamic overwrite", "replaceWhere", "delete", "update", "merge", "optimize", "zorder", "reorg"]
BY_ARROW = ["append", "update", "merge", "optimize"]


@pytest.mark.parametrize(
    ("name", "route"), [*((name, "native") for name in WITH_JOBS), *((name, "arrow") for name in BY_ARROW)]
)
def test_each_action_of(spark: SparkSession, cluster: Cluster, base: Table, name: str, route: str) -> None:
    with settings(spark, by_route(route)):
        for table in lose_in_each_action(
            spark, cluster, lambda number: copy_of(base, f"{name} by {route}, {number}"), KINDS[name].run
        ):
            assert rows_of(table) == KINDS[name].leaves(ROWS)
            nothing_is_left_behind(table)


@pytest.mark.parametrize("place", [("minio", "native"), ("hdfs", "arrow")], ids=" by ".join, indirect=True)
@pytest.mark.parametrize("name", ["update", "merge", "optimize"])
def test_each_action_on_a_store(spark: SparkSession, cluster: Cluster, base: Table, place: Any, name: str) -> None:
    for table in lose_in_each_action(spark, cluster, lambda _: stored_copy(base, place), KINDS[name].run):
        assert table.rows("id", "p") == list(KINDS[name].leaves(ROWS))
        nothing_is_left_behind(table)


def test_planning_of_a_large_log(
    spark: SparkSession, cluster: Cluster, base: Table, caplog: pytest.LogCaptureFixture
) -> None:
    table = copy_of(base, "large log")
    log = DeltaLog.for_path(table.path)
    log.checkpoint()
    conf.forget()
    wait_for_executors(spark, cluster)
    with settings(spark, {LOG_DRIVER_BYTES.key: "0", SNAPSHOT_PARTITIONS.key: "2"}), losing(spark, cluster, 1) as lost:
        assert sorted(tuple(row) for row in table.read().where("id >= 0").collect()) == sorted(ROWS)
    assert lost.actions >= 1
    assert not [record for record in caplog.records if "the driver reads" in record.getMessage()]
