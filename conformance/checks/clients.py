"""Checks 14 to 16: clients that are copied, forked, shared, paused or have a wrong clock."""

import gc
import os
import pickle
import signal
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from tablelog.logstore import LogStore
from tablelog.logstore.common.uri import local_path, scheme_of

from ..failures import NotEstablishedError, require
from ..interleave import outcome
from ..model import Context, Factory
from ..processes import Station, crew, forked, needs_processes
from .suite import at, below, check, commit, commit_names, expect, interleavings, mark, names
from .trial import LOST, REFUSED, UNKNOWN, WON, Try, judge, tried

_CHILD_SECONDS = 20.0
_FEW = 8
_DAY = 25 * 3600.0
"""A little more than a day, so that everything with a lifetime of a day has expired."""


# ---- check 14 ----


@check(14, guarantee=2, lasts=True)
def a_clock_that_is_off_changes_nothing(context: Context) -> None:
    """Writers whose clock is a day ahead or behind win and lose as others do, or are refused, and disturb nobody."""
    needs_processes(context)
    beyond = context.random.randrange(24) * 3600.0  # a different hour of the day in each run
    for offset in (_DAY + beyond, -_DAY - beyond):
        root = f"{context.root}/{'ahead' if offset > 0 else 'behind'}"
        context.directories.add(f"{root}/_delta_log")
        with crew(context, 1, clock_offset=offset) as [worker]:
            _in_turn(context, worker.call, root, offset)
            _beside_an_overwrite(context, worker.call, root)
    context.evidence["clocks"] = "those that Python code asks, a day ahead and behind"


def _in_turn(context: Context, call: Callable[..., Any], root: str, offset: float) -> None:
    straight = context.make()
    for version in range(6):
        path = commit(root, version)
        if version % 2:
            straight.write(path, mark(1))
            end = call(write_as, 0, path)
            require(end.answer in {LOST, REFUSED}, f"a writer whose clock is off by {offset:.0f} s: {end.answer}")
        else:
            end = call(write_as, 0, path)
            context.evidence[f"a writer whose clock is off by {offset:.0f} s"] = end.said or end.answer
            if end.answer == REFUSED:
                straight.write(path, mark(0))
            else:
                require(end.answer == WON, f"a writer whose clock is off by {offset:.0f} s: {end.answer}")
        expect(FileExistsError, outcome(partial(straight.write, path, mark(1))), "writing a file that exists")
        require(straight.read(path) == mark(version % 2), "the file isn't the winner's")
    require(names(straight.list_from(commit(root, 0))) == commit_names(0, 6), "the listing isn't whole")


def _beside_an_overwrite(context: Context, call: Callable[..., Any], root: str) -> None:
    """What looks old to a clock that is ahead isn't: a write that is held meanwhile is still whole or not at all."""
    writer, checkpoint = context.make(), below(root, "_last_checkpoint")
    for case in interleavings(
        context,
        lambda n: writer.write(commit(root, 100 + n), b"held"),
        lambda _n: call(overwrite_as_new, checkpoint),
        cases=context.choose(8, 30, 100),
    ):
        path = commit(root, 100 + case.step)
        found = outcome(partial(context.make().read, path))
        if case.held.error is None:
            require(found.value == b"held", f"a write that was told that it won isn't there {at(case)}")
        else:
            require(found.value in {None, b"held"}, f"a part of a file was left {at(case)}")
            require(
                not isinstance(case.held.error, FileExistsError), f"it lost, and nobody else had written {at(case)}"
            )


def write_as(here: Station, writer: int, path: str) -> Try:
    """Write with the client of this process."""
    return tried(writer, partial(here.store.write, path, mark(writer)))


def overwrite_as_new(here: Station, path: str) -> str:
    """Overwrite with a new client, which then does its periodic work; returns its answer."""
    return tried(0, lambda: here.make().write(path, b"new", overwrite=True)).answer


# ---- check 15 ----


@check(15, guarantee=2, lasts=True)
def a_lock_that_ran_out_is_lost_safely(context: Context) -> None:
    """A writer is held so long that any lease has run out, by the clock of one who writes meanwhile: one wins."""
    needs_processes(context)
    writer = context.make()
    writer.write(below(context.root, "_first"), b"")
    with crew(context, 1, clock_offset=_DAY) as [late]:
        for case in interleavings(
            context,
            lambda n: writer.write(commit(context.root, n), mark(0)),
            lambda n: late.call(write_as, 1, commit(context.root, n)),
            cases=context.choose(60, 200, 1000),
        ):
            second = case.between.value if case.between.error is None else tried(1, partial(_raise, case.between.error))
            tries = [tried(0, partial(_raise, case.held.error)), second]
            judge(context, commit(context.root, case.step), tries, mark, f" {at(case)}")


def _raise(error: BaseException | None) -> None:
    if error is not None:
        raise error


@check(15, guarantee=2)
def a_second_process_is_served_or_refused(context: Context) -> None:
    """A second process, after the first has written, loses its name, wins the next, or is told that it may not."""
    store = context.make()
    store.write(commit(context.root, 0), mark(0))
    try:
        with crew(context, 1) as [second]:
            taken = second.call(write_as, 1, commit(context.root, 0))
            free = second.call(write_as, 1, commit(context.root, 1))
    except NotEstablishedError as refusal:
        if store.exclusion != "process":
            raise
        context.evidence["a second process"] = f"is refused: {refusal}"
        return
    require(store.read(commit(context.root, 0)) == mark(0), "a second process replaced a file")
    refused = taken.answer in {LOST, REFUSED} and free.answer == REFUSED
    require(
        refused or (taken.answer, free.answer) in {(LOST, WON), (LOST, UNKNOWN)}, f"a second process: {taken}, {free}"
    )
    context.evidence["a second process"] = "is refused" if refused else f"is served (declared: {store.exclusion})"


