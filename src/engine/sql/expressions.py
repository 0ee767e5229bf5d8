"""SQL expressions of a table's metadata: what Spark makes of them, and whether one may become a rule of a table."""

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
    parse_schema,
    to_json,
    type_text,
)
from ...errors import InvalidArgumentError, SchemaMismatchError, UntrustedTableError
from ..jvm import frames
from ..jvm.gateway import Gateway, JavaObject
from ..jvm.messages import said
from . import trust

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# The same for all rows of a query, and another in the next.
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
    """An expression over one row: its type, the top-level columns that it names, the classes of its nodes."""

    data_type: DataType
    columns: tuple[str, ...]
    classes: frozenset[str]
    deterministic: bool
    has_subquery: bool
    expression: JavaObject

    @property
    def kinds(self) -> frozenset[str]:
        """The classes without their packages."""
        return frozenset(name.rpartition(".")[2] for name in self.classes)


def empty(spark: "SparkSession", schema: StructType) -> "DataFrame":
    """A frame of no rows; no job."""
    return Gateway.of(spark).empty_frame(spark, to_json(schema))


def resolved(df: "DataFrame", expression: "Column") -> Resolved | None:
    """What Spark makes of an expression over `df`; `None` where it isn't one over one row (an aggregate, say).

    Raises Spark's AnalysisException for one that doesn't resolve.
    """
    plan = frames.analyzed(df.select(expression.alias("value")))
    if plan.nodeName() != "Project":
        return None
    value = plan.projectList().apply(0)
    if value.getClass().getSimpleName() != "Alias":  # a window or a generator below has it
        return None
    found = value.child()
    nodes = json.loads(found.toJSON())
    columns = {str(one.name()) for one in Gateway.references(found)}
    field = {"name": "value", "type": json.loads(found.dataType().json()), "nullable": True, "metadata": {}}
    return Resolved(
        data_type=parse_schema(json.dumps({"type": "struct", "fields": [field]})).fields[0].data_type,
        columns=tuple(name for name in df.columns if name in columns),
        classes=frozenset(str(node["class"]) for node in nodes),
        deterministic=bool(found.deterministic()),
        has_subquery=Gateway.of(df.sparkSession).has_subquery(found),
        expression=found,
    )


def evaluated(df: "DataFrame", sql: str, what: str, table: str) -> Resolved | None:
    """An expression of a table's metadata over `df`, fit to be evaluated; `None` where it isn't over one row.

    `what` names it in messages. Raises UntrustedTableError for one that the session doesn't evaluate (see `trust`),
    SchemaMismatchError for a text that is no expression, Spark's AnalysisException for one that doesn't resolve.
    """
    from pyspark.errors import ParseException

    try:
        found, why = _checked(df, sql)
    except ParseException as error:
        raise SchemaMismatchError(f"{table}: {what}, {sql}, is no SQL expression: {error}") from error
    if why is not None:
        raise UntrustedTableError(
            f"{table}: {what}, {sql}, is not evaluated, so nothing was written: {why}. Rules of a table may call the "
            "deterministic functions of Spark over one row. Have the rule dropped, or, if you trust it, name its "
            f"functions in the setting {trust.TRUSTED_KEY}"
        )
    return found


def _checked(df: "DataFrame", sql: str) -> tuple[Resolved | None, str | None]:
    """What Spark makes of an expression of a table's metadata, and why the session doesn't evaluate it."""
    from pyspark.sql import functions as F

    text = trust.of_text(df.sparkSession, sql)
    if text.refused is not None:
        return None, text.refused
    found = resolved(df, F.expr(sql))
    if found is None:
        return None, None
    why = trust.of_resolved(
        found.classes, deterministic=found.deterministic, has_subquery=found.has_subquery, trusted=text.trusted
    )
    return found, why


def check_constraint(spark: "SparkSession", schema: StructType, name: str, sql: str) -> None:
    """`InvalidArgumentError` unless `sql` can be a CHECK constraint of a table: a condition that decides on one row."""
    found = _of_row(spark, schema, sql, f"the CHECK constraint {name}", _OF_CHECK)
    if found.data_type != BOOLEAN:
        raise InvalidArgumentError(
            f"the CHECK constraint {name}, {sql}, is of the type {type_text(found.data_type)}, and no condition",
            condition="DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
            parameters={"name": name, "expr": sql},
        )


def check_generated(spark: "SparkSession", schema: StructType) -> None:
    """`InvalidArgumentError` unless each generation expression of a schema makes its column's value from one row.

    It names columns that aren't generated themselves, has the column's type, and gives the same for the same row at any
    time (PROTOCOL.md, "Generated Columns").
    """
    generated = [f for f in schema if GENERATION_KEY in f.metadata]
    if not generated:
        return
    base = schema.without([f.name for f in generated])
    for f in generated:
        sql, what = str(f.metadata[GENERATION_KEY]), f"the generation expression of the column {dotted((f.name,))}"
        if contains(f.data_type, lambda data_type: data_type == VARIANT):
            raise InvalidArgumentError(f"{what}: a variant can't be compared, so no generated column can be one")
        found = _of_row(spark, base, sql, what, _OF_GENERATED)
        if queried := sorted(found.kinds & set(_OF_THE_QUERY)):
            raise InvalidArgumentError(
                f"{what}, {sql}, is another one in each query: it has {', '.join(queried)}",
                condition=_OF_GENERATED["by chance"],
                parameters={"expr": sql},
            )
        if type_text(found.data_type) != type_text(f.data_type):
            raise InvalidArgumentError(
                f"{what}, {sql}, is of the type {type_text(found.data_type)}, and the column of "
                f"{type_text(f.data_type)}: cast it",
                condition="DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
                parameters={
                    "columnName": f.name,
                    "expressionType": type_text(found.data_type),
                    "columnType": type_text(f.data_type),
                },
            )


def _of_row(spark: "SparkSession", schema: StructType, sql: str, what: str, refusals: Mapping[str, str]) -> Resolved:
    from pyspark.errors import AnalysisException, ParseException

    try:
        found, why = _checked(empty(spark, schema), sql)
    except ParseException as error:
        raise InvalidArgumentError(
            f"{what}, {sql}, is no SQL expression: {said(error)}", condition="PARSE_SYNTAX_ERROR"
        ) from error
    except AnalysisException as error:
        raise InvalidArgumentError(
            f"{what}, {sql}, can't be resolved over the columns {', '.join(schema.names)}: {said(error)}",
            condition=refusals["unresolved"],
            parameters=error.getMessageParameters(),
        ) from error
    if why is not None:
        kind = {trust.QUERY: "aggregate", trust.NOT_DETERMINISTIC: "by chance"}.get(why, "udf")
        raise InvalidArgumentError(
            f"{what}, {sql}, can't be a rule of a table, which other writers evaluate too: {why}",
            condition=refusals[kind],
            parameters={"sqlExpr" if kind == "aggregate" else "expr": sql},
        )
    if found is None:
        raise InvalidArgumentError(
            f"{what}, {sql}, asks for more than one row: it has an aggregate, or a window",
            condition=refusals["aggregate"],
            parameters={"sqlExpr": sql},
        )
    return found
