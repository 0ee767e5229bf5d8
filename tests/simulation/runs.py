"""Running schedules by the thousand, and mutants of the core for them to find."""

import contextlib
import gc
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any
from unittest import mock

from tablelog.core.log import reader
from tablelog.core.protocol import codec
from tablelog.core.protocol.actions import Action
from tablelog.core.txn import after, commit, conflict, transaction
from tablelog.core.txn.conflict import IsolationLevel
from tablelog.errors import WriteOutcomeUnknown

from .scheduler import Workers
from .world import WRITERS, Attempt, World


@dataclass
class Summary:
    """What many schedules came to. `told` counts what writers were told, `faults` what befell them."""

    schedules: int = 0
    steps: int = 0
    commits: int = 0
    told: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, world: World) -> None:
        self.schedules += 1
        self.steps += world.scheduler.steps
        self.commits += len(world.disk.files)
        self.told.update(attempt.told for attempt in world.attempts)
        self.faults.update(fault for *_, fault in world.events if fault)

    def merge(self, other: "Summary") -> "Summary":
        self.schedules += other.schedules
        self.steps += other.steps
        self.commits += other.commits
        self.told.update(other.told)
        self.faults.update(other.faults)
        return self


class FailedSchedule(AssertionError):
    """A schedule broke an invariant; the message has the command that replays it."""


@contextlib.contextmanager
def quick_core() -> Iterator[None]:
    """One thread for each writer and no more; and each commit is parsed once, not once for each reader."""
    collecting = gc.isenabled()
    gc.disable()  # `run` collects now and then: a tenth of the time otherwise
    parsed: dict[bytes, list[Action]] = {}
    parse = codec.parse_commit

    def parse_once(data: bytes) -> list[Action]:
        if len(parsed) > 500:
            parsed.clear()
        found = parsed.get(data)
        if found is None:
            found = parsed[data] = parse(data)
        return found

    with (
        mock.patch.object(codec, "parse_commit", parse_once),
        mock.patch.object(reader, "parse_commit", parse_once),
        mock.patch.object(reader, "_SLOW_READ_S", float("inf")),
        mock.patch.object(after.logger, "disabled", True),  # a store that fails after a commit: expected here
    ):
        try:
            yield
        finally:
            if collecting:
                gc.enable()


def run(seeds: Iterable[int], *, new_token: Callable[[Attempt], str] | None = None) -> Summary:
    """Run the schedules of these seeds; FailedSchedule at the first that breaks an invariant."""
    summary = Summary()
    workers = Workers(WRITERS)
    try:
        with quick_core():
            for number, seed in enumerate(seeds):
                if number % 200 == 0:
                    gc.collect()
                world = World(seed, workers) if new_token is None else World(seed, workers, new_token=new_token)
                try:
                    summary.add(world.run())
                except BaseException as error:
                    raise FailedSchedule(
                        f"seed {seed}: {type(error).__name__}: {error}\n"
                        f"replay it with: PYTHONPATH=tests python -m simulation {seed}"
                    ) from error
    finally:
        workers.stop()
    return summary


def _run_range(first: int, last: int) -> Summary:
    return run(range(first, last))


