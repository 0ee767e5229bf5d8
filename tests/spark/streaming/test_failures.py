"""Queries that fail at each step of a batch, and go on after a restart: no row is lost, and none is there twice."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tablelog.core import DeltaLog
from tablelog.core.streaming.source import TableStream
from tablelog.errors import WriteOutcomeUnknown
from tablelog.logstore.local.store import LocalLogStore
from tablelog.spark.streaming import sink

POINTS = ("latest", "batch", "before the commit", "after the commit")


class Died(Exception):
    """The driver is gone."""


class Fails:
    """Fails once, at the n-th passage of a point."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.point, self.passages = "", 0
        for name in ("latest", "batch"):
            monkeypatch.setattr(TableStream, name, self._wrapped(getattr(TableStream, name), name))
        write = sink.write

        def failing(*args: Any) -> Any:
            self._pass("before the commit")
            result = write(*args)
            self._pass("after the commit")
            return result

        monkeypatch.setattr(sink, "write", failing)

    def at(self, point: str, passages: int) -> None:
        self.point, self.passages = point, passages

    def _wrapped(self, method: Any, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._pass(name)
            return method(*args, **kwargs)

        return call

    def _pass(self, point: str) -> None:
        if point == self.point:
            self.passages -= 1
            if self.passages == 0:
                raise Died(point)


@pytest.mark.slow
def test_a_query_that_fails_anywhere_goes_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    spark.range(2).coalesce(1).write.format("delta").save(source)
    fails = Fails(monkeypatch)

    def run() -> None:
        stream = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(source)
        writer = stream.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start(target).awaitTermination()

    rows = 2
    for number, point in enumerate([*POINTS, *POINTS]):
        for _ in range(2):
            spark.range(rows, rows + 2).coalesce(1).write.format("delta").mode("append").save(source)
            rows += 2
        fails.at(point, 1 + number // len(POINTS))
        with pytest.raises(StreamingQueryException, match="Died") as raised:
            run()
        assert isinstance(raised.value.__cause__, Died)
        run()
        assert sorted(row.id for row in spark.read.format("delta").load(target).collect()) == list(range(rows)), point
    log = DeltaLog.for_path(target)
    batches = [entry.commit_info.operation_parameters["epochId"] for entry in log.history() if entry.commit_info]
    assert len(batches) == len(set(batches))


def test_a_batch_that_another_driver_has_written_is_not_written_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two drivers with one checkpoint, by mistake: both write the same batch."""
    source, target, checkpoint = (str(tmp_path / name) for name in ("source", "target", "checkpoint"))
    spark.range(4).coalesce(1).write.format("delta").save(source)
    write, calls = sink.write, []

    def raced(session: SparkSession, log: DeltaLog, frame: Any, request: Any) -> Any:
        calls.append(request.commit.transaction)
        write(session, log, frame, request)  # by the other driver
        return write(session, log, frame, request)

    monkeypatch.setattr(sink, "write", raced)
    stream = spark.readStream.format("delta").load(source)
    writer = stream.writeStream.format("delta").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start(target).awaitTermination()
    assert calls
    assert sorted(row.id for row in spark.read.format("delta").load(target).collect()) == list(range(4))


@pytest.mark.slow
def test_a_lost_reply_to_the_commit_of_a_batch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each commit, the first answer is lost: of every second one before it is written, of the others after."""
    source, target, checkpoint = (str(tmp_path / name) for name in ("source", "target", "checkpoint"))
    for first in range(0, 8, 2):
        spark.range(first, first + 2).coalesce(1).write.format("delta").mode("append").save(source)
    write, lost = LocalLogStore.write, []

    def losing(store: LocalLogStore, path: str, data: bytes, *, overwrite: bool = False) -> None:
        if overwrite or target not in path or not path.endswith(".json") or path in lost:
            write(store, path, data, overwrite=overwrite)
            return
        lost.append(path)
        if len(lost) % 2:
            write(store, path, data, overwrite=overwrite)
        raise WriteOutcomeUnknown(path, "the answer is lost")

    monkeypatch.setattr(LocalLogStore, "write", losing)
    stream = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(source)
    writer = stream.writeStream.format("delta").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start(target).awaitTermination()
    assert len(lost) == 4
    assert sorted(row.id for row in spark.read.format("delta").load(target).collect()) == list(range(8))
    assert DeltaLog.for_path(target).snapshot().version == 3
