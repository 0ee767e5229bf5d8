"""Check 7: a write that ends in the middle leaves all or nothing, and hinders nobody."""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from tablelog.logstore import LogStore
from tablelog.logstore.common.uri import local_path, scheme_of

from ..failures import NotEstablishedError, broken, require
from ..interleave import count_steps, outcome
from ..model import Context
from ..processes import Station, Worker, crew, file_size_limit, forked, needs_processes
from ..tiny_disk import mount
from .suite import LEAST_STEPS, below, check, commit, enough, expect, is_commit_name, mark, names, saw_enough
from .trial import LOST, UNKNOWN, WON, Try, judge, tried

_DATA = b"a line of a commit\n" * 400
_LET_GO_SECONDS, _END_SECONDS = 0.5, 10.0
_ONE_STEP_SECONDS = 2.0


@check(7, guarantee=4)
def a_failed_write_leaves_nothing(context: Context) -> None:
    """Data that can't be written is an error and leaves no file, and the next writer isn't hindered."""
    make, root = context.make, context.root
    path = commit(root, 0)
    end = outcome(lambda: make().write(path, None))  # type: ignore[arg-type]
    require(end.error is not None, "a write of no bytes object was accepted")
    expect(FileNotFoundError, outcome(lambda: make().read(path)), "reading after a failed write")
    make().write(path, b"x")
    require(names(make().list_from(f"{root}/_delta_log/")) == [f"{0:020}.json"], "a failed write left a file")


# ---- killed, and paused ----


@check(7, guarantee=1, lasts=True)
def a_killed_writer_leaves_all_or_nothing(context: Context) -> None:
    """A writer is killed at many of its steps: the file is absent or whole, and the next writer isn't hindered."""
    needs_processes(context)
    with crew(context, 2) as [doomed, other]:
        killed = 0
        for number, step in enumerate(_steps(context, other, context.choose(60, 120, 600))):
            path = commit(context.root, number)
            where = doomed.call(killed_at, path, step)
            if not where:  # this write had fewer steps
                continue
            context.timeline[:] = [f"writer: is killed before {where}"]
            found = _found(context.make(), path)
            require(found in {None, _DATA}, f"a writer killed before {where} left {len(found or b'')} bytes")
            strange = [name for name in names(context.make().list_from(path)) if not is_commit_name(name)]
            require(not strange, f"a writer killed before {where} left {strange} in the listing")
            after = _next(other, path, context.choose(4, 20, 60), f"a writer was killed before {where}")
            if found is None and after.answer == LOST:  # the request arrived after the writer was killed
                found = _found(context.make(), path)
                require(found == _DATA, f"after a writer was killed before {where}, the next lost against {found!r}")
            right = {LOST} if found is not None else {WON, UNKNOWN}
            require(after.answer in right, f"after a writer was killed before {where}, the next one: {after.answer}")
            killed += 1
            context.evidence["steps killed at"] = killed
    context.timeline.clear()
    saw_enough(killed, _least(context), f"of {context.evidence['steps in the call']} steps were tried")


@check(7, guarantee=2, lasts=True)
def a_paused_writer_goes_on_safely(context: Context) -> None:
    """A writer is stopped at many of its steps while another writes the file, and then goes on: one of them wins."""
    needs_processes(context)
    with crew(context, 2) as [paused, other]:
        stopped = 0
        for number, step in enumerate(_steps(context, other, context.choose(20, 60, 300))):
            path = commit(context.root, number)
            where, answers = paused.call(paused_at, path, step)
            if not where:
                continue
            judge(context, path, answers, mark, f" when the first was stopped before {where}")
            stopped += 1
            context.evidence["steps stopped at"] = stopped
    saw_enough(stopped, _least(context), f"of {context.evidence['steps in the call']} steps were tried")


def _least(context: Context) -> int:
    steps: int = context.evidence["steps in the call"]
    return min(LEAST_STEPS, steps)


