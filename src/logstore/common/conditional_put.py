"""What a service's reply to a request means, and what may be done about it: guarantee 4 in one place.

A backend has one pure function from a reply (status, code, exception) to an `Answer`. `settle` makes a conditional
write of it: it is sent once, and again only after an answer that the service defines as "not applied". `persist`
repeats what may be repeated: reads, listings, deletes, overwrites.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeVar

from ...errors import StorageUnavailableError, TablelogError, WriteOutcomeUnknown
from .uri import shown

_Result = TypeVar("_Result")

PATIENCE_SECONDS = 30.0
"""How long a request that was turned away is tried again."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


class Verdict(Enum):
    """What became of a request."""

    APPLIED = auto()
    EXISTS = auto()
    """Not applied, and it never will be: the name is taken."""
    NOT_APPLIED = auto()
    """Turned away by a busy service: it may be sent again."""
    AMBIGUOUS = auto()
    """It may have been applied, or still be."""
    FAILED = auto()
    """Refused for good."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A verdict with what the service said (`reason`, no secret in it) and the `error` that FAILED stands for."""

    verdict: Verdict
    reason: str = ""
    error: TablelogError | None = None

    @classmethod
    def failed(cls, error: TablelogError) -> "Answer":
        """The request was refused with `error`."""
        return cls(Verdict.FAILED, str(error), error)


def settle(path: str, attempt: Callable[[], Answer], *, sleep: Callable[[float], None] = time.sleep) -> None:
    """Make a conditional write of `attempt`, which sends it once and never raises for what the service answers.

    Raises FileExistsError (lost), WriteOutcomeUnknown, the error of a refusal, or StorageUnavailableError when the
    service still turns it away after `PATIENCE_SECONDS`.
    """
    waits = _Waits(sleep)
    while True:
        answer = attempt()
        match answer.verdict:
            case Verdict.APPLIED:
                return
            case Verdict.EXISTS:
                raise FileExistsError(shown(path))
            case Verdict.AMBIGUOUS:
                raise WriteOutcomeUnknown(shown(path), answer.reason)
            case Verdict.FAILED:
                assert answer.error is not None
                raise answer.error
            case Verdict.NOT_APPLIED:
                if not waits.another():
                    raise StorageUnavailableError(
                        f"writing {shown(path)}: the store turned the request away for {PATIENCE_SECONDS:.0f} s "
                        f"({answer.reason}); nothing was written, try again later"
                    )


def persist(
    request: Callable[[], _Result],
    passing: Callable[[Exception], bool],
    *,
    attempts: int = 4,
    sleep: Callable[[float], None] = time.sleep,
) -> _Result:
    """The result of a request that may be repeated; an error that is `passing` is tried again, `attempts` in all."""
    waits = _Waits(sleep)
    for _ in range(attempts - 1):
        try:
            return request()
        except Exception as error:
            if not passing(error) or not waits.another():
                raise
    return request()


class _Waits:
    """Pauses that double, with jitter, so that those who collided don't meet again; their sum is bounded."""

    def __init__(self, sleep: Callable[[float], None]) -> None:
        self._sleep = sleep
        self._pause = _FIRST_PAUSE
        self._left = PATIENCE_SECONDS

    def another(self) -> bool:
        """Pause once more; False: patience is at its end."""
        if self._left <= 0:
            return False
        pause = self._pause * random.uniform(0.5, 1.0)
        self._sleep(pause)
        self._left -= pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        return True
