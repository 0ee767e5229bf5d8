"""An executor is killed in each action of each command: each Spark job that reads, searches, stores or writes."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame

from support.commands import KINDS, ROWS, Table, copy_of, made, nothing_is_left_behind, rows_of
from support.table_work import settings
from tablelog.core import DeltaLog
from tablelog.engine.jvm import file_writes
from tablelog.settings.declarations import LOG_DRIVER_BYTES, SNAPSHOT_PARTITIONS
from tablelog.spark import conf

from .standalone import WORKERS, Cluster

SETTINGS = {
    "spark.sql.files.openCostInBytes": "128m",  # a task for each file
    "spark.sql.adaptive.enabled": "false",
    "spark.task.maxFailures": "8",
    "spark.ui.liveUpdate.period": "0",  # the tracker knows of each task at once
}
_MOST_SECONDS = 120.0
_ACTIONS = ("collect", "_collect_as_arrow", "localCheckpoint")


class Lost:
    """Counts the actions of this process, and kills an executor in the midst of one of them."""

    def __init__(self, spark: SparkSession, cluster: Cluster, at: int) -> None:
        self._spark = spark
        self._cluster = cluster
        self._at = at
        self.actions = 0
        self.killed_with_a_task = False

    def around(self, action: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.actions += 1
            if self.actions != self._at:
                return action(*args, **kwargs)
            executors = self._cluster.executors()
            for process in executors:
                os.kill(process, signal.SIGSTOP)  # they take tasks and don't do them
            over = threading.Event()
            killer = threading.Thread(target=self._kill, args=(executors, over))
            killer.start()
            try:
                return action(*args, **kwargs)
            finally:
                over.set()
                killer.join()

        return call

    def _kill(self, executors: Mapping[int, str], over: threading.Event) -> None:
        """Kill an executor once it has a task; all others go on."""
        tracker: Any = self._spark.sparkContext._jsc.sc().statusTracker()
        try:
            while not over.wait(0.05) and not self.killed_with_a_task:
                busy = {info.host() for info in tracker.getExecutorInfos() if info.numRunningTasks()}
                for process, host in executors.items():
                    if host in busy:
                        os.kill(process, signal.SIGKILL)
                        self.killed_with_a_task = True
                        break
        finally:
            for process in executors:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)


@contextmanager
def losing(spark: SparkSession, cluster: Cluster, at: int) -> Iterator[Lost]:
    lost = Lost(spark, cluster, at)
    with pytest.MonkeyPatch.context() as patch:
        for name in _ACTIONS:
            patch.setattr(DataFrame, name, lost.around(getattr(DataFrame, name)))
        patch.setattr(file_writes, "append", lost.around(file_writes.append))
        yield lost


def wait_for_executors(spark: SparkSession, cluster: Cluster) -> None:
    until = time.monotonic() + _MOST_SECONDS
    tracker: Any = spark.sparkContext._jsc.sc().statusTracker()
    while len(cluster.executors()) < WORKERS or len(tracker.getExecutorInfos()) < WORKERS + 1:
        assert time.monotonic() < until, "the master starts no executor in place of the lost one"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return made(spark, tmp_path_factory.mktemp("lost"))


WITH_JOBS = ["replaceWhere", "delete", "update", "merge", "optimize", "zorder", "reorg"]


@pytest.mark.parametrize("name", WITH_JOBS)
def test_each_action_of(spark: SparkSession, cluster: Cluster, base: Table, name: str) -> None:
    at, with_a_task = 1, 0
    while True:
        table = copy_of(base, f"{name} {at}")
        wait_for_executors(spark, cluster)
        with losing(spark, cluster, at) as lost:
            KINDS[name].run(table)
        assert rows_of(table) == KINDS[name].leaves(ROWS)
        nothing_is_left_behind(table)
        with_a_task += lost.killed_with_a_task
        if lost.actions < at:
            break
        at += 1
    assert at > 1
    assert with_a_task


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
