"""Check 19: what holds for a few files and small versions holds for thousands of files and for large versions."""

import random
import time

from tablelog.logstore import FileStatus

from ..failures import require
from ..interleave import outcome
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
"""So much of the time of a check stays for what is done in the directory when it is full."""


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
        cases=context.choose(30, 100, 500),
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
        cases=context.choose(60, 200, 1000),
    ):
        one_winner(context, case, path_of(case.step), b"first", b"second")
        second.delete(path_of(case.step))


@check(19, guarantee=3, lasts=True)
def lists_several_pages_while_others_write(context: Context) -> None:
    """A listing of several pages is stopped at its steps while early names come and go: it shows all others once."""
    root, make = context.root, context.make
    made = fill(context, 0, context.choose(PAGE + 10, 2 * PAGE + 100, 5 * PAGE + 100), _RESERVED_SECONDS)
    context.evidence["files"] = made
    needs_pages(made)
    reader, writer = make(), make()
    commits = [made]

    def early(case: int) -> str:
        return below(root, f"{0:020}.{case}.early")

    def prepare(case: int) -> None:
        if case % 2:
            writer.write(early(case), b"")

    def change(case: int) -> None:
        if case % 2:
            writer.delete(early(case))
        else:
            writer.write(early(case), b"")
        for _ in range(2):
            writer.write(commit(root, commits[0]), b"x")
            commits[0] += 1

    def listing(_case: int) -> tuple[int, list[FileStatus]]:
        return commits[0], list(reader.list_from(f"{root}/_delta_log/"))

    for case in interleavings(context, listing, change, prepare, cases=context.choose(12, 40, 200)):
        value_of(case.between, "writing during a listing", case)
        there, statuses = value_of(case.held, "listing while others write", case)
        listed = names(iter(statuses))
        require(listed == sorted(set(listed)), f"a listing shows a name twice, or is not in order {at(case)}")
        found = [name for name in listed if not name.endswith(".early")]
        require(
            len(found) >= there and found == commit_names(0, len(found)),
            f"{there} commits were there, and of them and the 2 that were made meanwhile a listing shows {len(found)}, "
            f"and not the first ones {at(case)}",
        )
    saw_enough(commits[0] - made, 2, "commits were made meanwhile")
