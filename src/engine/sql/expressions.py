"""Resolves SQL expressions of a table's metadata, and validates them as rules of a table."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.protocol.schema import (
    BOOLEAN,
    GENERATION_KEY,
    VARIANT,
    DataType,
    StructType,
    contains,
    dotted,
    to_json,
    type_text,
)
from ...errors import InvalidArgumentError, SchemaMismatchError, UntrustedTableError
from ...settings.declarations import TRUSTED_FUNCTIONS
from ..connect import sql_text
from ..jvm.connection import frames
from ..jvm.connection.gateway import Gateway, JavaObject
from ..jvm.connection.messages import said
from ..jvm.connection.sessions import is_classic
from ..jvm.registry.classes import class_name
from ..jvm.types import spark_type, table_schema, type_of_json
from . import trust

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# Constant within a query, but different in the next query.
_OF_THE_QUERY = (
    "CurrentDate CurrentTime CurrentTimestamp CurrentTimestampLike Now LocalTimestamp CurrentDatabase CurrentCatalog "
    "CurrentUser CurrentTimeZone"
).split()

_OF_CHECK = {
    "unresolved": "UNRESOLVED_COLUMN.WITH_SUGGESTION",
    "aggregate": "DELTA_AGGREGATE_IN_CHECK_CONSTRAINT",
    "udf": "DELTA_UDF_IN_CHECK_CONSTRAINT",
    "by chance": "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT",
}
_OF_GENERATED = {
    "unresolved": "DELTA_INVALID_GENERATED_COLUMN_REFERENCES",
    "aggregate": "DELTA_AGGREGATE_IN_GENERATED_COLUMN",
    "udf": "DELTA_UDF_IN_GENERATED_COLUMN",
    "by chance": "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN",
}


@dataclass(frozen=True)
class Resolved:
    """A resolved expression over one row: its type, the referenced top-level columns, the classes of its nodes."""

    data_type: DataType
    columns: tuple[str, ...]
    classes: frozenset[str]
    deterministic: bool
    has_subquery: bool
    expression: JavaObject

    @property
    def kinds(self) -> frozenset[str]:
        """The class names without packages."""
        return frozenset(name.rpartition(".")[2] for name in self.classes)


def empty(spark: "SparkSession", schema: StructType) -> "DataFrame":
    """An empty frame with this schema; runs no job."""
    if not is_classic(spark):
        return spark.createDataFrame([], spark_type(schema))
    return Gateway.of(spark).empty_frame(spark, to_json(schema))


def resolved(df: "DataFrame", expression: "Column") -> Resolved | None:
    """Resolve an expression over `df`; `None` if it doesn't depend on a single row (an aggregate, for example).

    Raises Spark's AnalysisException for an expression that doesn't resolve.
    """
    plan = frames.analyzed(df.select(expression.alias("value")))
    if plan.nodeName() != "Project":
        return None
    value = plan.projectList().apply(0)
    if class_name(value) != "Alias":  # a window or a generator was moved to another plan node
        return None
    expression_node = value.child()
    nodes = json.loads(expression_node.toJSON())
    columns = {str(reference.name()) for reference in Gateway.references(expression_node)}
    return Resolved(
        data_type=type_of_json(str(expression_node.dataType().json())),
        columns=tuple(name for name in df.columns if name in columns),
        classes=frozenset(str(node["class"]) for node in nodes),
        deterministic=bool(expression_node.deterministic()),
        has_subquery=Gateway.of(df.sparkSession).has_subquery(expression_node),
        expression=expression_node,
    )


def evaluated(df: "DataFrame", sql: str, what: str, table: str) -> Resolved | None:
    """Resolve an expression of a table's metadata over `df` and check that it may run; `None` as in `resolved`.

    `what` names it in messages. Raises UntrustedTableError for an expression that the session doesn't evaluate (see
    `trust`), SchemaMismatchError for invalid SQL, Spark's AnalysisException for one that doesn't resolve.
    """
    from pyspark.errors import ParseException

    try:
        resolved_expression, reason = _checked(df, sql)
    except ParseException as error:
        raise SchemaMismatchError(f"{table}: {what}, {sql}, is not a valid SQL expression: {error}") from error
    if reason is not None:
        raise UntrustedTableError(
            f"{table}: {what}, {sql}, is not evaluated, so nothing was written: {reason}. Rules of a table may only "
            "call deterministic functions of Spark over one row. Drop the rule, or, if you trust it, add its "
            f"functions to the setting {TRUSTED_FUNCTIONS.key}"
        )
    return resolved_expression


def _checked(df: "DataFrame", sql: str) -> tuple[Resolved | None, str | None]:
    """The resolved expression, and the reason why the session doesn't evaluate it, if there is one."""
    from pyspark.sql import functions as F

    if not is_classic(df.sparkSession):
        return _checked_text(df, sql)
    text = trust.of_text(df.sparkSession, sql)
    if text.refused is not None:
        return None, text.refused
    resolved_expression = resolved(df, F.expr(sql))
    if resolved_expression is None:
        return None, None
    reason = trust.of_resolved(
        resolved_expression.classes,
        deterministic=resolved_expression.deterministic,
        has_subquery=resolved_expression.has_subquery,
        trusted=text.trusted,
    )
    return resolved_expression, reason


