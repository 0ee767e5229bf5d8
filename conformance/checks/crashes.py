"""Check 7: an interrupted write leaves the whole file or none, and doesn't block other writers."""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from tablelog.logstore import LogStore
from tablelog.logstore.common.uri import local_path, scheme_of

from ..failures import NotEstablishedError, broken, require
from ..harness.interleave import count_steps, outcome
from ..harness.processes import Station, Worker, crew, file_size_limit, forked, needs_processes
from ..harness.tiny_disk import mount
from ..model import Context
from .suite import LEAST_STEPS, below, check, commit, enough, expect, is_commit_name, mark, names, saw_enough
from .trial import LOST, UNKNOWN, WON, Try, judge, tried

_DATA = b"a line of a commit\n" * 400
_LET_GO_SECONDS, _END_SECONDS = 0.5, 10.0
_ONE_STEP_SECONDS = 2.0


@check(7, guarantee=4)
def a_failed_write_leaves_nothing(context: Context) -> None:
    """A write of invalid data raises an error and leaves no file; the next writer isn't blocked."""
    make, root = context.make, context.root
    path = commit(root, 0)
    end = outcome(lambda: make().write(path, None))  # type: ignore[arg-type]
    require(end.error is not None, "a write of None instead of bytes raised no error")
    expect(FileNotFoundError, outcome(lambda: make().read(path)), "reading after a failed write")
    make().write(path, b"x")
    require(names(make().list_from(f"{root}/_delta_log/")) == [f"{0:020}.json"], "a failed write left a file")


# ---- killed, and paused ----


@check(7, guarantee=1, lasts=True)
def a_killed_writer_leaves_all_or_nothing(context: Context) -> None:
    """A writer is killed at many steps of its write: the file is absent or complete; the next writer isn't blocked."""
    needs_processes(context)
    with crew(context, 2) as [first, other]:
        killed = 0
        for number, step in enumerate(_steps(context, other, context.choose(60, 120, 600))):
            path = commit(context.root, number)
            where = first.call(killed_at, path, step)
            if not where:  # this write had fewer steps
                continue
            context.timeline[:] = [f"writer: is killed before {where}"]
            content = _content(context.make(), path)
            require(
                content in {None, _DATA}, f"a writer killed before {where} left a file of {len(content or b'')} bytes"
            )
            other_names = [name for name in names(context.make().list_from(path)) if not is_commit_name(name)]
            require(not other_names, f"a writer killed before {where} left {other_names} in the listing")
            after = _next(other, path, context.choose(4, 20, 60), f"a writer was killed before {where}")
            if content is None and after.answer == LOST:  # the request arrived after the writer was killed
                content = _content(context.make(), path)
                require(
                    content == _DATA,
                    f"after a writer was killed before {where}, the next writer lost, but the file has {content!r}",
                )
            expected = {LOST} if content is not None else {WON, UNKNOWN}
            require(
                after.answer in expected,
                f"after a writer was killed before {where}, the answer to the next writer was {after.answer}",
            )
            killed += 1
            context.evidence["steps killed at"] = killed
    context.timeline.clear()
    saw_enough(killed, _least(context), f"of {context.evidence['steps in the call']} steps were tried")


@check(7, guarantee=2, lasts=True)
def a_paused_writer_goes_on_safely(context: Context) -> None:
    """A writer is paused at many steps while another writes the same file, and then continues: exactly one wins."""
    needs_processes(context)
    with crew(context, 2) as [paused, other]:
        stopped = 0
        for number, step in enumerate(_steps(context, other, context.choose(20, 60, 300))):
            path = commit(context.root, number)
            where, answers = paused.call(paused_at, path, step)
            if not where:
                continue
            judge(context, path, answers, mark, f" when the first writer was paused before {where}")
            stopped += 1
            context.evidence["steps stopped at"] = stopped
    saw_enough(stopped, _least(context), f"of {context.evidence['steps in the call']} steps were tried")


def _least(context: Context) -> int:
    steps: int = context.evidence["steps in the call"]
    return min(LEAST_STEPS, steps)


def _steps(context: Context, worker: Worker, wanted: int) -> Iterator[int]:
    """Yield steps of a write while there is time; the steps so far are always evenly distributed."""
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
    """`steps` in an order whose every prefix is evenly distributed: the first, the middle, the quarters, ..."""
    bits = len(steps).bit_length()
    order = sorted(range(len(steps)), key=lambda number: f"{number:0{bits}b}"[::-1])
    return [steps[number] for number in order]


def steps_of_a_write(here: Station, path: str) -> int:
    """The number of steps of a write with a new client."""
    return count_steps(_begun(here, 0, path, _DATA))


def _begun(here: Station, writer: int, path: str, data: bytes) -> Callable[[], str]:
    """Prepare a write with a new client. The returned function does the write and returns the answer."""
    store = here.make()
    with contextlib.suppress(FileNotFoundError):
        store.read(path)  # the client does its one-time work here
    return lambda: tried(writer, partial(store.write, path, data)).answer


