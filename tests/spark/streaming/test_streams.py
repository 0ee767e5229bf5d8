"""Streams by `readStream` and `writeStream`: rows, restarts, progress, and what is refused."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from support.table_work import settings
from tablelog.core import DeltaLog
from tablelog.errors import InvalidArgumentError, UnsupportedFeatureError
from tablelog.spark import DeltaTable


@pytest.fixture(autouse=True)
def one_shuffle_partition(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


def append(spark: SparkSession, path: str, first: int, end: int, **options: Any) -> None:
    rows = spark.range(first, end).selectExpr("id", "id % 2 AS p")
    rows.write.format("delta").mode("append").options(**options).save(path)


def run(frame: DataFrame, path: str, checkpoint: str, **options: Any) -> Any:
    """Run a query into a table until it has read everything; the query."""
    writer = frame.writeStream.format("delta").option("checkpointLocation", checkpoint).options(**options)
    query = writer.trigger(availableNow=True).start(path)
    query.awaitTermination()
    return query


def ids(spark: SparkSession, path: str) -> list[int]:
    return sorted(row.id for row in spark.read.format("delta").load(path).collect())


def test_rows_go_from_table_to_table_once_across_restarts(spark: SparkSession, tmp_path: Path) -> None:
    source, target, checkpoint = (str(tmp_path / name) for name in ("source", "target", "checkpoint"))
    spark.range(0).selectExpr("id", "id % 2 AS p").write.format("delta").partitionBy("p").save(source)
    for i in range(3):
        append(spark, source, i * 10, i * 10 + 10)

    def stream() -> DataFrame:
        return spark.readStream.format("delta").option("maxFilesPerTrigger", 2).load(source)

    query = run(stream(), target, checkpoint, userMetadata="from the test")
    assert ids(spark, target) == list(range(30))
    progress = json.loads(query.lastProgress.json) if not isinstance(query.lastProgress, dict) else query.lastProgress
    (of_source,) = progress["sources"]
    assert of_source["description"].startswith("DeltaSource[")
    assert of_source["metrics"]["numFilesOutstanding"] == "0"
    assert sum(one["numInputRows"] for one in query.recentProgress) == 30
    first = [one["sources"][0]["metrics"]["numFilesOutstanding"] for one in query.recentProgress]
    assert first[0] != "0"  # the limit was reached
    history = DeltaTable.forPath(spark, target).history(1).first()
    assert history is not None
    assert (history.operation, history.userMetadata) == ("STREAMING UPDATE", "from the test")
    assert history.operationParameters["queryId"] == query.id
    assert DeltaLog.for_path(target).snapshot().transactions[query.id].version == len(query.recentProgress) - 1

    append(spark, source, 30, 40)
    run(stream(), target, checkpoint)
    assert ids(spark, target) == list(range(40))

    # As if the driver had died between the commit of the last batch and Spark's record of it.
    before = DeltaLog.for_path(target).snapshot().version
    newest = max(int(file.name) for file in Path(checkpoint, "commits").iterdir() if file.name.isdigit())
    for name in (str(newest), f".{newest}.crc"):
        Path(checkpoint, "commits", name).unlink(missing_ok=True)
    run(stream(), target, checkpoint)
    assert DeltaLog.for_path(target).snapshot().version == before
    assert ids(spark, target) == list(range(40))


def test_the_sink_adds_columns_if_it_may(spark: SparkSession, tmp_path: Path) -> None:
    source, target, checkpoint = (str(tmp_path / name) for name in ("source", "target", "checkpoint"))
    append(spark, source, 0, 2)
    stream = spark.readStream.format("delta").load(source)
    run(stream.select("id"), target, checkpoint)
    append(spark, source, 2, 4)
    with pytest.raises(PySparkException, match="mergeSchema"):
        run(stream, target, checkpoint)
    run(stream, target, checkpoint, mergeSchema="true")
    found = {row.id: row.p for row in spark.read.format("delta").load(target).collect()}
    assert found == {0: None, 1: None, 2: 0, 3: 1}


def test_columns_and_partitions_are_pruned(spark: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    spark.range(0, 10).selectExpr("id", "id % 2 AS p", "'x' AS unused").write.format("delta").partitionBy("p").save(
        source
    )
    plans: list[str] = []

    def keep(batch: DataFrame, number: int) -> None:
        plans.append(str([row.id for row in batch.collect()]))

    stream = spark.readStream.format("delta").load(source).where("p = 1").select("id")
    query = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "c")).trigger(once=True)
    started = query.start()
    started.awaitTermination()
    assert plans == ["[1, 3, 5, 7, 9]"]
    assert started.lastProgress["numInputRows"] == 5  # the files of the other partition aren't read
    stream.explain()


def test_rdds_of_a_function_by_batch_read_what_it_has_written(spark: SparkSession, tmp_path: Path) -> None:
    """They have the execution of the batch, in which a table was read before."""
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    append(spark, source, 0, 3)
    append(spark, target, 100, 101)
    spark.read.format("delta").load(target).createOrReplaceTempView("view_of_target")
    counts: list[int] = []

    def write(batch: DataFrame, number: int) -> None:
        read, table = batch.sparkSession.read.format("delta").load, batch.sparkSession.table
        counts.append(table("view_of_target").rdd.count())
        batch.write.format("delta").mode("append").save(target)
        counts.append(table("view_of_target").rdd.count())
        counts.append(read(target).rdd.count())
        counts.append(read(target).join(read(target), "id").rdd.count())
        batch.sparkSession.createDataFrame(read(target).rdd, "id bigint, p bigint").write.format("delta").mode(
            "overwrite"
        ).save(target)

    query = spark.readStream.format("delta").load(source).writeStream.foreachBatch(write)
    query.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start().awaitTermination()
    assert counts == [1, 4, 4, 4]
    spark.catalog.dropTempView("view_of_target")
    assert ids(spark, target) == [0, 1, 2, 100]


def test_complete_mode_replaces_the_table_and_state_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    source, target, checkpoint = (str(tmp_path / name) for name in ("source", "target", "checkpoint"))
    append(spark, source, 0, 10)
    for end in (10, 14):
        counts = spark.readStream.format("delta").load(source).groupBy("p").count()
        writer = counts.writeStream.format("delta").outputMode("complete").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start(target).awaitTermination()
        found = {row.p: row["count"] for row in spark.read.format("delta").load(target).collect()}
        assert found == {0: end // 2, 1: end // 2}
        append(spark, source, 10, 14)


def test_complete_mode_replaces_the_whole_table_also_if_the_session_replaces_partitions(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    with settings(spark, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}):
        for first, last, wanted in ((0, 2, {0, 1}), (2, 3, {1})):  # the second result lacks the partition 0
            append(spark, source, first, last)
            counts = spark.readStream.format("delta").load(source).groupBy("p").count().where("count = 1")
            writer = counts.writeStream.format("delta").outputMode("complete").partitionBy("p")
            writer = writer.option("checkpointLocation", str(tmp_path / "c"))
            writer.trigger(availableNow=True).start(target).awaitTermination()
            assert {row.p for row in spark.read.format("delta").load(target).collect()} == wanted


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("replaceWhere", "p = 1"),
        ("partitionOverwriteMode", "Dynamic"),
        ("txnAppId", "a"),
        ("txnVersion", "1"),
        ("dataChange", "false"),
    ],
)
def test_an_option_of_batch_writes_that_a_stream_cant_follow_is_refused_at_the_start(
    spark: SparkSession, tmp_path: Path, name: str, value: str
) -> None:
    source, target = str(tmp_path / "source"), tmp_path / "target"
    append(spark, source, 0, 1)
    writer = spark.readStream.format("delta").load(source).writeStream.format("delta").option(name, value)
    with pytest.raises(InvalidArgumentError, match=f"for option '{name}', .* stream") as error:
        writer.option("checkpointLocation", str(tmp_path / "c")).start(str(target))
    assert error.value.getCondition() == "DELTA_ILLEGAL_OPTION"
    assert not target.exists()


@pytest.mark.slow
def test_deletion_vectors_column_mapping_and_a_stream_of_changes(spark: SparkSession, tmp_path: Path) -> None:
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    features = {
        "delta.enableDeletionVectors": "true",
        "delta.columnMapping.mode": "name",
        "delta.enableChangeDataFeed": "true",
    }
    append(spark, source, 0, 10, **features)
    table = DeltaTable.forPath(spark, source)
    table.delete("id = 3")
    run(spark.readStream.format("delta").load(source), target, str(tmp_path / "c1"))
    assert ids(spark, target) == [0, 1, 2, 4, 5, 6, 7, 8, 9]

    table.update("id = 4", {"p": "7"})
    append(spark, source, 20, 21)
    changes = (
        spark.readStream.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).load(source)
    )
    run(
        changes.withColumnRenamed("_change_type", "kind").drop("_commit_version", "_commit_timestamp"),
        target + "2",
        str(tmp_path / "c2"),
    )
    batch = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).load(source)
    wanted = sorted((row.id, row.p, row._change_type) for row in batch.collect())
    got = sorted((row.id, row.p, row.kind) for row in spark.read.format("delta").load(target + "2").collect())
    assert got == wanted


def test_tables_of_the_catalog(spark: SparkSession, tmp_path: Path) -> None:
    source, checkpoint = str(tmp_path / "source"), str(tmp_path / "checkpoint")
    append(spark, source, 0, 4)
    spark.sql(f"CREATE TABLE stream_source USING delta LOCATION '{source}'")
    try:
        stream = spark.readStream.table("stream_source")
        writer = stream.writeStream.format("delta").option("checkpointLocation", checkpoint).partitionBy("p")
        writer.trigger(availableNow=True).toTable("stream_target").awaitTermination()
        assert sorted(row.id for row in spark.table("stream_target").collect()) == [0, 1, 2, 3]
        assert DeltaTable.forName(spark, "stream_target").detail().collect()[0].partitionColumns == ["p"]
        by_sql = spark.sql("SELECT s.id + 100 AS id FROM STREAM(stream_source) AS s WHERE p = 1")
        assert by_sql.isStreaming
        run(by_sql, str(tmp_path / "by_sql"), str(tmp_path / "checkpoint2"))
        assert ids(spark, str(tmp_path / "by_sql")) == [101, 103]
        assert spark.sql(f"SELECT * FROM STREAM(delta.`{source}`)").columns == ["id", "p"]
        with pytest.raises(InvalidArgumentError, match=r'format\("delta"\)'):
            stream.writeStream.format("parquet").option("checkpointLocation", checkpoint).toTable("stream_target")
    finally:
        spark.sql("DROP TABLE IF EXISTS stream_source")
        spark.sql("DROP TABLE IF EXISTS stream_target")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"withEventTimeOrder": "maybe"}, "withEventTimeOrder"),
        ({"maxFilesPerTrigger": "0"}, "maxFilesPerTrigger"),
        ({"maxFilesPerTrigger": "1.5"}, "maxFilesPerTrigger"),
        ({"maxBytesPerTrigger": "many"}, "maxBytesPerTrigger"),
        ({"startingVersion": "1", "startingTimestamp": "2024-01-01"}, "not both"),
        ({"startingVersion": "-1"}, "startingVersion"),
        ({"versionAsOf": "1"}, "startingVersion"),
        ({"excludeRegex": "("}, "excludeRegex"),
    ],
)
def test_wrong_and_unsupported_options(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    with pytest.raises((InvalidArgumentError, UnsupportedFeatureError), match=message):
        spark.readStream.format("delta").options(**options).load(str(tmp_path))


def test_files_are_excluded_by_a_pattern_of_java(spark: SparkSession, tmp_path: Path) -> None:
    """The pattern has a class of characters that only Java's regular expressions know."""
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    rows = spark.range(6).selectExpr("id", "CASE WHEN id % 2 = 0 THEN 'a' ELSE 'é' END AS p")
    rows.write.format("delta").partitionBy("p").save(source)
    append = rows.where("id > 3").selectExpr("id + 10 AS id", "'b' AS p")
    append.write.format("delta").mode("append").save(source)
    stream = spark.readStream.format("delta").option("excludeRegex", r"^p=[a-c&&[^b]]/").load(source)
    run(stream, target, str(tmp_path / "checkpoint"))
    assert ids(spark, target) == [1, 3, 5, 14, 15]


