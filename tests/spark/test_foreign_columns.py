"""Columns that a user passes to a command: those of the table's own frames count, and all others are refused.

A command binds Columns by their names. A column of another DataFrame may have the name of one of the table.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from support.spark_tables import Table
from tablelog.errors import InvalidArgumentError

ROWS = [(number, number * 10) for number in range(5)]


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> tuple[Table, Table]:
    """Two tables with the same rows."""
    made = Table(spark, tmp_path / "one"), Table(spark, tmp_path / "other")
    for table in made:
        spark.range(5).selectExpr("id", "id * 10 v").write.format("delta").save(table.path)
    return made


def refused(condition: str, command: Callable[[], object]) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        command()
    assert raised.value.condition == condition


def test_a_source_that_is_derived_from_the_same_handle(tables: tuple[Table, Table]) -> None:
    """Both sides have the same attributes, so the condition would compare the source with itself."""
    table, _ = tables
    delta = table.delta
    frame = delta.toDF()
    largest = frame.where("id < 2").groupBy("id").agg(F.max("v").alias("largest"))
    refused("AMBIGUOUS_REFERENCE", delta.merge(largest, frame["id"] == largest["id"]).whenMatchedDelete().execute)
    changed = frame.where("id = 1").withColumn("v", F.lit(9))
    merge = delta.merge(changed, "true")
    refused("AMBIGUOUS_REFERENCE", merge.whenMatchedUpdate(set={"v": frame["id"]}).execute)
    refused("AMBIGUOUS_REFERENCE", merge.whenMatchedDelete(frame["id"] == 1).execute)
    assert table.rows() == ROWS
    other = table.delta.toDF()
    delta.merge(changed, other["id"] == changed["id"]).whenMatchedUpdate(set={"v": changed["v"] + 2}).execute()
    assert table.rows("v") == [0, 11, 20, 30, 40], "the condition names both sides"
    aliased = delta.alias("t").merge(changed.alias("s"), F.col("t.id") == F.col("s.id"))
    aliased.whenMatchedUpdate(set={"v": F.col("s.v")}).execute()
    assert table.rows("v") == [0, 9, 20, 30, 40]


def test_columns_of_other_frames(spark: SparkSession, tables: tuple[Table, Table]) -> None:
    table, other = tables
    delta, foreign = table.delta, other.read()
    swapped = table.read().selectExpr("v id", "id v")
    missing = "MISSING_ATTRIBUTES.RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT"
    for column in (foreign["id"], swapped["id"], spark.range(3)["id"]):
        refused(missing, lambda column=column: delta.delete(column > 3))  # type: ignore[misc]
        refused(missing, lambda column=column: delta.update("id = 1", {"v": column}))  # type: ignore[misc]
        refused(missing, lambda column=column: delta.update((F.col("id") == 1) & (column > 0), {"v": "id"}))  # type: ignore[misc]
    source = foreign.selectExpr("v k").where("k = 0")
    merge = delta.merge(source, F.lit(True) & (delta.toDF()["id"] == foreign["id"]))
    refused("DELTA_MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT", merge.whenMatchedDelete().execute)
    assert table.rows() == ROWS


@pytest.mark.parametrize("how", ["read", "to_df", "filtered", "alias", "name", "sql", "version"])
def test_columns_of_frames_of_the_table(spark: SparkSession, tables: tuple[Table, Table], how: str) -> None:
    table, other = tables
    frames: dict[str, Callable[[], DataFrame]] = {
        "read": table.read,
        "to_df": table.delta.toDF,
        "filtered": lambda: table.read().where("id > 0"),
        "alias": lambda: table.delta.alias("t").toDF(),
        "name": lambda: spark.table(f"delta.`{table.path}`"),
        "sql": lambda: spark.sql(f"SELECT * FROM delta.`{table.path}`"),
        "version": lambda: table.read(versionAsOf=0),
    }

    def of(name: str) -> Column:
        return frames[how]()[name]

    table.delta.delete((of("id") == 4) & of("v").isNotNull())
    table.delta.update(of("id") == 3, {"v": of("v") + of("id")})
    source = other.read()
    merge = table.delta.merge(source, of("id") == source["id"])
    merge = merge.whenMatchedUpdate(of("id") == 0, {"v": of("v") + source["v"] - 1})
    merge.whenNotMatchedInsert(values={"id": source["id"], "v": F.lit(7)}).execute()
    assert table.rows() == [(0, -1), (1, 10), (2, 20), (3, 33), (4, 7)]


@pytest.mark.parametrize("statement", ["DELETE FROM {} WHERE", "OPTIMIZE {} WHERE"])
def test_hidden_columns_are_refused(spark: SparkSession, tables: tuple[Table, Table], statement: str) -> None:
    table, _ = tables
    hidden = "_metadata.file_size > 0"
    refused("UNSUPPORTED_EXPR_FOR_OPERATOR", lambda: spark.sql(f"{statement.format(f'delta.`{table.path}`')} {hidden}"))
    merge = table.delta.alias("t").merge(spark.range(3).alias("s"), f"t.id = s.id AND t.{hidden}")
    refused("UNSUPPORTED_EXPR_FOR_OPERATOR", merge.whenMatchedDelete().execute)
    assert table.version == 0
