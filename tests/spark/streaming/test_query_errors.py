"""What a user and a listener see of a query that fails: the classes and conditions that delta-spark gives."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQueryListener

from tablelog.errors import UnsupportedFeatureError
from tablelog.spark import DeltaTable

CONDITION = "DELTA_SOURCE_TABLE_IGNORE_CHANGES"


class Listener(StreamingQueryListener):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.progress: list[Any] = []
        self.ended = threading.Event()
        self.end: Any = None

    def onQueryStarted(self, event: Any) -> None:
        pass

    def onQueryProgress(self, event: Any) -> None:
        self.progress.append(event.progress)

    def onQueryTerminated(self, event: Any) -> None:
        self.end = event
        self.ended.set()


@pytest.fixture
def listener(spark: SparkSession) -> Iterator[Listener]:
    listener = Listener()
    spark.streams.addListener(listener)
    yield listener
    spark.streams.removeListener(listener)


def start(stream: DataFrame, directory: Path) -> Any:
    writer = stream.writeStream.format("delta").option("checkpointLocation", str(directory / "checkpoint"))
    return writer.trigger(availableNow=True).start(str(directory / "target"))


def test_an_error_of_the_source(spark: SparkSession, tmp_path: Path, listener: Listener) -> None:
    source = str(tmp_path / "source")
    spark.range(4).coalesce(1).write.format("delta").save(source)
    DeltaTable.forPath(spark, source).delete("id = 1")
    query = start(spark.readStream.format("delta").option("startingVersion", 1).load(source), tmp_path)
    with pytest.raises(StreamingQueryException) as raised:
        query.awaitTermination()
    error = raised.value
    assert error.getCondition() == "STREAM_FAILED"
    assert f"terminated with exception: [{CONDITION}] Version 1 of" in str(error)
    assert "skipChangeCommits" in str(error)
    cause = error.__cause__
    assert isinstance(cause, UnsupportedFeatureError)
    assert isinstance(cause, PySparkException)
    assert (cause.getCondition(), cause.version) == (CONDITION, 1)
    later = query.exception()
    assert isinstance(later, StreamingQueryException)
    assert f"[{CONDITION}]" in str(later)
    assert listener.ended.wait(30)
    assert listener.end.errorClassOnException == CONDITION
    for text in (str(error), str(later), listener.end.exception.partition("\n")[0]):
        assert CONDITION in text
        assert "callback" not in text
        assert "Traceback" not in text


def test_changes_between_the_frame_and_the_start_of_its_query(spark: SparkSession, tmp_path: Path) -> None:
    """A comment may change. Other columns end the query: it would give rows with nulls, or without the new columns."""
    source = str(tmp_path / "source")
    spark.range(4).write.format("delta").save(source)
    stream = spark.readStream.format("delta").load(source)
    DeltaTable.forPath(spark, source).alterColumn("id", comment="a number")
    start(stream, tmp_path).awaitTermination()
    assert DeltaTable.forPath(spark, str(tmp_path / "target")).toDF().count() == 4
    DeltaTable.forPath(spark, source).addColumns("v string")
    with pytest.raises(StreamingQueryException, match="changed since the streaming DataFrame was created"):
        start(stream, tmp_path).awaitTermination()


def test_an_error_of_spark_in_the_sink(spark: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    spark.range(4).coalesce(1).write.format("delta").save(source)
    stream = spark.readStream.format("delta").load(source)
    with pytest.raises(StreamingQueryException, match="no such row") as raised:
        start(stream.select(F.raise_error(F.lit("no such row")).cast("int").alias("id")), tmp_path).awaitTermination()
    assert raised.value.getCondition() == "STREAM_FAILED"
    assert isinstance(raised.value.__cause__, PySparkException)
    assert "no such row" in str(raised.value.__cause__)


def test_an_error_before_the_query_runs(spark: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    spark.range(4).coalesce(1).write.format("delta").save(source)
    counts = spark.readStream.format("delta").load(source).groupBy().count()
    writer = counts.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(PySparkException) as raised:
        writer.outputMode("update").start(str(tmp_path / "target"))
    assert raised.value.getCondition() == "DELTA_MODE_NOT_SUPPORTED"


@pytest.mark.slow
def test_a_listener_sees_the_progress(spark: SparkSession, tmp_path: Path, listener: Listener) -> None:
    source = str(tmp_path / "source")
    for first in (0, 2, 4):
        spark.range(first, first + 2).coalesce(1).write.format("delta").mode("append").save(source)
    start(spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(source), tmp_path).awaitTermination()
    assert listener.ended.wait(30)
    assert (listener.end.exception, listener.end.errorClassOnException) == (None, None)
    outstanding = [dict(one.sources[0].metrics)["numFilesOutstanding"] for one in listener.progress]
    assert [one.numInputRows for one in listener.progress][:3] == [2, 2, 2]
    assert outstanding[:3] == ["2", "1", "0"]


def test_a_query_that_is_stopped_while_it_writes_has_no_error(spark: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    spark.range(4).coalesce(1).write.format("delta").save(source)
    stream = spark.readStream.format("delta").load(source)
    query = start(stream.selectExpr("id", "java_method('java.lang.Thread', 'sleep', 60000L) AS slept"), tmp_path)
    tracker, wait = spark.sparkContext.statusTracker(), threading.Event()
    assert any(tracker.getActiveJobsIds() or wait.wait(0.05) for _ in range(600))
    query.stop()
    assert query.exception() is None
    start(stream.selectExpr("id", "'' AS slept"), tmp_path).awaitTermination()
    assert spark.read.format("delta").load(str(tmp_path / "target")).count() == 4
