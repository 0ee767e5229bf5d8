"""Char and varchar inside a struct or an array: read and held, and no change of the fields mixes them up."""

import pytest

from support.spark_tables import Table
from tablelog.errors import ConstraintViolationError, UnsupportedFeatureError

CHANGES = [
    "ALTER COLUMN s.d FIRST",
    "ADD COLUMN s.z STRING FIRST",
    "ALTER COLUMN s.c TYPE STRING",
    "ALTER COLUMN a.element TYPE STRING",
]
MAPPED = ["RENAME COLUMN s.c TO e", "DROP COLUMN s.d"]


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_a_column_with_lengths_inside(table: Table, mode: str) -> None:
    spark, name = table.spark, f"delta.`{table.path}`"
    spark.sql(
        f"CREATE TABLE {name} (k INT, s STRUCT<c: CHAR(3), d: VARCHAR(3)>, a ARRAY<VARCHAR(2)>) USING delta "
        f"TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}')"
    )
    row = "named_struct('c', 'c', 'd', 'd'), array('x')"
    spark.sql(f"INSERT INTO {name} SELECT 1, {row}")
    for change in CHANGES + (MAPPED if mode != "none" else []):
        with pytest.raises(UnsupportedFeatureError, match="has char or varchar inside its type"):
            spark.sql(f"ALTER TABLE {name} {change}")
    with pytest.raises(UnsupportedFeatureError, match="column s has char or varchar inside"):
        table.write(spark.sql("SELECT 2 AS k, named_struct('c', 'c', 'd', 'd', 'z', 1) AS s"), mergeSchema="true")
    with pytest.raises(ConstraintViolationError, match="longer than the 3 characters"):
        spark.sql(f"INSERT INTO {name} SELECT 1, named_struct('c', 'c', 'd', 'dddd'), array('x')")
    spark.sql(f"UPDATE {name} SET k = 2 WHERE s.c = 'c  '")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN n INT FIRST")
    if mode != "none":
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN s TO t")
    spark.sql(f"INSERT INTO {name} SELECT 7, 3, {row}")
    table.delta.optimize().executeCompaction()
    assert [
        (row[0], row[1], tuple(row[2]), row[3]) for row in sorted(table.read().collect(), key=lambda row: row.k)
    ] == [
        (None, 2, ("c  ", "d"), ["x"]),
        (7, 3, ("c  ", "d"), ["x"]),
    ]


def test_replaced_columns_have_new_lengths(table: Table) -> None:
    spark, name = table.spark, f"delta.`{table.path}`"
    spark.sql(f"CREATE TABLE {name} (a VARCHAR(3), b VARCHAR(3), s STRUCT<c: VARCHAR(3)>) USING delta")
    spark.sql(f"ALTER TABLE {name} REPLACE COLUMNS (a VARCHAR(6), b STRING, s STRUCT<c: VARCHAR(5)>)")
    spark.sql(f"INSERT INTO {name} SELECT 'abcdef', 'abcdefgh', named_struct('c', 'abcde')")
    for values in ("'abcdefg', 'b', named_struct('c', 'c')", "'a', 'b', named_struct('c', 'abcdef')"):
        with pytest.raises(ConstraintViolationError, match="longer than"):
            spark.sql(f"INSERT INTO {name} SELECT {values}")
    assert table.rows("a", "b", "s.c") == [("abcdef", "abcdefgh", "abcde")]
