"""Columns that a command builds for each column of a table, with one or two calls of the JVM.

PySpark's functions of a Column record the line of the program that calls them, with ten calls more. For a table of 200
columns, a MERGE made 38,000 calls. These lines are ours, and no error message needs them.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .connection.frames import java_column, of_java_column
from .connection.gateway import Gateway

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def named(column: "Column", name: str) -> "Column":
    """The column of a classic session with another name, as `Column.alias` gives it."""
    return of_java_column(getattr(java_column(column), "as")(name))


def numbered(frame: "DataFrame", columns: "Iterable[Column]") -> "DataFrame":
    """A frame of these columns, which are named c0, c1, ..."""
    return frame.select(*(named(column, f"c{i}") for i, column in enumerate(columns)))


def chosen(gateway: Gateway, test: "Column", value: "Column", other: "Column") -> "Column":
    """`value` where `test` is TRUE, else `other`."""
    when = gateway.jvm.org.apache.spark.sql.functions.when(java_column(test), java_column(value))
    return of_java_column(when.otherwise(java_column(other)))


def parsed(gateway: Gateway, sql: str) -> "Column":
    """The column of an SQL expression. Raises Spark's ParseException."""
    return of_java_column(gateway.jvm.org.apache.spark.sql.functions.expr(sql))
