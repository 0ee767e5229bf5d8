"""Scalar subqueries in the values of a command. They are computed once: the command is several Spark queries, which all
have to see the same value.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...errors import InvalidArgumentError, UnsupportedFeatureError
from ..jvm import catalyst, plans
from ..jvm.frames import internal_rows
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
    return plan.transformExpressions(gateway.scala_map(mapping))


def _computed(gateway: Gateway, spark: "SparkSession", subquery: JavaObject, what: str) -> JavaObject:
    """The subquery over rows that are on the driver already."""
    if subquery.getClass().getSimpleName() != "ScalarSubquery" or not subquery.outerAttrs().isEmpty():
        raise UnsupportedFeatureError(
            f"{what} have a subquery that depends on the row, or that is no single value (IN, EXISTS): use MERGE, with "
            "what the subquery reads as its source"
        )
    first = plans.frame_of(spark, catalyst.limited(gateway, subquery.plan(), 2))
    rows = internal_rows(first)
    if len(rows) > 1:
        raise InvalidArgumentError(f"{what} have a subquery that gives more than one row, where one value is wanted")
    output = subquery.plan().output()
    return subquery.withNewPlan(catalyst.local_relation(gateway, output, gateway.seq(rows)))


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
