"""Check 19: the guarantees also hold for thousands of files and for large versions."""

import random
import time
from collections.abc import Callable

from tablelog.logstore import FileStatus, LogStore

from ..failures import require
from ..harness.interleave import outcome
from ..harness.proxy import Exchange, Proxy, Reply
from ..model import Context
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
    """In a directory of more than 1,000 files exactly one writer of a file wins, in races and at each step."""
    root, make = context.root, context.make
    files = fill(context, 0, context.choose(PAGE + 50, 2 * PAGE + 500, 10 * PAGE + 500), _RESERVED_SECONDS)
    context.evidence["files"] = files
    needs_pages(files)
    first, second = make(), make()
    for version in (0, PAGE - 1, PAGE, files - 1):
        path = commit(root, version)
        end = outcome(lambda p=path: second.write(p, b"second"))  # type: ignore[misc]
        expect(FileExistsError, end, f"writing version {version} again, in a directory of {files} files")
        require(first.read(path) == b"", f"a writer that lost changed version {version} of {files}")
    for case in interleavings(
        context,
        lambda n: first.write(commit(root, files + n), b"first" * 100),
        lambda n: second.write(commit(root, files + n), b"second"),
        cases=context.choose(20, 100, 500),
    ):
        one_winner(context, case, commit(root, files + case.step), b"first" * 100, b"second")
        second.delete(commit(root, files + case.step))
    writers = 8
    overlap, until = Overlap(), enough(context)
    stores = [make() for _ in range(writers)]
    with frequent_switches():
        for number in range(context.choose(5, 20, 100)):
            if number >= _LEAST_ROUNDS and time.monotonic() > until:
                break
            path = commit(root, files + number)
            tries = round_of_threads(path, stores, random.Random(f"{context.seed} {number}"))
            overlap.add(tries)
            judge(context, path, tries, mark, f" in a directory of {files} files")
    overlap.record(context, writers)
    overlap.saw_enough(_LEAST_ROUNDS)


_LARGE_VERSIONS = (9_999, 10_000, 2**31 - 1, 2**31, 2**32, 10**10, 2**53, 2**53 + 1, 10**18, 2**63 - 1)


@check(19, guarantee=2, lasts=True)
def one_winner_at_large_versions(context: Context) -> None:
    """Files of versions up to 2**63 - 1 are won once, keep their bytes and are listed in order."""
    root, make = context.root, context.make
    for number, version in enumerate(_LARGE_VERSIONS):
        path = commit(root, version)
        make().write(path, mark(number))
        end = outcome(lambda p=path: make().write(p, b"second"))  # type: ignore[misc]
        expect(FileExistsError, end, f"writing version {version} again")
    for number, version in enumerate(_LARGE_VERSIONS):
        require(make().read(commit(root, version)) == mark(number), f"version {version} doesn't have its writer's data")
        listed = names(make().list_from(commit(root, version)))
        expected = [f"{later:020}.json" for later in _LARGE_VERSIONS[number:]]
        require(listed == expected, f"a listing from version {version} on has {listed}")
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
    """A listing of more than 1,000 names is stopped while names are added and removed: it shows all others once."""
    files = fill(context, 0, context.choose(PAGE + 10, 2 * PAGE + 100, 5 * PAGE + 100), _RESERVED_SECONDS)
    context.evidence["files"] = files
    needs_pages(files)
    log = _Growing(context, files)
    if context.target.endpoint is not None and context.target.through is not None:
        _held_at_requests(context, log, context.target.endpoint, context.target.through)
        return
    reader = context.make()
    for case in interleavings(
        context, lambda _n: log.listed_by(reader), log.change, log.prepare, cases=context.choose(6, 40, 200)
    ):
        value_of(case.between, "writing during a listing", case)
        commits_before, statuses = value_of(case.held, "listing while others write", case)
        log.judge(commits_before, statuses, at(case))
    saw_enough(log.commits - files, 2, "commits were made during the listings")


class _Growing:
    """A log that changes during listings: a name at the start is created or removed, and two commits are made."""

    def __init__(self, context: Context, commits: int) -> None:
        self.commits = commits
        self._root, self._writer = context.root, context.make()

    def _early(self, case: int) -> str:
        return below(self._root, f"{0:020}.{case}.early")

    def prepare(self, case: int) -> None:
        """Prepare a listing: create the name that will be removed during it."""
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
    def judge(commits_before: int, statuses: list[FileStatus], where: str) -> None:
        """Require that a listing shows all commits made before it, and no later commit without the earlier ones."""
        listed = names(iter(statuses))
        require(listed == sorted(set(listed)), f"a listing shows a name twice, or isn't in order {where}")
        commits = [name for name in listed if not name.endswith(".early")]
        require(
            len(commits) >= commits_before and commits == commit_names(0, len(commits)),
            f"a listing shows {len(commits)} commits, but not all of the {commits_before} commits that existed before "
            f"it, or a later commit without an earlier one {where}",
        )


def _held_at_requests(
    context: Context, log: _Growing, endpoint: str, through: Callable[[str], Callable[[], LogStore]]
) -> None:
    """Stop a listing before each of its requests, so between any two pages. Some services send all in one page."""
    held_at = count = 0

    def decide(exchange: Exchange) -> Reply | None:
        nonlocal count
        count += 1
        if count == held_at:
            log.change(held_at)
        return exchange.forward()

    with Proxy(endpoint, decide) as proxy:
        reader = through(proxy.url)()
        log.listed_by(reader)  # the client does its one-time work here
        count = 0
        log.listed_by(reader)
        requests = count
        saw_enough(requests, 1, "requests of a listing reached the proxy")
        for number in range(1, requests + 1):
            if context.time_left < 1:
                break
            log.prepare(number)
            held_at, count = number, 0
            commits_before, statuses = log.listed_by(reader)
            log.judge(commits_before, statuses, f"when the listing was stopped before request {number} of {requests}")
            context.evidence |= {"requests held at": number, "requests in a listing": requests}
    saw_enough(
        context.evidence.get("requests held at", 0), requests, f"of {requests} requests of a listing were stopped"
    )
