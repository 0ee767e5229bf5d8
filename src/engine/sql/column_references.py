"""Which columns an SQL expression names, as it is written: what a change of a column must not pull from under it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...core.protocol.rules import Rules
from ...core.protocol.schema import Column, StructField, StructType, dotted, to_json, type_text
from ...errors import InvalidArgumentError, SchemaMismatchError
from ..jvm import catalyst, plans
from ..jvm.gateway import Gateway, JavaObject
from ..jvm.messages import said
from . import trust
from .violations import translated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def columns_named(spark: "SparkSession", sql: str) -> frozenset[Column]:
    """The names in an expression, each as far as it goes by dots: `a.b[0].c` names `a.b`. Nothing is resolved.

    `InvalidArgumentError` for a text that is no expression.
    """
    named = (one.nameParts() for one in _nodes(spark, sql) if _kind(one) == "UnresolvedAttribute")
    return frozenset(tuple(str(part) for part in Gateway.elements(parts)) for parts in named)


def check_default(spark: "SparkSession", f: StructField, sql: str) -> None:
    """`InvalidArgumentError` unless an expression can be the default of a column: over no column, and of its type."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    what = f"the default {sql} of the column {dotted((f.name,))}"
    kinds = {_kind(one) for one in _nodes(spark, sql)}
    if "UnresolvedAttribute" in kinds or any("Subquery" in kind for kind in kinds):
        raise InvalidArgumentError(f"{what} has to be the same for every row: it names no column and asks no table")
    why = trust.of_text(spark, sql).refused
    if why is not None:
        raise InvalidArgumentError(f"{what} can't be a rule of a table, which other writers evaluate too: {why}")
    try:
        with translated("its type"):
            df = spark.range(0).select(F.expr(sql).alias(f.name))
            plans.assigned(df, to_json(StructType((StructField(f.name, f.data_type),))), "its type")
    except (AnalysisException, SchemaMismatchError) as error:
        raise InvalidArgumentError(f"{what} can't be stored as {type_text(f.data_type)}: {said(error)}") from error


def _nodes(spark: "SparkSession", sql: str) -> Iterator[JavaObject]:
    from pyspark.errors import ParseException

    try:
        waiting = [catalyst.parsed_expression(spark, sql)]
    except ParseException as error:
        raise InvalidArgumentError(f"{sql} is no SQL expression: {said(error)}") from error
    while waiting:
        one = waiting.pop()
        yield one
        waiting += Gateway.elements(one.children())


def _kind(expression: JavaObject) -> str:
    return str(expression.getClass().getSimpleName())


def concerns(column: Column, named: frozenset[Column]) -> bool:
    """Whether one of the names is the column, a part of it, or what it is a part of; case doesn't matter."""
    folded = tuple(part.lower() for part in column)
    names = (tuple(part.lower() for part in name) for name in named)
    return any(all(a == b for a, b in zip(folded, name, strict=False)) for name in names)


def check_unused(spark: "SparkSession", rules: Rules, column: Column, what: str) -> None:
    """`InvalidArgumentError` where a rule of the table depends on the column, which is to be `what` (renamed, say)."""
    of_check, of_column = "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE", "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE"
    used_by = [(check.what, check.sql, of_check) for check in rules.checks]
    used_by += [(f"the generated column {dotted((name,))}", sql, of_column) for name, sql in rules.generated.items()]
    for name, sql, condition in used_by:
        if concerns(column, columns_named(spark, sql)):
            raise InvalidArgumentError(
                f"The column {dotted(column)} can't be {what}: {name}, {sql}, depends on it. Drop that first.",
                condition=condition,
                parameters={"columnName": dotted(column), "constraints": sql, "generatedColumns": sql},
            )
