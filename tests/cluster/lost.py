"""Kills an executor in the midst of one action of a command: each Spark job that reads, searches, stores or writes."""

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

from support.spark_tables import Table
from tablelog.engine.jvm import file_writes

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


def lose_in_each_action(
    spark: SparkSession, cluster: Cluster, copied: Callable[[str], Table], run: Callable[[Table], Any]
) -> Iterator[Table]:
    """The table after the command, again and again: each time an executor was killed in the next action.

    All executors are stopped until one of them has a task and is killed. So an action without a kill had no task.
    """
    at, with_a_task = 1, 0
    while True:
        table = copied(str(at))
        wait_for_executors(spark, cluster)
        with losing(spark, cluster, at) as lost:
            run(table)
        yield table
        with_a_task += lost.killed_with_a_task
        if lost.actions < at:
            break
        at += 1
    assert at > 1
    assert with_a_task
