"""Commands with expressions that can't be: each error is PySpark's, has a condition, and shows no ids."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Column, functions

from support.spark_tables import Table
from tablelog.spark import DeltaTable

EXPRESSIONS = (
    "nope = 1",
    "nope(id) = 1",
    "id.nope = 1",
    "id =",
    "array(id)",
    "rand() + id > 0.5",
    "max(id) > 1",
    "sum(id) over (partition by p) > 1",
    "explode(array(id)) = 1",
    "id in (select 7)",
    "id = (select max(x) from values (1), (2) as v(x) where x = id)",
    "assert_true(id)",
)
ID = re.compile(r"[\w`)]#\d+")


def commands(table: Table) -> dict[str, Callable[[Any], Any]]:
    delta, source = table.delta, table.spark.range(2).selectExpr("id", "id p")
    merge = delta.alias("t").merge(source.alias("s"), "t.id = s.id")
    one = table.spark.range(1).selectExpr("id", "id p")
    return {
        "delete": delta.delete,
        "update": lambda given: delta.update(given, {"p": "p"}),
        "update value": lambda given: delta.update(set={"p": given}),
        "merge": lambda given: delta.alias("t").merge(source.alias("s"), given).whenMatchedDelete().execute(),
        "merge clause": lambda given: merge.whenMatchedDelete(given).execute(),
        "merge value": lambda given: merge.whenMatchedUpdate(set={"p": given}).execute(),
        "merge insert": lambda given: merge.whenNotMatchedInsert(given, {"id": "s.id"}).execute(),
        "merge by source": lambda given: merge.whenNotMatchedBySourceDelete(given).execute(),
        "replaceWhere": lambda given: table.write(one, "overwrite", replaceWhere=given),
        "optimize": lambda given: delta.optimize().where(given).executeCompaction(),
        "constraint": lambda given: delta.addConstraint("c", given),
        "generated": lambda given: (
            DeltaTable.create(table.spark)
            .location(table.path + "_g")
            .addColumn("id", "bigint")
            .addColumn("g", "boolean", generatedAlwaysAs=given)
            .execute()
        ),
    }


SQL_ONLY = ("replaceWhere", "optimize", "constraint", "generated")


@pytest.mark.slow
def test_no_error_shows_ids_of_expressions(table: Table) -> None:
    table.write(table.spark.range(2).selectExpr("id", "id p"), by=("p",))
    refused, wrong = 0, []
    for name, command in commands(table).items():
        for text in EXPRESSIONS:
            forms: list[str | Column] = [text]
            if name not in SQL_ONLY and text.startswith(("nope", "rand", "max")):
                forms.append(functions.expr(text))
            for given in forms:
                try:
                    command(given)
                except Exception as error:
                    refused += 1
                    if reason := trouble(error):
                        wrong.append(f"{name}, {text}, {type(given).__name__}: {reason}: {str(error)[:300]}")
    assert not wrong, "\n".join(wrong)
    assert refused > 100


def trouble(error: Exception) -> str:
    """What is wrong with an error, for a program that catches PySpark's and for who reads it."""
    if not isinstance(error, PySparkException):
        return f"{type(error).__name__} is no error of PySpark's"
    if not error.getCondition():
        return "it has no condition"
    return "it shows an id" if ID.search(f"{error} {error.getMessage()} {error.getMessageParameters()}") else ""
