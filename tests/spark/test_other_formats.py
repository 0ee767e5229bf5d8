"""Every way in which Spark writes files of another format into the directory of a Delta table is refused.

An overwrite would delete the table with its log.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Catalog, DataFrame, DataFrameWriter, DataFrameWriterV2, SparkSession
from pyspark.sql.streaming import DataStreamWriter

from support.spark_tables import Table
from tablelog.engine.jvm import file_writes
from tablelog.errors import InvalidArgumentError

Way = Callable[[SparkSession, DataFrame, str], Any]

BY_DATAFRAMES: dict[str, Way] = {
    "csv": lambda _, df, path: df.write.csv(path, mode="overwrite"),
    "json": lambda _, df, path: df.write.json(path, mode="overwrite"),
    "orc": lambda _, df, path: df.write.orc(path, mode="overwrite"),
    "parquet": lambda _, df, path: df.write.parquet(path, mode="overwrite"),
    "text": lambda _, df, path: df.selectExpr("string(id)").write.text(path, mode="overwrite"),
    "xml": lambda _, df, path: df.write.mode("overwrite").xml(path, rowTag="row"),
    "save": lambda _, df, path: df.write.save(path, format="orc", mode="overwrite"),
    "save with an option": lambda _, df, path: df.write.mode("overwrite").format("csv").option("PATH", path).save(),
    "saveAsTable": lambda _, df, path: df.write.mode("overwrite").option("path", path).saveAsTable("own.a", "parquet"),
    "saveAsTable with an argument": lambda _, df, path: df.write.saveAsTable("own.b", "orc", "overwrite", path=path),
    "create": lambda _, df, path: df.writeTo("own.c").using("parquet").option("path", path).create(),
    "createOrReplace": lambda _, df, path: df.writeTo("own.c").using("orc").option("path", path).createOrReplace(),
    "replace": lambda _, df, path: df.writeTo("own.other").using("orc").option("path", path).replace(),
    "create with a property": (
        lambda _, df, path: df.writeTo("own.d").using("parquet").tableProperty("location", path).create()
    ),
    "createTable": lambda spark, df, path: spark.catalog.createTable("own.e", path, "parquet", df.schema),
    "createExternalTable": lambda spark, df, path: spark.catalog.createExternalTable("own.f", path, "orc", df.schema),
    "createDatabase": lambda spark, df, path: spark.catalog.createDatabase("inside", properties={"location": path}),
}
"""By the method; what comes after "with" is another way to call it."""
WITHOUT_FILES = set(
    "bucketBy clusterBy format insertInto jdbc mode option options partitionBy partitionedBy sortBy tableProperty "
    "using append overwrite overwritePartitions".split()
)
"""Methods of writers that write nothing, or only into a table that is there: `test_a_table_that_was_converted`."""
STREAMS = {"start", "toTable"}
OF_STREAMS_ELSEWHERE = set(
    "clusterBy foreach foreachBatch format option options outputMode partitionBy queryName trigger".split()
)


def directory(path: Path) -> list[tuple[str, int]]:
    return sorted((name, os.path.getsize(os.path.join(at, name))) for at, _, names in os.walk(path) for name in names)


@pytest.fixture
def database(spark: SparkSession, tmp_path: Path) -> Any:
    spark.sql(f"CREATE DATABASE own LOCATION '{tmp_path / 'db'}'")
    spark.sql("CREATE TABLE own.other (id BIGINT) USING parquet")
    yield
    spark.sql("DROP DATABASE own CASCADE")


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))}


def test_the_lists_have_every_method_of_the_writers() -> None:
    known = {name.partition(" ")[0] for name in BY_DATAFRAMES}
    assert public(DataFrameWriter) | public(DataFrameWriterV2) <= known | WITHOUT_FILES
    assert {name for name in public(Catalog) if name.startswith("create")} <= known
    assert public(DataStreamWriter) <= STREAMS | OF_STREAMS_ELSEWHERE


@pytest.mark.parametrize("below", ["", "/p=1", "/_delta_log", "/_delta_log/_sidecars"])
def test_a_writer_of_dataframes(spark: SparkSession, table: Table, database: None, below: str) -> None:
    table.write(spark.range(3))
    before = directory(table.root)
    for name, way in BY_DATAFRAMES.items():
        if name == "createDatabase" and not hasattr(spark.catalog, name):
            continue  # before Spark 4.2
        with pytest.raises(InvalidArgumentError, match=r"There is a Delta table at .*Nothing was written"):
            way(spark, spark.range(2), f"{table.path}{below}")
        assert directory(table.root) == before, name


def test_a_writer_of_streams(spark: SparkSession, table: Table, database: None, tmp_path: Path) -> None:
    table.write(spark.range(3))
    before = directory(table.root)
    stream = spark.readStream.format("rate").load().writeStream.option("checkpointLocation", str(tmp_path / "state"))
    for start in (
        lambda: stream.format("parquet").start(table.path),
        lambda: stream.toTable("own.s", format="parquet", path=table.path),
    ):
        with pytest.raises(InvalidArgumentError, match="There is a Delta table at"):
            start()
    assert directory(table.root) == before


def test_a_table_that_was_converted_by_its_path(spark: SparkSession, database: None, tmp_path: Path) -> None:
    """The catalog has it as a table of Parquet still."""
    path = tmp_path / "db" / "other"
    spark.sql("INSERT INTO own.other VALUES (1)")
    spark.sql(f"CONVERT TO DELTA parquet.`{path}`")
    before, rows = directory(path), spark.range(2)
    for change in (
        lambda: spark.sql("INSERT INTO own.other VALUES (9)"),
        lambda: spark.sql("INSERT OVERWRITE own.other SELECT id FROM own.other WHERE id > :x", args={"x": 0}),
        lambda: spark.sql("WITH x AS (SELECT 1L AS id) INSERT OVERWRITE own.other SELECT * FROM x"),
        lambda: spark.sql("FROM own.other INSERT INTO own.other SELECT id INSERT INTO own.other SELECT id"),
        lambda: spark.sql("EXECUTE IMMEDIATE 'INSERT OVERWRITE own.other VALUES (1)'"),
        lambda: spark.sql("BEGIN INSERT OVERWRITE own.other VALUES (1); END"),
        lambda: spark.sql("TRUNCATE TABLE own.other"),
        lambda: rows.write.insertInto("own.other", overwrite=True),
        lambda: rows.write.mode("overwrite").saveAsTable("own.other"),
        lambda: rows.write.mode("append").saveAsTable("own.other"),
        lambda: rows.writeTo("own.other").append(),
        lambda: rows.writeTo("own.other").overwritePartitions(),
    ):
        with pytest.raises(PySparkException):
            change()
        assert directory(path) == before
    if hasattr(spark.catalog, "truncateTable"):  # since Spark 4.2
        with pytest.raises(InvalidArgumentError):
            spark.catalog.truncateTable("own.other")
        assert directory(path) == before
    assert [row.id for row in spark.read.format("delta").load(str(path)).collect()] == [1]


@pytest.mark.parametrize("view", ["DataFrame", "USING"])
def test_a_view_of_its_files(spark: SparkSession, table: Table, view: str) -> None:
    table.write(spark.range(3))
    if view == "DataFrame":
        spark.read.parquet(table.path).createOrReplaceTempView("files")
    else:
        spark.sql(f"CREATE TEMPORARY VIEW files USING parquet OPTIONS (path '{table.path}')")
    before = directory(table.root)
    try:
        for change in (
            lambda: spark.sql("INSERT OVERWRITE files VALUES (9)"),
            lambda: spark.sql("INSERT INTO files VALUES (9)"),
            lambda: spark.range(1).write.insertInto("files", overwrite=True),
        ):
            with pytest.raises(InvalidArgumentError, match="There is a Delta table at"):
                change()
            assert directory(table.root) == before
    finally:
        spark.catalog.dropTempView("files")


def test_the_session_may_allow_it(spark: SparkSession, table: Table, database: None, conf: Any) -> None:
    table.write(spark.range(3))
    conf("spark.databricks.delta.formatCheck.enabled", "false")
    spark.range(2).write.parquet(f"{table.path}/_delta_log", mode="append")
    assert table.rows() == [0, 1, 2]


OVERWRITES: dict[str, Way] = {
    "parquet": lambda _, df, path: df.write.parquet(path, mode="overwrite"),
    "csv by position": lambda _, df, path: df.write.csv(path, "overwrite"),
    "text": lambda _, df, path: df.selectExpr("string(id)").write.mode("overwrite").text(path),
    "save": lambda _, df, path: df.write.mode("overwrite").format("orc").save(path),
    "option": lambda _, df, path: df.write.option("path", path).save(format="json", mode="Overwrite"),
    "statement": lambda spark, _, path: spark.sql(f"INSERT OVERWRITE DIRECTORY '{path}' USING parquet SELECT 1 id"),
}


@pytest.mark.parametrize("way", OVERWRITES)
def test_a_directory_that_has_tables_in_it(spark: SparkSession, tmp_path: Path, way: str) -> None:
    table = Table(spark, tmp_path / "lake" / "a b%20" / "table")
    table.write(spark.range(3))
    before = directory(tmp_path)
    for above in (tmp_path / "lake", table.root.parent):
        with pytest.raises(InvalidArgumentError, match=r"overwrite of .* would delete the Delta table .*/table"):
            OVERWRITES[way](spark, spark.range(2).toDF("id"), str(above))
    with pytest.raises(InvalidArgumentError, match="There is a Delta table"):
        OVERWRITES[way](spark, spark.range(2).toDF("id"), table.path)
    assert directory(tmp_path) == before


@pytest.mark.parametrize("place", ["aB", "_change_data", "more/day=1"])
def test_a_directory_in_a_table(spark: SparkSession, table: Table, place: str) -> None:
    table.write(spark.range(3))
    before = directory(table.root)
    for way in ("parquet", "statement"):
        with pytest.raises(InvalidArgumentError, match="is inside one"):
            OVERWRITES[way](spark, spark.range(2).toDF("id"), f"{table.path}/{place}")
    assert directory(table.root) == before


def test_tablelogs_own_files_in_a_table(spark: SparkSession, table: Table) -> None:
    """On an object store, tasks write into a directory inside the table."""
    table.write(spark.range(3))
    file_writes.append(spark.range(2).toDF("id"), f"{table.path}/data-1", [], {})
    assert spark.read.parquet(f"{table.path}/data-1").count() == 2


@pytest.mark.parametrize("by_method", [True, False])
def test_a_schema_in_whose_directory_is_a_table(spark: SparkSession, tmp_path: Path, by_method: bool) -> None:
    if by_method and not hasattr(spark.catalog, "dropDatabase"):
        pytest.skip("before Spark 4.2")
    table = Table(spark, tmp_path / "a b%20" / "table")
    spark.sql(f"CREATE DATABASE around LOCATION '{table.root.parent}'")
    table.write(spark.range(3))
    drops: list[Callable[[], object]] = [
        lambda: spark.sql("DROP DATABASE around"),
        lambda: spark.sql("DROP SCHEMA IF EXISTS spark_catalog.`around` RESTRICT"),
    ]
    if by_method:
        drops = [lambda: spark.catalog.dropDatabase("around")]
    for drop in drops:
        with pytest.raises(InvalidArgumentError, match=r"schema .*around would delete its directory .*/table"):
            drop()
    assert table.rows() == [0, 1, 2]
    spark.sql("DROP SCHEMA IF EXISTS missing_one")
    spark.sql("DROP SCHEMA around CASCADE")
    assert not table.root.exists()


def test_other_directories_beside_and_around_tables(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    table.write(spark.range(3))
    spark.range(2).write.parquet(f"{table.path}/_checkpoints")
    spark.range(2).write.mode("append").parquet(str(tmp_path))
    for _ in range(2):
        spark.range(2).write.mode("overwrite").parquet(f"{tmp_path}/other")
    assert table.rows() == [0, 1, 2]