def _checked_text(df: "DataFrame", sql: str) -> tuple[Resolved | None, str | None]:
    """`_checked` on Spark Connect: by the text, because the resolved expression is out of reach."""
    from pyspark.sql import functions as F

    text = sql_text.check(sql, df.columns, trusted=trust.trusted_functions(df.sparkSession))
    if text.refused is not None:
        return None, text.refused
    (field,) = table_schema(df.select(F.expr(sql).alias("value")).schema)
    named = {parts[0].lower() for parts in text.columns}
    columns = tuple(name for name in df.columns if name.lower() in named)
    return Resolved(field.data_type, columns, frozenset(), True, False, None), None


def check_constraint(spark: "SparkSession", schema: StructType, name: str, sql: str) -> None:
    """Raise `InvalidArgumentError` unless `sql` is valid as a CHECK constraint: a boolean expression over one row."""
    resolved_expression = _of_row(spark, schema, sql, f"the CHECK constraint {name}", _OF_CHECK)
    if resolved_expression.data_type != BOOLEAN:
        raise InvalidArgumentError(
            f"the CHECK constraint {name}, {sql}, has the type {type_text(resolved_expression.data_type)}, not boolean",
            condition="DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
            parameters={"name": name, "expr": sql},
        )


def check_generated(spark: "SparkSession", schema: StructType) -> None:
    """Raise `InvalidArgumentError` unless each generation expression of a schema is valid.

    It must be a deterministic expression over one row, reference no generated column, and have the column's type
    (PROTOCOL.md, "Generated Columns").
    """
    generated = [f for f in schema if GENERATION_KEY in f.metadata]
    if not generated:
        return
    base = schema.without([f.name for f in generated])
    for field in generated:
        sql, subject = (
            str(field.metadata[GENERATION_KEY]),
            f"the generation expression of the column {dotted((field.name,))}",
        )
        if contains(field.data_type, lambda data_type: data_type == VARIANT):
            raise InvalidArgumentError(f"{subject}: a variant can't be compared, so a generated column can't have it")
        resolved_expression = _of_row(spark, base, sql, subject, _OF_GENERATED)
        if queried := sorted(resolved_expression.kinds & set(_OF_THE_QUERY)):
            raise InvalidArgumentError(
                f"{subject}, {sql}, differs between queries: it uses {', '.join(queried)}",
                condition=_OF_GENERATED["by chance"],
                parameters={"expr": sql},
            )
        if type_text(resolved_expression.data_type) != type_text(field.data_type):
            raise InvalidArgumentError(
                f"{subject}, {sql}, has the type {type_text(resolved_expression.data_type)}, but the column has "
                f"{type_text(field.data_type)}: cast it",
                condition="DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
                parameters={
                    "columnName": field.name,
                    "expressionType": type_text(resolved_expression.data_type),
                    "columnType": type_text(field.data_type),
                },
            )


def _of_row(spark: "SparkSession", schema: StructType, sql: str, what: str, refusals: Mapping[str, str]) -> Resolved:
    from pyspark.errors import AnalysisException, ParseException

    try:
        resolved_expression, reason = _checked(empty(spark, schema), sql)
    except ParseException as error:
        raise InvalidArgumentError(
            f"{what}, {sql}, is not a valid SQL expression: {said(error)}", condition="PARSE_SYNTAX_ERROR"
        ) from error
    except AnalysisException as error:
        raise InvalidArgumentError(
            f"{what}, {sql}, can't be resolved with the columns {', '.join(schema.names)}: {said(error)}",
            condition=refusals["unresolved"],
            parameters=error.getMessageParameters(),
        ) from error
    if reason is not None:
        kind = {trust.QUERY: "aggregate", trust.NOT_DETERMINISTIC: "by chance"}.get(reason, "udf")
        raise InvalidArgumentError(
            f"{what}, {sql}, can't be a rule of a table, because other writers have to evaluate it too: {reason}",
            condition=refusals[kind],
            parameters={"sqlExpr" if kind == "aggregate" else "expr": sql},
        )
    if resolved_expression is None:
        raise InvalidArgumentError(
            f"{what}, {sql}, reads more than one row: it has an aggregate, or a window",
            condition=refusals["aggregate"],
            parameters={"sqlExpr": sql},
        )
    return resolved_expression
