"""Checks 14 to 16: clients that are pickled, forked, shared or paused, or whose clock is wrong."""

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
from ..harness.interleave import outcome
from ..harness.processes import Station, crew, forked, needs_processes
from ..model import Context, Factory
from .suite import at, below, check, commit, commit_names, expect, interleavings, mark, names
from .trial import LOST, REFUSED, UNKNOWN, WON, Try, in_threads, judge, tried

_CHILD_SECONDS = 20.0
_FEW = 8
_DAY = 25 * 3600.0
"""Slightly more than a day, so that everything with a lifetime of a day has expired."""


# ---- check 14 ----


@check(14, guarantee=2, lasts=True)
def a_clock_that_is_off_changes_nothing(context: Context) -> None:
    """Writers whose clocks are a day ahead or behind win, lose or are refused, and never break another write."""
    needs_processes(context)
    more = context.random.randrange(24) * 3600.0  # a different hour of the day in each run
    for offset in (_DAY + more, -_DAY - more):
        root = f"{context.root}/{'ahead' if offset > 0 else 'behind'}"
        context.directories.add(f"{root}/_delta_log")
        with crew(context, 1, clock_offset=offset) as [worker]:
            _in_turn(context, worker.call, root, offset)
            _beside_an_overwrite(context, worker.call, root)
    context.evidence["clocks"] = "the clocks of Python's standard library, a day ahead and behind"


def _in_turn(context: Context, call: Callable[..., Any], root: str, offset: float) -> None:
    normal = context.make()
    for version in range(6):
        path = commit(root, version)
        if version % 2:
            normal.write(path, mark(1))
            end = call(write_as, 0, path)
            require(end.answer in {LOST, REFUSED}, f"a writer whose clock is off by {offset:.0f} s: {end.answer}")
        else:
            end = call(write_as, 0, path)
            context.evidence[f"a writer whose clock is off by {offset:.0f} s"] = end.said or end.answer
            if end.answer == REFUSED:
                normal.write(path, mark(0))
            else:
                require(end.answer == WON, f"a writer whose clock is off by {offset:.0f} s: {end.answer}")
        expect(FileExistsError, outcome(partial(normal.write, path, mark(1))), "writing a file that exists")
        require(normal.read(path) == mark(version % 2), "the file doesn't have the winner's data")
    require(names(normal.list_from(commit(root, 0))) == commit_names(0, 6), "the listing isn't complete")


def _beside_an_overwrite(context: Context, call: Callable[..., Any], root: str) -> None:
    """A write that is paused must stay complete or absent, although it looks old to a writer whose clock is ahead."""
    writer, checkpoint = context.make(), below(root, "_last_checkpoint")
    for case in interleavings(
        context,
        lambda n: writer.write(commit(root, 100 + n), b"held"),
        lambda _n: call(overwrite_as_new, checkpoint),
        cases=context.choose(8, 30, 100),
    ):
        path = commit(root, 100 + case.step)
        content = outcome(partial(context.make().read, path)).value
        if case.held.error is None:
            require(content == b"held", f"a write won, but its file doesn't exist {at(case)}")
        else:
            require(content in {None, b"held"}, f"a write left a partial file {at(case)}")
            require(
                not isinstance(case.held.error, FileExistsError),
                f"a write lost, but no other writer had written the file {at(case)}",
            )


def write_as(here: Station, writer: int, path: str) -> Try:
    """Write with the client of this process."""
    return tried(writer, partial(here.store.write, path, mark(writer)))


def overwrite_as_new(here: Station, path: str) -> str:
    """Overwrite with a new client, which then does its periodic work; returns the answer."""
    return tried(0, lambda: here.make().write(path, b"new", overwrite=True)).answer


# ---- check 15 ----


@check(15, guarantee=2, lasts=True)
def a_lock_that_ran_out_is_lost_safely(context: Context) -> None:
    """A writer is paused until any lease has expired, by the clock of a second writer of the file: exactly one wins."""
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
    """A second process loses an existing name and wins a new one, or the store refuses it."""
    store = context.make()
    store.write(commit(context.root, 0), mark(0))
    try:
        with crew(context, 1) as [second]:
            existing = second.call(write_as, 1, commit(context.root, 0))
            new = second.call(write_as, 1, commit(context.root, 1))
    except NotEstablishedError as refusal:
        if store.exclusion != "process":
            raise
        context.evidence["a second process"] = f"is refused: {refusal}"
        return
    require(store.read(commit(context.root, 0)) == mark(0), "a second process replaced a file")
    refused = existing.answer in {LOST, REFUSED} and new.answer == REFUSED
    require(
        refused or (existing.answer, new.answer) in {(LOST, WON), (LOST, UNKNOWN)},
        f"a second process got the answer {existing.answer} for an existing file and {new.answer} for a new one",
    )
    context.evidence["a second process"] = "is refused" if refused else f"is served (declared: {store.exclusion})"


