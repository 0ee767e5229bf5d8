"""Forced interleavings: stop one call at each of its steps in turn, and run something else in between.

Two threads that race by chance overlap in the critical microseconds once in a hundred runs, or never. Here a call runs
in a thread that is stopped at its k-th step, for each k, while another call runs from start to end. So a store that
checks and then acts is detected every time. A step is a line or a return of Python code, or the return of a C function,
which includes every system call.

Limits: steps in C within one call can't be separated (an Arrow or Rust store is one step), and neither can work in the
store's own threads. If the stopped call holds a lock, the other call waits; the stop then ends after a while, so a
correct store passes in any case. Steps of `threading` itself don't count: a thread stopped there may hold the lock that
every start of a thread needs, and nothing in another process would ever wait for it.
"""

import math
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from types import FrameType
from typing import Any

from tablelog.clock import Clock, SystemClock

_LEAST_PATIENCE_SECONDS = 0.02
_PATIENCE_FACTOR = 20
_PATIENCE_SECONDS = 1.0
_GIVE_UP_SECONDS = 30.0
_STEPS_TOLD = 6
_CLOCK = SystemClock()
_NO_STEPS = frozenset({__file__, threading.__file__})


@dataclass(frozen=True)
class Outcome:
    """How a call ended: with `error`, or successfully with `value`."""

    value: Any = None
    error: BaseException | None = None


def outcome(call: Callable[[], Any]) -> Outcome:
    """Run `call` and return how it ended."""
    try:
        return Outcome(value=call())
    except BaseException as error:
        return Outcome(error=error)


class _Steps:
    """Counts the steps of the current thread, and calls `act` in it before step `hold_at`."""

    def __init__(self, hold_at: int | None, act: Callable[[str], None] = lambda _where: None) -> None:
        self.count = 0
        self.where = ""
        self._hold_at = hold_at
        self._act = act
        self._busy = False
        self._last: deque[str] = deque(maxlen=_STEPS_TOLD)

    @property
    def last(self) -> tuple[str, ...]:
        """The steps up to the one before which it was stopped."""
        return tuple(self._last)

    def install(self) -> None:
        sys.settrace(self._trace)
        sys.setprofile(self._profile)

    @staticmethod
    def remove() -> None:
        sys.setprofile(None)
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _arg: Any) -> Any:
        if event in {"line", "return"}:
            self._step(frame, event)
        return self._trace

    def _profile(self, frame: FrameType, event: str, arg: Any) -> None:
        if event in {"c_return", "c_exception"} and getattr(arg, "__self__", None) is not sys:
            self._step(frame, f"{event} {getattr(arg, '__name__', arg)}")

    def _step(self, frame: FrameType, event: str) -> None:
        if self._busy or frame.f_code.co_filename in _NO_STEPS:
            return
        if self._hold_at is not None and self._hold_at - _STEPS_TOLD < self.count <= self._hold_at:
            # Reports are shared with others, so the directories of this machine are left out.
            file = "/".join(frame.f_code.co_filename.split("/")[-2:])
            self._last.append(f"{file}:{frame.f_lineno} ({event})")
        if self.count == self._hold_at:
            self._busy = True
            self.where = self._last[-1]
            self._act(self.where)
            self._busy = False
        self.count += 1


def _run(call: Callable[[], Any], steps: _Steps) -> Outcome:
    steps.install()
    try:
        return outcome(call)
    finally:
        steps.remove()


def run_with(call: Callable[[], Any], step: int, act: Callable[[str], None]) -> Outcome:
    """Run `call` in this thread, and call `act(where)` before its step number `step`, if it has that many steps."""
    return _run(call, _Steps(step, act))


def count_steps(call: Callable[[], Any]) -> int:
    """The number of steps of `call`; it is run once, in a new thread."""
    steps = _Steps(None)
    thread = threading.Thread(target=_run, args=(call, steps))
    thread.start()
    thread.join()
    return steps.count


