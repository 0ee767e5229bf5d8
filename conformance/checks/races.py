"""Checks 1 and 3: writers of one file that meet, by threads and with the interleaving forced."""

import threading

from tablelog.errors import WriteOutcomeUnknown

from ..failures import require
from ..interleave import Outcome, outcome
from ..model import Context
from .suite import at, below, check, commit, expect, interleavings, mark


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


@check(1, guarantee=2)
def one_winner_among_threads(context: Context) -> None:
    """Many threads write the same file at once, again and again, with late ones among them."""
    make, root = context.make, context.root
    writers, rounds = 8, 20
    stores = [make() for _ in range(writers)]
    barrier = threading.Barrier(writers)
    ends: list[list[Outcome]] = [[] for _ in range(writers)]

    def write(number: int) -> None:
        for version in range(rounds):
            barrier.wait()
            ends[number].append(outcome(lambda v=version: stores[number].write(commit(root, v), mark(number))))  # type: ignore[misc]

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for version in range(rounds):
        won = [number for number in range(writers) if ends[number][version].error is None]
        require(len(won) == 1, f"{len(won)} of {writers} writers of one file were told that they won")
        require(make().read(commit(root, version)) == mark(won[0]), "the file isn't the winner's")
        for number in set(range(writers)) - set(won):
            expect(FileExistsError, ends[number][version], "losing a race")


@check(3, guarantee=2)
def one_winner_in_every_interleaving(context: Context) -> None:
    """One writer is stopped at each of its steps in turn while another writes the same file from start to end."""
    make, root = context.make, context.root
    first, second = make(), make()
    first.write(below(root, "_first"), b"")
    for case in interleavings(
        context,
        lambda n: first.write(commit(root, n), b"first" * 100),
        lambda n: second.write(commit(root, n), b"second"),
    ):
        won = [data for data, end in ((b"first" * 100, case.held), (b"second", case.between)) if end.error is None]
        for end in (case.held, case.between):
            if end.error is not None:
                expect(FileExistsError, end, f"losing a race {at(case)}")
        require(len(won) == 1, f"{len(won)} of 2 writers of one file were told that they won {at(case)}")
        require(make().read(commit(root, case.step)) == won[0], f"the file isn't the winner's {at(case)}")


@check(3, guarantee=4)
def no_error_after_a_write(context: Context) -> None:
    """Whatever step another writer was stopped at, each gets won, lost or unknown, and never any other error."""
    make, root = context.make, context.root
    first, second = make(), make()
    for case in interleavings(
        context,
        lambda n: first.write(commit(f"{root}/new-{n}", 0), b"first"),
        lambda n: second.write(commit(f"{root}/new-{n}", 0), b"second"),
    ):
        for end in (case.held, case.between):
            require(
                end.error is None or isinstance(end.error, FileExistsError | WriteOutcomeUnknown),
                f"a race in a new directory ended with {end.error!r} {at(case)}",
            )
        ends = [case.held.error, case.between.error]
        require(ends.count(None) <= 1, f"two writers were told that they won {at(case)}")
