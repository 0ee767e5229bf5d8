"""Constants in statements, and names that are constants: `IDENTIFIER(expression)`, also with variables."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from .. import plans
from ..connection import frames
from ..connection.gateway import Gateway, JavaObject
from ..registry.classes import class_name
from .inserts import parsed_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KIND = "PlanWithUnresolvedIdentifier"


def constants(spark: "SparkSession", expressions: Sequence[JavaObject]) -> list[JavaObject] | None:
    """The values of constant expressions as literals; None if one of the expressions isn't constant."""
    if all(class_name(expression) == "Literal" for expression in expressions):
        return list(expressions)
    gateway = Gateway.of(spark)
    one_row = gateway.jvm.org.apache.spark.sql.catalyst.plans.logical.OneRowRelation()
    try:
        columns = [gateway.column(expression).alias(f"_{i}") for i, expression in enumerate(expressions)]
        optimized = frames.optimized_plan(plans.frame_of(spark, one_row).select(*columns))
    except PySparkException:
        return None
    if optimized.nodeName() != "Project":
        return None
    literals = [projected.child() for projected in Gateway.elements(optimized.projectList())]
    return literals if all(class_name(literal) == "Literal" for literal in literals) else None


def with_names(spark: "SparkSession", plan: JavaObject) -> JavaObject | None:
    """The plan of a statement with names in place of its IDENTIFIER clauses.

    None if there is no such clause, or if one isn't constant: then Spark raises the error.
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
    """The plans of clauses with their names; None if a name isn't constant."""
    literals = constants(spark, [clause.identifierExpr() for clause in clauses])
    if not clauses or literals is None:
        return None
    named = {}
    for clause, literal in zip(clauses, literals, strict=True):
        if literal.dataType().simpleString() != "string" or literal.value() is None:
            return None
        named[clause] = clause.planBuilder().apply(parsed_name(spark, str(literal.value())), clause.children())
    return named


def _unresolved_inserts(plan: JavaObject) -> list[JavaObject]:
    """The INSERTs of a statement that Spark 4.3 parsed with an IDENTIFIER clause as the name of their table."""
    kind = class_name(plan)
    if kind in ("UnresolvedWith", "Union"):
        return [one for child in Gateway.elements(plan.children()) for one in _unresolved_inserts(child)]
    return [plan] if kind == "UnresolvedInsert" else []


def _insert(gateway: Gateway, unresolved: JavaObject) -> JavaObject:
    """The INSERT as Spark parses it with the table's name: only the node of the table differs.

    Spark 4.2 parses REPLACE WHERE to another plan than Spark 4.3 if the name isn't an expression.
    """
    target, *parts = (unresolved.productElement(i) for i in range(unresolved.productArity()))
    catalyst = gateway.jvm.org.apache.spark.sql.catalyst
    relation = catalyst.analysis.UnresolvedRelation(target.multipartIdentifier(), target.options(), False)
    criteria = unresolved.replaceCriteriaOpt()
    if (
        criteria.isEmpty()
        or class_name(criteria.get()) != "InsertReplaceWhere"
        or gateway.has_class("org.apache.spark.sql.connector.catalog.TableContext")
    ):
        return catalyst.plans.logical.InsertIntoStatement(relation, *parts)
    nothing, no_options = gateway.none, gateway.scala_map({})
    evolves = unresolved.withSchemaEvolution()
    parts = [criteria.get().cond(), unresolved.query(), no_options, unresolved.byName(), evolves, nothing, nothing]
    return catalyst.plans.logical.OverwriteByExpression(relation, *parts)


def _clauses(plan: JavaObject) -> Iterator[JavaObject]:
    if class_name(plan) == _KIND:
        yield plan
        return
    for child in Gateway.elements(plan.children()):
        yield from _clauses(child)
