"""Checks 1, 2, 4 and 18: concurrent writers of one file, in threads and processes, and the log that they write."""

import contextlib
import random
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from itertools import count

from tablelog.logstore import LogStore

from ..failures import NotEstablishedError, broken, require
from ..harness.interleave import outcome
from ..harness.processes import Station, crew, needs_processes, together
from ..model import Context
from .suite import check, commit, commit_names, enough, expect, latest_end, mark, names, saw_enough, varied_version
from .trial import LOST, REFUSED, UNKNOWN, WON, Overlap, Try, in_threads, judge, tried

_BATCH = 10
_SWITCH_SECONDS = 1e-5
_LATE_SECONDS = 0.002
_LEAST_ROUNDS, _LEAST_COMMITS = 3, 2
_CROWD, _CROWDED_ROUND = 4, 8
"""Every eighth round of a race of threads has four times as many writers."""
_FIRST_VERSION = 9_990
"""The first version in the race of processes, so that the versions soon exceed 9,999."""


@check(1, guarantee=2)
def second_writer_loses(context: Context) -> None:
    """Writing a file that exists, even an empty one, raises FileExistsError and doesn't change the file."""
    make, root = context.make, context.root
    for version, data in enumerate((b"first", b"")):
        path = commit(root, version)
        make().write(path, data)
        for loser in (b"second", b"", data):
            expect(FileExistsError, outcome(lambda p=path, d=loser: make().write(p, d)), "writing a file that exists")  # type: ignore[misc]
        require(make().read(path) == data, "a losing writer changed the file")


@check(1, guarantee=2, lasts=True)
def one_winner_among_threads(context: Context) -> None:
    """When several threads write one file at the same time, exactly one wins; late writers lose."""
    writers = context.choose(8, 8, 16)
    overlap, until = Overlap(), enough(context)
    stores = [context.make() for _ in range(_CROWD * writers)]
    with frequent_switches():
        for number in range(context.choose(40, 200, 1000)):
            if number >= _LEAST_ROUNDS and time.monotonic() > until:
                break
            path = commit(context.root, varied_version(number))
            among = stores if number % _CROWDED_ROUND == _LEAST_ROUNDS - 1 else stores[:writers]
            tries = round_of_threads(path, among, random.Random(f"{context.seed} {number}"))
            overlap.add(tries)
            judge(context, path, tries, mark)
    overlap.record(context, writers)
    context.evidence["most writers in a round"] = len(stores)
    overlap.saw_enough(_LEAST_ROUNDS)


def round_of_threads(path: str, stores: list[LogStore], dice: random.Random) -> list[Try]:
    """Start all writers together, except one that starts when another has ended, and some that start slightly later."""
    barrier = threading.Barrier(len(stores))
    one_ended = threading.Event()
    last = dice.randrange(len(stores))
    delays = [dice.choice((0.0, 0.0, dice.uniform(0, _LATE_SECONDS))) for _ in stores]
    tries: list[Try] = []

    def write(number: int) -> None:
        barrier.wait()
        if number == last:
            one_ended.wait()
        else:
            _spin(delays[number])
        tries.append(tried(number, partial(stores[number].write, path, mark(number))))
        one_ended.set()

    in_threads(len(stores), write)
    return tries


@contextlib.contextmanager
def frequent_switches() -> Iterator[None]:
    """Make Python switch threads often: with the default of 5 ms a short race ends before another thread starts."""
    original = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(original)


