"""Columns whose strings are compared by a collation: every command keeps the collation, and compares by it."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from support.spark_tables import Table
from tablelog.errors import ConstraintViolationError, InvalidArgumentError


@pytest.fixture
def collated(spark: SparkSession, tmp_path: Path) -> Table:
    found = Table(spark, tmp_path / "collated")
    spark.sql(
        f"CREATE TABLE delta.`{found.path}` (k INT, s STRING COLLATE UTF8_LCASE) USING delta "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    spark.sql(f"INSERT INTO delta.`{found.path}` VALUES (1, 'abc'), (2, 'XYZ'), (3, 'ABC'), (4, null)")
    return found


def keys(table: Table, condition: str) -> list[int]:
    return sorted(row.k for row in table.read().where(condition).collect())


def test_commands_compare_by_the_collation(collated: Table) -> None:
    spark, name = collated.spark, f"delta.`{collated.path}`"
    assert keys(collated, "s = 'aBc'") == [1, 3]
    assert keys(collated, "s in ('Abc', 'xyz')") == [1, 2, 3]
    assert keys(collated, "s > 'abd'") == [2]
    spark.sql(f"DELETE FROM {name} WHERE s = 'XyZ'")
    assert collated.rows("k") == [1, 3, 4]
    spark.sql(f"UPDATE {name} SET s = 'Def' WHERE s = 'aBC' AND k = 3")
    assert keys(collated, "s = 'dEF'") == [3]
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT id k FROM range(4, 6)) s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET k = 40 WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k)"
    )
    assert collated.rows("k") == [1, 3, 5, 40]
    spark.sql(f"INSERT INTO {name} REPLACE WHERE s = 'ABC' VALUES (9, 'aBc')")
    assert sorted(collated.rows("k", "s")) == [(3, "Def"), (5, None), (9, "aBc"), (40, None)]
    reader = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 2)
    changes = reader.load(collated.path).where("s = 'DEF' AND _change_type = 'update_postimage'")
    assert [row.k for row in changes.collect()] == [3]


def test_the_collation_stays_in_the_log(collated: Table) -> None:
    """PySpark changes the metadata of fields from which it makes a type."""
    spark = collated.spark
    stored = {"__COLLATIONS": {"s": "spark.UTF8_LCASE"}}
    assert keys(collated, "s = 'aBc'") == [1, 3]
    spark.sql(f"SELECT * FROM delta.`{collated.path}` ORDER BY s").collect()
    spark.sql(f"ALTER TABLE delta.`{collated.path}` ADD COLUMNS (z INT)")
    field = collated.log.snapshot().schema.get("s")
    assert field is not None
    assert field.metadata == stored
    assert keys(collated, "s = 'aBc' AND z IS NULL") == [1, 3]


def test_it_is_no_column_to_partition_by(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's writer of files refuses it, and equal values would be in several partitions."""
    path = tmp_path / "partitioned"
    with pytest.raises(InvalidArgumentError, match="string with a collation") as raised:
        spark.sql(f"CREATE TABLE delta.`{path}` (k INT, s STRING COLLATE UTF8_LCASE) USING delta PARTITIONED BY (s)")
    assert raised.value.condition == "DELTA_INVALID_PARTITION_COLUMN_TYPE"
    assert not path.exists()


@pytest.mark.parametrize("mode", ["none", "name"])
def test_fields_inside_structs_and_arrays(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    table = Table(spark, tmp_path / "nested")
    name = f"delta.`{table.path}`"
    spark.sql(
        f"CREATE TABLE {name} (k INT, n STRUCT<x: STRING COLLATE UTF8_LCASE, y: INT>, "
        f"a ARRAY<STRING COLLATE UTF8_LCASE>) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, named_struct('x', 'abc', 'y', 1), array('ABC')), (2, null, null)")
    spark.sql(f"UPDATE {name} SET n.x = 'Def' WHERE n.x = 'ABC'")
    assert keys(table, "n.x = 'dEF'") == [1]
    table.delta.update(set={"n.x": F.lit("Ghi"), "n.y": F.lit(7)})
    assert keys(table, "n.x = 'gHI' AND n.y = 7") == [1, 2]
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT 1 k, 'New' COLLATE UTF8_BINARY v) s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET n.x = s.v"
    )
    assert keys(table, "n.x = 'nEW' AND array_contains(a, 'abc')") == [1]


