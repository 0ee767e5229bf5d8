"""Conditions and values that a user gives a command, checked without Spark's parser and analyzer."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from ...errors import UnsupportedFeatureError
from . import column_check, sql_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_LONGEST = 200


def checked(frame: "DataFrame", expression: "str | Column", what: str, qualifiers: Collection[str] = ()) -> "Column":
    """The expression as a Column over frames with the columns of `frame`, which it may qualify by `qualifiers`.

    A command evaluates it more than once, so UnsupportedFeatureError is raised unless it is known to give the same
    result each time. `what` names it in the message.
    """
    return checked_over(frame.sparkSession, expression, what, frame.columns, qualifiers)


def checked_over(
    spark: "SparkSession",
    expression: "str | Column",
    what: str,
    columns: Collection[str],
    qualifiers: Collection[str] = (),
) -> "Column":
    """`checked`, by the names of the columns."""
    from pyspark.sql import functions as F

    if isinstance(expression, str):
        reason = sql_text.check(expression, columns, qualifiers).refused
        column = F.expr(expression)
    else:
        reason, column = column_check.refused(spark, expression, columns, qualifiers), expression
    if reason is not None:
        raise UnsupportedFeatureError(
            f"{what} {text_of(expression)} is not supported on Spark Connect: {reason}. A command evaluates it more "
            "than once. Write it with columns, literals, operators and Spark's deterministic functions, or use a "
            "classic session; nothing was changed",
            ("expressions on Spark Connect",),
        )
    return column


def text_of(expression: "str | Column") -> str:
    """An expression as text for the history and for messages."""
    text = expression if isinstance(expression, str) else str(expression).removeprefix("Column<'").removesuffix("'>")
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
