"""The values that an UPDATE assigns: resolved by Spark over the table, and cast to the columns' types.

MERGE resolves its values over two frames (`resolution`), and casts them by the same function.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...core.protocol import schema as schemas
from ...errors import InvalidArgumentError
from ...settings.spark_own import STORE_ASSIGNMENT
from ..connect import assignment, public_columns, sql_text
from ..jvm import catalyst, plans
from ..jvm.columns import numbered, parsed
from ..jvm.connection import settings
from ..jvm.connection.frames import analyzed
from ..jvm.connection.gateway import Gateway, JavaObject
from ..jvm.connection.messages import sql_of
from ..jvm.connection.sessions import is_classic
from ..jvm.registry.classes import class_name
from ..jvm.types import column_type, is_collated, spark_type, table_schema, type_of_json
from . import checks, subqueries
from .collations import collated

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_OTHER = (schemas.VOID, schemas.VARIANT)


@dataclass(frozen=True)
class PublicValue:
    """A value on Spark Connect: a Column, and its type over the table's columns."""

    _column: "Column"
    _type: schemas.DataType

    def column(self, frame: "DataFrame", field: schemas.StructField) -> "Column":
        """The value over a frame with the table's columns and its alias, cast to a primitive type of `field`."""
        both = isinstance(self._type, schemas.PrimitiveType) and isinstance(field.data_type, schemas.PrimitiveType)
        if not both or self._type == field.data_type or not _castable(self._type, field.data_type):
            return self._column
        assignment.check_settings(frame, "UPDATE", field.name)
        return self._column.cast(assignment.spark_type(field.data_type))


@dataclass(frozen=True)
class Value:
    """A resolved expression over a table's columns."""

    _gateway: Gateway
    _expression: JavaObject

    def column(self, frame: "DataFrame", field: schemas.StructField) -> "Column":
        """The value over a frame with the table's columns, converted by `cast` for the column `field`; see `stored`."""
        return cast(frame.sparkSession, self._gateway.rebound(self._expression, frame), field)


def cast(spark: "SparkSession", value: JavaObject, field: schemas.StructField) -> "Column":
    """Cast a resolved value to the type of the column `field`, like UPDATE and MERGE of Delta.

    Under the default store assignment policy, ANSI, a value may use any cast that Spark supports, at every depth; the
    job fails for a value that can't be cast (a string that is no number, an overflow). Struct fields are matched by
    name. A struct with other names, and all values under another policy, keep their type.
    """
    policy = settings.of(spark, STORE_ASSIGNMENT).upper()
    column = Gateway.of(spark).column(value)
    in_json = str(value.dataType().json())
    value_type = type_of_json(in_json)
    if value_type == field.data_type:
        return column.cast(column_type(field)) if is_collated(in_json) or schemas.collations(field) else column
    if policy != "ANSI":
        return column
    return _Casts(spark, field).casted(column, value_type, field.data_type)


class _Casts:
    """The casts of one value for the column `field`, which error messages name."""

    def __init__(self, spark: "SparkSession", field: schemas.StructField) -> None:
        self._spark = spark
        self._gateway = Gateway.of(spark)
        self._field = field

    def casted(self, value: "Column", value_type: schemas.DataType, wanted: schemas.DataType) -> "Column":
        """Cast a value of the type `value_type` to `wanted`, as far as Spark supports the casts."""
        from pyspark.sql import functions as F

        if value_type == wanted:
            return value
        if isinstance(value_type, schemas.StructType) and isinstance(wanted, schemas.StructType):
            return self._struct(value, value_type, wanted)
        if _has_struct(value_type) and _has_struct(wanted):
            if isinstance(value_type, schemas.ArrayType) and isinstance(wanted, schemas.ArrayType):
                return F.transform(
                    value, lambda element: self.casted(element, value_type.element_type, wanted.element_type)
                )
            if isinstance(value_type, schemas.MapType) and isinstance(wanted, schemas.MapType):
                return self._map(value, value_type, wanted)
        # Spark refuses the cast of an array, a map or a struct to a number, and the opposite, as it does for Delta.
        mixed = (
            wanted not in (*_OTHER, schemas.STRING)
            and value_type not in _OTHER
            and (isinstance(value_type, schemas.PrimitiveType) != isinstance(wanted, schemas.PrimitiveType))
        )
        if not mixed and not _castable(value_type, wanted):
            return value
        field = replace(self._field, data_type=wanted)
        return self._gateway.column(plans.ansi_cast(self._spark, self._gateway.expression(self._spark, value), field))

    def _struct(self, value: "Column", value_type: schemas.StructType, wanted: schemas.StructType) -> "Column":
        from pyspark.sql import functions as F

        by_name = {f.name.lower(): f for f in value_type}
        if len(by_name) != len(value_type.fields) or by_name.keys() != {f.name.lower() for f in wanted}:
            return value
        fields = []
        for field in wanted:
            kept = by_name[field.name.lower()]
            fields.append(self.casted(value.getField(kept.name), kept.data_type, field.data_type).alias(field.name))
        return F.when(value.isNotNull(), F.struct(*fields))

    def _map(self, value: "Column", value_type: schemas.MapType, wanted: schemas.MapType) -> "Column":
        from pyspark.sql import functions as F

        if value_type.key_type != wanted.key_type:
            value = F.transform_keys(value, lambda key, _: self.casted(key, value_type.key_type, wanted.key_type))
        if value_type.value_type != wanted.value_type:
            value = F.transform_values(
                value, lambda _, entry: self.casted(entry, value_type.value_type, wanted.value_type)
            )
        return value


