"""What is left after a failure: nothing, and an error that says why."""

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from tablelog.engine.write.routes import local as staging
from tablelog.engine.write.writer import WriteOptions

from .conftest import NATIVE, SMALL, Table

ROUTES = pytest.mark.parametrize("options", [NATIVE, SMALL], ids=["native", "small"])


@ROUTES
def test_a_failing_job_leaves_nothing(table: Table, options: WriteOptions) -> None:
    # One task has written its file when the other fails.
    bad = F.when(F.col("id") < 9, F.col("id")).otherwise(F.raise_error(F.lit("a user's own error")))
    df = table.spark.range(0, 10, 1, 2).select(bad.alias("id"), (F.col("id") % 2).alias("p"))
    with pytest.raises(PySparkException, match="a user's own error"):
        table.write(df, "p", options=options)
    assert os.listdir(table.path) == []


@ROUTES
def test_a_failing_rename_leaves_nothing(table: Table, options: WriteOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    before = table.write(table.spark.range(3), options=options)
    renamed: list[str] = []
    rename = os.rename

    def third_fails(source: str, target: str) -> None:
        if staging.STAGING_PREFIX in source:
            if len(renamed) == 2:
                raise OSError(28, "No space left on device", target)
            renamed.append(target)
        rename(source, target)

    monkeypatch.setattr(os, "rename", third_fails)
    df = table.spark.range(9).select("id", (F.col("id") % 4).alias("p")).where("id >= 0")
    other = Table(table.spark, table.path / "other")
    other.path.mkdir()
    with pytest.raises(OSError, match="No space left"):
        other.write(df, "p", options=options)
    assert len(renamed) == 2
    assert other.files() == []
    assert other.staging_left() == []
    assert [add.path for add in before] == [name for name in table.files() if "/" not in name]


@pytest.mark.one_case
@pytest.mark.parametrize("grouped", [False, True], ids=["plain", "in a job group"])
def test_an_interrupt_ends_the_job_and_leaves_nothing(table: Table, grouped: bool) -> None:
    spark = table.spark
    context: Any = spark.sparkContext
    if grouped:
        context.setJobGroup("a user's own", "")  # from here on Spark would not interrupt the threads of cancelled tasks
    tracker = context.statusTracker()
    started = threading.Event()
    done = threading.Event()

    def active_tasks() -> int:
        jobs = [tracker.getJobInfo(job) for job in tracker.getActiveJobsIds()]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return sum(stage.numActiveTasks for stage in stages if stage)

    def interrupt_once_running() -> None:
        while not done.wait(0.05):
            if active_tasks():
                started.set()
                os.kill(os.getpid(), signal.SIGINT)
                return

    watcher = threading.Thread(target=interrupt_once_running)
    watcher.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            # Short files: a task notices that it is to end when it writes to one.
            table.write(spark.range(0, 1 << 50, 1, 2), options=replace(NATIVE, max_records_per_file=1 << 18))
        assert list(tracker.getActiveJobsIds()) == []
    finally:
        done.set()
        watcher.join()
        context.cancelAllJobs()  # what failed must not write on beside all tests after it
        for key in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
            context.setLocalProperty(key, None)
    assert started.is_set()
    assert os.listdir(table.path) == []
    # The thread's next calls get their own answers.
    assert [spark.range(n).count() for n in (3, 5)] == [3, 5]
    assert len(table.write(spark.range(4), options=SMALL)) == 1


def test_durable_files_are_synced_before_they_are_named(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    fsync, rename = os.fsync, os.rename

    def noted_sync(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    def checked_rename(source: str, target: str) -> None:
        if staging.STAGING_PREFIX in source:
            assert source in synced
        rename(source, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "rename", checked_rename)
    df = table.spark.range(9).select("id", (F.col("id") % 3).alias("p"))
    table.write(df, "p", options=NATIVE)
    root = str(table.path)
    assert {root, f"{root}/p=0", f"{root}/p=1", f"{root}/p=2"} <= set(synced)


def test_files_that_are_not_the_jobs_are_not_taken(tmp_path: Path) -> None:
    for name in ("p=1/q=a%2Fb/part-0.parquet", "p=__HIVE_DEFAULT_PARTITION__/q=x=y/part-0.parquet"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(b"12")
    for name in ("_SUCCESS", "_temporary/0/part", "p=1/_x", "p=1/q=a%2Fb/.part-0.crc", "stray.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    found = {file.name: (file.partition, file.size) for file in staging.find(str(tmp_path), ["p", "q"])}
    assert found == {
        "p=1/q=a%2Fb/part-0.parquet": (("1", "a/b"), 2),
        "p=__HIVE_DEFAULT_PARTITION__/q=x=y/part-0.parquet": ((None, "x=y"), 2),
    }
    assert staging.find(str(tmp_path / "absent"), []) == []


def test_a_staging_directory_that_a_task_still_fills_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "staging"
    remove, filled = os.rmdir, 0

    def filling(path: Any, *args: Any, **kwargs: Any) -> None:
        nonlocal filled
        if filled < times:
            filled += 1
            (directory / f"by a task {filled}").touch()
        remove(path, *args, **kwargs)

    monkeypatch.setattr(os, "rmdir", filling)
    for times in (3, 1_000):
        directory.mkdir(exist_ok=True)
        filled = 0
        staging.clear(str(directory))
        assert directory.exists() == (times == 1_000)
    assert [record.getMessage() for record in caplog.records] == [
        f"files of a write remain in {directory}, which VACUUM removes: tasks still write there"
    ]