def killed_at(here: Station, path: str, step: int) -> str:
    """Fork this process; the child writes and kills itself before that step. Returns the place of the step."""
    child = forked(lambda: _begun(here, 0, path, _DATA), step, signal.SIGKILL)
    child.end()
    return child.where


def paused_at(here: Station, path: str, step: int) -> tuple[str, list[Try]]:
    """Pause a forked process before that step of a write, let another fork write, then continue the first one."""
    stopped = forked(lambda: _begun(here, 0, path, mark(0)), step, signal.SIGSTOP)
    if not stopped.where:
        stopped.end()
        return "", []
    other = forked(lambda: _begun(here, 1, path, mark(1)), None, signal.SIGSTOP)
    second = other.answer(_LET_GO_SECONDS)  # None: it waits for a lock of the first one
    stopped.go_on()
    first = stopped.answer(_END_SECONDS) or "no answer: it hangs"
    second = second or other.answer(_END_SECONDS) or "no answer: it is still blocked after the first has continued"
    stopped.end()
    other.end()
    return stopped.where, [Try(0, first, 0, 3, first), Try(1, second, 1, 2, second)]


def _next(other: Worker, path: str, seconds: float, after: str) -> Try:
    other.start(write_as_next, path)
    try:
        end = other.answer(seconds)
    except TimeoutError:
        broken(f"after {after}, the next writer is blocked for at least {seconds:.0f} s")
    if end.error is not None:
        raise end.error
    assert isinstance(end.value, Try)
    return end.value


def write_as_next(here: Station, path: str) -> Try:
    """Write with the client of this process."""
    return tried(1, partial(here.store.write, path, b"of the next writer"))


def _content(store: LogStore, path: str) -> bytes | None:
    try:
        return store.read(path)
    except FileNotFoundError:
        return None


# ---- a full disk ----

_LIMIT = 20_000
_LARGE = b"a line of a large commit\n" * 10_000


@check(7, guarantee=4)
def a_write_without_room_leaves_nothing(context: Context) -> None:
    """A write that exceeds the file size limit or the disk space leaves no partial file, and the next write works."""
    needs_processes(context)
    with crew(context, 1) as [worker]:
        _judge_room(worker.call(write_over_the_limit, f"{context.root}/limit"), "the file size limit", context)
    if scheme_of(context.root) != "file":
        context.evidence["full disk"] = "not tested: the store doesn't use a disk of this machine"
        return
    with crew(context, 1) as [worker]:
        try:
            result = worker.call(write_over_the_disk, f"{context.root}/disk")
        except OSError as error:
            raise NotEstablishedError(f"a small disk can't be mounted here: {error}") from error
        _judge_room(result, "a full disk", context)


def _judge_room(result: Any, what: str, context: Context) -> None:
    answer, created, over, overwritten, after, listed = result
    context.directories |= {f"{context.root}/limit/_delta_log"}
    context.evidence[what] = f"a create: {answer}; an overwrite: {over}; the next: {after}"
    require(created in {None, _LARGE}, f"{what}: a partial file of {len(created or b'')} bytes was left")
    require(answer != LOST, f"{what}: the write lost, but no other writer had written the file")
    require((answer == WON) <= (created == _LARGE), f"{what}: the write won, but its file doesn't exist")
    if answer != UNKNOWN:
        require((created == _LARGE) <= (answer == WON), f"{what}: the answer was {answer}, but the file exists")
    require(
        overwritten in {b"old", _LARGE},
        f"{what}: an overwrite left {len(overwritten or b'')} bytes, neither the old nor the new file",
    )
    expected = LOST if created else WON
    require(after == expected, f"{what}: the answer to the next writer was {after}, and must be {expected}")
    require(set(listed) == {f"{0:020}.json", "_last_checkpoint"}, f"{what}: the listing shows {listed}")


def write_over_the_limit(here: Station, root: str) -> Any:
    """Write a file that exceeds the file size limit of this process."""
    here.store.write(below(root, "_last_checkpoint"), b"old", overwrite=True)
    with file_size_limit(_LIMIT):
        return _write_over(here.store, root)


def write_over_the_disk(here: Station, root: str) -> Any:
    """Write a file that doesn't fit on a small disk, which only this process can see."""
    mount(local_path(root), 8 * _LIMIT)
    here.store.write(below(root, "_last_checkpoint"), b"old", overwrite=True)
    return _write_over(here.store, root)


def _write_over(store: LogStore, root: str) -> Any:
    path, checkpoint = commit(root, 0), below(root, "_last_checkpoint")
    end = tried(0, partial(store.write, path, _LARGE))
    created = _content(store, path)
    over = tried(0, partial(store.write, checkpoint, _LARGE, overwrite=True))
    overwritten = _content(store, checkpoint)
    after = tried(1, partial(store.write, path, b"short"))
    with contextlib.suppress(FileNotFoundError):
        listed = names(store.list_from(f"{root}/_delta_log/"))
    return end.answer, created, over.answer, overwritten, after.answer, listed