def test_values_of_several_collations_are_cast_to_that_of_the_column(spark: SparkSession, tmp_path: Path) -> None:
    """Generated columns and constraints may use such columns, too."""
    table = Table(spark, tmp_path / "several")
    name = f"delta.`{table.path}`"
    spark.sql(
        f"CREATE TABLE {name} (k INT, s STRING COLLATE UTF8_LCASE, c STRING COLLATE UNICODE_CI, b STRING, "
        "g STRING COLLATE UTF8_LCASE GENERATED ALWAYS AS (upper(s))) USING delta"
    )
    spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT short CHECK (s <> 'LONG')")
    spark.sql(f"INSERT INTO {name} (k, s, c, b) VALUES (1, 'a', 'b', 'c')")
    spark.sql(f"UPDATE {name} SET s = s || c, c = s, b = s || c")
    assert keys(table, "s = 'AB' AND c = 'A' AND b = 'ab' AND g = 'ab'") == [1]
    assert keys(table, "b = 'AB'") == []
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT 1 k, 'X' s) q ON t.k = q.k WHEN MATCHED THEN UPDATE SET s = q.s, "
        "c = upper(t.s), b = t.c"
    )
    assert keys(table, "s = 'x' AND c = 'ab' AND b = 'a' AND g = 'x'") == [1]
    with pytest.raises(ConstraintViolationError):
        spark.sql(f"UPDATE {name} SET s = 'Long'")


def test_a_renamed_column_keeps_its_collation(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(spark, tmp_path / "renamed")
    name = f"delta.`{table.path}`"
    spark.sql(
        f"CREATE TABLE {name} (k INT, s STRING COLLATE UTF8_LCASE, n STRUCT<x: STRING COLLATE UTF8_LCASE>, "
        "m MAP<STRING, STRING COLLATE UTF8_LCASE>) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, 'abc', named_struct('x', 'abc'), map('abc', 'v')), (2, 'x', null, null)")
    for old, new in (("s", "`s 2`"), ("n.x", "x2"), ("n", "n2"), ("m", "m2")):
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN {old} TO {new}")
    assert keys(table, "`s 2` = 'ABC'") == keys(table, "n2.x2 = 'ABC'") == keys(table, "m2['abc'] = 'V'") == [1]
    spark.sql(f"INSERT INTO {name} SELECT k + 2, `s 2`, n2, m2 FROM {name}")
    spark.sql(f"UPDATE {name} SET `s 2` = upper(`s 2`), n2.x2 = 'ABC' WHERE `s 2` = 'ABC'")
    assert keys(table, "`s 2` = 'abc' AND n2.x2 = 'abc' AND m2['abc'] = 'V'") == [1, 3]


def test_the_collation_of_a_column_is_changed(spark: SparkSession, tmp_path: Path) -> None:
    """No file is rewritten: the bytes are the same. What depends on the column could have other results."""
    table = Table(spark, tmp_path / "changed")
    name = f"delta.`{table.path}`"
    spark.sql(
        f"CREATE TABLE {name} (k INT, s STRING, a ARRAY<STRING>, n STRUCT<x: STRING COLLATE UTF8_LCASE>, "
        "g STRING GENERATED ALWAYS AS (upper(s))) USING delta"
    )
    spark.sql(f"INSERT INTO {name} (k, s, a, n) VALUES (1, 'abc', array('abc'), named_struct('x', 'abc'))")
    with pytest.raises(InvalidArgumentError, match="depends on it"):
        spark.sql(f"ALTER TABLE {name} ALTER COLUMN s TYPE STRING COLLATE UTF8_LCASE")
    with pytest.raises(InvalidArgumentError, match="generated"):
        spark.sql(f"ALTER TABLE {name} ALTER COLUMN g TYPE STRING COLLATE UTF8_LCASE")
    with pytest.raises(InvalidArgumentError, match=r"collation of a\.element can't be changed alone"):
        spark.sql(f"ALTER TABLE {name} ALTER COLUMN a.element TYPE STRING COLLATE UTF8_LCASE")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN t STRING")
    spark.sql(f"UPDATE {name} SET t = 'abc'")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN t TYPE STRING COLLATE UTF8_LCASE")
    assert (keys(table, "t = 'ABC'"), keys(table, "n.x = 'ABC'")) == ([1], [1])
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN n.x TYPE STRING")
    table.delta.alterColumn("t", dataType="STRING COLLATE UNICODE")
    assert (keys(table, "t = 'ABC'"), keys(table, "n.x = 'ABC'"), keys(table, "n.x = 'abc'")) == ([], [], [1])
    field = table.log.snapshot().schema.get("t")
    assert field is not None
    assert field.metadata == {"__COLLATIONS": {"t": "icu.UNICODE"}}
    spark.sql(
        f"ALTER TABLE {name} REPLACE COLUMNS (k INT, s STRING, a ARRAY<STRING COLLATE UTF8_LCASE>, "
        "n STRUCT<x: STRING>, g STRING, t STRING COLLATE UTF8_LCASE)"
    )
    assert (keys(table, "t = 'ABC'"), keys(table, "array_contains(a, 'ABC')")) == ([1], [1])
