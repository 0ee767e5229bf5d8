"""Options of a stream's source through Spark: its start, gaps of the log, replaced tables, and triggers."""

import inspect
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import IllegalArgumentException, PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tablelog.core import DeltaLog
from tablelog.errors import InvalidArgumentError, TablelogError, UnsupportedFeatureError
from tablelog.spark import DeltaTable


def append(spark: SparkSession, path: str, id_: int, **options: Any) -> None:
    spark.range(id_, id_ + 1).coalesce(1).write.format("delta").mode("append").options(**options).save(path)


def rows(frame: DataFrame, checkpoint: Path) -> list[Any]:
    """What a query reads until there is nothing new, with the checkpoint of earlier ones."""
    collected: list[Any] = []
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    writer.foreachBatch(lambda batch, _: collected.extend(batch.collect())).start().awaitTermination()
    return collected


def ids(frame: DataFrame, checkpoint: Path) -> list[int]:
    return sorted(row.id for row in rows(frame, checkpoint))


def condition(frame: DataFrame, checkpoint: Path) -> str:
    with pytest.raises(StreamingQueryException) as raised:
        rows(frame, checkpoint)
    cause = raised.value.__cause__
    assert isinstance(cause, TablelogError)
    return cause.condition


def test_a_timestamp_is_one_of_the_sessions_time_zone(spark: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    for id_ in range(3):
        append(spark, source, id_)
    hour = 3_600_000
    for version in range(3):
        file = Path(source, "_delta_log", f"{version:020}.json")
        time = (1_700_000_000_000 + version * hour) / 1000
        os.utime(file, (time, time))
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        for number, (zone, shift) in enumerate([("UTC", 0), ("Asia/Tokyo", 9), ("America/New_York", -5)]):
            spark.conf.set("spark.sql.session.timeZone", zone)
            local = datetime.fromtimestamp(1_700_000_000 + 3600 + shift * 3600, UTC).strftime("%Y-%m-%d %H:%M:%S")
            stream = spark.readStream.format("delta").option("STARTINGTIMESTAMP", local).load(source)
            assert ids(stream, tmp_path / f"c{number}") == [1, 2]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize("limit", [2_147_483_647, 10**12])
def test_a_limit_that_means_none(spark: SparkSession, tmp_path: Path, limit: int) -> None:
    source = str(tmp_path / "source")
    for id_ in range(3):
        append(spark, source, id_)
    stream = spark.readStream.format("delta").option("maxFilesPerTrigger", limit).load(source)
    batches: list[int] = []
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    writer.foreachBatch(lambda batch, _: batches.append(batch.count())).start().awaitTermination()
    assert batches == [3]


def test_values_of_options_and_names_of_tables(spark: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    for id_ in range(3):
        append(spark, source, id_)
    spark.sql(f"CREATE TABLE stream_options USING delta LOCATION '{source}'")
    try:
        reader = spark.readStream.format("DELTA").option("StartingVersion", 1).option("MAXFILESPERTRIGGER", 1)
        assert ids(reader.option("ignoreDeletes", True).load(source), tmp_path / "c1") == [1, 2]
        names = ["stream_options", "default.stream_options", "spark_catalog.default.stream_options"]
        for number, name in enumerate(names):
            stream = spark.readStream.option("startingVersion", "2").table(name)
            assert ids(stream, tmp_path / f"n{number}") == [2]
        stream.createOrReplaceTempView("stream_view")
        view = spark.sql("SELECT id + 1 AS id FROM stream_view WHERE id > 0")
        assert view.isStreaming
        assert ids(view, tmp_path / "v") == [3]
        latest = spark.readStream.format("delta").option("startingVersion", "LATEST").load(source)
        assert ids(latest, tmp_path / "l") == []
    finally:
        spark.sql("DROP TABLE stream_options")


def test_a_gap_in_the_log(spark: SparkSession, tmp_path: Path) -> None:
    source, checkpoint = str(tmp_path / "source"), tmp_path / "checkpoint"
    for id_ in range(2):
        append(spark, source, id_)
        assert ids(spark.readStream.format("delta").load(source), checkpoint) == [id_]
    append(spark, source, 2)
    append(spark, source, 3)
    DeltaLog.for_path(source).checkpoint()
    append(spark, source, 4)
    for version in range(3):
        for file in Path(source, "_delta_log").glob(f"*{version:020}.*"):
            file.unlink()
    stream = spark.readStream.format("delta").load(source)
    assert condition(stream, checkpoint) == "DELTA_MISSING_FILES_UNEXPECTED_VERSION"
    tolerant = spark.readStream.format("delta").option("failOnDataLoss", False).load(source)
    assert ids(tolerant, checkpoint) == [3, 4]


def test_a_table_that_was_replaced(spark: SparkSession, tmp_path: Path) -> None:
    source, checkpoint = str(tmp_path / "source"), tmp_path / "checkpoint"
    append(spark, source, 0)
    stream = spark.readStream.format("delta").load(source)
    assert ids(stream, checkpoint) == [0]
    shutil.rmtree(source)
    append(spark, source, 0)
    append(spark, source, 1)
    stream = spark.readStream.format("delta").load(source)
    assert condition(stream, checkpoint) == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"


def test_files_that_vacuum_removed(spark: SparkSession, tmp_path: Path) -> None:
    source, checkpoint = str(tmp_path / "source"), tmp_path / "checkpoint"
    append(spark, source, 0)
    append(spark, source, 1)
    stream = spark.readStream.format("delta").option("startingVersion", 0).load(source)
    for file in Path(source).glob("*.parquet"):
        file.unlink()
    with pytest.raises(PySparkException, match="parquet"):
        rows(stream, checkpoint)


REAL_TIME = "realTime" in inspect.signature(DataStreamWriter.trigger).parameters


def start(spark: SparkSession, folder: Path, trigger: dict[str, Any]) -> None:
    append(spark, str(folder / "source"), 0)
    writer = spark.readStream.format("delta").load(str(folder / "source")).writeStream.format("delta")
    query = writer.trigger(**trigger).option("checkpointLocation", str(folder / "c")).start(str(folder / "target"))
    query.awaitTermination(60)


@pytest.mark.skipif(not REAL_TIME, reason="this version of Spark has no real-time mode")
def test_real_time_mode_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(IllegalArgumentException, match="DeltaStreams") as raised:
        start(spark, tmp_path, {"realTime": "5 seconds"})
    assert str(raised.value.getCondition()).startswith("STREAMING_REAL_TIME_MODE.")


def test_continuous_processing_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(StreamingQueryException, match="ContinuousTrigger"):
        start(spark, tmp_path, {"continuous": "1 second"})


def test_a_streaming_table_belongs_to_a_pipeline(spark: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    append(spark, source, 0)
    with pytest.raises(UnsupportedFeatureError, match="CREATE STREAMING TABLE is not supported"):
        spark.sql(f"CREATE STREAMING TABLE s AS SELECT * FROM STREAM(delta.`{source}`)")


def test_row_ids_are_those_of_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    source, checkpoint = str(tmp_path / "source"), tmp_path / "checkpoint"
    for first in (0, 4):
        frame = spark.range(first, first + 4).coalesce(1).write.format("delta").mode("append")
        frame.option("delta.enableRowTracking", "true").option("delta.enableDeletionVectors", "true").save(source)
    table = DeltaTable.forPath(spark, source)
    table.delete("id = 1")
    table.update("id = 6", {"id": "60"})
    table.optimize().executeCompaction()

    def batch() -> set[Any]:
        return set(spark.read.format("delta").option("readRowIds", True).load(source).collect())

    stream = spark.readStream.format("delta").option("readRowIds", True).load(source)
    initial = rows(stream, checkpoint)
    assert set(initial) == batch()
    assert {row._row_id for row in initial} == {0, 2, 3, 4, 5, 6, 7}
    append(spark, source, 8)
    (added,) = rows(stream, checkpoint)
    assert {*initial, added} == batch()


def test_row_ids_need_row_tracking(spark: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    append(spark, source, 0, **{"delta.enableChangeDataFeed": "true"})
    reader = spark.readStream.format("delta").option("readRowIds", True)
    with pytest.raises(InvalidArgumentError, match="row tracking is not enabled"):
        reader.load(source)
    with pytest.raises(InvalidArgumentError, match="change data feed"):
        reader.option("readChangeFeed", True).load(source)
    with pytest.raises(PySparkException, match="_metadata"):  # of Spark: the option is the way
        spark.readStream.format("delta").load(source).select("_metadata.row_id")
