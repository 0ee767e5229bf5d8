"""What a column more costs a command, in calls to the JVM."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from support.jvm_calls import calls_to_the_jvm
from support.spark_tables import Table

FEATURES = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}


def _rows(spark: SparkSession, first: int, end: int, columns: int) -> DataFrame:
    return spark.range(first, end).selectExpr("id", *(f"cast(id + {i} as string) AS c{i}" for i in range(columns)))


def _merge(table: Table, columns: int) -> None:
    source = _rows(table.spark, 5, 15, columns).alias("s")
    merge = table.delta.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    merge.execute()


def _merge_assigned(table: Table, columns: int) -> None:
    source = _rows(table.spark, 5, 15, columns).alias("s")
    values = {f"c{i}": f"s.c{i}" for i in range(columns)}
    merge = table.delta.alias("t").merge(source, "t.id = s.id").whenMatchedUpdate(set=values)
    merge.whenNotMatchedInsert(values=values).execute()


COMMANDS: dict[str, tuple[Callable[[Table, int], Any], int]] = {
    "append": (lambda table, columns: table.write(_rows(table.spark, 20, 25, columns)), 5),
    "delete": (lambda table, columns: table.delta.delete("id = 3"), 4),
    "update": (lambda table, columns: table.delta.update("id = 4", {"c1": "'x'"}), 20),
    "merge": (_merge, 50),
    "merge of assigned values": (_merge_assigned, 120),
}
"""Each with the number of calls that a column may cost."""


@pytest.mark.parametrize("properties", [{}, FEATURES], ids=["plain", "vectors and a change feed"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_column_more_costs_few_calls(
    spark: SparkSession, tmp_path: Path, name: str, properties: dict[str, str]
) -> None:
    run, most = COMMANDS[name]
    calls = {}
    for columns in (10, 40):
        table = Table(spark, tmp_path / str(columns))
        table.write(_rows(spark, 0, 10, columns), **properties)
        with calls_to_the_jvm() as commands:
            run(table, columns)
        calls[columns] = len(commands)
    assert (calls[40] - calls[10]) / 30 <= most, calls
