"""Streams whose rows are read and written by Python workers, as where Spark has no file system, or by manifests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from support.copied_streams import copied_by_streams
from support.spark_tables import Table
from support.table_work import by_route, settings
from tablelog.settings.declarations import READ_ROUTE, READ_SCRATCH


@pytest.fixture
def by_workers(spark: SparkSession) -> Iterator[None]:
    with settings(spark, {"spark.sql.shuffle.partitions": "1", **by_route("arrow")}):
        yield


def copied(stream: DataFrame, tmp_path: Path) -> Any:
    """The query, after it has copied the stream's rows into the table `target`."""
    writer = stream.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(tmp_path / "target"))
    query.awaitTermination()
    return query


@pytest.mark.slow
def test_rows_changes_and_merges_by_workers(spark: SparkSession, tmp_path: Path, by_workers: None) -> None:
    copied_by_streams(spark, f"file://{tmp_path}/source", tmp_path / "checkpoints")


@pytest.mark.slow
def test_rows_changes_and_merges_by_manifests(spark: SparkSession, tmp_path: Path) -> None:
    scratch = str(tmp_path / "scratch")
    with settings(spark, {READ_ROUTE.key: "manifest", READ_SCRATCH.key: scratch, "spark.sql.shuffle.partitions": "1"}):
        copied_by_streams(spark, f"file://{tmp_path}/source", tmp_path / "checkpoints")


def test_deletion_vectors_and_row_ids(spark: SparkSession, tmp_path: Path, by_workers: None) -> None:
    source, target = Table(spark, tmp_path / "source"), Table(spark, tmp_path / "target")
    properties = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
    source.write(spark.range(0, 6, 1, 1), **properties)
    source.delta.delete("id = 2")
    reader = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).option("readRowIds", "true")
    query = copied(reader.load(source.path).selectExpr("id", "_row_id AS number"), tmp_path)
    assert target.rows() == [(i, i) for i in range(6) if i != 2]
    assert sum(progress["numInputRows"] for progress in query.recentProgress) == 5


def test_event_times(spark: SparkSession, tmp_path: Path, by_workers: None) -> None:
    """The files of the first version are read in the order of a column, whose bounds the workers may have to find."""
    source = Table(spark, tmp_path / "source")
    rows = spark.range(0, 4, 1, 4).selectExpr("id", "timestamp_micros(3600000000 * (4 - id)) AS at")
    source.write(rows, **{"delta.dataSkippingNumIndexedCols": "0"})
    reader = spark.readStream.format("delta").option("withEventTimeOrder", "true").option("maxFilesPerTrigger", 1)
    stream = reader.load(source.path).withWatermark("at", "1 minute")
    assert copied(stream, tmp_path).lastProgress is not None
    target = Table(spark, tmp_path / "target")
    assert [row[0] for row in target.rows()] == [0, 1, 2, 3]


def test_an_empty_batch_and_a_missing_file(spark: SparkSession, tmp_path: Path, by_workers: None) -> None:
    source = Table(spark, tmp_path / "source")
    source.write(spark.range(0, 4, 1, 1))
    source.delta.setProperties({"mine": "1"})
    stream = spark.readStream.format("delta").load(source.path)
    copied(stream, tmp_path)
    copied(stream, tmp_path)
    source.write(spark.range(4, 5, 1, 1))
    new = source.data_files()
    for name in new:
        (source.root / name).unlink()
    with pytest.raises(PySparkException, match=r"FILE_NOT_EXIST.*\.parquet"):
        copied(stream, tmp_path)
    target = Table(spark, tmp_path / "target")
    assert target.rows() == [0, 1, 2, 3]