def test_what_a_sink_refuses(spark: SparkSession, tmp_path: Path) -> None:
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    append(spark, source, 0, 4)
    stream = spark.readStream.format("delta").load(source)
    with pytest.raises(PySparkException, match="checkpointLocation"):
        stream.writeStream.format("delta").start(target)
    counts = stream.groupBy("p").count().writeStream.option("checkpointLocation", str(tmp_path / "c"))
    with pytest.raises(PySparkException, match="output mode"):
        counts.format("delta").outputMode("update").start(target)
    with pytest.raises(InvalidArgumentError, match="Delta table"):  # the files of another format
        stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "c")).option(
            "path", source
        ).start()
    shutil.rmtree(tmp_path / "c", ignore_errors=True)


def test_changes_are_merged_by_foreach_batch(spark: SparkSession, tmp_path: Path) -> None:
    source, target, checkpoint = (str(tmp_path / name) for name in ("source", "target", "checkpoint"))
    append(spark, source, 0, 6, **{"delta.enableChangeDataFeed": "true"})
    spark.range(0).selectExpr("id", "id AS p").write.format("delta").save(target)

    def merge(batch: DataFrame, number: int) -> None:
        last = (
            batch.where("_change_type <> 'update_preimage'")
            .groupBy("id")
            .agg(F.max_by(F.struct("p", "_change_type"), "_commit_version").alias("c"))
        )
        rows = last.select("id", "c.p", F.col("c._change_type").alias("kind"))
        merging = DeltaTable.forPath(batch.sparkSession, target).alias("t").merge(rows.alias("s"), "t.id = s.id")
        merging = merging.whenMatchedDelete("s.kind = 'delete'").whenMatchedUpdate(set={"p": "s.p"})
        merging.whenNotMatchedInsert("s.kind <> 'delete'", {"id": "s.id", "p": "s.p"}).execute()

    def stream() -> None:
        changes = spark.readStream.format("delta").option("readChangeFeed", "true").load(source)
        query = changes.writeStream.foreachBatch(merge).option("checkpointLocation", checkpoint)
        query.trigger(availableNow=True).start().awaitTermination()

    stream()
    table = DeltaTable.forPath(spark, source)
    table.delete("id = 1")
    table.update("id = 2", {"p": "9"})
    append(spark, source, 6, 8)
    stream()
    wanted = sorted((row.id, row.p) for row in spark.read.format("delta").load(source).collect())
    assert sorted((row.id, row.p) for row in spark.read.format("delta").load(target).collect()) == wanted