# ---- check 16 ----


@check(16, guarantee=0)
def survives_pickling(context: Context) -> None:
    """A pickled and unpickled store serves the same files."""
    make, root = context.make, context.root
    make().write(commit(root, 0), b"x")
    copy: LogStore = pickle.loads(pickle.dumps(make()))
    require(copy.read(commit(root, 0)) == b"x", "an unpickled store doesn't see the file")
    expect(FileExistsError, outcome(lambda: copy.write(commit(root, 0), b"y")), "writing a file that exists")
    require(copy.exclusion == make().exclusion, "an unpickled store declares something else")


@check(16, guarantee=0)
def survives_a_fork(context: Context) -> None:
    """A client that has been used works in a forked child, or says that it can't, and goes on in the parent."""
    needs_processes(context)
    with crew(context, 1) as [worker]:
        said, parent = worker.call(write_forked, context.root, 1 << 16)
    context.evidence["a forked child"] = said
    require(said is not None, "a client that has been used hangs or dies in a forked child")
    require(parent == [WON, WON, LOST], f"after a fork the parent's writes gave {parent}")
    store = context.make()
    child = outcome(partial(store.read, commit(context.root, 1)))
    require(
        (said == WON) == (child.value == b"child"), f"a forked child was told {said!r}, and its file is {child.value!r}"
    )
    require(said in {WON, UNKNOWN} or not said.startswith(LOST), "a forked child was told that it lost a free name")


def write_forked(here: Station, root: str, size: int) -> tuple[str | None, list[str]]:
    """Write, fork, write in the child and in the parent at the same time with the same client."""
    here.store.write(below(root, "_first"), b"x" * size)
    child = forked(
        lambda: lambda: tried(0, partial(here.store.write, commit(root, 1), b"child")).answer, None, signal.SIGKILL
    )
    parent = [tried(1, partial(here.store.write, commit(root, version), b"parent")).answer for version in (2, 3, 2)]
    said = child.answer(_CHILD_SECONDS)
    child.end()
    return said, parent


@check(16, guarantee=0)
def threads_share_a_client(context: Context) -> None:
    """One client in many threads at once, also at several tables: each gets the answers to its own questions."""
    store, threads_at_once, rounds = context.make(), 8, context.choose(10, 50, 300)
    errors: list[str] = []
    context.directories |= {f"{context.root}/{number}/_delta_log" for number in range(1, threads_at_once, 2)}

    def work(number: int) -> None:
        end = outcome(partial(use, number))
        if end.error is not None:
            errors.append(repr(end.error))

    def use(number: int) -> None:
        for one in range(rounds):
            version = one * threads_at_once + number
            root = f"{context.root}/{number}" if number % 2 else context.root
            path, data = commit(root, version), mark(number) + str(version).encode()
            end = tried(number, partial(store.write, path, data))
            if end.answer != WON:
                errors.append(f"writing a name of its own gave {end.said or end.answer}")
            elif store.read(path) != data:
                errors.append("a thread read another thread's file")
            elif f"{version:020}.json" not in names(store.list_from(path))[:1]:
                errors.append("a thread's listing isn't what it asked for")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(threads_at_once)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    require(not errors, f"one client in {threads_at_once} threads: {errors[:1]}")
    context.evidence |= {"threads": threads_at_once, "rounds": rounds}


@check(16, guarantee=0)
def losers_leave_nothing_behind(context: Context) -> None:
    """After very many lost writes no descriptor, thread, connection or temporary file is left."""
    losers = context.choose(200, 1000, 3000)
    if context.make().exclusion == "process":
        found = lose_often(context.target.factory, context.root, losers)
    else:
        with crew(context, 1) as [worker]:
            found = worker.call(lose_in_process, context.root, losers)
    lost, before, after, threads = found
    context.evidence |= {"losers": lost, "descriptors before": before, "descriptors after": after}
    require(lost == losers, f"{losers - lost} of {losers} losers were told something else")
    require(after <= before + _FEW, f"{losers} losers left {after - before} descriptors open")
    require(threads <= _FEW, f"{losers} losers left {threads} threads")
    if scheme_of(context.root) == "file":
        left = sorted(os.listdir(local_path(f"{context.root}/_delta_log")))
        require(left == [f"{0:020}.json"], f"{losers} losers left {len(left) - 1} files, such as {left[:1]}")


def lose_in_process(here: Station, root: str, losers: int) -> tuple[int, int, int, int]:
    """`lose_often` in this process."""
    return lose_often(here.make, root, losers)


def lose_often(make: Factory, root: str, losers: int) -> tuple[int, int, int, int]:
    """(losers with the right error, descriptors before, descriptors after, new threads)."""
    store, path = make(), commit(root, 0)
    store.write(path, b"x")
    for _ in range(20):
        tried(0, partial(store.write, path, b"y"))
    before, threads = _descriptors(), threading.active_count()
    lost = sum(tried(0, partial(store.write, path, b"y")).answer == LOST for _ in range(losers))
    gc.collect()
    return lost, before, _descriptors(), threading.active_count() - threads


def _descriptors() -> int:
    for directory in ("/proc/self/fd", "/dev/fd"):
        if os.path.isdir(directory):
            return len(os.listdir(directory))
    raise NotEstablishedError("this system doesn't show the descriptors of a process")
