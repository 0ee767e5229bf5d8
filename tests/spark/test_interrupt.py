"""Ctrl-C: the Spark job ends, what was written goes, and the message says what became of the commit."""

import os
import signal
import threading

import pytest
from pyspark.errors import PySparkException

from tablelog.core.txn import transaction
from tablelog.core.txn.transaction import Transaction
from tablelog.engine.write.routes.local import LocalRoute
from tablelog.errors import CommitInterrupted

SLOW = "reflect('java.lang.Thread', 'sleep', 200L)"


@pytest.fixture
def interrupted(spark):
    """Sends Ctrl-C to this process once a Spark job runs, and more holds: started by a call, which lists the job."""
    stop = threading.Event()
    jobs = []
    threads = []

    def watch(more):
        while not stop.wait(0.02):
            found = running_jobs(spark)
            if found and more(spark):
                jobs.extend(found)
                os.kill(os.getpid(), signal.SIGINT)
                return

    def start(more=running_jobs):
        threads.append(threading.Thread(target=watch, args=(more,)))
        threads[0].start()
        return jobs

    yield start
    stop.set()
    for thread in threads:
        thread.join()


def running_jobs(spark):
    return list(spark.sparkContext.statusTracker().getActiveJobsIds())


def two_tasks_sleep(spark):
    beans = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getThreadMXBean()
    tasks = [thread for thread in beans.dumpAllThreads(False, False) if "task launch worker" in thread.getThreadName()]
    return sum("sleep" in task.getStackTrace()[0].getMethodName() for task in tasks) == 2


def wait_until(condition, seconds=30):
    event = threading.Event()
    for _ in range(seconds * 20):
        if condition():
            return True
        event.wait(0.05)
    return False


def test_a_write_is_cancelled_and_leaves_nothing(spark, table, interrupted):
    table.write(spark.range(1))
    jobs = interrupted()
    with pytest.raises(KeyboardInterrupt, match=r"WRITE on .* nothing was committed"):
        table.write(spark.range(0, 1000, 1, 1000).where(f"{SLOW} is not null or id >= 0"))
    assert wait_until(lambda: not running_jobs(spark)), "the job is cancelled, not waited for"
    tracker = spark.sparkContext.statusTracker()
    (stage,) = tracker.getJobInfo(jobs[0]).stageIds
    assert tracker.getStageInfo(stage).numCompletedTasks < 50, "nor does PySpark wait for its first rows"
    assert table.version == 0
    assert table.data_files() == table.logged_files()
    table.write(spark.range(1, 2))
    assert table.rows() == [0, 1]


def test_a_task_that_loses_its_interrupt_is_interrupted_again(spark, table, interrupted):
    table.write(spark.range(1))
    jobs = interrupted(two_tasks_sleep)
    # Each row waits for ten minutes, or for an interrupt that goes no further: as Hadoop's starting of a chmod has it.
    deaf = "try_reflect('java.lang.Thread', 'sleep', 600000L)"
    with pytest.raises(KeyboardInterrupt, match=r"WRITE on .* nothing was committed"):
        table.write(spark.range(0, 4, 1, 2).selectExpr(f"explode(array(id, if({deaf} is null, id, 0))) as id"))
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for job in jobs for stage in tracker.getJobInfo(job).stageIds]
    assert [stage.numActiveTasks for stage in stages] == [0]
    assert table.version == 0
    assert table.data_files() == table.logged_files()


def test_files_that_cannot_be_cleared_do_not_hide_what_went_wrong(spark, table, monkeypatch, caplog):
    def full(self):
        raise OSError(39, "Directory not empty", "staging")

    monkeypatch.setattr(LocalRoute, "clear", full)
    failing = spark.range(3).selectExpr("if(id < 2, id, raise_error('a user''s own error')) as id")
    with pytest.raises(PySparkException, match="a user's own error"):
        table.write(failing)
    assert "could not be deleted and are left to VACUUM: [Errno 39] Directory not empty" in caplog.text


def interrupt(*args, **kwargs):
    raise KeyboardInterrupt


def test_an_interrupt_during_the_commit_says_what_became_of_it(spark, table, monkeypatch):
    table.write(spark.range(1))
    monkeypatch.setattr(transaction, "after_commit", interrupt)
    with pytest.raises(CommitInterrupted, match=r"version 1 of .* was committed") as caught:
        table.write(spark.range(1, 2))
    assert caught.value.committed is True
    monkeypatch.undo()
    assert table.rows() == [0, 1]


def test_an_interrupt_before_the_commit_was_written(spark, table, monkeypatch):
    table.write(spark.range(3))
    monkeypatch.setattr(Transaction, "_prepare", interrupt)
    with pytest.raises(KeyboardInterrupt, match="nothing was committed"):
        table.write(spark.range(1, 2))
    with pytest.raises(KeyboardInterrupt, match=r"DELETE on .* nothing was committed"):
        table.delta.delete("id = 1")
    assert table.version == 0
    assert table.data_files() == table.logged_files()


@pytest.mark.parametrize(("committed", "kept"), [(True, True), (None, True), (False, False)])
def test_files_go_only_where_the_commit_surely_failed(spark, table, monkeypatch, committed, kept):
    table.write(spark.range(1))

    def interrupt(self, *args):
        self._record.committed = committed
        raise CommitInterrupted(table.path, 1, "token", committed)

    monkeypatch.setattr(Transaction, "_commit", interrupt)
    with pytest.raises(CommitInterrupted) as caught:
        table.write(spark.range(1, 2))
    assert caught.value.committed is committed
    assert (table.data_files() > table.logged_files()) is kept


def test_every_attempt_of_a_commit_is_logged(spark, table, caplog):
    with caplog.at_level("INFO", logger="tablelog"):
        table.write(spark.range(1))
        table.delta.delete("id = 7")
    text = caplog.text
    assert "version 0, attempt 1: won" in text
    assert "no row matches the condition of DELETE, nothing committed" in text