def run_in_processes(first: int, count: int, processes: int | None = None) -> Summary:
    """`run` for a range of seeds, spread over processes."""
    processes = processes or min(os.cpu_count() or 1, 4)
    bounds = [first + count * number // processes for number in range(processes + 1)]
    summary = Summary()
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for part in pool.map(_run_range, bounds[:-1], bounds[1:]):
            summary.merge(part)
    return summary


# --- mutants ------------------------------------------------------------------------------------------------------


def _no_read_back() -> Any:
    """What stands at the version is always taken for another's."""
    return mock.patch.object(commit, "is_own", return_value=False)


def _exists_is_lost() -> Any:
    """ "Exists" is believed at once; only an unknown answer is looked into."""

    def attempt(store: Any, path: str, data: bytes, token: str, **rest: Any) -> commit.Outcome:
        class Believing:
            def write(self, path: str, data: bytes) -> None:
                try:
                    store.write(path, data)
                except FileExistsError:
                    raise _Believed(store.read(path)) from None

            read = store.read

        try:
            return commit.attempt(Believing(), path, data, token, **rest)  # type: ignore[arg-type]
        except _Believed as believed:
            return commit.Lost(believed.args[0])

    return mock.patch.object(transaction, "attempt", attempt)


class _Believed(Exception):
    pass


def _unknown_is_won() -> Any:
    """An unknown answer is taken for success."""

    def attempt(store: Any, path: str, data: bytes, token: str, **rest: Any) -> commit.Outcome:
        try:
            store.write(path, data)
        except WriteOutcomeUnknown:
            return commit.Won()
        except FileExistsError:
            found = store.read(path)
            return commit.Won() if commit.is_own(found, data, token) else commit.Lost(found)
        return commit.Won()

    return mock.patch.object(transaction, "attempt", attempt)


def _absent_is_not_committed() -> Any:
    """Nothing at the version after an unknown answer is taken for a failure, although a write may be on its way."""
    real = commit.attempt

    def attempt(*args: Any, **rest: Any) -> commit.Outcome:
        outcome = real(*args, **{**rest, "patience": commit.Patience(tries=1)})
        if isinstance(outcome, commit.Unknown):
            raise ConnectionError("the commit failed")
        return outcome

    return mock.patch.object(transaction, "attempt", attempt)


def _goes_on_from_an_absent_version() -> Any:
    """An unknown outcome is tried again at the next version, although a write may be on its way."""

    def attempt(store: Any, path: str, data: bytes, token: str, **rest: Any) -> commit.Outcome:
        try:
            store.write(path, data)
        except (WriteOutcomeUnknown, FileExistsError):
            try:
                found = store.read(path)
            except FileNotFoundError:
                found = b""
            return commit.Won() if commit.is_own(found, data, token) else commit.Lost(found)
        return commit.Won()

    return mock.patch.object(transaction, "attempt", attempt)


def _unchecked(name: str) -> Callable[[], Any]:
    def skip(*args: Any) -> Any:
        return args[0]

    def patch() -> Any:
        return mock.patch.object(conflict, name, skip)

    patch.__doc__ = f"The check {name} is skipped."
    return patch


def _no_transaction_check() -> Any:
    """Nobody looks whether an application's transaction moved."""
    real = conflict.Winner.of

    def of(version: int, actions: list[Action]) -> conflict.Winner:
        return conflict.replace(real(version, actions), app_ids=frozenset())

    return mock.patch.object(conflict.Winner, "of", of)


def _first_winner_unchecked() -> Any:
    """The winner that was read back isn't checked, only those that the listing shows after it."""
    real = transaction.Transaction._newer

    def newer(self: Any, version: int, first: bytes | None) -> Iterator[conflict.Winner]:
        for winner in real(self, version, first):
            yield conflict.Winner(winner.version, winner.actions) if winner.version == version else winner

    return mock.patch.object(transaction.Transaction, "_newer", newer)


def _nothing_checked() -> Any:
    """What won before is noted and not looked at."""
    return mock.patch.object(conflict, "check", lambda reads, staged, winner, level: staged)


def _lowest_level() -> Any:
    """Everything is checked at snapshot isolation, whatever the commit says."""
    real = conflict.check

    def check(reads: Any, staged: Any, winner: Any, level: Any) -> Any:
        return real(reads, staged, winner, IsolationLevel.SNAPSHOT)

    return mock.patch.object(conflict, "check", check)


def _everything_is_blind() -> Any:
    """Every commit calls itself a blind append."""
    real = transaction.Staged

    def staged(**fields: Any) -> Any:
        return real(**{**fields, "blind_append": True})

    return mock.patch.object(transaction, "Staged", staged)


MUTANTS: dict[str, Callable[[], Any]] = {
    "no read-back": _no_read_back,
    "exists is lost": _exists_is_lost,
    "unknown is won": _unknown_is_won,
    "absent is not committed": _absent_is_not_committed,
    "goes on from an absent version": _goes_on_from_an_absent_version,
    "added files unchecked": _unchecked("_check_added"),
    "removed files unchecked": _unchecked("_check_removed"),
    "metadata unchecked": _unchecked("_check_metadata"),
    "transactions unchecked": _no_transaction_check,
    "first winner unchecked": _first_winner_unchecked,
    "nothing checked": _nothing_checked,
    "lowest level": _lowest_level,
    "everything is blind": _everything_is_blind,
}


def one_token_for_each_writer(attempt: Attempt) -> str:
    """The mutant that uses a token twice."""
    return attempt.token.replace(attempt.name.rpartition(".")[2] + ".", "0.")
