"""Error messages of Spark without query plans and without expression ids (`key#12`)."""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from .gateway import JavaObject

if TYPE_CHECKING:
    from pyspark.errors.exceptions.captured import CapturedException

_PLAN = re.compile(r";\s*\n['!~]*[A-Z]\w*.*", re.DOTALL)
_ID = re.compile(r"(?<=[\w`)'\"])#\d+L?\b")
_LONGEST = 200


def readable(text: str) -> str:
    """A message of Spark without its query plan and without expression ids."""
    return _ID.sub("", _PLAN.sub("", text))


def said(error: BaseException) -> str:
    """`readable(str(error))`."""
    return readable(str(error))


def make_readable(error: BaseException) -> None:
    """Make the messages of an error of Spark's analysis, and of its causes, `readable`."""
    if find_spec("py4j") is None:  # a client of Spark Connect only
        return
    from pyspark.errors.exceptions.captured import CapturedException

    for cause in chain(error):
        if isinstance(cause, CapturedException) and cause._desc is not None:
            if _ID.search(cause._desc):
                _replace_details(cause)
            cause._desc = readable(cause._desc)


def _replace_details(error: "CapturedException") -> None:
    """Make the message and its parameters, which PySpark fetches from the JVM, `readable` too."""
    message = readable(error.getMessage())
    parameters = {name: readable(value) for name, value in (error.getMessageParameters() or {}).items()}
    error.getMessage = lambda: message  # type: ignore[method-assign]
    error.getMessageParameters = lambda: parameters  # type: ignore[method-assign]


def chain(error: BaseException) -> Iterator[BaseException]:
    """The error, its cause, the cause of that, and so on."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def sql_of(expression: JavaObject) -> str:
    """A resolved expression as SQL, for a message; a long one is truncated."""
    text = readable(str(expression.sql()))
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
