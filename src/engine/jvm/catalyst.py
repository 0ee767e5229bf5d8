"""Parts of Catalyst that the engine uses directly: expressions, names, functions and small logical plans."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from .connection.gateway import Gateway, JavaObject
from .connection.sessions import parsed_by, session_state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def parsed_expression(spark: "SparkSession", sql: str) -> JavaObject:
    """A parsed, unresolved SQL expression. Raises Spark's ParseException."""
    return parsed_by(spark, "parseExpression", sql)


def attribute_name_parts(gateway: Gateway, name: str) -> tuple[str, ...]:
    """The parts of a column's name, parsed by Spark. Raises Spark's AnalysisException for an invalid name."""
    attribute = gateway.jvm.org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
    return tuple(Gateway.elements(attribute.parseAttributeName(name)))


def by_names(spark: "SparkSession", expression: JavaObject) -> JavaObject:
    """The expression with names in place of its resolved columns, to resolve it over other plans."""
    gateway = Gateway.of(spark)
    attribute = gateway.jvm.org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
    expression, columns = gateway.in_one_spelling(spark, expression)
    names = {column: attribute(gateway.seq([column.name()])) for column in columns if column.resolved()}
    return expression.transform(gateway.scala_map(names)) if names else expression


@lru_cache(maxsize=4)
def built_in_functions(gateway: Gateway) -> frozenset[str]:
    """The names of Spark's built-in functions, in lower case."""
    registry = getattr(getattr(gateway.jvm, "org.apache.spark.sql.catalyst.analysis.FunctionRegistry$"), "MODULE$")
    names = str(registry.functionSet().mkString("\n")).split("\n")
    return frozenset(name.rpartition(".")[2].strip("`").lower() for name in names)


def function_info(spark: "SparkSession", name: str) -> JavaObject:
    """The `ExpressionInfo` of the session's function with this name."""
    identifier = Gateway.of(spark).jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name)
    return session_state(spark).catalog().lookupFunctionInfo(identifier)


def limited(gateway: Gateway, plan: JavaObject, count: int) -> JavaObject:
    """A logical plan of the first `count` rows of each partition."""
    catalyst = gateway.jvm.org.apache.spark.sql.catalyst
    integer = gateway.jvm.org.apache.spark.sql.types.DataTypes.IntegerType
    return catalyst.plans.logical.LocalLimit(catalyst.expressions.Literal(count, integer), plan)


def aliased(gateway: Gateway, name: Sequence[str], plan: JavaObject) -> JavaObject:
    """A logical plan whose columns have the qualifier `name`, such as (catalog, database, table)."""
    catalyst = gateway.jvm.org.apache.spark.sql.catalyst
    identifier = catalyst.AliasIdentifier(name[-1], gateway.seq(name[:-1]))
    return catalyst.plans.logical.SubqueryAlias(identifier, plan)


def local_relation(gateway: Gateway, output: JavaObject, rows: JavaObject) -> JavaObject:
    """A logical plan of rows (a Scala `Seq` of `InternalRow`) on the driver, with these attributes."""
    return gateway.jvm.org.apache.spark.sql.catalyst.plans.logical.LocalRelation(output, rows, False, gateway.none)


def projection(gateway: Gateway, columns: Sequence[JavaObject], plan: JavaObject) -> JavaObject:
    """A logical plan of resolved named expressions over another plan."""
    return gateway.jvm.org.apache.spark.sql.catalyst.plans.logical.Project(gateway.seq(columns), plan)


def aliases(
    gateway: Gateway, columns: Sequence[JavaObject], names_and_ids: Sequence[tuple[str, JavaObject]]
) -> list[JavaObject]:
    """The columns with these names and ids; the longer of the two lists is cut."""
    alias, nothing = gateway.expressions.Alias, gateway.seq([])
    return [
        alias(column, name, number, nothing, gateway.none, nothing)
        for column, (name, number) in zip(columns, names_and_ids, strict=False)
    ]
