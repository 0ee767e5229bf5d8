"""The values that an UPDATE assigns: resolved by Spark over the table, and cast to the columns' types.

MERGE resolves its values over two frames (`resolution`), and casts them by the same function.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...core.protocol import schema as schemas
from ...errors import InvalidArgumentError
from ...settings.spark_own import STORE_ASSIGNMENT
from ..jvm import catalyst, plans, settings
from ..jvm.classes import class_name
from ..jvm.frames import analyzed
from ..jvm.gateway import Gateway, JavaObject
from ..jvm.messages import sql_of
from ..jvm.types import table_schema
from . import subqueries

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_OTHER = (schemas.VOID, schemas.VARIANT)


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
    given = _type_of(value)
    if policy != "ANSI" or given == field.data_type:
        return column
    return _Casts(spark, field).casted(column, given, field.data_type)


class _Casts:
    """The casts of one value for the column `field`, which error messages name."""

    def __init__(self, spark: "SparkSession", field: schemas.StructField) -> None:
        self._spark = spark
        self._gateway = Gateway.of(spark)
        self._field = field

    def casted(self, value: "Column", given: schemas.DataType, wanted: schemas.DataType) -> "Column":
        """Cast a value of the type `given` to `wanted`, as far as Spark supports the casts."""
        from pyspark.sql import functions as F

        if given == wanted:
            return value
        if isinstance(given, schemas.StructType) and isinstance(wanted, schemas.StructType):
            return self._struct(value, given, wanted)
        if _has_struct(given) and _has_struct(wanted):
            if isinstance(given, schemas.ArrayType) and isinstance(wanted, schemas.ArrayType):
                return F.transform(value, lambda one: self.casted(one, given.element_type, wanted.element_type))
            if isinstance(given, schemas.MapType) and isinstance(wanted, schemas.MapType):
                return self._map(value, given, wanted)
        # Spark refuses the cast of an array, a map or a struct to a number, and the opposite, as it does for Delta.
        mixed = (
            wanted not in (*_OTHER, schemas.STRING)
            and given not in _OTHER
            and (isinstance(given, schemas.PrimitiveType) != isinstance(wanted, schemas.PrimitiveType))
        )
        if not mixed and not _castable(given, wanted):
            return value
        field = replace(self._field, data_type=wanted)
        return self._gateway.column(plans.ansi_cast(self._spark, self._gateway.expression(self._spark, value), field))

    def _struct(self, value: "Column", given: schemas.StructType, wanted: schemas.StructType) -> "Column":
        from pyspark.sql import functions as F

        by_name = {f.name.lower(): f for f in given}
        if len(by_name) != len(given.fields) or by_name.keys() != {f.name.lower() for f in wanted}:
            return value
        fields = []
        for f in wanted:
            kept = by_name[f.name.lower()]
            fields.append(self.casted(value.getField(kept.name), kept.data_type, f.data_type).alias(f.name))
        return F.when(value.isNotNull(), F.struct(*fields))

    def _map(self, value: "Column", given: schemas.MapType, wanted: schemas.MapType) -> "Column":
        from pyspark.sql import functions as F

        if given.key_type != wanted.key_type:
            value = F.transform_keys(value, lambda key, _: self.casted(key, given.key_type, wanted.key_type))
        if given.value_type != wanted.value_type:
            value = F.transform_values(value, lambda _, one: self.casted(one, given.value_type, wanted.value_type))
        return value


def _type_of(expression: JavaObject) -> schemas.DataType:
    f = {"name": "value", "type": json.loads(expression.dataType().json()), "nullable": True, "metadata": {}}
    return schemas.parse_schema(json.dumps({"type": "struct", "fields": [f]})).fields[0].data_type


def name_parts(frame: "DataFrame", name: str) -> tuple[str, ...]:
    """The parts of a column's name, parsed by Spark. Raises Spark's AnalysisException for an invalid name."""
    return catalyst.attribute_name_parts(Gateway.of(frame.sparkSession), name)


def resolved(frame: "DataFrame", given: "Sequence[str | Column]") -> list[Value]:
    """Resolve values for each row of `frame`, a result of `scan.for_conditions`, possibly with an alias.

    A Column may be bound to another frame of the same table. All values use the same current time. Scalar subqueries
    are executed here, once. Raises Spark's AnalysisException for what doesn't resolve, InvalidArgumentError for an
    aggregate, a window, a generator or a nondeterministic expression, UnsupportedFeatureError for a correlated
    subquery.
    """
    from pyspark.sql import functions as F

    if not given:
        return []
    spark = frame.sparkSession
    gateway = Gateway.of(spark)
    columns = [
        F.expr(one) if isinstance(one, str) else gateway.column(gateway.rebound(gateway.expression(spark, one), frame))
        for one in given
    ]
    plan = analyzed(frame.select(*(one.alias(f"c{i}") for i, one in enumerate(columns))))
    if class_name(plan) != "Project" or not plan.child().fastEquals(analyzed(frame)):
        raise InvalidArgumentError(
            "the values of UPDATE must depend on one row each: aggregates, windows and generators are not allowed",
            condition="UNSUPPORTED_EXPR_FOR_OPERATOR",
            parameters={"invalidExprSqls": ", ".join(map(str, given))},
        )
    plan = subqueries.computed(spark, plan, "the values of UPDATE")
    for one in gateway.elements(plan.projectList()):
        if not one.deterministic():
            raise InvalidArgumentError(
                f"the value {sql_of(one.child())} of UPDATE is not deterministic: compute it in a separate DataFrame "
                "and use MERGE",
                condition="INVALID_NON_DETERMINISTIC_EXPRESSIONS",
                parameters={"sqlExprs": sql_of(one.child())},
            )
    return [Value(gateway, one.child()) for one in gateway.elements(gateway.at_one_time(plan).projectList())]


def stored(df: "DataFrame", columns: Mapping[str, schemas.DataType], table: str) -> "DataFrame":
    """`df` with some columns converted to the types of table columns, by Spark's store assignment.

    Struct fields are matched by name. Raises SchemaMismatchError for a type that can't be stored.
    """
    given = table_schema(df.schema)
    if all(columns.get(f.name, f.data_type) == f.data_type for f in given):
        return df
    wanted = (schemas.StructField(f.name, columns.get(f.name, f.data_type)) for f in given)
    return plans.assigned(df, schemas.to_json(schemas.StructType(tuple(wanted))), table)


def _has_struct(data_type: schemas.DataType) -> bool:
    return schemas.contains(data_type, lambda one: isinstance(one, schemas.StructType))


def _castable(given: schemas.DataType, wanted: schemas.DataType) -> bool:
    """Whether Spark can cast the whole value from one type to the other."""
    if given == schemas.VOID:
        return wanted not in _OTHER
    if isinstance(given, schemas.ArrayType) and isinstance(wanted, schemas.ArrayType):
        return given.contains_null <= wanted.contains_null and _castable(given.element_type, wanted.element_type)
    if isinstance(given, schemas.MapType) and isinstance(wanted, schemas.MapType):
        return (
            given.value_contains_null <= wanted.value_contains_null
            and _castable(given.key_type, wanted.key_type)
            and _castable(given.value_type, wanted.value_type)
        )
    if wanted == schemas.STRING and not isinstance(given, schemas.PrimitiveType):
        return not schemas.contains(given, lambda one: one == schemas.VARIANT)
    return all(isinstance(one, schemas.PrimitiveType) and one not in _OTHER for one in (given, wanted))
