"""What a service's reply to a request means and what to do then: the only implementation of guarantee 4.

Each backend has one pure function from a reply (status, code, exception) to an `Answer`. `settle` runs a conditional
write: it is sent once, and again only after an answer that the service defines as "not applied". `persist` repeats
requests that may be repeated: reads, listings, deletes, overwrites.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeVar

from ...errors import StorageUnavailableError, TablelogError, WriteOutcomeUnknown
from .retry_policy import RetryPolicy
from .uri import shown

_Result = TypeVar("_Result")


class Verdict(Enum):
    """The outcome of a request."""

    APPLIED = auto()
    EXISTS = auto()
    """Not applied, and it never will be: the name exists."""
    NOT_APPLIED = auto()
    """A busy service rejected it: it may be sent again."""
    AMBIGUOUS = auto()
    """It may have been applied, or may still be applied."""
    FAILED = auto()
    """Rejected; repeating it is useless."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A verdict, the service's message without secrets (`reason`), and the `error` to raise for FAILED."""

    verdict: Verdict
    reason: str = ""
    error: TablelogError | None = None

    @classmethod
    def failed(cls, error: TablelogError) -> "Answer":
        """The request was rejected; `error` is to be raised."""
        return cls(Verdict.FAILED, str(error), error)


def settle(path: str, attempt: Callable[[], Answer], retries: RetryPolicy) -> None:
    """Run a conditional write. `attempt` sends it once and returns an `Answer` instead of raising an error.

    Raises:
        FileExistsError: The path exists.
        WriteOutcomeUnknown: The answer was ambiguous.
        StorageUnavailableError: The service still rejected it after `retries.patience_seconds`.
        TablelogError: The error of a FAILED answer.
    """
    pauses = retries.pauses()
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
                raise answer.error.with_context(path=shown(path))
            case Verdict.NOT_APPLIED:
                if not pauses.another():
                    raise StorageUnavailableError(
                        f"writing {shown(path)}: the store rejected the request for {retries.patience_seconds:.0f} s "
                        f"({answer.reason}); nothing was written, try again later",
                        path=shown(path),
                    )


def persist(
    request: Callable[[], _Result],
    passing: Callable[[Exception], bool],
    busy: Callable[[Exception], bool],
    retries: RetryPolicy,
) -> _Result:
    """The result of a request that may be repeated: after `passing` errors it is tried again, by `retries`.

    Of them, `busy` ones are replies of a service that has too much to do: they come at once, so more of them are
    tried again than of errors whose cause may be a time-out.
    """
    pauses, others = retries.pauses(), 0
    began = retries.clock.monotonic()
    for _ in range(max(retries.attempts, retries.attempts_if_busy) - 1):
        try:
            return request()
        except Exception as error:
            others += not busy(error)
            if not passing(error) or others >= retries.attempts:
                raise
            if retries.clock.monotonic() - began > retries.last_attempt_seconds or not pauses.another():
                raise
    return request()
