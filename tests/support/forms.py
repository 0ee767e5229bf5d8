"""The two forms of a condition or a value, SQL text and Column: each text that a test gives is resolved in both.

`compared` wraps the places where the engine resolves what a user gave. A text is resolved as it is and as an unresolved
Column; the two must have one meaning, or be refused by one kind of error. No Spark job is run for it, so that all tests
of commands can do it.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tablelog.engine.read import scan
from tablelog.engine.sql import assigned_values as assigned
from tablelog.engine.sql.resolution import Scope


def asplain(text: str) -> str:
    """SQL text as the user wrote it."""
    return text


def as_column(text: str) -> Column:
    """The same as a Column, of which nothing is resolved."""
    return F.expr(text)


def compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each condition and value resolved in both forms, until the end of the test."""
    split, resolved, condition, values = scan.split_condition, assigned.resolved, Scope.condition, Scope.values

    def both_split(frame: DataFrame, given: "str | Column", mapping: Any, alias: str | None = None) -> Any:
        assert alias is None, "it is for Spark Connect"
        return _agreeing([given], lambda form: split(frame, form(given), mapping), lambda one: (one.sql, one.predicate))

    def both_resolved(frame: DataFrame, given: "Sequence[str | Column]", alias: str | None = None) -> Any:
        assert alias is None, "it is for Spark Connect"
        return _agreeing(
            given,
            lambda form: resolved(frame, [form(one) for one in given]),
            lambda one: [str(value._expression) for value in one],
        )

    def both_condition(scope: Scope, given: "str | Column", over: DataFrame, what: str) -> Any:
        return _agreeing([given], lambda form: condition(scope, form(given), over, what), lambda one: one.java)

    def both_values(scope: Scope, given: "Sequence[str | Column]", over: DataFrame, what: str) -> Any:
        def meaning(found: list[Column]) -> list[str]:
            return [str(one._jc) for one in found]

        return _agreeing(given, lambda form: values(scope, [form(one) for one in given], over, what), meaning)

    monkeypatch.setattr(scan, "split_condition", both_split)
    monkeypatch.setattr(assigned, "resolved", both_resolved)
    monkeypatch.setattr(Scope, "condition", both_condition)
    monkeypatch.setattr(Scope, "values", both_values)


def _agreeing(given: Sequence[Any], resolve: Callable[[Any], Any], meaning: Callable[[Any], Any]) -> Any:
    """What `resolve` makes of what was given; the same as Columns has to have the same meaning, or the same error."""
    if not any(isinstance(one, str) for one in given):
        return resolve(lambda one: one)
    by_column: Exception | str
    try:
        by_column = plain(meaning(resolve(lambda one: as_column(one) if isinstance(one, str) else one)))
    except Exception as error:
        by_column = error
    try:
        found = resolve(lambda one: one)
    except Exception as error:
        if type(by_column) is not type(error):
            raise AssertionError(f"as text {given} is refused by {error!r}, as a Column: {by_column!r}") from error
        raise
    assert by_column == plain(meaning(found)), given
    return found


def plain(meaning: Any) -> str:
    """A meaning to compare, as text: without ids of expressions, names of lambda variables and the present time."""
    return re.sub(r"#\d+L?|(?<=lambda )\w+|\d{15,}|\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?", "", str(meaning))
