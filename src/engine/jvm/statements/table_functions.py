"""Table functions in a session's own registry: Python gives the plan that Spark puts in place of a call."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from .. import plans
from ..connection.callbacks import Connections, carried
from ..connection.gateway import Gateway, JavaObject
from ..connection.sessions import session_state
from .parsing import literal_of_expression

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TableFunction: TypeAlias = Callable[[Sequence[JavaObject]], JavaObject]
"""Gives the analyzed plan of a call, by its resolved arguments (expressions of Catalyst)."""


class _Builder:
    """Implements Scala's `Function1`, which Spark's analyzer calls with the arguments of a table function."""

    def __init__(self, gateway: Gateway, function: TableFunction) -> None:
        self._connections = Connections.of(gateway)
        self._function = function

    @carried
    def apply(self, arguments: JavaObject) -> JavaObject:
        with self._connections.entered():
            return self._function(Gateway.elements(arguments))

    @carried
    def hashCode(self) -> int:
        return id(self) & 0x7FFFFFFF

    @carried
    def equals(self, other: JavaObject) -> bool:
        return other is not None and other.toString() == self.toString()

    @carried
    def toString(self) -> str:
        return f"tablelog[table function, {id(self):x}]"

    class Java:
        implements: ClassVar[list[str]] = ["scala.Function1"]


class InstalledFunctions:
    """Table functions of one session, for `remove`. Names are case-insensitive."""

    def __init__(self, spark: "SparkSession", functions: Mapping[str, tuple[str, TableFunction]]) -> None:
        """Register the functions; `functions`: the usage, which DESCRIBE FUNCTION shows, and the function."""
        gateway = Gateway.of(spark)
        catalyst = gateway.jvm.org.apache.spark.sql.catalyst
        # Since Spark 4.2 Spark's own functions are in a namespace; a stored view may use only functions of it.
        own = _own_functions(gateway).apply(0)
        self._registry = session_state(spark).tableFunctionRegistry()
        self._names = [catalyst.FunctionIdentifier(name, own.database(), own.catalog()) for name in functions]
        for name, (word, (usage, function)) in zip(self._names, functions.items(), strict=True):
            info = catalyst.expressions.ExpressionInfo("tablelog", None, word, usage, "")
            self._registry.registerFunction(name, info, _Builder(gateway, function))

    def remove(self) -> None:
        """Remove the functions from the session."""
        for name in self._names:
            self._registry.dropFunction(name)


def _own_functions(gateway: Gateway) -> JavaObject:
    """The names of Spark's own table functions."""
    registry = getattr(getattr(gateway.jvm, "org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry$"), "MODULE$")
    return registry.builtin().listFunction()


def namespace_of_view(gateway: Gateway) -> list[str]:
    """The catalog and the namespace of the view whose text Spark's analyzer resolves now; empty outside of views.

    It is the analyzer of the calling thread, so it is for calls from the JVM.
    """
    context = gateway.jvm.org.apache.spark.sql.catalyst.analysis.AnalysisContext.get()
    return [str(part) for part in Gateway.elements(context.catalogAndNamespace())]


def _is_constant(gateway: Gateway, expression: JavaObject) -> bool:
    """Whether a resolved expression has one value for a statement.

    Spark's `foldable` is false for some of these, such as `to_timestamp`.
    """
    if not expression.deterministic() or not expression.references().isEmpty():
        return False
    return not expression.containsPattern(gateway.jvm.org.apache.spark.sql.catalyst.trees.TreePattern.OUTER_REFERENCE())


def constant(spark: "SparkSession", expression: JavaObject) -> tuple[str, str] | None:
    """The type, such as "string" or "int", and the text of a constant's value; None if it isn't constant.

    A timestamp's value is in microseconds since the epoch. NULL has the type "void". Raises what Spark raises if the
    expression has no value, such as a division by zero.
    """
    literal = literal_of_expression(expression)
    gateway = Gateway.of(spark)
    if literal is not None or not _is_constant(gateway, expression):
        return literal
    column = gateway.column(expression)
    kind = str(expression.dataType().simpleString())
    if kind == "timestamp":
        from pyspark.sql import functions as F

        column = F.unix_micros(column)
    one_row = gateway.jvm.org.apache.spark.sql.catalyst.plans.logical.OneRowRelation()
    row = plans.frame_of(spark, one_row).select(column).first()
    return ("void", "NULL") if row is None or row[0] is None else (kind, str(row[0]))
