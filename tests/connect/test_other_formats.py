"""No writer of another format acts on the directory of a Delta table, by any method and in any spelling of its path."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions

from support.spark_tables import Table
from tablelog.engine.jvm import file_writes
from tablelog.errors import InvalidArgumentError
from tablelog.logstore.data_files import DataFiles

REFUSED = "There is a Delta table"

WRITERS: dict[str, Callable[[Any, str], object]] = {
    "parquet": lambda spark, path: spark.range(2).write.mode("overwrite").parquet(path),
    "csv": lambda spark, path: spark.range(2).write.csv(path, mode="overwrite"),
    "save": lambda spark, path: spark.range(2).write.save(path, format="json", mode="overwrite"),
    "save by position": lambda spark, path: spark.range(2).write.save(path, "parquet", "overwrite"),
    "option path": lambda spark, path: spark.range(2).write.mode("overwrite").option("path", path).save(),
    "option PATH": lambda spark, path: spark.range(2).write.mode("overwrite").option("PATH", path).save(),
    "keyword": lambda spark, path: spark.range(2).write.mode("overwrite").save(Path=path),
    "saveAsTable": lambda spark, path: spark.range(2).write.option("path", path).saveAsTable("other"),
    "saveAsTable by keyword": lambda spark, path: spark.range(2).write.saveAsTable("other", path=path),
    "create": lambda spark, path: spark.range(2).writeTo("other").using("parquet").option("path", path).create(),
    "createOrReplace": lambda spark, path: (
        spark.range(2).writeTo("other").using("parquet").tableProperty("location", path).createOrReplace()
    ),
    "createTable": lambda spark, path: spark.catalog.createTable("other", path, "parquet", spark.range(1).schema),
    "createTable by option": lambda spark, path: spark.catalog.createTable(
        "other", source="parquet", schema=spark.range(1).schema, path=path
    ),
    "stream": lambda spark, path: _stream(spark).format("parquet").start(path),
    "stream by option": lambda spark, path: _stream(spark).format("parquet").option("path", path).start(),
    "stream to a table": lambda spark, path: _stream(spark).toTable("other", format="parquet", path=path),
}


def _stream(spark: Any) -> Any:
    return spark.readStream.format("rate").load().writeStream.option("checkpointLocation", "unused")


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("place", ["", "/", "/part=1", "/_delta_log", "/_delta_log/x/y"])
def test_writers(spark: Any, table: Table, writer: str, place: str) -> None:
    table.write(spark.sql("SELECT 1 AS part, 7 AS id"), by=("part",))
    before = sorted(table.root.rglob("*"))
    with pytest.raises(InvalidArgumentError, match=REFUSED):
        WRITERS[writer](spark, table.path + place)
    assert sorted(table.root.rglob("*")) == before


STATEMENTS = (
    "INSERT OVERWRITE DIRECTORY '{path}' USING parquet SELECT 1 id",
    "INSERT OVERWRITE LOCAL DIRECTORY '{path}' USING parquet SELECT 1 id",
    "INSERT OVERWRITE DIRECTORY USING parquet OPTIONS (path '{path}') SELECT 1 id",
    "CREATE TABLE other (id INT) USING parquet LOCATION '{path}'",
    "EXECUTE IMMEDIATE 'INSERT OVERWRITE DIRECTORY \"{path}\" USING parquet SELECT 1 id'",
    "BEGIN INSERT OVERWRITE DIRECTORY '{path}' USING parquet SELECT 1 id; END",
)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements(spark: Any, table: Table, statement: str) -> None:
    table.write(spark.sql("SELECT 1 AS part, 7 AS id"), by=("part",))
    before = sorted(table.root.rglob("*"))
    for place in ("", "/part=1", "/_delta_log"):
        with pytest.raises(InvalidArgumentError, match=REFUSED):
            spark.sql(statement.format(path=table.path + place))
    assert sorted(table.root.rglob("*")) == before


OVERWRITES: dict[str, Callable[[Any, str], object]] = {
    **{name: WRITERS[name] for name in ("parquet", "save by position", "option PATH")},
    "csv": lambda spark, path: spark.range(2).write.csv(path, "overwrite"),
    "statement": lambda spark, path: spark.sql(STATEMENTS[0].format(path=path)),
    "in a script": lambda spark, path: spark.sql(STATEMENTS[-1].format(path=path)),
}


@pytest.mark.parametrize("way", OVERWRITES)
def test_directories_around_and_in_tables(spark: Any, tmp_path: Path, way: str) -> None:
    table = Table(spark, tmp_path / "lake" / "a b%20" / "table")
    table.write(spark.range(3))
    before = sorted(tmp_path.rglob("*"))
    for above in (tmp_path / "lake", table.root.parent):
        with pytest.raises(InvalidArgumentError, match=r"overwrite of .* would delete the Delta table .*/table"):
            OVERWRITES[way](spark, str(above))
    with pytest.raises(InvalidArgumentError, match="There is a Delta table"):
        OVERWRITES[way](spark, table.path)
    for place in ("aB", "_change_data", "more/day=1"):
        with pytest.raises(InvalidArgumentError, match="is inside one"):
            OVERWRITES[way](spark, f"{table.path}/{place}")
    assert sorted(tmp_path.rglob("*")) == before


def test_tablelogs_own_files_in_a_table(spark: Any, table: Table) -> None:
    """Spark writes the files of a table into a directory inside it."""
    table.write(spark.range(3))
    file_writes.append(spark.range(2).toDF("id"), f"{table.path}/data-1", [], {})
    assert spark.read.parquet(f"{table.path}/data-1").count() == 2


def test_a_schema_in_whose_directory_is_a_table(spark: Any, tmp_path: Path) -> None:
    table = Table(spark, tmp_path / "a b%20" / "table")
    spark.sql(f"CREATE DATABASE around LOCATION '{table.root.parent}'")
    table.write(spark.range(3))
    drops: list[Callable[[], object]] = [
        lambda: spark.sql("DROP DATABASE around"),
        lambda: spark.sql("drop /* all */ schema IF EXISTS spark_catalog.`around` RESTRICT"),
        lambda: spark.sql("EXECUTE IMMEDIATE 'DROP NAMESPACE around'"),
    ]
    if hasattr(spark.catalog, "dropDatabase"):
        drops.append(lambda: spark.catalog.dropDatabase("around"))
    for drop in drops:
        with pytest.raises(InvalidArgumentError, match=r"schema .*around.* would delete its directory .*/table"):
            drop()
    assert table.rows() == [0, 1, 2]
    spark.sql("DROP SCHEMA IF EXISTS missing_one")
    spark.sql("DROP SCHEMA around CASCADE")
    assert not table.root.exists()


def test_the_check_of_an_overwrite_makes_one_listing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overwrite() -> None:
        spark.range(3).selectExpr("id", "id p").write.partitionBy("p").mode("overwrite").parquet(f"{tmp_path}/parquet")

    listed: list[str] = []
    entries = DataFiles.entries
    monkeypatch.setattr(DataFiles, "entries", lambda files: listed.append(files.root) or entries(files))
    for count in (1, 2):
        overwrite()
        assert len(listed) == count
    for number in range(200):
        (tmp_path / "many" / f"d{number}").mkdir(parents=True)
    spark.range(1).write.mode("overwrite").parquet(f"{tmp_path}/many")
    assert len(listed) == 2 + 100


def test_directories_beside_tables(spark: Any, table: Table, tmp_path: Path) -> None:
    table.write(spark.range(3))
    spark.range(2).write.parquet(f"{table.path}/_checkpoints")
    spark.range(2).write.mode("append").parquet(str(tmp_path))
    for _ in range(2):
        spark.range(2).write.mode("overwrite").parquet(f"{tmp_path}/other")
    assert table.rows() == [0, 1, 2]


def test_a_directory_of_a_statement_that_is_not_known(spark: Any, table: Table, tmp_path: Path) -> None:
    table.write(spark.range(1))
    before = sorted(table.root.rglob("*"))
    statement = "INSERT OVERWRITE DIRECTORY :place USING parquet SELECT 1 id"
    with pytest.raises(InvalidArgumentError, match=REFUSED):
        spark.sql(statement, args={"place": table.path})
    for unknown in ({"place": functions.lit(table.path)}, None):
        with pytest.raises(InvalidArgumentError, match="doesn't know the directory"):
            spark.sql(statement, args=unknown)
    with pytest.raises(InvalidArgumentError, match="doesn't know the directory"):
        spark.sql("INSERT OVERWRITE DIRECTORY {place} USING parquet SELECT 1 id", place=table.path)
    assert sorted(table.root.rglob("*")) == before
    spark.sql(f"INSERT OVERWRITE DIRECTORY '{tmp_path}/elsewhere' USING parquet SELECT 1 id")
    assert spark.read.parquet(f"{tmp_path}/elsewhere").count() == 1


def test_a_view_of_the_directory(spark: Any, table: Table) -> None:
    table.write(spark.range(1))
    spark.read.schema("id bigint").parquet(table.path).createOrReplaceTempView("of_directory")
    before = sorted(table.root.rglob("*"))
    for statement in ("INSERT OVERWRITE of_directory SELECT 5L", "INSERT INTO TABLE of_directory VALUES (5L)"):
        with pytest.raises(InvalidArgumentError, match=REFUSED):
            spark.sql(statement)
    assert sorted(table.root.rglob("*")) == before


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_table_of_parquet_that_became_a_delta_table(spark: Any, tmp_path: Path, overwrite: bool) -> None:
    directory = tmp_path / "converted"
    spark.range(3).write.option("path", str(directory)).saveAsTable("converted")
    try:
        spark.range(5).write.format("delta").save(str(directory))
        files = sorted(directory.rglob("*"))
        for write in (
            lambda: spark.range(2).write.insertInto("converted", overwrite=overwrite),
            lambda: spark.range(2).write.mode("overwrite" if overwrite else "append").saveAsTable("converted"),
            lambda: spark.sql(f"INSERT {'OVERWRITE' if overwrite else 'INTO'} converted SELECT 1L"),
        ):
            with pytest.raises(InvalidArgumentError, match=REFUSED):
                write()
        assert sorted(directory.rglob("*")) == files
    finally:
        spark.sql("DROP TABLE converted")


def test_elsewhere_they_write(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "p")
    spark.range(2).write.option("path", path).saveAsTable("elsewhere")
    try:
        spark.range(2).write.insertInto("elsewhere")
        assert spark.read.parquet(path).count() == 4
    finally:
        spark.sql("DROP TABLE elsewhere")


def test_the_check_can_be_switched_off(spark: Any, table: Table) -> None:
    table.write(spark.range(1))
    spark.conf.set("spark.databricks.delta.formatCheck.enabled", "false")
    try:
        spark.range(2).write.mode("append").parquet(table.path)
    finally:
        spark.conf.unset("spark.databricks.delta.formatCheck.enabled")
    assert table.rows() == [0]
