"""Reads the table, the conditions and the assignments from the plan of a parsed DELETE, UPDATE, MERGE or TRUNCATE."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..connection.gateway import Gateway, JavaObject, changed
from ..connection.sessions import is_instance
from ..registry.classes import class_name
from .definitions import option
from .statements import options_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ActionKind: TypeAlias = Literal["update", "insert", "delete"]

_ACTIONS: dict[str, ActionKind] = {
    "UpdateAction": "update",
    "UpdateStarAction": "update",
    "InsertAction": "insert",
    "InsertStarAction": "insert",
    "DeleteAction": "delete",
}


@dataclass(frozen=True)
class Target:
    """The table that a statement changes: the parts of its name (a Scala `Seq`), its alias, and options (`WITH`)."""

    name: JavaObject
    alias: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Assigned:
    """`column = value`. `column` has the parts of the name `key`.

    `default` is the value as it is spelled, if that is the keyword DEFAULT or the name of a column.
    """

    key: JavaObject
    column: tuple[str, ...]
    value: JavaObject
    default: str | None


@dataclass(frozen=True)
class Action:
    """What a WHEN clause of MERGE does. `assignments` is None for DELETE, UPDATE * and INSERT *."""

    kind: ActionKind
    condition: JavaObject | None
    assignments: tuple[Assigned, ...] | None


@dataclass(frozen=True)
class Merge:
    """The parts of a MERGE: the source is a plan, the condition an expression."""

    target: Target
    source: JavaObject
    condition: JavaObject
    matched: tuple[Action, ...]
    not_matched: tuple[Action, ...]
    not_matched_by_source: tuple[Action, ...]
    evolves: bool


def target(relation: JavaObject) -> Target | None:
    """The table of a relation that isn't resolved; None if the name is not known yet (an IDENTIFIER clause)."""
    alias = None
    if class_name(relation) == "SubqueryAlias":
        alias, relation = str(relation.alias()), relation.child()
    if class_name(relation) not in ("UnresolvedRelation", "UnresolvedTable"):
        return None
    options = options_of(relation) if class_name(relation) == "UnresolvedRelation" else {}
    return Target(relation.multipartIdentifier(), alias, options)


class CommonTables:
    """The WITH clause of a statement, which its conditions, values and source may refer to. `plan`: the statement."""

    def __init__(self, spark: "SparkSession", statement: JavaObject) -> None:
        self._gateway = Gateway.of(spark)
        self._clause = statement if class_name(statement) == "UnresolvedWith" else None
        self.plan = statement if self._clause is None else self._clause.child()

    def query(self, plan: JavaObject) -> JavaObject:
        """A query of the statement, with the clause."""
        return plan if self._clause is None else changed(self._clause, child=plan)

    def expression(self, expression: JavaObject) -> JavaObject:
        """An expression of the statement whose subqueries have the clause."""
        if self._clause is None or not self._gateway.has_subquery(expression):
            return expression
        subqueries = {
            subquery: subquery.withNewPlan(self.query(subquery.plan())) for subquery in _subqueries(expression)
        }
        return expression.transformDown(self._gateway.scala_map(subqueries))


def merge(plan: JavaObject) -> Merge | None:
    """The parts of a parsed MERGE; None if the table's name is not known yet."""
    table = target(plan.targetTable())
    if table is None:
        return None
    return Merge(
        table,
        plan.sourceTable(),
        plan.mergeCondition(),
        _actions(plan.matchedActions()),
        _actions(plan.notMatchedActions()),
        _actions(plan.notMatchedBySourceActions()),
        bool(plan.withSchemaEvolution()),
    )


def assignments(sequence: JavaObject) -> tuple[Assigned, ...]:
    """The assignments of an UPDATE or of a clause of MERGE."""
    return tuple(_assigned(assignment) for assignment in Gateway.elements(sequence))


def is_true(expression: JavaObject) -> bool:
    """Whether an expression is the constant TRUE, which stands for a DELETE without a condition."""
    return class_name(expression) == "Literal" and expression.value() is True


def names_in(expression: JavaObject) -> list[tuple[str, ...]]:
    """The names of columns in an expression that isn't resolved, each once; those in subqueries are not among them."""
    names = [
        tuple(str(part) for part in Gateway.elements(reference.nameParts()))
        for reference in Gateway.references(expression)
    ]
    return list(dict.fromkeys(names))


def _actions(sequence: JavaObject) -> tuple[Action, ...]:
    return tuple(_action(action) for action in Gateway.elements(sequence))


def _action(action: JavaObject) -> Action:
    name = class_name(action)
    values = assignments(action.assignments()) if name in ("UpdateAction", "InsertAction") else None
    return Action(_ACTIONS[name], option(action.condition()), values)


def _assigned(assignment: JavaObject) -> Assigned:
    key, value = assignment.key(), assignment.value()
    parts = _name_parts(key)
    named = _name_parts(value) or ()
    default = named[0] if len(named) == 1 and named[0].upper() == "DEFAULT" else None
    return Assigned(key, (str(key.sql()),) if parts is None else parts, value, default)


def _name_parts(expression: JavaObject) -> tuple[str, ...] | None:
    if class_name(expression) != "UnresolvedAttribute":
        return None
    return tuple(str(part) for part in Gateway.elements(expression.nameParts()))


def _subqueries(expression: JavaObject) -> list[JavaObject]:
    if is_instance(expression, "org.apache.spark.sql.catalyst.expressions.SubqueryExpression"):
        return [expression]
    return [subquery for child in Gateway.elements(expression.children()) for subquery in _subqueries(child)]