# ---- check 16 ----


@check(16, guarantee=0)
def survives_pickling(context: Context) -> None:
    """A store that was pickled and unpickled serves the same files."""
    make, root = context.make, context.root
    make().write(commit(root, 0), b"x")
    copy: LogStore = pickle.loads(pickle.dumps(make()))
    require(copy.read(commit(root, 0)) == b"x", "an unpickled store doesn't see the file")
    expect(FileExistsError, outcome(lambda: copy.write(commit(root, 0), b"y")), "writing a file that exists")
    require(copy.exclusion == make().exclusion, "an unpickled store declares another exclusion")


@check(16, guarantee=0)
def survives_a_fork(context: Context) -> None:
    """A used client works in a forked child or reports that it can't, and continues to work in the parent."""
    needs_processes(context)
    with crew(context, 1) as [worker]:
        answer, parent = worker.call(write_forked, context.root, 1 << 16)
    context.evidence["a forked child"] = answer
    require(answer is not None, "a used client hangs or crashes in a forked child")
    require(parent == [WON, WON, LOST], f"after a fork the answers to the parent's writes were {parent}")
    store = context.make()
    content = outcome(partial(store.read, commit(context.root, 1))).value
    require(
        (answer == WON) == (content == b"child"),
        f"a forked child got the answer {answer!r}, but its file is {content!r}",
    )
    require(answer in {WON, UNKNOWN} or not answer.startswith(LOST), "a forked child lost the write of a new file")


def write_forked(here: Station, root: str, size: int) -> tuple[str | None, list[str]]:
    """Write, fork, write in the child and in the parent at the same time with the same client."""
    here.store.write(below(root, "_first"), b"x" * size)
    child = forked(
        lambda: lambda: tried(0, partial(here.store.write, commit(root, 1), b"child")).answer, None, signal.SIGKILL
    )
    parent = [tried(1, partial(here.store.write, commit(root, version), b"parent")).answer for version in (2, 3, 2)]
    answer = child.answer(_CHILD_SECONDS)
    child.end()
    return answer, parent


@check(16, guarantee=0)
def threads_share_a_client(context: Context) -> None:
    """Many threads use one client at the same time, on several tables: each call gets its own result."""
    store, threads_at_once, rounds = context.make(), 8, context.choose(10, 50, 300)
    errors: list[str] = []
    context.directories |= {f"{context.root}/{number}/_delta_log" for number in range(1, threads_at_once, 2)}

    def work(number: int) -> None:
        end = outcome(partial(use, number))
        if end.error is not None:
            errors.append(repr(end.error))

    def use(number: int) -> None:
        for round_number in range(rounds):
            version = round_number * threads_at_once + number
            root = f"{context.root}/{number}" if number % 2 else context.root
            path, data = commit(root, version), mark(number) + str(version).encode()
            end = tried(number, partial(store.write, path, data))
            if end.answer != WON:
                errors.append(f"a write of a new file ended with {end.said or end.answer}")
            elif store.read(path) != data:
                errors.append("a thread read another thread's file")
            elif f"{version:020}.json" not in names(store.list_from(path))[:1]:
                errors.append("a thread got a wrong listing")

    in_threads(threads_at_once, work)
    require(not errors, f"one client in {threads_at_once} threads: {errors[:1]}")
    context.evidence |= {"threads": threads_at_once, "rounds": rounds}


@check(16, guarantee=0)
def losers_leave_nothing_behind(context: Context) -> None:
    """After many lost writes no descriptor, thread, connection or temporary file is left over."""
    losers = context.choose(200, 1000, 3000)
    if context.make().exclusion == "process":
        result = lose_often(context.target.factory, context.root, losers)
    else:
        with crew(context, 1) as [worker]:
            result = worker.call(lose_in_process, context.root, losers)
    lost, before, after, threads = result
    context.evidence |= {"losers": lost, "descriptors before": before, "descriptors after": after}
    require(lost == losers, f"{losers - lost} of {losers} writes of an existing file didn't end with FileExistsError")
    require(after <= before + _FEW, f"{losers} losers left {after - before} descriptors open")
    require(threads <= _FEW, f"{losers} losers left {threads} threads")
    if scheme_of(context.root) == "file":
        left = sorted(os.listdir(local_path(f"{context.root}/_delta_log")))
        require(left == [f"{0:020}.json"], f"{losers} losers left {len(left) - 1} files, such as {left[:1]}")


def lose_in_process(here: Station, root: str, losers: int) -> tuple[int, int, int, int]:
    """`lose_often` in this process."""
    return lose_often(here.make, root, losers)


def lose_often(make: Factory, root: str, losers: int) -> tuple[int, int, int, int]:
    """Returns (losers with FileExistsError, descriptors before, descriptors after, new threads)."""
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
