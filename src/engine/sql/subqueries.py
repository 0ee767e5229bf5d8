"""Executes scalar subqueries in the values of a command once, because a command runs several Spark queries that must
all use the same value.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...errors import InvalidArgumentError, UnsupportedFeatureError
from ..jvm import catalyst, plans
from ..jvm.connection.frames import internal_rows
from ..jvm.connection.gateway import Gateway, JavaObject
from ..jvm.registry.classes import class_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def computed(spark: "SparkSession", plan: JavaObject, subject: str) -> JavaObject:
    """Execute the scalar subqueries of an analyzed projection, and replace them by their results.

    `subject` names the values in messages. Raises UnsupportedFeatureError for a correlated or non-scalar subquery,
    InvalidArgumentError for one that returns several rows.
    """
    gateway = Gateway.of(spark)
    mapping = {subquery: _computed(gateway, spark, subquery, subject) for subquery in _subqueries(gateway, plan)}
    if not mapping:
        return plan
    return plan.transformExpressions(gateway.scala_map(mapping))


def _computed(gateway: Gateway, spark: "SparkSession", subquery: JavaObject, subject: str) -> JavaObject:
    """The subquery with its plan replaced by the collected rows."""
    if class_name(subquery) != "ScalarSubquery" or not subquery.outerAttrs().isEmpty():
        raise UnsupportedFeatureError(
            f"{subject} have a subquery that is correlated, or that isn't a single value (IN, EXISTS): use MERGE, "
            "with the tables of the subquery in its source"
        )
    first = plans.frame_of(spark, catalyst.limited(gateway, subquery.plan(), 2))
    rows = internal_rows(first)
    if len(rows) > 1:
        raise InvalidArgumentError(f"{subject} have a scalar subquery that returns more than one row")
    output = subquery.plan().output()
    return subquery.withNewPlan(catalyst.local_relation(gateway, output, gateway.seq(rows)))


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
