"""Calls of a store in separate processes: spawned, with their own clients, synchronised, killed, paused, limited.

A task is a function of a module, `task(here, *arguments)`, where `here` is a `Station`. Its result or exception comes
back as an `Outcome`. The processes are ended when the crew's context is left, in any case.
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

from ..failures import NotEstablishedError
from ..model import Context, Factory
from .interleave import Outcome, outcome, run_with

_context = multiprocessing.get_context("spawn")
_ANSWER_SECONDS = 120.0
_MEET_SECONDS = 60.0
_END_SECONDS = 1.0
_FORK_SECONDS = 30.0


@dataclass
class Station:
    """The objects that a task uses in its process: its number, a client, and the crew's gate."""

    number: int
    make: Factory
    store: LogStore
    gate: Any
    """The point that each process of the crew has reached, in shared memory."""

    def meet(self, point: int, patience: float | None = None) -> None:
        """Wait until the whole crew has reached this point (1, 2, ...); then all continue within microseconds.

        With `patience`, continue after that many seconds in any case; without it, a crew that doesn't arrive raises
        TimeoutError.
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
        """Signal that this process has reached or passed the point, without waiting."""
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
        """Start a task; `answer` waits for its end."""
        self._pipe.send((task, arguments))

    def answer(self, seconds: float = _ANSWER_SECONDS) -> Outcome:
        """Wait for the task; TimeoutError if it doesn't end in time, EOFError if the process died."""
        if not self._pipe.poll(seconds):
            raise TimeoutError(f"a process of the crew doesn't answer within {seconds:.0f} s")
        end = self._pipe.recv()
        assert isinstance(end, Outcome)
        return end

    def call(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """Run a task and return its result; raises its exception."""
        self.start(task, *arguments)
        end = self.answer()
        if end.error is not None:
            raise end.error
        return end.value

    def signal(self, number: signal.Signals) -> None:
        """Send a signal (SIGKILL, SIGSTOP, SIGCONT)."""
        os.kill(self.pid, number)

    def end(self) -> None:
        """Close the pipe, which ends an idle process; kill a process that doesn't end."""
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
    """Start `number` processes with their own clients.

    The factory is the target's, or `factories[k]` for worker k. With `clock_offset` (seconds) their clocks are wrong.
    Raises `NotEstablishedError` if the store can't be created in another process.
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
                raise NotEstablishedError(f"the store can't be created in another process: {ready.error}")
        yield workers
    finally:
        for worker in workers:
            worker.end()


def needs_processes(context: Context) -> None:
    """Raise `NotEstablishedError` for a store that doesn't claim to be safe for several processes."""
    if context.make().exclusion == "process":
        raise NotEstablishedError("the store declares that only one process may use it (exclusion = 'process')")


def together(workers: Sequence[Worker], task: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Run a task in all workers at once; return all results, or raise the first error."""
    for worker in workers:
        worker.start(task, *arguments)
    ends = [worker.answer() for worker in workers]
    for end in ends:
        if end.error is not None:
            raise end.error
    return [end.value for end in ends]


@contextlib.contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Limit the files of this process to `size` bytes: a larger write fails in the middle."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@dataclass
class Fork:
    """A forked process that stopped or killed itself before a step of its call, at `where` ("": it didn't)."""

    pid: int
    where: str
    _pipe: Connection

    def go_on(self) -> None:
        """Continue a process that stopped itself."""
        os.kill(self.pid, signal.SIGCONT)

    def answer(self, seconds: float) -> str | None:
        """The result of the call; None: it hasn't ended in time, or the process died."""
        try:
            return str(self._pipe.recv()) if self._pipe.poll(seconds) else None
        except EOFError:
            return None

    def end(self) -> None:
        """Kill the process if it still exists."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        self._pipe.close()


def forked(prepare: Callable[[], Callable[[], str]], step: int | None, number: signal.Signals) -> Fork:
    """Run the function that `prepare` returns in a forked process, which sends itself a signal before step `step`.

    Returns when that has happened, or when the call has ended before; without `step` at once. Only for a process with
    one thread: a worker.
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
        station = outcome(lambda: _station(number, factory, gate))
        _send(pipe, Outcome(error=station.error))
        while station.error is None:
            task, arguments = pipe.recv()
            _send(pipe, outcome(lambda: task(station.value, *arguments)))  # noqa: B023


def _station(number: int, factory: bytes, gate: Any) -> Station:
    make: Factory = pickle.loads(factory)
    return Station(number, make, make(), gate)


def _send(pipe: Connection, end: Outcome) -> None:
    try:
        pipe.send(end)
    except (pickle.PicklingError, TypeError, AttributeError):
        pipe.send(Outcome(error=RuntimeError(f"it can't be sent back: {end!r}")))
