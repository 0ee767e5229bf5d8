"""Parses single parts of a statement with Spark's parser, and replaces their parameter markers by values."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .. import catalyst
from ..connection.gateway import Gateway, JavaObject
from ..connection.sessions import parsed_by
from ..registry.classes import class_name

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import StructType


def column_with(spark: "SparkSession", sql: str, named: Mapping[str, "Column"], at: Mapping[int, "Column"]) -> "Column":
    """An expression with values for its parameter markers: by their names, and by their positions in the text.

    Raises Spark's ParseException.
    """
    gateway = Gateway.of(spark)
    expression = catalyst.parsed_expression(spark, sql)
    if not named and not at:
        return gateway.column(expression)
    analysis = gateway.jvm.org.apache.spark.sql.catalyst.analysis
    values = {analysis.NamedParameter(name): gateway.expression(spark, value) for name, value in named.items()}
    values |= {analysis.PosParameter(place): gateway.expression(spark, value) for place, value in at.items()}
    return gateway.column(expression.transform(gateway.scala_map(values)))


def columns_of(spark: "SparkSession", sql: str) -> "StructType":
    """A list of columns with their types. Raises Spark's ParseException."""
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(parsed_by(spark, "parseTableSchema", sql).json()))


def literal(spark: "SparkSession", sql: str) -> tuple[str, str] | None:
    """The type, such as "string" or "int", and the text of a literal's value; None if the SQL is no literal.

    NULL has the type "void". Raises Spark's ParseException.
    """
    return literal_of_expression(catalyst.parsed_expression(spark, sql))


def literal_of_column(spark: "SparkSession", column: "Column") -> tuple[str, str] | None:
    """The same for a Column."""
    return literal_of_expression(Gateway.of(spark).expression(spark, column))


def literal_of_expression(expression: JavaObject) -> tuple[str, str] | None:
    """The same for an expression of the JVM."""
    if class_name(expression) != "Literal":
        return None
    value = expression.value()
    return ("void", "NULL") if value is None else (str(expression.dataType().simpleString()), str(value))
