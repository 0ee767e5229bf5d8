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
from ..interleave import outcome
from ..model import Context
from ..processes import Station, crew, needs_processes, together
from .suite import check, commit, commit_names, enough, expect, latest_end, mark, names, saw_enough, varied_version
from .trial import LOST, UNKNOWN, WON, Overlap, Try, judge, tried

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
    """A file that is there stays as it is, the empty one too, and the writer is told."""
    make, root = context.make, context.root
    for version, data in enumerate((b"first", b"")):
        path = commit(root, version)
        make().write(path, data)
        for loser in (b"second", b"", data):
            expect(FileExistsError, outcome(lambda p=path, d=loser: make().write(p, d)), "writing a file that exists")  # type: ignore[misc]
        require(make().read(path) == data, "a losing writer changed the file")


@check(1, guarantee=2, lasts=True)
def one_winner_among_threads(context: Context) -> None:
    """Of threads that write one file at once exactly one wins, and the late ones lose."""
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
    """Start all at once, except one that starts when another has ended, and some that start a little later."""
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

    threads = [threading.Thread(target=write, args=(number,)) for number in range(len(stores))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tries


@contextlib.contextmanager
def frequent_switches() -> Iterator[None]:
    """Let Python's threads switch often: with the usual 5 ms a short race is over before another thread starts."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _spin(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


@check(2, guarantee=2, lasts=True)
def one_winner_among_processes(context: Context) -> None:
    """Of processes with clients of their own that write one file at once exactly one wins, and the late ones lose."""
    needs_processes(context)
    writers = context.choose(4, 6, 8)
    overlap = Overlap()
    with crew(context, writers) as workers:
        until, latest = enough(context), latest_end(context)
        batches = context.choose(6, 30, 100)
        for batch in count():
            # On a busy machine the processes may take turns by chance. Then more rounds are needed.
            if overlap.is_race and (batch >= batches or time.monotonic() > until):
                break
            if batch and time.monotonic() > latest:
                break
            first = batch * _BATCH
            found = together(workers, race, context.root, first, _BATCH, context.seed)
            for number in range(_BATCH):
                tries = [tries[number] for tries in found]
                overlap.add(tries)
                judge(context, commit(context.root, varied_version(first + number)), tries, mark)
    overlap.record(context, writers)
    overlap.saw_enough(_LEAST_ROUNDS)


def race(here: Station, root: str, first: int, rounds: int, seed: int) -> list[Try]:
    """Write `rounds` files, each at the same time as the others, or sometimes a little later."""
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
    """Processes that each take the next free version leave no hole, lose no commit and make none twice."""
    needs_processes(context)
    writers, commits = context.choose(4, 6, 8), context.choose(15, 50, 200)
    with crew(context, writers) as workers:
        until = enough(context)
        made = together(workers, append, context.root, _FIRST_VERSION, commits, until)
    reader = context.make()
    versions: dict[int, str] = {}
    for mine in made:
        for version, token in mine:
            require(version not in versions, f"two writers were told that they made version {version}")
            versions[version] = token
    end = _FIRST_VERSION + len(versions)
    require(
        sorted(versions) == list(range(_FIRST_VERSION, end)), "the versions that the writers were told of have a hole"
    )
    listed = names(reader.list_from(commit(context.root, 0)))
    require(
        listed == commit_names(_FIRST_VERSION, end),
        f"{len(listed)} commits are listed, and {len(versions)} were made",
    )
    for version, token in versions.items():
        require(reader.read(commit(context.root, version)) == token.encode(), f"version {version} isn't its writer's")
    context.evidence |= {"writers": writers, "commits": len(versions), "commits of each": [len(mine) for mine in made]}
    saw_enough(min(len(mine) for mine in made), _LEAST_COMMITS, "commits were made by the slowest writer")


def append(here: Station, root: str, version: int, commits: int, until: float) -> list[tuple[int, str]]:
    """Make commits one after another, each at the first free version from `version` on.

    Returns (version, token) of each.
    """
    made: list[tuple[int, str]] = []
    here.meet(1)
    for number in range(commits):
        if number >= _LEAST_COMMITS and time.monotonic() > until:
            break
        token = f"{here.number}-{number}"
        while not _is_made(here.store, commit(root, version), token):
            version += 1
        made.append((version, token))
        version += 1
    return made


def _is_made(store: LogStore, path: str, token: str) -> bool:
    """Whether the version has this commit; False: another's. After "unknown" the content of the file decides."""
    while True:
        end = tried(0, partial(store.write, path, token.encode()))
        if end.answer == WON:
            return True
        if end.answer == LOST:
            return False
        if end.answer != UNKNOWN:
            broken(f"a commit among many gave {end.said}")
        with contextlib.suppress(FileNotFoundError):
            return store.read(path) == token.encode()


@check(18, guarantee=0, lasts=True)
def the_races_overlap(context: Context) -> None:
    """Writers of this store really are within their calls at one time here, so that the races say something."""
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
        raise NotEstablishedError("no two writers were ever within their calls at one time: races prove nothing here")
