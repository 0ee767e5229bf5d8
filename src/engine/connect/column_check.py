"""Checks a Column of a Spark Connect session as `sql_text` checks a text: by the expression that it sends to Spark."""

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from . import sql_text
from .client import expression_of
from .functions import DETERMINISTIC, OPERATORS

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_PLAIN = frozenset({"literal", "alias", "cast", "unresolved_extract_value", "lambda_function"})
_PART = re.compile(r"`(?:[^`]|``)+`|[^.`]+")
_NAME = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*")
_PLAIN_VARIABLE = "unresolved_named_lambda_variable"


def refused(
    spark: "SparkSession", column: "Column", columns: Collection[str], qualifiers: Collection[str] = ()
) -> str | None:
    """Why a Column isn't evaluated: it isn't known to give the same result each time. `None`: it is."""
    waiting = [expression_of(spark, column)]
    while waiting:
        node = waiting.pop()
        kind = str(node.WhichOneof("expr_type"))
        reason = _reason(node, kind, columns, qualifiers)
        if reason is not None:
            return reason
        waiting.extend(_children(node, kind))
    return None


def _reason(node: Any, kind: str, columns: Collection[str], qualifiers: Collection[str]) -> str | None:
    if kind in _PLAIN or kind == _PLAIN_VARIABLE:
        return None
    if kind == "unresolved_attribute":
        attribute = node.unresolved_attribute
        if attribute.HasField("plan_id"):
            return (
                f"its column {attribute.unparsed_identifier} belongs to another DataFrame: use F.col(name), or SQL text"
            )
        quoted = _quoted(attribute.unparsed_identifier)
        if quoted is None:
            return f"{attribute.unparsed_identifier} is not the name of a column"
        return sql_text.check(quoted, columns, qualifiers).refused
    if kind == "unresolved_function":
        function = node.unresolved_function
        name = function.function_name
        known = name.lower() in DETERMINISTIC or name in OPERATORS
        if function.is_distinct or function.is_user_defined_function or not known:
            return (
                f"it calls {name}, which isn't one of Spark's functions that tablelog knows to give the same result "
                "each time"
            )
        return None
    if kind == "expression_string":
        return sql_text.check(node.expression_string.expression, columns, qualifiers).refused
    return f"it has a {kind.replace('_', ' ')}"


def _quoted(name: str) -> str | None:
    """The name of an attribute with each part in backticks. Spark divides it at dots, and at nothing else."""
    if _NAME.fullmatch(name) is None:
        return None
    parts = (part if part.startswith("`") else f"`{part}`" for part in _PART.findall(name))
    return ".".join(parts)


def _children(node: Any, kind: str) -> list[Any]:
    value = getattr(node, kind)
    if kind == "unresolved_function":
        return list(value.arguments)
    if kind in ("alias", "cast"):
        return [value.expr]
    if kind == "unresolved_extract_value":
        return [value.child, value.extraction]
    return [value.function] if kind == "lambda_function" else []
