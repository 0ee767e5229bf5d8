"""Enables the sessions that a program makes itself: dbt, scripts that can't be changed, notebooks' builders.

Nothing is installed: only the process that calls `enabled_sessions`, or that `python -m tablelog.spark` started, is
affected, until the `with` block or the process ends.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from ...engine.jvm.registry import patching
from ..boundary import pyspark_errors, replacing
from .enable import disable, enable
from .enabled_sessions import is_enabled

Method: TypeAlias = Callable[..., Any]

_METHODS = ("SparkSession.Builder.getOrCreate", "SparkSession.newSession")


class _Sessions:
    """The sessions that were enabled, to be disabled in the end."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._enabled: list[SparkSession] = []

    def enabling(self, original: Method) -> Method:
        """The replacement of a method that returns a session."""

        def method(self_: Any, *args: Any, **kwargs: Any) -> Any:
            spark = original(self_, *args, **kwargs)
            with self._lock:
                if not is_enabled(spark):
                    self._enabled.append(enable(spark))
            return spark

        return replacing(method)

    def disable(self) -> None:
        """Undo `enable` for each session."""
        with self._lock:
            while self._enabled:
                disable(self._enabled.pop())


@pyspark_errors
@contextmanager
def enabled_sessions() -> Iterator[None]:
    """Enable each session that code within a `with` block gets from `SparkSession.builder` or from `newSession`.

    At the end of the block these sessions are disabled. A session that was enabled before stays enabled.

    Raises:
        UnsupportedEnvironmentError: from the code that gets a session, where `enable` raises it.
    """
    sessions = _Sessions()
    applied = patching.apply(dict.fromkeys(_METHODS, sessions.enabling))
    try:
        yield
    finally:
        patching.remove(applied)
        sessions.disable()
