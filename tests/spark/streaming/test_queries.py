"""Whole queries over tables: a table into itself, several into one table, compaction between batches, state."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tablelog.core import DeltaLog, Operation
from tablelog.spark import DeltaTable


@pytest.fixture(autouse=True)
def one_shuffle_partition(conf: Any) -> None:
    conf("spark.sql.shuffle.partitions", "1")


def append(spark: SparkSession, path: str, rows: str, **options: Any) -> None:
    """Append the rows of `VALUES` as one file: id, and time in seconds."""
    frame = spark.sql(f"SELECT CAST(id AS BIGINT) id, timestamp_seconds(time) time FROM VALUES {rows} AS t(id, time)")
    frame.coalesce(1).write.format("delta").mode("append").options(**options).save(path)


def stream(spark: SparkSession, path: str, **options: Any) -> DataFrame:
    return spark.readStream.format("delta").options(**options).load(path)


def run(frame: DataFrame, target: str, checkpoint: str) -> Any:
    writer = frame.writeStream.format("delta").option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start(target)
    query.awaitTermination()
    return query


def ids(spark: SparkSession, path: str) -> list[int]:
    return sorted(row.id for row in spark.read.format("delta").load(path).collect())


@pytest.mark.slow
def test_a_table_into_itself(spark: SparkSession, tmp_path: Path) -> None:
    """`availableNow` ends with the version at the start, so that a query reads its own rows in the next run."""
    table, checkpoint = str(tmp_path / "table"), str(tmp_path / "checkpoint")
    append(spark, table, "(1, 0), (2, 0)")
    for wanted in ([1, 2, 11, 12], [1, 2, 11, 12, 21, 22]):
        run(stream(spark, table).withColumn("id", F.col("id") + 10), table, checkpoint)
        assert ids(spark, table) == wanted


@pytest.mark.slow
def test_several_queries_into_one_table_at_the_same_time(spark: SparkSession, tmp_path: Path) -> None:
    target, queries = str(tmp_path / "target"), []
    append(spark, target, "(0, 0)")
    for number in (100, 200, 300):
        source = str(tmp_path / str(number))
        for first in range(3):
            append(spark, source, f"({number + first}, 0)")
        writer = stream(spark, source, maxFilesPerTrigger=1).writeStream.format("delta")
        writer = writer.option("checkpointLocation", str(tmp_path / f"checkpoint{number}"))
        queries.append(writer.trigger(availableNow=True).start(target))
    for query in queries:
        query.awaitTermination()
    assert ids(spark, target) == [0, 100, 101, 102, 200, 201, 202, 300, 301, 302]
    assert set(DeltaLog.for_path(target).snapshot().transactions) == {query.id for query in queries}


@pytest.mark.slow
def test_auto_compaction_between_batches(spark: SparkSession, tmp_path: Path, conf: Any) -> None:
    """It compacts the target, which is the source of a second query: that reads each row once."""
    source, target, last = (str(tmp_path / name) for name in ("source", "target", "last"))
    conf("spark.databricks.delta.autoCompact.minNumFiles", "2")
    append(spark, target, "(0, 0)", **{"delta.autoOptimize.autoCompact": "true"})
    for run_ in range(2):
        for first in range(3):
            append(spark, source, f"({run_ * 10 + first + 1}, 0)")
        run(stream(spark, source, maxFilesPerTrigger=1), target, str(tmp_path / "c1"))
        run(stream(spark, target, maxFilesPerTrigger=1), last, str(tmp_path / "c2"))
    operations = [entry.commit_info.operation for entry in DeltaLog.for_path(target).history() if entry.commit_info]
    assert operations.count("OPTIMIZE") >= 2
    assert operations.count("STREAMING UPDATE") >= 6
    assert ids(spark, target) == ids(spark, last) == [0, 1, 2, 3, 11, 12, 13]


@pytest.mark.slow
def test_windows_with_a_watermark(spark: SparkSession, tmp_path: Path) -> None:
    source, target, checkpoint = (str(tmp_path / name) for name in ("source", "target", "checkpoint"))

    def windows() -> None:
        timed = stream(spark, source).withWatermark("time", "10 seconds")
        counts = timed.groupBy(F.window("time", "10 seconds")).count()
        run(counts.select(F.col("window.start").cast("long").alias("id"), "count"), target, checkpoint)

    append(spark, source, "(1, 100), (2, 101), (3, 110)")
    windows()
    assert ids(spark, target) == []  # no window is older than the watermark
    append(spark, source, "(4, 130)")
    windows()
    append(spark, source, "(5, 102), (6, 150)")  # the first is too late
    windows()
    counts = {row.id: row["count"] for row in spark.read.format("delta").load(target).collect()}
    assert counts == {100: 2, 110: 1, 130: 1}


@pytest.mark.slow
def test_duplicates_are_dropped_within_a_watermark(spark: SparkSession, tmp_path: Path) -> None:
    source, target, checkpoint = (str(tmp_path / name) for name in ("source", "target", "checkpoint"))
    for rows in ("(1, 100), (1, 101), (2, 100)", "(1, 105), (3, 106)", "(2, 107), (4, 108)"):
        append(spark, source, rows)
        timed = stream(spark, source).withWatermark("time", "1 minute")
        run(timed.dropDuplicatesWithinWatermark(["id"]), target, checkpoint)
    assert ids(spark, target) == [1, 2, 3, 4]


@pytest.mark.slow
def test_two_streams_are_joined(spark: SparkSession, tmp_path: Path) -> None:
    orders, payments, target = (str(tmp_path / name) for name in ("orders", "payments", "target"))
    append(spark, orders, "(1, 100), (2, 101)")
    append(spark, payments, "(2, 103)")

    def join() -> None:
        left = stream(spark, orders).withWatermark("time", "1 hour").alias("o")
        right = stream(spark, payments).withWatermark("time", "1 hour").alias("p")
        soon = F.expr("o.id = p.id AND p.time BETWEEN o.time AND o.time + INTERVAL 10 SECONDS")
        run(left.join(right, soon).select("o.id", F.col("p.time").alias("paid")), target, str(tmp_path / "checkpoint"))

    join()
    assert ids(spark, target) == [2]
    append(spark, payments, "(1, 104), (2, 300)")  # the second is too late for the order
    join()
    append(spark, orders, "(3, 105)")
    append(spark, payments, "(3, 106)")
    join()
    assert ids(spark, target) == [1, 2, 3]


def clustering(path: str) -> list[str]:
    (row,) = DeltaTable.forPath(SparkSession.active(), path).detail().collect()
    return list(row.clusteringColumns)


@pytest.mark.parametrize("named", [True, False])
def test_the_columns_that_a_stream_clusters_by(spark: SparkSession, tmp_path: Path, named: bool) -> None:
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    append(spark, source, "(1, 0), (2, 0)")

    def writer(column: str, checkpoint: str) -> Any:
        stream_writer = stream(spark, source).writeStream.clusterBy(column).trigger(availableNow=True)
        return stream_writer.format("delta").option("checkpointLocation", str(tmp_path / checkpoint))

    first = writer("id", "first")
    query = first.toTable("clustered_by_stream", path=target) if named else first.start(target)
    try:
        query.awaitTermination()
    finally:
        spark.sql("DROP TABLE IF EXISTS clustered_by_stream")
    assert clustering(target) == ["id"]
    assert ids(spark, target) == [1, 2]
    again = writer("time", "second").start(target)
    with pytest.raises(StreamingQueryException, match="is clustered by id, not by time"):
        again.awaitTermination()
    assert clustering(target) == ["id"]


def test_the_watermark_of_a_query_is_not_stored_in_its_table(spark: SparkSession, tmp_path: Path) -> None:
    """A query over that table would count as having one, and wait for it without an end."""
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    append(spark, source, "(1, 0), (2, 60)")
    run(stream(spark, source).withWatermark("time", "1 hour"), target, str(tmp_path / "checkpoint"))
    assert "watermark" not in DeltaLog.for_path(target).snapshot().metadata.schema_string
    assert ids(spark, target) == [1, 2]
    # Tables of other writers may have it.
    log = DeltaLog.for_path(target)
    metadata = log.snapshot().metadata
    marked = metadata.schema_string.replace(
        '"name":"time","type":"timestamp","nullable":true,"metadata":{',
        '"name":"time","type":"timestamp","nullable":true,"metadata":{"spark.watermarkDelayMs":1',
    )
    assert marked != metadata.schema_string
    transaction = log.transaction()
    transaction.set_metadata(replace(metadata, schema_string=marked))
    transaction.commit([], Operation("SET TBLPROPERTIES"))
    counts = stream(spark, target).groupBy("time").count()
    with pytest.raises(AnalysisException, match="watermark"):
        run(counts, str(tmp_path / "counts"), str(tmp_path / "c2"))