def name_parts(frame: "DataFrame", name: str) -> tuple[str, ...]:
    """The parts of a column's name, parsed by Spark. Raises Spark's AnalysisException for an invalid name."""
    if not is_classic(frame.sparkSession):
        parts = sql_text.name_parts(name)
        if parts is None:
            raise InvalidArgumentError(f"{name!r} isn't the name of a column: quote its parts by backticks")
        return parts
    return catalyst.attribute_name_parts(Gateway.of(frame.sparkSession), name)


def resolved(
    frame: "DataFrame", expressions: "Sequence[str | Column]", alias: str | None = None
) -> "Sequence[Value | PublicValue]":
    """Resolve values for each row of `frame`, a result of `scan.for_conditions`, possibly with an alias.

    A Column may be bound to another frame of the same table. All values use the same current time. Scalar subqueries
    are executed here, once. Raises Spark's AnalysisException for what doesn't resolve, InvalidArgumentError for an
    aggregate, a window, a generator or a nondeterministic expression, UnsupportedFeatureError for a correlated
    subquery. `alias` is the frame's, for Spark Connect, where only values are accepted that `sql_text` can check.
    """
    if not expressions:
        return []
    spark = frame.sparkSession
    if not is_classic(spark):
        names = [] if alias is None else [alias]
        checked = [public_columns.checked(frame, one, "a value of UPDATE", names) for one in expressions]
        types = table_schema(frame.select(*(one.alias(f"c{i}") for i, one in enumerate(checked))).schema)
        return [PublicValue(column, field.data_type) for column, field in zip(checked, types, strict=True)]
    gateway = Gateway.of(spark)
    columns = [
        parsed(gateway, expression)
        if isinstance(expression, str)
        else gateway.column(gateway.rebound(gateway.expression(spark, expression), frame))
        for expression in expressions
    ]
    plan = analyzed(numbered(frame, columns))
    if class_name(plan) != "Project" or not plan.child().fastEquals(analyzed(frame)):
        raise InvalidArgumentError(
            "the values of UPDATE must depend on one row each: aggregates, windows and generators are not allowed",
            condition="UNSUPPORTED_EXPR_FOR_OPERATOR",
            parameters={"invalidExprSqls": ", ".join(map(str, expressions))},
        )
    plan = subqueries.computed(spark, plan, "the values of UPDATE")
    for projected in gateway.elements(plan.projectList()):
        if not projected.deterministic():
            raise InvalidArgumentError(
                f"the value {sql_of(projected.child())} of UPDATE is not deterministic: compute it in a separate "
                "DataFrame and use MERGE",
                condition="INVALID_NON_DETERMINISTIC_EXPRESSIONS",
                parameters={"sqlExprs": sql_of(projected.child())},
            )
    return [
        Value(gateway, projected.child()) for projected in gateway.elements(gateway.at_one_time(plan).projectList())
    ]


def stored(df: "DataFrame", columns: Mapping[str, schemas.StructField], table: str) -> "DataFrame":
    """`df` with some columns converted to the types of table columns, by Spark's store assignment.

    Struct fields are matched by name. Raises SchemaMismatchError for a type that can't be stored.
    """
    types = {name: field.data_type for name, field in columns.items()}
    return collated(_stored(df, types, table), (schemas.with_name(field, name) for name, field in columns.items()))


def _stored(df: "DataFrame", columns: Mapping[str, schemas.DataType], table: str) -> "DataFrame":
    frame_fields = table_schema(df.schema)
    if all(columns.get(f.name, f.data_type) == f.data_type for f in frame_fields):
        return df
    fields = (schemas.StructField(f.name, columns.get(f.name, f.data_type)) for f in frame_fields)
    wanted = schemas.StructType(tuple(fields))
    if not is_classic(df.sparkSession):
        shape = schemas.StructType(
            tuple(
                replace(f, data_type=assignment.by_name(columns.get(f.name, f.data_type), f.data_type))
                for f in frame_fields
            )
        )
        if shape != frame_fields:
            df = df.to(spark_type(shape))
        return assignment.assigned(df, wanted, shape, table, checks.checked)
    return plans.assigned(df, schemas.to_json(wanted), table)


def _has_struct(data_type: schemas.DataType) -> bool:
    return schemas.contains(data_type, lambda part: isinstance(part, schemas.StructType))


def _castable(value_type: schemas.DataType, wanted: schemas.DataType) -> bool:
    """Whether Spark can cast the whole value from one type to the other."""
    if value_type == schemas.VOID:
        return wanted not in _OTHER
    if isinstance(value_type, schemas.ArrayType) and isinstance(wanted, schemas.ArrayType):
        return value_type.contains_null <= wanted.contains_null and _castable(
            value_type.element_type, wanted.element_type
        )
    if isinstance(value_type, schemas.MapType) and isinstance(wanted, schemas.MapType):
        return (
            value_type.value_contains_null <= wanted.value_contains_null
            and _castable(value_type.key_type, wanted.key_type)
            and _castable(value_type.value_type, wanted.value_type)
        )
    if wanted == schemas.STRING and not isinstance(value_type, schemas.PrimitiveType):
        return not schemas.contains(value_type, lambda part: part == schemas.VARIANT)
    return all(
        isinstance(data_type, schemas.PrimitiveType) and data_type not in _OTHER for data_type in (value_type, wanted)
    )
