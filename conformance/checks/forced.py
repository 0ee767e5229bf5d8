"""Check 3: forced races. Writers of one file are stopped at each step between their check and their write."""

import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tablelog.errors import WriteOutcomeUnknown

from ..failures import NotEstablishedError, require
from ..harness.interleave import Interleaving
from ..harness.processes import Station, crew, needs_processes, together
from ..harness.proxy import Exchange, Proxy, Reply
from ..model import Context
from .suite import at, below, check, commit, expect, interleavings, mark, varied_version
from .trial import Try, in_threads, judge, tried


@check(3, guarantee=2, lasts=True)
def one_winner_in_every_interleaving(context: Context) -> None:
    """One writer is stopped at each step of its write while another writer writes the same file: exactly one wins."""
    make, root = context.make, context.root
    first, second = make(), make()
    first.write(below(root, "_first"), b"")

    def path(number: int) -> str:
        return commit(root, varied_version(number))

    for case in interleavings(
        context,
        lambda n: first.write(path(n), _held_data(n)),
        lambda n: second.write(path(n), b"second"),
    ):
        one_winner(context, case, path(case.step), _held_data(case.step), b"second")
        second.delete(path(case.step))  # otherwise a write that lists the directory gets more and more steps


def one_winner(context: Context, case: Interleaving, path: str, held: bytes, between: bytes) -> None:
    """Require that one of two writers of `path` has won, the other lost, and the file has the winner's data.

    `held` and `between` are the data of the writer that was stopped and of the other one.
    """
    won = [data for data, end in ((held, case.held), (between, case.between)) if end.error is None]
    for end in (case.held, case.between):
        if end.error is not None:
            expect(FileExistsError, end, f"losing a race {at(case)}")
    name = path.rpartition("/")[2]
    require(len(won) == 1, f"{len(won)} of 2 writers of {name} won {at(case)}")
    require(context.make().read(path) == won[0], f"the file {name} doesn't have the winner's data {at(case)}")


def _held_data(number: int) -> bytes:
    """The data of the writer that is stopped, of different sizes."""
    return (b"first" * 100, b"", b"1", b"first" * 15_000)[number % 4]


@check(3, guarantee=4, lasts=True)
def no_error_after_a_write(context: Context) -> None:
    """Two writers race in a new directory, one stopped at each step: each wins, loses or is unknown, with no error."""
    make, root = context.make, context.root
    first, second = make(), make()

    def new(case: int) -> str:
        return f"{root}/new-{case}"

    for case in interleavings(
        context,
        lambda n: first.write(commit(new(n), 0), b"first"),
        lambda n: second.write(commit(new(n), 0), b"second"),
        prepare=lambda n: context.directories.add(f"{root}/new-{n}/_delta_log"),
    ):
        for end in (case.held, case.between):
            require(
                end.error is None or isinstance(end.error, FileExistsError | WriteOutcomeUnknown),
                f"a race in a new directory ended with {end.error!r} {at(case)}",
            )
        ends = [case.held.error, case.between.error]
        require(ends.count(None) <= 1, f"two writers won {at(case)}")


_PATIENCE_SECONDS = 0.25
"""How long a writer waits for the others. A writer that waits for another's lock doesn't arrive at all."""


@check(3, guarantee=2, lasts=True)
def one_winner_when_all_stand_before_the_act(context: Context) -> None:
    """Several writers stop before the same file operation or request, then continue together: exactly one wins."""
    if context.target.endpoint is not None and context.target.through is not None:
        _held_at_requests(context, context.target.endpoint, context.target.through)
    else:
        _held_at_operations(context)


# ---- file operations: an audit hook in each of several processes ----

_OPERATIONS = ("open", "os.", "shutil.", "fcntl.", "ctypes.", "socket.", "sqlite3.")


def _held_at_operations(context: Context) -> None:
    needs_processes(context)
    writers = 3
    seen: list[str] = []
    with crew(context, writers) as workers:
        point = 0
        while not point or context.time_left > 1:
            path = commit(context.root, varied_version(point))
            results = together(workers, held_at_operation, path, point)
            operations = [name for _, name in results if name]
            judge(context, path, [write for write, _ in results], mark, f" when all were held before {operations[:1]}")
            if not operations:
                break
            seen.append(operations[0])
            point += 1
        else:
            _ended_early(context, seen)
    if not seen:
        raise NotEstablishedError(
            "the writers can't be stopped between their check and their write: the store does no file operation that "
            "Python can observe, and it has no endpoint for a proxy"
        )
    context.evidence |= {"writers": writers, "rounds": len(seen), "held before": seen}


