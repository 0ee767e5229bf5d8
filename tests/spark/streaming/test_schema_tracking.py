"""Queries that follow renamed, dropped and widened columns of their source by a schema log."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession

from tablelog.errors import InvalidArgumentError, TablelogError
from tablelog.spark import DeltaTable

MAPPED = {"delta.columnMapping.mode": "name"}
WIDENED = {"delta.enableTypeWidening": "true"}


class Query:
    """A query from one table into another; each `run` starts it again, and reads all that there is."""

    def __init__(self, spark: SparkSession, root: Path, **options: Any) -> None:
        self.spark = spark
        self.source, self.target, self.checkpoint = (str(root / name) for name in ("source", "target", "checkpoint"))
        self.options = {"schemaTrackingLocation": f"{self.checkpoint}/schema", **options}

    def append(self, columns: str, **options: Any) -> None:
        rows = self.spark.sql(f"SELECT {columns}").coalesce(1)
        rows.write.format("delta").mode("append").options(**options).save(self.source)

    def sql(self, text: str) -> None:
        self.spark.sql(f"ALTER TABLE delta.`{self.source}` {text}")

    def run(self, **options: Any) -> None:
        frame = self.spark.readStream.format("delta").options(**self.options, **options).load(self.source)
        writer = frame.writeStream.format("delta").option("checkpointLocation", self.checkpoint)
        writer.option("mergeSchema", "true").trigger(availableNow=True).start(self.target).awaitTermination()

    def fails(self, condition: str, **options: Any) -> str:
        with pytest.raises(PySparkException) as raised:
            self.run(**options)
        assert condition_of(raised.value) == condition
        return str(raised.value)

    def rows(self) -> set[tuple[tuple[str, Any], ...]]:
        """The rows of the target, without nulls."""
        rows = self.spark.read.format("delta").load(self.target).collect()
        return {tuple((key, value) for key, value in row.asDict().items() if value is not None) for row in rows}


def condition_of(error: PySparkException) -> str | None:
    """The condition of an error from `start`, or of the error that ended the query."""
    cause = error.__cause__ if isinstance(error, StreamingQueryException) else error
    assert isinstance(cause, TablelogError | PySparkException)
    return cause.condition if isinstance(cause, TablelogError) else cause.getCondition()


EVOLUTION = "DELTA_STREAMING_METADATA_EVOLUTION"
BLOCKED = "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"


def test_a_query_follows_a_rename_a_drop_and_an_added_column(spark: SparkSession, tmp_path: Path) -> None:
    query = Query(spark, tmp_path)
    query.append("1L id, 'x' a", **MAPPED)
    query.run()
    query.sql("RENAME COLUMN a TO b")
    query.append("2L id, 'y' b")
    query.fails(EVOLUTION)
    message = query.fails(BLOCKED)
    assert '.option("allowSourceColumnRename", "' in message
    query.run(ALLOWSOURCECOLUMNRENAME="always")
    assert query.rows() == {(("id", 1), ("a", "x")), (("id", 2), ("b", "y"))}

    query.sql("ADD COLUMN c INT")
    query.append("3L id, 'z' b, 7 c")
    query.fails(BLOCKED)  # the rename is still the last change
    query.fails(EVOLUTION, allowSourceColumnRename="ALWAYS")
    query.run()
    query.sql("DROP COLUMN b")
    query.append("4L id, 8 c")
    query.fails(EVOLUTION)
    key = "spark.databricks.delta.streaming.allowSourceColumnDrop"
    suffix = next(word for word in query.fails(BLOCKED).split() if word.startswith(f"{key}.ckpt_"))
    spark.conf.set(suffix, "always")
    try:
        query.run()
    finally:
        spark.conf.unset(suffix)
    assert (("id", 4), ("c", 8)) in query.rows()
    assert len(query.rows()) == 4
    (directory,) = Path(query.checkpoint, "schema").iterdir()
    assert sorted(file.name for file in directory.iterdir() if not file.name.startswith(".")) == ["0", "1", "2", "3"]
    first = json.loads((directory / "0").read_text().splitlines()[1])
    assert first["sourceMetadataPath"] == f"file:{query.checkpoint}/sources/0"


@pytest.mark.slow
def test_a_query_follows_a_wider_type(spark: SparkSession, tmp_path: Path) -> None:
    query = Query(spark, tmp_path, schemaLocation=str(tmp_path / "checkpoint" / "schema"))
    del query.options["schemaTrackingLocation"]
    query.append("1 id", **WIDENED)
    query.run()
    query.sql("ALTER COLUMN id TYPE BIGINT")
    query.append("5000000000L id")
    query.fails(EVOLUTION)
    query.fails(BLOCKED)
    spark.sql(f"ALTER TABLE delta.`{query.target}` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    query.run(allowSourceColumnTypeChange="always")
    assert query.rows() == {(("id", 1),), (("id", 5000000000),)}


@pytest.mark.slow
def test_changes_of_columns_in_a_change_feed(spark: SparkSession, tmp_path: Path) -> None:
    query = Query(spark, tmp_path, readChangeFeed="true", startingVersion="0")
    query.append("1L id, 'x' a", **MAPPED, **{"delta.enableChangeDataFeed": "true"})
    query.sql("RENAME COLUMN a TO b")
    DeltaTable.forPath(spark, query.source).delete("id = 1")
    names: list[list[str]] = []

    def run(**options: Any) -> None:
        frame = spark.readStream.format("delta").options(**query.options, **options).load(query.source)
        writer = frame.writeStream.option("checkpointLocation", query.checkpoint)

        def keep(batch: Any, number: int) -> None:
            names.extend([*batch.columns[:2], row._change_type] for row in batch.collect())

        writer.trigger(availableNow=True).foreachBatch(keep).start().awaitTermination()

    for options in ({}, {}, {"allowSourceColumnRename": "always"}):
        if options:
            run(**options)
        else:
            with pytest.raises(PySparkException):
                run()
    assert names == [["id", "a", "insert"], ["id", "b", "delete"]]


def test_without_a_schema_log_a_rename_ends_the_query(spark: SparkSession, tmp_path: Path) -> None:
    query = Query(spark, tmp_path)
    location = query.options.pop("schemaTrackingLocation")
    query.append("1L id, 'x' a", **MAPPED)
    query.run()
    query.append("2L id, 'y' a")
    query.sql("RENAME COLUMN a TO b")
    message = query.fails("DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG")
    assert "schemaTrackingLocation" in message
    # With a schema log from now on, the query goes on.
    query.options["schemaTrackingLocation"] = location
    query.fails(EVOLUTION)
    query.fails(EVOLUTION)
    query.fails(BLOCKED)
    query.run(allowSourceColumnRename="always")
    assert query.rows() == {(("id", 1), ("a", "x")), (("id", 2), ("a", "y"))}


def test_where_a_schema_log_may_be(spark: SparkSession, tmp_path: Path) -> None:
    query = Query(spark, tmp_path, schemaTrackingLocation=str(tmp_path / "elsewhere"))
    query.append("1L id")
    query.fails("DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT")
    spark.conf.set("spark.databricks.delta.streaming.allowSchemaLocationOutsideCheckpointLocation", "true")
    try:
        query.run()
    finally:
        spark.conf.unset("spark.databricks.delta.streaming.allowSchemaLocationOutsideCheckpointLocation")
    with pytest.raises(InvalidArgumentError, match="failOnDataLoss"):
        spark.readStream.format("delta").options(**query.options, failOnDataLoss=False).load(query.source)


def test_two_sources_of_a_query_need_a_name_each(spark: SparkSession, tmp_path: Path) -> None:
    query = Query(spark, tmp_path)
    query.append("1L id")

    def run(first: str, second: str) -> None:
        frames = [
            spark.readStream.format("delta").options(**query.options, streamingSourceTrackingId=name).load(query.source)
            for name in (first, second)
        ]
        writer = frames[0].union(frames[1]).writeStream.format("delta").option("checkpointLocation", query.checkpoint)
        writer.trigger(availableNow=True).start(query.target).awaitTermination()

    with pytest.raises(PySparkException) as raised:
        run("one", "one")
    assert condition_of(raised.value) == "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT"
    query.checkpoint = str(tmp_path / "second")
    query.options["schemaTrackingLocation"] = f"{query.checkpoint}/schema"
    run("one", "two")
    assert spark.read.format("delta").load(query.target).count() == 2
