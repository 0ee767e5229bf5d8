"""Executes scalar subqueries in the values of a command once, because a command runs several Spark queries that must
all use the same value.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...errors import InvalidArgumentError, UnsupportedFeatureError
from ..jvm import plans
from ..jvm.gateway import Gateway, JavaObject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def computed(spark: "SparkSession", plan: JavaObject, subject: str) -> JavaObject:
    """Execute the scalar subqueries of an analyzed projection, and replace them by their results.

    `subject` names the values in messages. Raises UnsupportedFeatureError for a correlated or non-scalar subquery,
    InvalidArgumentError for one that returns several rows.
    """
    gateway = Gateway.of(spark)
    mapping = {one: _computed(gateway, spark, one, subject) for one in _subqueries(gateway, plan)}
    if not mapping:
        return plan
    return plan.transformExpressions(gateway.jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(mapping))


def _computed(gateway: Gateway, spark: "SparkSession", subquery: JavaObject, subject: str) -> JavaObject:
    """The subquery with its plan replaced by the collected rows."""
    if subquery.getClass().getSimpleName() != "ScalarSubquery" or not subquery.outerAttrs().isEmpty():
        raise UnsupportedFeatureError(
            f"{subject} have a subquery that is correlated, or that isn't a single value (IN, EXISTS): use MERGE, "
            "with the tables of the subquery in its source"
        )
    logical = gateway.jvm.org.apache.spark.sql.catalyst.plans.logical
    two = gateway.expressions.Literal(2, gateway.jvm.org.apache.spark.sql.types.DataTypes.IntegerType)
    first = plans.frame_of(spark, logical.LocalLimit(two, subquery.plan()))
    rows = first._jdf.queryExecution().executedPlan().executeCollect()
    if len(rows) > 1:
        raise InvalidArgumentError(f"{subject} have a scalar subquery that returns more than one row")
    output = subquery.plan().output()
    return subquery.withNewPlan(logical.LocalRelation(output, gateway.seq(rows), False, gateway.none))


def _subqueries(gateway: Gateway, plan: JavaObject) -> Iterator[JavaObject]:
    """The outermost subqueries of a plan's expressions."""
    waiting = [expression for expression in gateway.elements(plan.expressions()) if gateway.has_subquery(expression)]
    while waiting:
        expression = waiting.pop()
        inside = [child for child in gateway.elements(expression.children()) if gateway.has_subquery(child)]
        if inside:
            waiting += inside
        else:
            yield expression
