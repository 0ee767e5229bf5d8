"""Finds the columns that an SQL expression references, to protect them from changes that would break it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...core.protocol.rules import Rules
from ...core.protocol.schema import Column, StructField, StructType, dotted, to_json, type_text
from ...errors import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError
from ..connect import assignment, sql_text
from ..jvm import catalyst, plans
from ..jvm.connection.gateway import Gateway, JavaObject
from ..jvm.connection.messages import said
from ..jvm.connection.sessions import is_classic
from ..jvm.registry.classes import class_name
from ..jvm.types import table_schema
from . import trust
from .checks import checked
from .violations import translated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_CONSTANTS = frozenset(
    {"current_catalog", "current_database", "current_date", "current_schema", "current_time", "current_timestamp"}
    | {"current_user", "localtimestamp", "session_user", "user"}
)
"""Functions that SQL calls without parentheses: Spark's parser returns them as names of columns."""


def columns_named(spark: "SparkSession", sql: str) -> frozenset[Column]:
    """The column names in an expression, up to the first non-dot access: `a.b[0].c` names `a.b`. Not resolved.

    On Spark Connect, where Spark's parser is out of reach, they may be more. Raises `InvalidArgumentError` for text
    that isn't an SQL expression, UnsupportedFeatureError for one that tablelog can't check there.
    """
    if not is_classic(spark):
        try:
            return frozenset(sql_text.names_in(sql))
        except sql_text.Refused as reason:
            raise UnsupportedFeatureError(
                f"The expression {sql} can't be checked on Spark Connect: {reason}. Use a classic session.",
                ("expressions on Spark Connect",),
            ) from None
    named = (node.nameParts() for node in _nodes(spark, sql) if class_name(node) == "UnresolvedAttribute")
    return frozenset(tuple(str(part) for part in Gateway.elements(parts)) for parts in named)


def check_constant_default(spark: "SparkSession", field: StructField, sql: str) -> None:
    """Raise `InvalidArgumentError` if the default value of the column `field` refers to a column."""
    if not is_classic(spark):
        _check_text(spark, field, sql)
        return
    named = [name for name in columns_named(spark, sql) if len(name) > 1 or name[0].lower() not in _CONSTANTS]
    if named:
        raise InvalidArgumentError(
            f"the default {sql} of the column {dotted((field.name,))} must be a constant expression, but it refers to "
            f"{', '.join(sorted(map(dotted, named)))}: use an expression without columns",
            condition="INVALID_DEFAULT_VALUE.NOT_CONSTANT",
            parameters={"statement": "CREATE TABLE", "colName": dotted((field.name,)), "defaultValue": sql},
        )


def check_default(spark: "SparkSession", field: StructField, sql: str) -> None:
    """Raise `InvalidArgumentError` unless `sql` is valid as the default value of the column `field`."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    subject = f"the default {sql} of the column {dotted((field.name,))}"
    if not is_classic(spark):
        _check_text(spark, field, sql)
        _check_stored(spark, field, sql, subject)
        return
    kinds = {class_name(node) for node in _nodes(spark, sql)}
    if "UnresolvedAttribute" in kinds or any("Subquery" in kind for kind in kinds):
        raise InvalidArgumentError(f"{subject} must be a constant expression, without columns and subqueries")
    reason = trust.of_text(spark, sql).refused
    if reason is not None:
        raise InvalidArgumentError(f"{subject} can't be used, because other writers have to evaluate it too: {reason}")
    try:
        with translated("its type"):
            df = spark.range(0).select(F.expr(sql).alias(field.name))
            plans.assigned(df, to_json(StructType((StructField(field.name, field.data_type),))), "its type")
    except (AnalysisException, SchemaMismatchError) as error:
        raise InvalidArgumentError(
            f"{subject} can't be stored as {type_text(field.data_type)}: {said(error)}"
        ) from error


def _check_text(spark: "SparkSession", field: StructField, sql: str) -> None:
    """`check_constant_default` on Spark Connect, which also refuses what tablelog can't check there."""
    reason = sql_text.check(sql, (), trusted=trust.trusted_functions(spark)).refused
    if reason is not None:
        raise UnsupportedFeatureError(
            f"the default {sql} of the column {dotted((field.name,))} is not supported on Spark Connect: {reason}. Use "
            "a constant of literals and Spark's deterministic functions, or a classic session",
            ("defaults on Spark Connect",),
        )


def _check_stored(spark: "SparkSession", field: StructField, sql: str, subject: str) -> None:
    """Raise `InvalidArgumentError` unless the type of a default fits its column, on Spark Connect."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    try:
        df = spark.range(0).select(F.expr(sql).alias(field.name))
        wanted = StructType((StructField(field.name, field.data_type),))
        _ = assignment.assigned(df, wanted, table_schema(df.schema), "its type", checked).schema
    except (PySparkException, SchemaMismatchError, UnsupportedFeatureError) as error:
        raise InvalidArgumentError(
            f"{subject} can't be stored as {type_text(field.data_type)}: {said(error)}"
        ) from error


def _nodes(spark: "SparkSession", sql: str) -> Iterator[JavaObject]:
    from pyspark.errors import ParseException

    try:
        waiting = [catalyst.parsed_expression(spark, sql)]
    except ParseException as error:
        raise InvalidArgumentError(f"{sql} is not a valid SQL expression: {said(error)}") from error
    while waiting:
        node = waiting.pop()
        yield node
        waiting += Gateway.elements(node.children())


def concerns(column: Column, named: frozenset[Column]) -> bool:
    """Whether one of the names is the column, a field in it, or a struct that contains it; case-insensitive."""
    folded = tuple(part.lower() for part in column)
    names = (tuple(part.lower() for part in name) for name in named)
    return any(all(a == b for a, b in zip(folded, name, strict=False)) for name in names)


def check_unused(spark: "SparkSession", rules: Rules, column: Column, change: str) -> None:
    """Raise `InvalidArgumentError` if a rule of the table depends on the column; `change` is "renamed", for example."""
    of_check, of_column = "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE", "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE"
    used_by = [(check.what, check.sql, of_check) for check in rules.checks]
    used_by += [(f"the generated column {dotted((name,))}", sql, of_column) for name, sql in rules.generated.items()]
    for name, sql, condition in used_by:
        if concerns(column, columns_named(spark, sql)):
            raise InvalidArgumentError(
                f"The column {dotted(column)} can't be {change}: {name}, {sql}, depends on it. Drop that rule first.",
                condition=condition,
                parameters={"columnName": dotted(column), "constraints": sql, "generatedColumns": sql},
            )
