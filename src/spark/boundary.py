"""Decorators that convert errors of the core to PySpark's error classes, for all public functions.

`pyspark_errors` decorates a function, `with_pyspark_errors` each public method of a class. The tests check that all
exports of `tablelog.spark`, and the methods that `enable` replaces, are decorated (tests/spark/test_exceptions.py).
"""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from pyspark.errors import PySparkException

from ..engine.jvm.connection.messages import make_readable
from ..errors import TablelogError
from .error_log import errors_not_logged
from .exceptions import as_spark

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

_MARK = "__pyspark_errors__"


def pyspark_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates a function: its errors get PySpark's classes in place, and Spark's own errors are shortened."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with errors_not_logged():
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
    """Decorates a replacement of a PySpark method: tablelog's errors get PySpark's classes, Spark's are unchanged."""

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
    """Decorates each public method of a class by `pyspark_errors`."""
    for name, member in list(vars(surface).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, classmethod | staticmethod):
            setattr(surface, name, type(member)(pyspark_errors(member.__func__)))
        elif callable(member):
            setattr(surface, name, pyspark_errors(member))
    return surface


def is_covered(function: object) -> bool:
    """Whether a function or method is decorated by this module."""
    return hasattr(getattr(function, "__func__", function), _MARK)
