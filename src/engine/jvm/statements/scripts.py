"""SQL scripts and EXECUTE IMMEDIATE: their parts, and statements of a script that Python runs.

Spark runs a script from the nodes of its parsed plan. A statement that Python runs is replaced in the plan by Spark's
`ExternalCommandExecutor`, whose runner calls Python in the thread of the script, where its variables are visible.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from ..connection.callbacks import Connections, carried, kept
from ..connection.compiled import compiled_class
from ..connection.gateway import Gateway, JavaObject
from ..connection.java_errors import java_exception
from ..registry.classes import class_name
from .identifiers import constants
from .statements import EXECUTE_IMMEDIATE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_PARTS = ("collection", "handlers", "conditionalBodies", "elseBody", "body")

Run: TypeAlias = Callable[[str, JavaObject], bool]
"""Runs a statement of a script, with its text and its plan as arguments. Returns False if Spark has to run it."""


def is_execute_immediate(plan: JavaObject) -> bool:
    """Whether a parsed statement is EXECUTE IMMEDIATE."""
    return class_name(plan) == EXECUTE_IMMEDIATE


@dataclass(frozen=True)
class Immediate:
    """The statement of an EXECUTE IMMEDIATE: its text, its parameters, and whether variables get its rows (INTO)."""

    text: str
    args: "dict[str, Column] | list[Column] | None"
    into: bool


def immediate(spark: "SparkSession", plan: JavaObject) -> Immediate | None:
    """The statement of an EXECUTE IMMEDIATE; None if its parts aren't constant: then Spark raises the error."""
    arguments = Gateway.elements(plan.args())
    names = [str(argument.name()) for argument in arguments if class_name(argument) == "Alias"]
    if names and len(names) < len(arguments):
        return None
    values = [argument.child() for argument in arguments] if names else arguments
    literals = constants(spark, [plan.sqlStmtStr(), *values])
    if literals is None or literals[0].dataType().simpleString() != "string" or literals[0].value() is None:
        return None
    columns = [Gateway.of(spark).column(literal) for literal in literals[1:]]
    args = dict(zip(names, columns, strict=True)) if names else columns or None
    return Immediate(str(literals[0].value()), args, plan.targetVariables().size() > 0)


class _OutsideScript:
    """Implements `scala.Function0`."""

    def __init__(self, run: "Callable[[], DataFrame | None]") -> None:
        self._run = run
        self.answer: DataFrame | None = None

    @carried
    def apply(self) -> None:
        self.answer = self._run()

    class Java:
        implements: ClassVar[list[str]] = ["scala.Function0"]


def outside_script(spark: "SparkSession", run: "Callable[[], DataFrame | None]") -> "DataFrame | None":
    """Call `run` where the variables of the running script aren't visible, as for Spark's EXECUTE IMMEDIATE."""
    body = _OutsideScript(run)
    Gateway.of(spark).jvm.org.apache.spark.sql.catalyst.SqlScriptingContextManager.create(None).runWith(body)
    return body.answer


class _Statement:
    """Implements `java.util.function.Supplier`: runs one statement of a script for `StatementRunner`."""

    def __init__(self, gateway: Gateway, run: Callable[[], bool]) -> None:
        self._connections = Connections.of(gateway)
        self._run = run

    def get(self) -> JavaObject | str:
        with self._connections.entered():
            try:
                return "true" if self._run() else "false"
            except BaseException as error:  # also KeyboardInterrupt: the JVM waits for an answer
                return _answer_of(error)

    class Java:
        implements: ClassVar[list[str]] = ["java.util.function.Supplier"]


def _answer_of(error: BaseException) -> JavaObject | str:
    """The value that `StatementRunner` throws for an error of Python: its Java exception, or else its condition."""
    java = java_exception(error)
    if java is not None:
        return java
    condition = getattr(error, "getCondition", str)() or ""
    state = getattr(error, "getSqlState", None) or (lambda: getattr(error, "sql_state", None))
    return "\0".join((condition, state() or "", f"{kept(error)} {type(error).__name__}: {error}"))


