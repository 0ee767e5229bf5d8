"""Mutants that overlook a conflict with a commit that came first."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

from tablelog.core.protocol.actions import Action
from tablelog.core.txn import commit_loop, conflict, transaction
from tablelog.core.txn.conflict import IsolationLevel, metadata_changes, rules

from . import Mutant


def _unchecked(name: str) -> Callable[[], Any]:
    def skip(*args: Any) -> Any:
        return args[0]

    def patch() -> Any:
        return mock.patch.object(rules, name, skip)

    patch.__doc__ = f"The check {name} is skipped."
    return patch


def _unnoticed(what: str) -> Callable[[], Any]:
    def patch() -> Any:
        real = conflict.Winner.of

        def of(version: int, actions: list[Action], file_time_ms: int = 0) -> conflict.Winner:
            return replace(real(version, actions, file_time_ms), **{what: frozenset()})

        return mock.patch.object(conflict.Winner, "of", of)

    patch.__doc__ = f"Nobody looks which {what} a commit moved."
    return patch


def _first_winner_unchecked() -> Any:
    """The winner that was read back isn't checked, only those that the listing shows after it."""
    real = commit_loop.CommitLoop._newer

    def newer(self: Any, version: int, first: bytes | None) -> Iterator[conflict.Winner]:
        for winner in real(self, version, first):
            yield conflict.Winner(winner.version, winner.actions, winner.info) if winner.version == version else winner

    return mock.patch.object(commit_loop.CommitLoop, "_newer", newer)


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


def _only_the_last_checked() -> Any:
    """Of several commits that came first only the newest is checked."""
    real = commit_loop.CommitLoop._newer

    def newer(self: Any, version: int, first: bytes | None) -> Iterator[conflict.Winner]:
        winners = list(real(self, version, first))
        for winner in winners[:-1]:
            yield conflict.Winner(winner.version, winner.actions, winner.info)
        yield from winners[-1:]

    return mock.patch.object(commit_loop.CommitLoop, "_newer", newer)


def _every_change_passes() -> Any:
    """Whatever another commit did to the metadata, it is thought to do no harm."""
    return mock.patch.object(metadata_changes, "may_pass", return_value=True)


MUTANTS = (
    Mutant("added files unchecked", _unchecked("_check_added")),
    Mutant("removed files unchecked", _unchecked("_check_removed")),
    Mutant("metadata unchecked", _unchecked("_check_metadata")),
    Mutant("protocol unchecked", _unchecked("_check_protocol")),
    Mutant("transactions unchecked", _unnoticed("app_ids")),
    Mutant("domains unchecked", _unnoticed("domains")),
    Mutant("first winner unchecked", _first_winner_unchecked),
    Mutant("only the last winner checked", _only_the_last_checked),
    Mutant("nothing checked", _nothing_checked),
    Mutant("lowest level", _lowest_level),
    Mutant("everything is blind", _everything_is_blind),
    Mutant("every change of the metadata passes", _every_change_passes),
    Mutant("a backfill says again what is gone", _unchecked("_without_touched"), "growing"),
    Mutant("the row ids of a backfill aren't taken over", _unchecked("_with_row_ids"), "growing"),
)
