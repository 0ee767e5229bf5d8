"""Where errors of the core become PySpark's errors too: around all that a user calls.

`pyspark_errors` decorates a function, or each public method of a class. tests/spark/test_exceptions.py walks over what
`tablelog.spark` exports and over the methods that `enable` replaces, and finds each of them decorated.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from pyspark.errors import PySparkException

from ..engine.jvm.messages import make_readable
from ..errors import TablelogError
from .exceptions import as_spark

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

_MARK = "__pyspark_errors__"


def pyspark_errors(function: Callable[P, R]) -> Callable[P, R]:
    """The function with errors as `exceptions` has them, the same objects; Spark's own show no plans."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TablelogError as error:
            as_spark(error)
            make_readable(error)
            raise
        except PySparkException as error:
            make_readable(error)
            raise

    setattr(call, _MARK, True)
    return call


def replacing(method: Callable[P, R]) -> Callable[P, R]:
    """A method that takes the place of PySpark's, the same way; errors of Spark alone stay as they are."""

    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except TablelogError as error:
            as_spark(error)
            raise

    setattr(call, _MARK, True)
    return call


def with_pyspark_errors(surface: C) -> C:
    """The class with each public method decorated by `pyspark_errors`."""
    for name, member in list(vars(surface).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, classmethod | staticmethod):
            setattr(surface, name, type(member)(pyspark_errors(member.__func__)))
        elif callable(member):
            setattr(surface, name, pyspark_errors(member))
    return surface


def is_covered(function: object) -> bool:
    """Whether a function or method is decorated."""
    return hasattr(getattr(function, "__func__", function), _MARK)
