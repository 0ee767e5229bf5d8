"""What Spark says of an error, without the plan and the ids of expressions (`key#12`) that mean nothing to a user."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .gateway import JavaObject

if TYPE_CHECKING:
    from pyspark.errors.exceptions.captured import CapturedException

_PLAN = re.compile(r";\s*\n['!~]*[A-Z]\w*.*", re.DOTALL)
_ID = re.compile(r"(?<=[\w`)'\"])#\d+L?\b")
_LONGEST = 200


def readable(text: str) -> str:
    """A message of Spark without the plan that follows it, and without ids of expressions."""
    return _ID.sub("", _PLAN.sub("", text))


def said(error: BaseException) -> str:
    """`str(error)`, readable."""
    return readable(str(error))


def make_readable(error: BaseException) -> None:
    """Have an error of Spark's analysis, and those that caused it, say what is `readable`."""
    from pyspark.errors.exceptions.captured import CapturedException

    for one in chain(error):
        if isinstance(one, CapturedException) and one._desc is not None:
            if _ID.search(one._desc):
                _replace_details(one)
            one._desc = readable(one._desc)


def _replace_details(error: "CapturedException") -> None:
    """Have the message and its parameters, which PySpark asks the JVM for, be readable too."""
    message = readable(error.getMessage())
    parameters = {name: readable(value) for name, value in (error.getMessageParameters() or {}).items()}
    error.getMessage = lambda: message  # type: ignore[method-assign]
    error.getMessageParameters = lambda: parameters  # type: ignore[method-assign]


def chain(error: BaseException) -> Iterator[BaseException]:
    """The error, what caused it, and so on."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def sql_of(expression: JavaObject) -> str:
    """A resolved expression as SQL, for a message; a long one is cut."""
    text = readable(str(expression.sql()))
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
