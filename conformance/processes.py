"""Calls of a store in processes of their own: spawned, each with a client of its own, aligned, killed, paused, limited.

A task is a function of a module, `task(here, *arguments)`, with `here` a `Station`. What it returns or raises comes
back as an `Outcome`. Processes are gone when the crew is left, whatever happened.
"""

import contextlib
import multiprocessing
import os
import pickle
import resource
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from tablelog.logstore import LogStore

from .failures import NotEstablishedError
from .interleave import Outcome, outcome, run_with
from .model import Context, Factory

_context = multiprocessing.get_context("spawn")
_ANSWER_SECONDS = 120.0
_MEET_SECONDS = 60.0
_END_SECONDS = 1.0
_FORK_SECONDS = 30.0


@dataclass
class Station:
    """What a task has at hand in its process: its number, a client, and the crew's gate."""

    number: int
    make: Factory
    store: LogStore
    gate: Any
    """Where each of the crew has got to, in shared memory."""

    def meet(self, point: int, patience: float | None = None) -> None:
        """Go on when all of the crew have come to this point (1, 2, ...): within microseconds of one another.

        Or after `patience` seconds, where that is given; without it, a crew that never comes is a TimeoutError.
        """
        self.arrive(point)
        give_up = time.monotonic() + (_MEET_SECONDS if patience is None else patience)
        while min(self.gate) < point:
            os.sched_yield()
            if time.monotonic() > give_up:
                if patience is None:
                    raise TimeoutError("another process of the crew never came")
                return

    def arrive(self, point: int) -> None:
        """Tell the others that this one has come there, or passed it, and don't wait."""
        self.gate[self.number] = max(point, self.gate[self.number])


class Worker:
    """One process of a crew."""

    def __init__(self, number: int, factory: bytes, gate: Any, clock_offset: float) -> None:
        self._pipe, child = _context.Pipe()
        self._process = _context.Process(target=_serve, args=(child, number, factory, gate, clock_offset), daemon=True)
        self._process.start()
        child.close()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid or 0

    def start(self, task: Callable[..., Any], *arguments: Any) -> None:
        """Begin a task; `answer` waits for its end."""
        self._pipe.send((task, arguments))

    def answer(self, seconds: float = _ANSWER_SECONDS) -> Outcome:
        """How the task ended; TimeoutError if it doesn't, EOFError if the process died."""
        if not self._pipe.poll(seconds):
            raise TimeoutError(f"a process of the crew doesn't answer within {seconds:.0f} s")
        end = self._pipe.recv()
        assert isinstance(end, Outcome)
        return end

    def call(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """What the task returned; what it raised is raised."""
        self.start(task, *arguments)
        end = self.answer()
        if end.error is not None:
            raise end.error
        return end.value

    def signal(self, number: signal.Signals) -> None:
        """Send a signal (SIGKILL, SIGSTOP, SIGCONT)."""
        os.kill(self.pid, number)

    def end(self) -> None:
        """Close the pipe, which ends an idle process; one that doesn't end is killed."""
        self._pipe.close()
        self._process.join(_END_SECONDS if self._process.exitcode is None else 0)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()


@contextlib.contextmanager
def crew(
    context: Context, number: int, *, factories: Sequence[Factory] = (), clock_offset: float = 0.0
) -> Iterator[list[Worker]]:
    """`number` processes with clients of their own, ready to work.

    Their factory is the target's, or worker k's is `factories[k]`. With `clock_offset` (seconds) their clocks are off.
    Raises `NotEstablishedError` where the store can't be made in another process.
    """
    try:
        pickled = [pickle.dumps(factory) for factory in factories or [context.target.factory] * number]
    except Exception as error:
        raise NotEstablishedError(f"the factory can't be sent to another process: {error}") from error
    gate = _context.RawArray("q", number)
    workers: list[Worker] = []
    try:
        for k in range(number):
            workers.append(Worker(k, pickled[k], gate, clock_offset))
        for worker in workers:
            ready = worker.answer()
            if ready.error is not None:
                raise NotEstablishedError(f"the store can't be made in another process: {ready.error}")
        yield workers
    finally:
        for worker in workers:
            worker.end()


def needs_processes(context: Context) -> None:
    """Raise `NotEstablishedError` for a store that doesn't claim to keep processes apart."""
    if context.make().exclusion == "process":
        raise NotEstablishedError("the store declares that only one process may use it (exclusion = 'process')")


def together(workers: Sequence[Worker], task: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Run a task in all of them at once; what each returned, or the first error."""
    for worker in workers:
        worker.start(task, *arguments)
    ends = [worker.answer() for worker in workers]
    for end in ends:
        if end.error is not None:
            raise end.error
    return [end.value for end in ends]


@contextlib.contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """No file of this process grows beyond `size` bytes: a write over it fails in its middle."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@dataclass
class Fork:
    """A forked process, which stopped or killed itself before a step of its call, at `where` ("": it went on)."""

    pid: int
    where: str
    _pipe: Connection

    def go_on(self) -> None:
        """Wake a process that stopped itself."""
        os.kill(self.pid, signal.SIGCONT)

    def answer(self, seconds: float) -> str | None:
        """What the call came to; None: it hasn't ended in time, or died."""
        try:
            return str(self._pipe.recv()) if self._pipe.poll(seconds) else None
        except EOFError:
            return None

    def end(self) -> None:
        """Make sure that it is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        self._pipe.close()


def forked(prepare: Callable[[], Callable[[], str]], step: int | None, number: signal.Signals) -> Fork:
    """Run what `prepare` gives in a fork of this process, which sends itself a signal before its step number `step`.

    It comes back when that has happened, or the call has ended before; without a `step`, at once. Only for a process
    with one thread: a worker.
    """
    ours, theirs = multiprocessing.Pipe(duplex=False)
    pid = os.fork()
    if pid == 0:
        try:
            ours.close()

            call = prepare()
            acted = step is None

            def act(where: str) -> None:
                nonlocal acted
                acted = True
                theirs.send(where)
                os.kill(os.getpid(), number)

            end = run_with(call, step, act) if step is not None else outcome(call)
            if not acted:
                theirs.send("")
            theirs.send(end.value if end.error is None else repr(end.error))
        finally:
            os._exit(0)
    theirs.close()
    fork = Fork(pid, "", ours)
    if step is not None:
        where = fork.answer(_FORK_SECONDS)
        if where is None:
            fork.end()
            raise NotEstablishedError(
                "a forked process never came to the step that it was to be stopped at, or died on its way"
            )
        if where:
            os.waitpid(pid, os.WUNTRACED)
        fork.where = where
    return fork


def _serve(pipe: Connection, number: int, factory: bytes, gate: Any, clock_offset: float) -> None:
    with contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        if clock_offset:
            from .clocks import shift

            shift(clock_offset)
        made = outcome(lambda: _station(number, factory, gate))
        _send(pipe, Outcome(error=made.error))
        while made.error is None:
            task, arguments = pipe.recv()
            _send(pipe, outcome(lambda: task(made.value, *arguments)))  # noqa: B023


def _station(number: int, factory: bytes, gate: Any) -> Station:
    make: Factory = pickle.loads(factory)
    return Station(number, make, make(), gate)


def _send(pipe: Connection, end: Outcome) -> None:
    try:
        pipe.send(end)
    except (pickle.PicklingError, TypeError, AttributeError):
        pipe.send(Outcome(error=RuntimeError(f"it can't be sent back: {end!r}")))
