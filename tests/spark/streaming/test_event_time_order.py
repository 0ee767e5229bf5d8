"""The option `withEventTimeOrder`: a watermark drops no row of the table that a stream begins with."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tablelog.core import DeltaLog
from tablelog.errors import InvalidArgumentError, TablelogError, UnsupportedFeatureError
from tablelog.spark import DeltaTable

START = datetime(2024, 1, 1)
HOURS = 6
DAYS = 5
TYPES = {"timestamp": "t", "date": "CAST(t AS timestamp) AS t"}
"""For each type of the event time: the column that gets the watermark."""


@pytest.fixture(autouse=True)
def one_shuffle_partition(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


def save(
    spark: SparkSession, path: str, *, data_type: str = "timestamp", partitioned: bool = False, **options: Any
) -> None:
    """Rows of some days. The newest day is written first, each day with one file."""
    for day in reversed(range(DAYS)):
        rows = [(day * HOURS + hour, str(START + timedelta(days=day, hours=hour))) for hour in range(HOURS)]
        frame = spark.createDataFrame(rows, "id bigint, t string").coalesce(1)
        typed = frame.selectExpr("id", f"CAST(t AS {data_type}) AS t")
        writer = typed.write.format("delta").mode("append").options(**options)
        (writer.partitionBy("t") if partitioned else writer).save(path)


def stream(spark: SparkSession, path: str, **options: Any) -> DataFrame:
    return spark.readStream.format("delta").options(**options).load(path)


def run(frame: DataFrame, checkpoint: Path, *, fails_at: int | None = None) -> dict[int, list[int]]:
    """The ids in each batch that a query without duplicates has, as far as it comes.

    The state of the query makes Spark drop rows that are before the watermark.
    """
    batches: dict[int, list[int]] = {}

    def keep(batch: DataFrame, number: int) -> None:
        batches[number] = sorted(row.id for row in batch.collect())
        if number == fails_at:
            raise ValueError("the test ends the query")

    once = frame.dropDuplicates(["id", "t"])
    query = once.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    started = query.start()
    if fails_at is None:
        started.awaitTermination()
    else:
        with pytest.raises(StreamingQueryException, match="the test ends the query"):
            started.awaitTermination()
    return batches


def ids(batches: dict[int, list[int]]) -> list[int]:
    return sorted(id_ for batch in batches.values() for id_ in batch)


ALL = list(range(DAYS * HOURS))
ORDERED = {"withEventTimeOrder": "true", "maxFilesPerTrigger": 2}


def test_a_watermark_drops_no_row(spark: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    save(spark, source)
    by_file = stream(spark, source, maxFilesPerTrigger=2).withWatermark("t", "1 hour")
    # Spark drops rows by the watermark of the last batch but one: only those of the third batch.
    assert ids(run(by_file, tmp_path / "by_file")) == ALL[HOURS:]
    ordered = stream(spark, source, **ORDERED).withWatermark("t", "1 hour")
    batches = run(ordered, tmp_path / "ordered")
    assert ids(batches) == ALL
    assert [len(batch) for batch in batches.values() if batch] == [2 * HOURS, 2 * HOURS, HOURS]

    # Then the stream goes on as any other.
    spark.sql(f"INSERT INTO delta.`{source}` VALUES (100, TIMESTAMP'2024-02-01'), (101, TIMESTAMP'2024-02-02')")
    assert ids(run(stream(spark, source).withWatermark("t", "1 hour"), tmp_path / "ordered")) == [100, 101]


@pytest.mark.slow
def test_a_restart_repeats_the_batch_with_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    source, checkpoint = str(tmp_path / "source"), tmp_path / "checkpoint"
    save(spark, source, **{"delta.enableDeletionVectors": "true"})
    DeltaTable.forPath(spark, source).delete("id % 5 = 0")
    left = [id_ for id_ in ALL if id_ % 5]

    def frame(**options: Any) -> DataFrame:
        return stream(spark, source, **{**ORDERED, **options}).withWatermark("t", "1 second")

    first = run(frame(), checkpoint, fails_at=1)
    text = Path(checkpoint, "offsets", "1").read_text().splitlines()[-1]
    assert json.loads(text)["eventTimeColumn"] == "t"
    spark.sql(f"INSERT INTO delta.`{source}` VALUES (100, TIMESTAMP'2024-02-01')")
    DeltaTable.forPath(spark, source).optimize().executeCompaction()
    with pytest.raises(StreamingQueryException) as raised:
        run(stream(spark, source).withWatermark("t", "1 second"), checkpoint)
    assert isinstance(raised.value.__cause__, InvalidArgumentError)
    assert "withEventTimeOrder" in str(raised.value.__cause__)
    # Limits may change: they decide only about later batches.
    second = run(frame(maxFilesPerTrigger=1), checkpoint)
    assert second[1] == first[1]
    assert ids({**first, **second}) == [*left, 100]


@pytest.mark.one_case
@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("data_type", TYPES)
def test_types_and_partitions(spark: SparkSession, tmp_path: Path, data_type: str, partitioned: bool) -> None:
    """The column has another name in the query, and there is a row without event time."""
    source = str(tmp_path / "source")
    save(spark, source, data_type=data_type, partitioned=partitioned)
    spark.sql(f"INSERT INTO delta.`{source}` VALUES (100, NULL)")
    frame = stream(spark, source, **ORDERED).where("id <> 3").selectExpr("id", TYPES[data_type]).alias("a")
    renamed = frame.withColumnRenamed("t", "event").withWatermark("event", "0 seconds")
    batches = run(renamed.withColumnRenamed("event", "t"), tmp_path / "c")
    assert ids(batches) == [id_ for id_ in [*ALL, 100] if id_ != 3]
    assert 100 in batches[0]
    assert len([batch for batch in batches.values() if batch]) > 2


@pytest.mark.slow
def test_files_without_statistics_and_renamed_columns(spark: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    properties = {"delta.dataSkippingNumIndexedCols": "0", "delta.columnMapping.mode": "name"}
    save(spark, source, **properties)
    spark.sql(f"ALTER TABLE delta.`{source}` RENAME COLUMN t TO `event time`")
    snapshot = DeltaLog.for_path(source).snapshot()
    assert all('"t"' not in (add.stats or "") and '"col-' not in (add.stats or "") for add in snapshot.add_files())
    frame = (
        stream(spark, source, **ORDERED).withWatermark("`event time`", "1 hour").withColumnRenamed("event time", "t")
    )
    batches = run(frame, tmp_path / "c")
    assert [len(batch) for batch in batches.values() if batch] == [2 * HOURS, 2 * HOURS, HOURS]


@pytest.mark.slow
def test_a_stream_of_changes(spark: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    save(spark, source, **{"delta.enableChangeDataFeed": "true"})
    changes = stream(spark, source, readChangeFeed="true", **ORDERED).where("_change_type <> 'update_preimage'")
    assert ids(run(changes.withWatermark("t", "1 hour"), tmp_path / "c")) == ALL
    DeltaTable.forPath(spark, source).update("id = 29", {"t": F.expr("t + INTERVAL 1 DAY")})
    assert ids(run(changes.withWatermark("t", "1 hour"), tmp_path / "c")) == [29]


@pytest.mark.slow
def test_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    spark.createDataFrame([], "id bigint, t timestamp").write.format("delta").save(source)
    frame = stream(spark, source, **ORDERED).withWatermark("t", "1 hour")
    assert ids(run(frame, tmp_path / "c")) == []
    save(spark, source)
    later = run(frame, tmp_path / "c")
    assert ids(later) == ALL[HOURS:]  # what commits add is in the order of the commits


@pytest.mark.slow
def test_the_setting_of_the_session(spark: SparkSession, tmp_path: Path) -> None:
    source, key = str(tmp_path / "source"), "spark.databricks.delta.withEventTimeOrder.enabled"
    save(spark, source)
    spark.conf.set(key, "true")
    try:
        frame = stream(spark, source, maxFilesPerTrigger=2)
        assert ids(run(frame, tmp_path / "none")) == ALL  # without a watermark, there is nothing to do
        assert ids(run(frame.withWatermark("t", "1 hour"), tmp_path / "c")) == ALL
        off = stream(spark, source, maxFilesPerTrigger=2, withEventTimeOrder="false").withWatermark("t", "1 hour")
        assert len(ids(run(off, tmp_path / "off"))) < len(ALL)
    finally:
        spark.conf.unset(key)


def error(frame: DataFrame, checkpoint: Path) -> TablelogError:
    with pytest.raises(StreamingQueryException) as raised:
        run(frame, checkpoint)
    assert isinstance(raised.value.__cause__, TablelogError)
    return raised.value.__cause__


def test_what_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    save(spark, source)

    def frame() -> DataFrame:
        return stream(spark, source, **ORDERED)

    none = error(frame(), tmp_path / "none")
    assert isinstance(none, InvalidArgumentError)
    assert "withWatermark" in str(none)
    computed = error(frame().withColumn("t", F.expr("t + INTERVAL 1 DAY")).withWatermark("t", "1 hour"), tmp_path / "2")
    assert isinstance(computed, UnsupportedFeatureError)
    assert "INTERVAL" in str(computed)
    local = frame().withColumn("t", F.expr("CAST(CAST(t AS timestamp_ntz) AS timestamp)")).withWatermark("t", "1 hour")
    assert isinstance(error(local, tmp_path / "local"), UnsupportedFeatureError)
    union = error(frame().unionByName(frame()).withWatermark("t", "1 hour"), tmp_path / "3")
    assert isinstance(union, UnsupportedFeatureError)
    assert "several streams" in str(union)
    with pytest.raises(InvalidArgumentError, match="withEventTimeOrder"):
        stream(spark, source, withEventTimeOrder="maybe")


@pytest.mark.slow
def test_two_tables_in_a_join(spark: SparkSession, tmp_path: Path) -> None:
    """Each side has the order of its own watermark; a table that is no stream may be joined before the watermark."""
    source, names = str(tmp_path / "source"), spark.range(100).selectExpr("id AS number")
    save(spark, source)
    sides = [stream(spark, source, **ORDERED).join(names, F.expr("id = number")).drop("number") for _ in range(2)]
    left = sides[0].withWatermark("t", "1 hour")
    right = sides[1].withColumnRenamed("t", "u").withColumnRenamed("id", "other").withWatermark("u", "1 hour")
    joined = left.join(right, F.expr("id = other AND t >= u - INTERVAL 1 HOUR AND t <= u + INTERVAL 1 HOUR"))
    batches = []
    writer = joined.writeStream.foreachBatch(lambda batch, _: batches.extend(row.id for row in batch.collect()))
    writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start().awaitTermination()
    assert sorted(batches) == ALL
