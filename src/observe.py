"""What a program can observe: the fields of log records, and a hook for counters and timings.

`set_observer` installs an object that receives counters and timings. Without one nothing is measured. Decision 71.
"""

import logging
from types import TracebackType
from typing import Final, Literal, Protocol, TypeAlias, TypedDict

from .clock import Clock

logger = logging.getLogger(__name__)

Counter: TypeAlias = Literal["commit.conflicts", "retries"]
"""The name of a counter."""
Timing: TypeAlias = Literal["commit.attempt", "refresh", "checkpoint"]
"""The name of a timing."""

COUNTERS: Final[dict[Counter, str]] = {
    "commit.conflicts": "Commits that a concurrent commit made impossible.",
    "retries": "Commands that `tablelog.retrying` runs again.",
}
"""The names of all counters, and what they count."""
TIMINGS: Final[dict[Timing, str]] = {
    "commit.attempt": "The time of one attempt to write one version.",
    "refresh": "The time to find the newest version, and to read the commits since the last one.",
    "checkpoint": "The time to write a checkpoint.",
}
"""The names of all timings, and what they measure."""


class Fields(TypedDict, total=False):
    """The structured fields of a log record, a counter or a timing. Fields that don't apply are absent."""

    table: str
    version: int
    attempt: int
    store: str
    outcome: str


class Observer(Protocol):
    """Receives counters and timings. Its methods run in the thread that commits or reads, so they should be fast."""

    def counted(self, name: Counter, value: int, fields: Fields) -> None:
        """Something happened `value` times."""

    def timed(self, name: Timing, seconds: float, fields: Fields) -> None:
        """Something took this time."""


_observer: Observer | None = None


def set_observer(observer: Observer | None) -> Observer | None:
    """Install the observer of this process.

    Args:
        observer: Receives all counters and timings from now on; `None`: nothing is measured.

    Returns:
        The observer that was installed before.
    """
    global _observer
    previous, _observer = _observer, observer
    return previous


def fields(
    table: str | None = None,
    *,
    version: int | None = None,
    attempt: int | None = None,
    store: object | None = None,
    outcome: str | None = None,
) -> Fields:
    """The fields that apply, as `extra` of a log record. Of a store, the field has the name of its class."""
    chosen = Fields()
    if table is not None:
        chosen["table"] = table
    if version is not None:
        chosen["version"] = version
    if attempt is not None:
        chosen["attempt"] = attempt
    if store is not None:
        chosen["store"] = type(store).__name__
    if outcome is not None:
        chosen["outcome"] = outcome
    return chosen


def counted(name: Counter, value: int, fields: Fields) -> None:
    """Report a counter to the observer. An error of the observer is logged, because a commit must not fail by it."""
    if _observer is not None:
        try:
            _observer.counted(name, value, fields)
        except Exception:
            logger.warning("the observer failed to count %s", name, exc_info=True)


def timed(name: Timing, seconds: float, fields: Fields) -> None:
    """Report a timing to the observer, as `counted` does."""
    if _observer is not None:
        try:
            _observer.timed(name, seconds, fields)
        except Exception:
            logger.warning("the observer failed to record the time of %s", name, exc_info=True)


class Stopwatch:
    """Times a `with` block if there is an observer. An error in the block gives the outcome `failed`."""

    __slots__ = ("_clock", "_name", "_started", "fields")

    def __init__(self, name: Timing, clock: Clock, fields: Fields) -> None:
        """The block may add to `fields`."""
        self._name: Timing = name
        self._clock = clock
        self._started: float | None = None
        self.fields = fields

    def __enter__(self) -> "Stopwatch":
        if _observer is not None:
            self._started = self._clock.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._started is not None:
            if kind is not None:
                self.fields["outcome"] = "failed"
            timed(self._name, self._clock.monotonic() - self._started, self.fields)