class RewrittenScript:
    """A script in which Python runs the statements that `is_own` chooses."""

    def __init__(self, spark: "SparkSession", is_own: Callable[[JavaObject], bool], run: Run) -> None:
        self._spark = spark
        self._gateway = Gateway.of(spark)
        self._is_own = is_own
        self._run = run
        self.replaced = 0

    def of(self, node: JavaObject) -> JavaObject:
        """A node of a script with other statements. `replaced` counts them."""
        kind = class_name(node)
        if kind == "SingleStatement":
            return self._statement(node)
        names = [str(node.productElementName(i)) for i in range(node.productArity())]
        parts = [node.productElement(i) for i in range(len(names))]
        if not any(name in _PARTS for name in names):
            return node
        before = self.replaced
        parts = [self._part(part) if name in _PARTS else part for name, part in zip(names, parts, strict=True)]
        return node if self.replaced == before else self._copied(node, parts)

    def _part(self, part: JavaObject) -> JavaObject:
        """A body, or an option or a sequence of nodes."""
        kind = class_name(part)
        if kind == "CompoundBody":
            return self.of(part)
        if kind == "None$":
            return part
        if kind == "Some":
            return self._gateway.jvm.scala.Some.apply(self.of(part.get()))
        return self._gateway.seq(self.of(element) for element in Gateway.elements(part))

    def _statement(self, node: JavaObject) -> JavaObject:
        plan = node.parsedPlan()
        if is_execute_immediate(plan) and plan.targetVariables().size() == 0:
            self.replaced += 1
            return self._immediate(node, plan)
        if not self._is_own(plan):
            return node
        self.replaced += 1
        text = str(node.getText())
        return self._executor(node, lambda: self._run(text, plan))

    def _executor(self, node: JavaObject, run: Callable[[], bool]) -> JavaObject:
        arguments = self._gateway.jvm.java.util.ArrayList()  # Py4J puts Python objects into lists, not into arrays
        arguments.add(_Statement(self._gateway, run))
        kind = compiled_class(self._gateway, "StatementRunner")
        runner = kind.getConstructors()[0].newInstance(arguments.toArray())
        command = self._gateway.jvm.org.apache.spark.sql.execution.command.ExternalCommandExecutor
        return self._copied(node, [command(runner, str(node.getText()), self._gateway.scala_map({}))])

    def _immediate(self, node: JavaObject, plan: JavaObject) -> JavaObject:
        """EXECUTE IMMEDIATE; IF Python has not run it THEN Spark runs it, because its rows may be a result."""
        text = str(node.getText())
        is_for_spark = self._gateway.jvm.java.util.concurrent.atomic.AtomicBoolean()

        def run() -> bool:
            is_for_spark.set(False)
            done = self._run(text, plan)
            is_for_spark.set(not done)
            return done

        logical = self._gateway.jvm.org.apache.spark.sql.catalyst.plans.logical
        condition = logical.Project(self._gateway.seq([self._value_of(is_for_spark)]), logical.OneRowRelation())
        conditional = logical.IfElseStatement(
            self._gateway.seq([self._copied(node, [condition])]),
            self._gateway.seq([self._body([node])]),
            self._gateway.none,
        )
        return self._body([self._executor(node, run), conditional])

    def _value_of(self, flag: JavaObject) -> JavaObject:
        """The value that a flag has when the expression is computed."""
        types = self._gateway.jvm.org.apache.spark.sql.types
        of_class = types.ObjectType(self._gateway.type("java.util.concurrent.atomic.AtomicBoolean"))
        constant = self._gateway.expressions.Literal(flag, of_class)
        nothing = self._gateway.seq([])
        # (object, method, type, arguments, their types, null for null, may be null, deterministic)
        invoke = self._gateway.expressions.objects.Invoke
        value = invoke(constant, "get", types.DataTypes.BooleanType, nothing, nothing, True, False, False)
        return self._gateway.expression(self._spark, self._gateway.column(value).alias("is_for_spark"))

    def _body(self, statements: list[JavaObject]) -> JavaObject:
        """Statements without a scope of their own."""
        none, seq = self._gateway.none, self._gateway.seq
        body = self._gateway.jvm.org.apache.spark.sql.catalyst.plans.logical.CompoundBody
        return body(seq(statements), none, False, seq([]), self._gateway.jvm.scala.collection.mutable.HashMap())

    def _copied(self, node: JavaObject, parts: list[JavaObject]) -> JavaObject:
        """A copy of a node with other parts, at the same position in the text."""
        return node.makeCopy(self._gateway.array(self._gateway.jvm.java.lang.Object, parts))
