"""Constants in statements, and names that are constants: `IDENTIFIER(expression)`, also with variables."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from . import frames, plans
from .classes import class_name
from .gateway import Gateway, JavaObject
from .inserts import parsed_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KIND = "PlanWithUnresolvedIdentifier"


def constants(spark: "SparkSession", expressions: Sequence[JavaObject]) -> list[JavaObject] | None:
    """The literals of expressions that need no job to compute; None if there is another one among them."""
    if all(class_name(one) == "Literal" for one in expressions):
        return list(expressions)
    gateway = Gateway.of(spark)
    one_row = gateway.jvm.org.apache.spark.sql.catalyst.plans.logical.OneRowRelation()
    try:
        columns = [gateway.column(one).alias(f"_{i}") for i, one in enumerate(expressions)]
        optimized = frames.optimized_plan(plans.frame_of(spark, one_row).select(*columns))
    except PySparkException:
        return None
    if optimized.nodeName() != "Project":
        return None
    literals = [one.child() for one in Gateway.elements(optimized.projectList())]
    return literals if all(class_name(one) == "Literal" for one in literals) else None


def with_names(spark: "SparkSession", plan: JavaObject) -> JavaObject | None:
    """The plan of a statement with names in place of its IDENTIFIER clauses.

    None if there is no such clause, or if one is no constant, of which Spark raises the error.
    """
    clause = Gateway.of(spark).jvm.org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_WITH_UNRESOLVED_IDENTIFIER()
    if not plan.containsPattern(clause):
        return None
    named = _named(spark, list(_clauses(plan)))
    if named is None:
        return None
    gateway = Gateway.of(spark)
    plan = plan.transformDown(gateway.scala_map(named))
    inserts = {one: _insert(gateway, one) for one in _unresolved_inserts(plan)}
    return plan.transformDown(gateway.scala_map(inserts)) if inserts else plan


def _named(spark: "SparkSession", clauses: Sequence[JavaObject]) -> dict[JavaObject, JavaObject] | None:
    """The plans of clauses with their names; None if a name is no constant."""
    literals = constants(spark, [one.identifierExpr() for one in clauses])
    if not clauses or literals is None:
        return None
    named = {}
    for one, literal in zip(clauses, literals, strict=True):
        if literal.dataType().simpleString() != "string" or literal.value() is None:
            return None
        named[one] = one.planBuilder().apply(parsed_name(spark, str(literal.value())), one.children())
    return named


def _unresolved_inserts(plan: JavaObject) -> list[JavaObject]:
    """The INSERTs of a statement that Spark 4.3 parsed with an IDENTIFIER clause as the name of their table."""
    kind = class_name(plan)
    if kind in ("UnresolvedWith", "Union"):
        return [one for child in Gateway.elements(plan.children()) for one in _unresolved_inserts(child)]
    return [plan] if kind == "UnresolvedInsert" else []


def _insert(gateway: Gateway, unresolved: JavaObject) -> JavaObject:
    """The INSERT as Spark parses it with the table's name: only the node of the table differs."""
    target, *parts = (unresolved.productElement(i) for i in range(unresolved.productArity()))
    catalyst = gateway.jvm.org.apache.spark.sql.catalyst
    relation = catalyst.analysis.UnresolvedRelation(target.multipartIdentifier(), target.options(), False)
    return catalyst.plans.logical.InsertIntoStatement(relation, *parts)


def _clauses(plan: JavaObject) -> Iterator[JavaObject]:
    if class_name(plan) == _KIND:
        yield plan
        return
    for child in Gateway.elements(plan.children()):
        yield from _clauses(child)
