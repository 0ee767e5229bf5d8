"""Decides which SQL expressions of a table's metadata the session evaluates.

CHECK constraints, invariants, generation expressions and default values are stored in the log by any writer of the
table, and run with the permissions of the next writer. So they may call Spark's own functions over one row, but nothing
that runs other code or reads other data. The check has two steps. `of_text` checks the parsed expression before Spark
resolves it, because Spark reads tables and evaluates constants during resolution. `of_resolved` checks the resolved
expression before Spark plans it, because the optimizer evaluates functions (docs/decisions/0049).
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...settings.declarations import TRUSTED_FUNCTIONS
from ..jvm import catalyst
from ..jvm.connection import settings
from ..jvm.connection.gateway import Gateway
from ..jvm.registry.classes import ANALYSIS, EXPRESSIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The parser's classes for names; Spark resolves them later.
_UNRESOLVED = frozenset(
    f"{ANALYSIS}{name}"
    for name in ("UnresolvedAttribute", "UnresolvedExtractValue", "UnresolvedFunction", "UnresolvedStar")
)
_VARIABLE = "VariableReference"
# Functions of Spark that run other code or read files, by their Catalyst classes.
_DANGEROUS = {
    "CallMethodViaReflection": "runs any method of the JVM",
    "TryReflect": "runs any method of the JVM",
    "FromAvro": "loads other code",
    "ToAvro": "loads other code",
    "SchemaOfAvro": "loads other code",
    "FromProtobuf": "reads files",
    "ToProtobuf": "reads files",
    "XmlToStructs": "reads files",
    "SchemaOfXml": "reads files",
    _VARIABLE: "is a variable of the session",
}
_FUNCTIONS_OF_USERS = frozenset(
    "ScalaUDF PythonUDF PythonUDAF HiveSimpleUDF HiveGenericUDF HiveUDAFFunction ApplyFunctionExpression "
    "ScalaAggregator ScalaUDAF SQLFunctionExpression SQLScalarFunction".split()
)
QUERY = "it reads more than one row, by a subquery"
NOT_DETERMINISTIC = "it is not deterministic"


@dataclass(frozen=True)
class Text:
    """The result of checking the text of an expression. `refused`: why the session doesn't evaluate it, or `None`.

    `trusted`: the expression calls a function that the session trusts by name.
    """

    refused: str | None
    trusted: bool = False


def of_text(spark: "SparkSession", sql: str) -> Text:
    """Check the text of an expression. Nothing is resolved or executed.

    Raises Spark's ParseException for invalid SQL.
    """
    trusted, calls_trusted = trusted_functions(spark), False
    gateway = Gateway.of(spark)
    query = gateway.type(f"{EXPRESSIONS}PlanExpression")
    waiting = [catalyst.parsed_expression(spark, sql)]
    while waiting:
        node = waiting.pop()
        kind = str(node.getClass().getName())
        if query.isInstance(node):
            return Text(QUERY)
        if kind not in _UNRESOLVED and not kind.startswith(EXPRESSIONS):
            return Text(f"it has a {kind.rpartition('.')[2]}, which is not a function over one row")
        if kind.endswith(".UnresolvedFunction"):
            name = tuple(str(part).lower() for part in Gateway.elements(node.nameParts()))
            if ".".join(name) in trusted:
                calls_trusted = True
            elif (reason := _untrusted_function(spark, name)) is not None:
                return Text(reason)
        waiting += Gateway.elements(node.children())
    return Text(None, calls_trusted)


def of_resolved(classes: Collection[str], *, deterministic: bool, has_subquery: bool, trusted: bool) -> str | None:
    """Why the session doesn't evaluate a resolved expression with nodes of these classes; `None` if it does.

    `trusted`: the text calls a function that the session trusts, which may have any class and be nondeterministic.
    """
    if has_subquery:
        return QUERY
    if trusted:
        return f"it has a {_VARIABLE}" if any(name.endswith(f".{_VARIABLE}") for name in classes) else None
    for name in sorted(classes):
        kind = name.rpartition(".")[2]
        if kind in _DANGEROUS:
            return f"it has a {kind}, which {_DANGEROUS[kind]}"
        if kind in _FUNCTIONS_OF_USERS or not name.startswith(EXPRESSIONS):
            return f"it has a {kind}, which is a user-defined function, not Spark's own"
    return None if deterministic else NOT_DETERMINISTIC


def _untrusted_function(spark: "SparkSession", name: tuple[str, ...]) -> str | None:
    shown = ".".join(name)
    built_in = catalyst.built_in_functions(Gateway.of(spark))
    if name[:-1] not in ((), ("builtin",), ("system", "builtin")) or name[-1] not in built_in:
        return f"it calls {shown}, a user-defined function, not Spark's own"
    # A temporary function of the session may have replaced one of Spark's.
    info = catalyst.function_info(spark, name[-1])
    kind = str(info.getClassName())
    if not kind.startswith(EXPRESSIONS) or str(info.getSource()) != "built-in":
        return f"it calls {shown}, which in this session is a user-defined function, not Spark's own"
    reason = _DANGEROUS.get(kind.rpartition(".")[2])
    return None if reason is None else f"it calls {shown}, which {reason}"


def trusted_functions(spark: "SparkSession") -> frozenset[str]:
    """The functions that the session trusts by name, in lower case."""
    names = settings.of(spark, TRUSTED_FUNCTIONS)
    return frozenset(name for name in re.split(r"[\s,]+", names.lower()) if name)
