"""Where errors of the core become PySpark's errors too: around all that a user calls.

`pyspark_errors` decorates a function, or each public method of a class. tests/spark/test_exceptions.py walks over what
`tablelog.spark` exports and over the methods that `enable` replaces, and finds each of them decorated.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import TablelogError
from .exceptions import as_spark

T = TypeVar("T")

_MARK = "__pyspark_errors__"


def pyspark_errors(surface: T) -> T:
    """The function or class with errors as `exceptions` has them: the same objects, traceback and cause."""
    if not isinstance(surface, type):
        return _function(surface)  # type: ignore[arg-type, return-value]
    for name, member in list(vars(surface).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, classmethod | staticmethod):
            setattr(surface, name, type(member)(_function(member.__func__)))
        elif callable(member):
            setattr(surface, name, _function(member))
    return surface


def is_covered(function: object) -> bool:
    """Whether a function or method is decorated."""
    return hasattr(getattr(function, "__func__", function), _MARK)


def _function(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TablelogError as error:
            as_spark(error)
            raise

    setattr(call, _MARK, True)
    return call
