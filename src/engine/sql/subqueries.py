"""Scalar subqueries in the values of a command. They are computed once: the command is several Spark queries, which all
have to see the same value.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...errors import InvalidArgumentError, UnsupportedFeatureError
from ..jvm import plans
from ..jvm.gateway import Gateway, JavaObject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def computed(spark: "SparkSession", plan: JavaObject, what: str) -> JavaObject:
    """An analysed projection whose scalar subqueries are run now, and replaced by their results.

    `what` names the values in messages. UnsupportedFeatureError for a subquery that depends on the row or isn't
    scalar, InvalidArgumentError for one that gives several rows.
    """
    gateway = Gateway.of(spark)
    mapping = {one: _computed(gateway, spark, one, what) for one in _subqueries(gateway, plan)}
    if not mapping:
        return plan
    return plan.transformExpressions(gateway.jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(mapping))


def _computed(gateway: Gateway, spark: "SparkSession", subquery: JavaObject, what: str) -> JavaObject:
    """The subquery over rows that are on the driver already."""
    if subquery.getClass().getSimpleName() != "ScalarSubquery" or not subquery.outerAttrs().isEmpty():
        raise UnsupportedFeatureError(
            f"{what} have a subquery that depends on the row, or that is no single value (IN, EXISTS): use MERGE, with "
            "what the subquery reads as its source"
        )
    logical = gateway.jvm.org.apache.spark.sql.catalyst.plans.logical
    two = gateway.expressions.Literal(2, gateway.jvm.org.apache.spark.sql.types.DataTypes.IntegerType)
    first = plans.frame_of(spark, logical.LocalLimit(two, subquery.plan()))
    rows = first._jdf.queryExecution().executedPlan().executeCollect()
    if len(rows) > 1:
        raise InvalidArgumentError(f"{what} have a subquery that gives more than one row, where one value is wanted")
    output = subquery.plan().output()
    return subquery.withNewPlan(logical.LocalRelation(output, gateway.seq(rows), False, gateway.none))


def _subqueries(gateway: Gateway, plan: JavaObject) -> Iterator[JavaObject]:
    """The outermost subqueries of a plan's expressions."""
    waiting = [one for one in gateway.elements(plan.expressions()) if gateway.has_subquery(one)]
    while waiting:
        one = waiting.pop()
        inside = [child for child in gateway.elements(one.children()) if gateway.has_subquery(child)]
        if inside:
            waiting += inside
        else:
            yield one
