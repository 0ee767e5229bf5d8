"""Check 19: what holds for a few files and small versions holds for thousands of files and for large versions."""

import random
import time
from collections.abc import Callable

from tablelog.logstore import FileStatus, LogStore

from ..failures import require
from ..interleave import outcome
from ..model import Context
from ..proxy import Exchange, Proxy, Reply
from .forced import one_winner
from .population import PAGE, fill, needs_pages
from .races import frequent_switches, round_of_threads
from .suite import (
    at,
    below,
    check,
    commit,
    commit_names,
    enough,
    expect,
    interleavings,
    mark,
    names,
    saw_enough,
    value_of,
    varied_version,
)
from .trial import Overlap, judge

_LEAST_ROUNDS = 3
_RESERVED_SECONDS = 6.0
"""The time that a check reserves for its work in the full directory, in seconds."""


@check(19, guarantee=2, lasts=True)
def one_winner_in_a_directory_of_thousands(context: Context) -> None:
    """Among more than 1,000 files writers exclude each other as among few: in turn, in races and held at steps."""
    root, make = context.root, context.make
    made = fill(context, 0, context.choose(PAGE + 50, 2 * PAGE + 500, 10 * PAGE + 500), _RESERVED_SECONDS)
    context.evidence["files"] = made
    needs_pages(made)
    first, second = make(), make()
    for version in (0, PAGE - 1, PAGE, made - 1):
        path = commit(root, version)
        end = outcome(lambda p=path: second.write(p, b"second"))  # type: ignore[misc]
        expect(FileExistsError, end, f"writing version {version} again, in a directory of {made} files")
        require(first.read(path) == b"", f"version {version} of {made} was changed by a writer that lost")
    for case in interleavings(
        context,
        lambda n: first.write(commit(root, made + n), b"first" * 100),
        lambda n: second.write(commit(root, made + n), b"second"),
        cases=context.choose(20, 100, 500),
    ):
        one_winner(context, case, commit(root, made + case.step), b"first" * 100, b"second")
        second.delete(commit(root, made + case.step))
    writers = 8
    overlap, until = Overlap(), enough(context)
    stores = [make() for _ in range(writers)]
    with frequent_switches():
        for number in range(context.choose(5, 20, 100)):
            if number >= _LEAST_ROUNDS and time.monotonic() > until:
                break
            path = commit(root, made + number)
            tries = round_of_threads(path, stores, random.Random(f"{context.seed} {number}"))
            overlap.add(tries)
            judge(context, path, tries, mark, f" in a directory of {made} files")
    overlap.record(context, writers)
    overlap.saw_enough(_LEAST_ROUNDS)


_LARGE_VERSIONS = (9_999, 10_000, 2**31 - 1, 2**31, 2**32, 10**10, 2**53, 2**53 + 1, 10**18, 2**63 - 1)


@check(19, guarantee=2, lasts=True)
def one_winner_at_large_versions(context: Context) -> None:
    """Files of large versions, up to 2**63 - 1, are won once, keep their bytes and are listed in their order."""
    root, make = context.root, context.make
    for number, version in enumerate(_LARGE_VERSIONS):
        path = commit(root, version)
        make().write(path, mark(number))
        end = outcome(lambda p=path: make().write(p, b"second"))  # type: ignore[misc]
        expect(FileExistsError, end, f"writing version {version} again")
    for number, version in enumerate(_LARGE_VERSIONS):
        require(make().read(commit(root, version)) == mark(number), f"version {version} isn't its writer's file")
        listed = names(make().list_from(commit(root, version)))
        expected = [f"{later:020}.json" for later in _LARGE_VERSIONS[number:]]
        require(listed == expected, f"from version {version} on were listed {listed}")
    first, second = make(), make()
    table = f"{root}/held"
    context.directories.add(f"{table}/_delta_log")
    first.write(below(table, "_first"), b"")

    def path_of(case: int) -> str:
        return commit(table, max(10_000, varied_version(case)) + case)

    for case in interleavings(
        context,
        lambda n: first.write(path_of(n), b"first"),
        lambda n: second.write(path_of(n), b"second"),
        cases=context.choose(30, 200, 1000),
    ):
        one_winner(context, case, path_of(case.step), b"first", b"second")
        second.delete(path_of(case.step))