def _steps(context: Context, worker: Worker, wanted: int) -> Iterator[int]:
    """Steps of a write, evenly distributed at any time, as long as there is time."""
    context.make().write(commit(context.root, 10**9 + 1), _DATA)
    steps = worker.call(steps_of_a_write, commit(context.root, 10**9))
    context.evidence |= {"steps in the call": steps, "seed": context.seed}
    until = enough(context)
    for number, step in enumerate(spread_out(range(0, steps, 1 + steps // wanted))):
        late = time.monotonic() > until
        if late and (number >= LEAST_STEPS or context.time_left < _ONE_STEP_SECONDS):
            return
        yield step


def spread_out(steps: Sequence[int]) -> list[int]:
    """`steps` in an order in which each prefix is distributed over all of them: the first, the middle, the quarters."""
    bits = len(steps).bit_length()
    order = sorted(range(len(steps)), key=lambda number: f"{number:0{bits}b}"[::-1])
    return [steps[number] for number in order]


def steps_of_a_write(here: Station, path: str) -> int:
    """The number of steps of a write with a new client."""
    return count_steps(_begun(here, 0, path, _DATA))


def _begun(here: Station, writer: int, path: str, data: bytes) -> Callable[[], str]:
    """A prepared write with a new client; it returns its answer."""
    store = here.make()
    with contextlib.suppress(FileNotFoundError):
        store.read(path)  # work that a client does only once is done here
    return lambda: tried(writer, partial(store.write, path, data)).answer


def killed_at(here: Station, path: str, step: int) -> str:
    """Let a fork of this process write and kill itself before that step; returns where that was."""
    doomed = forked(lambda: _begun(here, 0, path, _DATA), step, signal.SIGKILL)
    doomed.end()
    return doomed.where


def paused_at(here: Station, path: str, step: int) -> tuple[str, list[Try]]:
    """Stop a forked process before that step of a write, let another fork write, and continue the first one."""
    stopped = forked(lambda: _begun(here, 0, path, mark(0)), step, signal.SIGSTOP)
    if not stopped.where:
        stopped.end()
        return "", []
    beside = forked(lambda: _begun(here, 1, path, mark(1)), None, signal.SIGSTOP)
    second = beside.answer(_LET_GO_SECONDS)  # None: it waits for a lock of the first one
    stopped.go_on()
    first = stopped.answer(_END_SECONDS) or "nothing: it is stuck"
    second = second or beside.answer(_END_SECONDS) or "nothing: it is blocked after the first has gone on"
    stopped.end()
    beside.end()
    return stopped.where, [Try(0, first, 0, 3, first), Try(1, second, 1, 2, second)]


def _next(other: Worker, path: str, seconds: float, after: str) -> Try:
    other.start(write_as_next, path)
    try:
        end = other.answer(seconds)
    except TimeoutError:
        broken(f"after {after} the next one is blocked for {seconds:.0f} s and more")
    if end.error is not None:
        raise end.error
    assert isinstance(end.value, Try)
    return end.value


def write_as_next(here: Station, path: str) -> Try:
    """Write with the client of this process."""
    return tried(1, partial(here.store.write, path, b"the next one's"))


def _found(store: LogStore, path: str) -> bytes | None:
    try:
        return store.read(path)
    except FileNotFoundError:
        return None


# ---- no room ----

_LIMIT = 20_000
_LARGE = b"a line that is too many\n" * 10_000


@check(7, guarantee=4)
def a_write_without_room_leaves_nothing(context: Context) -> None:
    """A write that hits a limit of the file size, or the end of the disk, leaves nothing, and the next one fits."""
    needs_processes(context)
    with crew(context, 1) as [worker]:
        _judge_room(worker.call(write_over_the_limit, f"{context.root}/limit"), "the limit of the file size", context)
    if scheme_of(context.root) != "file":
        context.evidence["full disk"] = "not tried: the store's disk isn't one of this machine"
        return
    with crew(context, 1) as [worker]:
        try:
            said = worker.call(write_over_the_disk, f"{context.root}/disk")
        except OSError as error:
            raise NotEstablishedError(f"a small disk can't be mounted here: {error}") from error
        _judge_room(said, "the end of the disk", context)


def _judge_room(said: Any, what: str, context: Context) -> None:
    answer, found, over, old, after, listed = said
    context.directories |= {f"{context.root}/limit/_delta_log"}
    context.evidence[what] = f"a create: {answer}; an overwrite: {over}; the next: {after}"
    require(found in {None, _LARGE}, f"{what}: a part of {len(found or b'')} bytes was left")
    require(answer != LOST, f"{what}: the writer was told that it lost, and nobody else had written")
    require((answer == WON) <= (found == _LARGE), f"{what}: the writer was told that it won, and its file isn't there")
    if answer != UNKNOWN:
        require((found == _LARGE) <= (answer == WON), f"{what}: the writer was told {answer}, and its file is there")
    require(old in {b"old", _LARGE}, f"{what}: an overwrite left {len(old or b'')} bytes, neither old nor new")
    right = LOST if found else WON
    require(after == right, f"{what}: the next writer was told {after}")
    require(set(listed) == {f"{0:020}.json", "_last_checkpoint"}, f"{what}: the listing shows {listed}")


def write_over_the_limit(here: Station, root: str) -> Any:
    """Write more than the size limit for files of this process."""
    here.store.write(below(root, "_last_checkpoint"), b"old", overwrite=True)
    with file_size_limit(_LIMIT):
        return _write_over(here.store, root)


def write_over_the_disk(here: Station, root: str) -> Any:
    """Write more than fits on a disk that only this process can see."""
    mount(local_path(root), 8 * _LIMIT)
    here.store.write(below(root, "_last_checkpoint"), b"old", overwrite=True)
    return _write_over(here.store, root)


def _write_over(store: LogStore, root: str) -> Any:
    path, checkpoint = commit(root, 0), below(root, "_last_checkpoint")
    end = tried(0, partial(store.write, path, _LARGE))
    found = _found(store, path)
    over = tried(0, partial(store.write, checkpoint, _LARGE, overwrite=True))
    old = _found(store, checkpoint)
    after = tried(1, partial(store.write, path, b"short"))
    with contextlib.suppress(FileNotFoundError):
        listed = names(store.list_from(f"{root}/_delta_log/"))
    return end.answer, found, over.answer, old, after.answer, listed