def _ended_early(context: Context, seen: Sequence[str]) -> None:
    context.evidence["held before"] = list(seen)
    raise NotEstablishedError(
        f"the time was too short: the writers were stopped only before the first {len(seen)} operations of a write, up "
        f"to {seen[-1]}; increase it with --patience"
    )


class _Hook:
    """An audit hook can't be removed, so there is one for each process; `act` handles each operation."""

    act: Callable[[str], None] | None = None
    installed = False

    @classmethod
    def install(cls) -> None:
        if not cls.installed:
            cls.installed = True
            sys.addaudithook(cls._audit)

    @classmethod
    def _audit(cls, event: str, _arguments: tuple[Any, ...]) -> None:
        act = cls.act
        if act is not None and event.startswith(_OPERATIONS):
            act(event)


def held_at_operation(here: Station, path: str, number: int) -> tuple[Try, str]:
    """Write, and wait for the others before operation `number`; returns its name, or "" if there is none."""
    count, name = 0, ""

    def act(event: str) -> None:
        nonlocal count, name
        count += 1
        if count == number + 1:
            name = event
            _Hook.act = None
            here.meet(2 * number + 2, patience=_PATIENCE_SECONDS)

    _Hook.install()
    here.meet(2 * number + 1)
    _Hook.act = act
    try:
        result = tried(here.number, partial(here.store.write, path, mark(here.number)))
    finally:
        _Hook.act = None
    here.arrive(2 * number + 2)
    return result, name


# ---- requests: a proxy for each of several clients ----


class _Meeting:
    """The meeting point of the writers' requests: each waits before its request number `at`."""

    def __init__(self, writers: int, at: int) -> None:
        self.at = at
        self.held: list[str] = []
        self._missing = writers
        self._all_there = threading.Event()
        self._lock = threading.Lock()

    def arrive(self) -> None:
        with self._lock:
            self._missing -= 1
            if self._missing == 0:
                self._all_there.set()

    def wait(self, what: str) -> None:
        self.held.append(what)
        self.arrive()
        self._all_there.wait(_PATIENCE_SECONDS)


class _Door:
    """The decisions of one writer's proxy: it counts the requests and holds the request of the meeting point."""

    meeting: _Meeting | None = None
    count = 0

    def decide(self, exchange: Exchange) -> Reply | None:
        meeting = self.meeting
        self.count += 1
        if meeting is not None and self.count == meeting.at:
            meeting.wait(str(exchange.request))
        return exchange.forward()


def _held_at_requests(context: Context, endpoint: str, through: Callable[[str], Callable[[], Any]]) -> None:
    writers = context.choose(3, 4, 6)
    doors = [_Door() for _ in range(writers)]
    proxies = [Proxy(endpoint, door.decide) for door in doors]
    seen: list[str] = []
    try:
        stores = [through(proxy.url)() for proxy in proxies]
        for number, store in enumerate(stores):  # each client does its one-time work here
            store.write(below(context.root, f"warm-{number}"), b"")
        number = 0
        while not number or context.time_left > 1:
            path, meeting = commit(context.root, varied_version(number)), _Meeting(writers, number + 1)
            tries = _all_at(meeting, doors, stores, path)
            judge(context, path, tries, mark, f" when all were held before their requests {', '.join(meeting.held)}")
            if not meeting.held:
                break
            seen.append(meeting.held[0])
            number += 1
        else:
            _ended_early(context, seen)
    finally:
        for proxy in proxies:
            proxy.close()
    if not seen:
        raise NotEstablishedError("the proxy got no request: the store doesn't use the configured address")
    context.evidence |= {"writers": writers, "rounds": len(seen), "held before": seen}


def _all_at(meeting: _Meeting, doors: Sequence[_Door], stores: Sequence[Any], path: str) -> list[Try]:
    tries: list[Try] = []

    def write(number: int) -> None:
        door = doors[number]
        door.count, door.meeting = 0, meeting
        tries.append(tried(number, partial(stores[number].write, path, mark(number))))
        if door.count < meeting.at:
            meeting.arrive()
        door.meeting = None

    in_threads(len(stores), write)
    return tries