@check(19, guarantee=3, lasts=True)
def lists_several_pages_while_others_write(context: Context) -> None:
    """A listing of more than 1,000 names is held, also between pages, and names come and go: it shows the rest once."""
    made = fill(context, 0, context.choose(PAGE + 10, 2 * PAGE + 100, 5 * PAGE + 100), _RESERVED_SECONDS)
    context.evidence["files"] = made
    needs_pages(made)
    log = _Growing(context, made)
    if context.target.endpoint is not None and context.target.through is not None:
        _held_at_requests(context, log, context.target.endpoint, context.target.through)
        return
    reader = context.make()
    for case in interleavings(
        context, lambda _n: log.listed_by(reader), log.change, log.prepare, cases=context.choose(6, 40, 200)
    ):
        value_of(case.between, "writing during a listing", case)
        there, statuses = value_of(case.held, "listing while others write", case)
        log.judge(there, statuses, at(case))
    saw_enough(log.commits - made, 2, "commits were made meanwhile")


class _Growing:
    """A log that changes during listings: an early name is created or removed, and two commits are made."""

    def __init__(self, context: Context, commits: int) -> None:
        self.commits = commits
        self._root, self._writer = context.root, context.make()

    def _early(self, case: int) -> str:
        return below(self._root, f"{0:020}.{case}.early")

    def prepare(self, case: int) -> None:
        """Prepare a listing: a name that will be removed must exist."""
        if case % 2:
            self._writer.write(self._early(case), b"")

    def change(self, case: int) -> None:
        """Change the log while the listing is held."""
        if case % 2:
            self._writer.delete(self._early(case))
        else:
            self._writer.write(self._early(case), b"")
        for _ in range(2):
            self._writer.write(commit(self._root, self.commits), b"x")
            self.commits += 1

    def listed_by(self, reader: LogStore) -> tuple[int, list[FileStatus]]:
        """The number of commits before the listing, and the listing."""
        return self.commits, list(reader.list_from(f"{self._root}/_delta_log/"))

    @staticmethod
    def judge(there: int, statuses: list[FileStatus], where: str) -> None:
        """Require that a listing shows the commits that were `there` before, and no later one without the earlier."""
        listed = names(iter(statuses))
        require(listed == sorted(set(listed)), f"a listing shows a name twice, or is not in order {where}")
        found = [name for name in listed if not name.endswith(".early")]
        require(
            len(found) >= there and found == commit_names(0, len(found)),
            f"{there} commits were there, and of them and the 2 that were made meanwhile a listing shows {len(found)}, "
            f"and not the first ones {where}",
        )


def _held_at_requests(
    context: Context, log: _Growing, endpoint: str, through: Callable[[str], Callable[[], LogStore]]
) -> None:
    """Hold a listing before each of its requests in turn, so between any two pages. Some services have only one."""
    held_at = count = 0

    def decide(exchange: Exchange) -> Reply | None:
        nonlocal count
        count += 1
        if count == held_at:
            log.change(held_at)
        return exchange.forward()

    with Proxy(endpoint, decide) as proxy:
        reader = through(proxy.url)()
        log.listed_by(reader)  # work that a client does only once is done here
        count = 0
        log.listed_by(reader)
        requests = count
        saw_enough(requests, 1, "requests of a listing came through the proxy")
        for number in range(1, requests + 1):
            if context.time_left < 1:
                break
            log.prepare(number)
            held_at, count = number, 0
            there, statuses = log.listed_by(reader)
            log.judge(there, statuses, f"when the listing was held before request {number} of {requests}")
            context.evidence |= {"requests held at": number, "requests in a listing": requests}
    saw_enough(context.evidence.get("requests held at", 0), requests, f"of {requests} requests of a listing were held")