@dataclass(frozen=True)
class Interleaving:
    """`held` was stopped before its step number `step`, at `where`, while `between` ran."""

    step: int
    where: str
    held: Outcome
    between: Outcome
    between_waited: bool
    """Whether `between` ended only after `held` had continued, as if it waited for a lock."""
    passed: tuple[str, ...] = ()
    """The last steps of `held` before it was stopped."""
    steps: int = 0
    """The number of steps of the call when they were counted."""
    out_of_time: bool = False
    """Whether there is no time to stop the call at later steps too."""

    @property
    def timeline(self) -> list[str]:
        """The events, one line each."""
        waited = " (only after the first had continued)" if self.between_waited else ""
        return [
            *(f"first: {step}" for step in self.passed[:-1]),
            f"first: is stopped before {self.where}",
            f"second: runs and {_how(self.between)}{waited}",
            f"first: continues and {_how(self.held)}",
        ]


def _how(end: Outcome) -> str:
    return "returns" if end.error is None else f"raises {end.error!r}"


def interleave(
    held: Callable[[], Any], between: Callable[[], Any], step: int, patience: float = _GIVE_UP_SECONDS
) -> Interleaving:
    """Stop `held` before its step number `step`, run `between`, and let `held` continue when that has ended.

    It also continues after `patience` seconds, because `between` may wait for a lock of `held`.
    """
    is_held, go_on = threading.Event(), threading.Event()

    def hold(_where: str) -> None:
        is_held.set()
        go_on.wait(_GIVE_UP_SECONDS)

    def run() -> None:
        first.append(_run(held, steps))
        is_held.set()

    def run_between() -> None:
        is_held.wait(_GIVE_UP_SECONDS)
        second.append(outcome(between))
        ended.set()

    steps = _Steps(step, hold)
    first: list[Outcome] = []
    second: list[Outcome] = []
    ended = threading.Event()
    holder, other = threading.Thread(target=run), threading.Thread(target=run_between)
    other.start()
    holder.start()
    is_held.wait(_GIVE_UP_SECONDS)
    waited = not ended.wait(patience)
    go_on.set()
    holder.join(_GIVE_UP_SECONDS)
    other.join(_GIVE_UP_SECONDS)
    if not first or not second:
        raise TimeoutError(f"a call is stuck after it was held at {steps.where}")
    return Interleaving(step, steps.where, first[0], second[0], waited, steps.last)


def all_interleavings(
    held: Callable[[int], Any],
    between: Callable[[int], Any],
    prepare: Callable[[int], Any] = lambda _case: None,
    *,
    max_cases: int = 600,
    seconds: float = 60.0,
    fewest: int = 0,
    longest: float | None = None,
    clock: Clock = _CLOCK,
) -> Iterator[Interleaving]:
    """`interleave` for each step of `held`, each with a new case number.

    `held` and `between` get the case number, so that cases use different files; it is `Interleaving.step`. `prepare` is
    called with it before both. If a call has more steps than `max_cases`, or than there is time for in `seconds`, it is
    stopped at fewer steps, spread from the first to the last. Where cases are slow, the time is extended to about
    `fewest` of them, but to `longest` seconds at most.
    """
    uncounted = 10**9
    prepare(uncounted)
    outcome(partial(held, uncounted))  # work that is done only once, such as connecting, is done here
    began = clock.monotonic()
    prepare(uncounted + 1)
    steps = count_steps(lambda: held(uncounted + 1))
    prepare(uncounted + 2)
    started = clock.monotonic()
    outcome(partial(between, uncounted + 2))  # its duration without a competing call
    usual = clock.monotonic() - started
    patience = max(_LEAST_PATIENCE_SECONDS, min(_PATIENCE_FACTOR * usual, usual * 2 + _PATIENCE_SECONDS))
    longest = seconds if longest is None else longest
    step, stride, ran = 0, 1 + steps // max_cases, 0
    # A call may have more steps later than when they were counted, even more each time (a listing of more files).
    while step <= 2 * steps:
        prepare(step)
        case = interleave(partial(held, step), partial(between, step), step, patience)
        if not case.where:  # the call ended before that step
            return
        ran += 1
        taken = clock.monotonic() - began
        average = taken / (ran + 1)
        # By the cases until now: a call that competes takes longer than one alone.
        available = max(seconds, min((fewest + 1) * average, longest))
        affordable = int((available - taken) / average)
        yield replace(case, steps=steps, out_of_time=affordable < 1)
        if affordable < 1:
            return
        step += max(stride, math.ceil((steps - step) / affordable))
