"""The values that an UPDATE assigns: resolved by Spark over the table, and brought into its columns' types.

MERGE resolves its values over two frames (`resolution`), and casts them as here.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.protocol import schema as schemas
from ..errors import InvalidArgumentError, UnsupportedFeatureError
from . import plans
from .gateway import Gateway, JavaObject
from .spark_messages import sql_of
from .types import table_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_OTHER = (schemas.VOID, schemas.VARIANT)


@dataclass(frozen=True)
class Value:
    """A resolved expression over a table's columns."""

    _gateway: Gateway
    _expression: JavaObject

    def column(self, frame: "DataFrame", field: schemas.StructField) -> "Column":
        """The value over a frame that has the table's columns, `cast` for the column `field`; then see `stored`."""
        value = self._gateway.rebound(self._expression, frame)
        return self._gateway.column(cast(frame.sparkSession, value, field))


def cast(spark: "SparkSession", value: JavaObject, field: schemas.StructField) -> JavaObject:
    """A resolved value in the type of the column `field`, as UPDATE and MERGE of Delta cast it.

    Under the session's policy for storing, ANSI, a value takes any cast that Spark has, and the job fails for one that
    can't be cast (a text that is no number, an overflow). What has structs keeps its type, as all does under another.
    """
    policy = str(spark.conf.get("spark.sql.storeAssignmentPolicy", "ANSI")).upper()
    given = _type_of(value)
    if policy == "ANSI" and given != field.data_type and _castable(given, field.data_type):
        return plans.ansi_cast(spark, value, field)
    return value


def _type_of(expression: JavaObject) -> schemas.DataType:
    f = {"name": "value", "type": json.loads(expression.dataType().json()), "nullable": True, "metadata": {}}
    return schemas.parse_schema(json.dumps({"type": "struct", "fields": [f]})).fields[0].data_type


def name_parts(frame: "DataFrame", name: str) -> tuple[str, ...]:
    """The parts of a column's name as Spark takes it apart; its AnalysisException for a text that is none."""
    attribute = Gateway.of(frame.sparkSession).jvm.org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
    return tuple(Gateway.elements(attribute.parseAttributeName(name)))


def resolved(frame: "DataFrame", given: "Sequence[str | Column]") -> list[Value]:
    """Values for each row of `frame`, which `scan.for_conditions` made (it may have an alias).

    A Column may be bound to another frame of the same table. The current time is the same wherever they are used.
    Raises Spark's AnalysisException for what doesn't resolve, InvalidArgumentError for an aggregate, a window, a
    generator or what isn't deterministic, UnsupportedFeatureError for a subquery.
    """
    from pyspark.sql import functions as F

    spark = frame.sparkSession
    gateway = Gateway.of(spark)
    columns = [
        F.expr(one) if isinstance(one, str) else gateway.column(gateway.rebound(gateway.expression(spark, one), frame))
        for one in given
    ]
    plan = frame.select(*(one.alias(f"c{i}") for i, one in enumerate(columns)))._jdf.queryExecution().analyzed()
    inner = frame._jdf.queryExecution().analyzed()
    if plan.getClass().getSimpleName() != "Project" or not plan.child().fastEquals(inner):
        raise InvalidArgumentError(
            "the values of UPDATE are of one row each: they can't be aggregates, windows or generators",
            condition="UNSUPPORTED_EXPR_FOR_OPERATOR",
            parameters={"invalidExprSqls": ", ".join(map(str, given))},
        )
    for one in gateway.elements(plan.projectList()):
        if gateway.has_subquery(one):
            raise UnsupportedFeatureError(
                f"the value {sql_of(one.child())} of UPDATE has a subquery, which Delta doesn't take either: "
                "collect its result first, or use MERGE",
                condition="DELTA_UNSUPPORTED_SUBQUERY",
                parameters={"operation": "UPDATE", "cond": sql_of(one.child())},
            )
        if not one.deterministic():
            raise InvalidArgumentError(
                f"the value {sql_of(one.child())} of UPDATE is not deterministic: put it into a frame of its "
                "own and use MERGE",
                condition="INVALID_NON_DETERMINISTIC_EXPRESSIONS",
                parameters={"sqlExprs": sql_of(one.child())},
            )
    return [Value(gateway, one.child()) for one in gateway.elements(gateway.at_one_time(plan).projectList())]


def stored(df: "DataFrame", columns: Mapping[str, schemas.DataType], table: str) -> "DataFrame":
    """`df` with some of its columns in the types of the table's columns for which they are meant, as Spark stores them.

    Structs are matched by the names of their fields. Raises SchemaMismatchError for a type that can't be stored.
    """
    given = table_schema(df.schema)
    if all(columns.get(f.name, f.data_type) == f.data_type for f in given):
        return df
    wanted = (schemas.StructField(f.name, columns.get(f.name, f.data_type)) for f in given)
    return plans.assigned(df, schemas.to_json(schemas.StructType(tuple(wanted))), table)


def _castable(given: schemas.DataType, wanted: schemas.DataType) -> bool:
    if isinstance(given, schemas.ArrayType) and isinstance(wanted, schemas.ArrayType):
        return given.contains_null <= wanted.contains_null and _castable(given.element_type, wanted.element_type)
    if isinstance(given, schemas.MapType) and isinstance(wanted, schemas.MapType):
        return (
            given.value_contains_null <= wanted.value_contains_null
            and _castable(given.key_type, wanted.key_type)
            and _castable(given.value_type, wanted.value_type)
        )
    return all(isinstance(one, schemas.PrimitiveType) and one not in _OTHER for one in (given, wanted))
