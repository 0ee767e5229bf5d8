"""Registration of checks, and helper functions for checks."""

import re
import time
import urllib.parse
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from tablelog.logstore import FileStatus

from ..failures import NotEstablishedError, broken, require
from ..harness.interleave import Interleaving, Outcome, all_interleavings
from ..model import Check, Context, Level

is_commit_name = re.compile(r"[0-9]{20}\.json").fullmatch

_MOST_OF_IT = 0.6
"""The share of the remaining time that a loop of a check may use."""

LEAST_STEPS = 5
"""A check that stops a call at its steps needs at least this many of them, or all, for a result."""

registered: list[Check] = []
_Run = Callable[[Context], None]


def check(number: int, guarantee: int, level: Level = Level.QUICK, *, lasts: bool = False) -> Callable[[_Run], _Run]:
    """Register a function as check `number`. Its name is the check's name, the first line of its docstring the summary.

    `guarantee` is the number of the guarantee of `LogStore` that it tests, or 0 for the rest of the interface. `lasts`:
    see `Check`.
    """

    def register(run: _Run) -> _Run:
        if any(other.name == run.__name__ for other in registered):
            raise ValueError(f"two checks are called {run.__name__}")
        summary = (run.__doc__ or "").partition("\n")[0]
        registered.append(Check(number, run.__name__, guarantee, summary, run, level, lasts))
        return run

    return register


def commit(root: str, version: int) -> str:
    """The path of a commit below `root`, with Delta's name."""
    return f"{root}/_delta_log/{version:020}.json"


def below(root: str, name: str) -> str:
    """The path of a log file of any name."""
    return f"{root}/_delta_log/{urllib.parse.quote(name, safe='')}"


def names(listing: Iterator[FileStatus]) -> list[str]:
    """The decoded file names of a listing."""
    return [urllib.parse.unquote(status.path.rpartition("/")[2]) for status in listing]


def commit_names(start: int, end: int) -> list[str]:
    """The names of the commits from `start` to before `end`."""
    return [f"{version:020}.json" for version in range(start, end)]


def mark(number: int) -> bytes:
    """The data of writer `number`: different in content and size for each writer."""
    return f"writer {number}\n".encode() * (number + 1)


_FIRST_VERSIONS = (0, 10_000, 2**31, 10**10, 2**53, 2**63 - 1 - 3 * 10**9)


def varied_version(number: int) -> int:
    """The version for round `number` of a race: small, or beyond a size at which software often fails.

    These are more than four digits, 31 bits, ten digits, 53 bits, almost 63 bits. Different rounds have different
    versions. The sizes of neighbouring rounds are independent, so that rounds at any distance have all of them.
    """
    return _FIRST_VERSIONS[zlib.crc32(b"%d" % number) % len(_FIRST_VERSIONS)] + number


def saw_enough(seen: int, least: int, what: str) -> None:
    """Raise `NotEstablishedError` if a check observed less than `least` of `what` because its time was too short."""
    if seen < least:
        raise NotEstablishedError(
            f"the time was too short: {seen} {what}, and at least {least} are needed; increase it with --patience"
        )


def enough(context: Context) -> float:
    """The time (`time.monotonic()`, well before the deadline) until which a loop of a check may run."""
    seconds: float = context.choose(4.0, 20.0, 120.0)
    return time.monotonic() + max(1.0, min(context.time_left * _MOST_OF_IT, seconds))


def latest_end(context: Context) -> float:
    """The time (`time.monotonic()`, before the deadline) at which a loop must end even if it hasn't seen enough."""
    return time.monotonic() + context.time_left * _MOST_OF_IT


def interleavings(
    context: Context,
    held: Callable[[int], Any],
    between: Callable[[int], Any],
    prepare: Callable[[int], Any] = lambda _case: None,
    *,
    cases: int | None = None,
) -> Iterator[Interleaving]:
    """`all_interleavings`, limited by the level (or `cases`) and the time; their number is added to the evidence.

    Raises `NotEstablishedError` at the end if the call was stopped at too few of its steps, or only at early ones.
    """
    tally = context.evidence
    most = cases or context.choose(300, 600, 5000)
    stopped_at, steps, out_of_time = [], 0, False
    for case in all_interleavings(
        held,
        between,
        prepare,
        max_cases=most,
        seconds=enough(context) - time.monotonic(),
        fewest=min(most, context.choose(8, 40, 200)),
        longest=context.time_left * _MOST_OF_IT,
    ):
        tally["steps held at"] = tally.get("steps held at", 0) + 1
        tally["steps in the call"] = max(tally.get("steps in the call", 0), case.steps)
        tally["calls that waited for the held one"] = tally.get("calls that waited for the held one", 0) + (
            case.between_waited
        )
        context.timeline[:] = case.timeline
        stopped_at.append(case.step)
        steps, out_of_time = max(steps, case.steps), case.out_of_time
        yield case
    context.timeline.clear()
    saw_enough(len(stopped_at), max(1, min(LEAST_STEPS, steps)), f"of {steps} steps of a call were tried")
    # A call may have fewer steps than when they were counted. Then it was stopped at all its steps.
    if out_of_time and stopped_at[-1] < steps // 2:
        raise NotEstablishedError(
            f"the time was too short: of {steps} steps of a call only those up to number {stopped_at[-1]} were tried; "
            "increase it with --patience"
        )


def at(case: Interleaving) -> str:
    """The step at which the first call of an interleaving was stopped, for a message."""
    return f"when the first call was stopped before step {case.step}, {case.where}"


def expect(kind: type[BaseException], end: Outcome, doing: str) -> None:
    """Require that the call ended with an error of this kind."""
    if end.error is None:
        broken(f"{doing} succeeded, and must raise {kind.__name__}")
    if not isinstance(end.error, kind):
        broken(f"{doing} raised {end.error!r}, and must raise {kind.__name__}")


def value_of(end: Outcome, doing: str, case: Interleaving) -> Any:
    """The result of a call that must not fail."""
    require(end.error is None, f"{doing} raised {end.error!r} {at(case)}")
    return end.value