def _spin(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


@check(2, guarantee=2, lasts=True)
def one_winner_among_processes(context: Context) -> None:
    """When processes with their own clients write one file at the same time, exactly one wins; late writers lose."""
    needs_processes(context)
    writers = context.choose(4, 6, 8)
    overlap = Overlap()
    with crew(context, writers) as workers:
        until, latest = enough(context), latest_end(context)
        batches = context.choose(6, 30, 100)
        for batch in count():
            # On a busy machine the processes may run one after the other by chance. Then more rounds are needed.
            if overlap.is_race and (batch >= batches or time.monotonic() > until):
                break
            if batch and time.monotonic() > latest:
                break
            first = batch * _BATCH
            tries_of_workers = together(workers, race, context.root, first, _BATCH, context.seed)
            for number in range(_BATCH):
                tries = [of_worker[number] for of_worker in tries_of_workers]
                overlap.add(tries)
                judge(context, commit(context.root, varied_version(first + number)), tries, mark)
    overlap.record(context, writers)
    overlap.saw_enough(_LEAST_ROUNDS)


def race(here: Station, root: str, first: int, rounds: int, seed: int) -> list[Try]:
    """Write `rounds` files, each at the same time as the other workers, or sometimes slightly later."""
    tries = []
    for number in range(first, first + rounds):
        dice = random.Random(f"{seed} {number} {here.number}")
        delay = dice.choice((0.0, 0.0, 0.0, dice.uniform(0, _LATE_SECONDS)))
        here.meet(number + 1)
        _spin(delay)
        path = commit(root, varied_version(number))
        tries.append(tried(here.number, partial(here.store.write, path, mark(here.number))))
    return tries


@check(4, guarantee=2, lasts=True)
def processes_make_one_contiguous_log(context: Context) -> None:
    """Processes that each commit the next free version create a log without gaps, lost commits or duplicates."""
    needs_processes(context)
    writers, commits = context.choose(4, 6, 8), context.choose(15, 50, 200)
    with crew(context, writers) as workers:
        until = enough(context)
        commits_of_workers = together(workers, append, context.root, _FIRST_VERSION, commits, until)
    reader = context.make()
    versions: dict[int, str] = {}
    for of_worker in commits_of_workers:
        for version, token in of_worker:
            require(version not in versions, f"two writers won version {version}")
            versions[version] = token
    end = _FIRST_VERSION + len(versions)
    require(sorted(versions) == list(range(_FIRST_VERSION, end)), "the versions that the writers won have a gap")
    listed = names(reader.list_from(commit(context.root, 0)))
    require(
        listed == commit_names(_FIRST_VERSION, end),
        f"the writers won {len(versions)} commits, but a listing has {len(listed)}",
    )
    for version, token in versions.items():
        require(
            reader.read(commit(context.root, version)) == token.encode(),
            f"version {version} doesn't have its writer's data",
        )
    counts = [len(of_worker) for of_worker in commits_of_workers]
    context.evidence |= {"writers": writers, "commits": len(versions), "commits of each": counts}
    saw_enough(min(counts), _LEAST_COMMITS, "commits were made by the slowest writer")


def append(here: Station, root: str, version: int, commits: int, until: float) -> list[tuple[int, str]]:
    """Make commits one after another, each at the first free version from `version` on.

    Returns (version, token) of each.
    """
    done: list[tuple[int, str]] = []
    here.meet(1)
    for number in range(commits):
        if number >= _LEAST_COMMITS and time.monotonic() > until:
            break
        token = f"{here.number}-{number}"
        while not _won(here.store, commit(root, version), token):
            version += 1
        done.append((version, token))
        version += 1
    return done


def _won(store: LogStore, path: str, token: str) -> bool:
    """Commit `token` at `path`; False if another commit is there. After "unknown" the content of the file decides.

    A write with an unknown outcome may be applied later, even after the next attempt was sent. So after it a file that
    exists may be this writer's own.
    """
    doubtful = False
    while True:
        end = tried(0, partial(store.write, path, token.encode()))
        if end.answer == WON:
            return True
        if end.answer == LOST and not doubtful:
            return False
        if end.answer == REFUSED:
            raise NotEstablishedError(f"the store rejected a commit: {end.said}")
        if end.answer not in {LOST, UNKNOWN}:
            broken(f"a commit ended with {end.said}")
        doubtful = True
        with contextlib.suppress(FileNotFoundError):
            return store.read(path) == token.encode()


@check(18, guarantee=0, lasts=True)
def the_races_overlap(context: Context) -> None:
    """Concurrent writes overlap in time on this store, so that the results of the races are meaningful."""
    writers = 4
    overlap, until = Overlap(), enough(context)
    stores = [context.make() for _ in range(writers)]
    with frequent_switches():
        for number in range(context.choose(1000, 5000, 20000)):
            if number >= 20 and (max(overlap.depths) > 1 or time.monotonic() > until):
                break
            overlap.add(round_of_threads(commit(context.root, number), stores, random.Random(number)))
    overlap.record(context, writers)
    if max(overlap.depths) < 2:
        raise NotEstablishedError("no two writes overlapped in time: races prove nothing here")
