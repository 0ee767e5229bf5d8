"""Keeps PySpark from logging an error that a command raises.

PySpark writes each error that has a place in a text or a program to standard error, as a line of JSON. An error of a
command says all of that itself, and a command may handle the error: then the line would be about nothing.
"""

import functools
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pyspark.logger import PySparkLogger

_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")

_in_command: ContextVar[bool] = ContextVar("tablelog_in_command", default=False)


@contextmanager
def errors_not_logged() -> Iterator[None]:
    """PySpark logs no errors of this thread while the block runs. Other threads and other loggers aren't changed."""
    _install()
    token = _in_command.set(True)
    try:
        yield
    finally:
        _in_command.reset(token)


def _is_wanted(_: logging.LogRecord) -> bool:
    return not _in_command.get()


@functools.cache
def _install() -> None:
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_is_wanted)
