"""Mutants that misjudge what became of a write."""

from typing import Any
from unittest import mock

from tablelog.core.txn import commit, commit_loop
from tablelog.errors import WriteOutcomeUnknown

from ..invariants import Attempt
from . import Mutant


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

    return mock.patch.object(commit_loop, "attempt", attempt)


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

    return mock.patch.object(commit_loop, "attempt", attempt)


def _absent_is_not_committed() -> Any:
    """Nothing at the version after an unknown answer is taken for a failure, although a write may be on its way."""
    real = commit.attempt

    def attempt(*args: Any, **rest: Any) -> commit.Outcome:
        outcome = real(*args, **{**rest, "patience": commit.Patience(tries=1)})
        if isinstance(outcome, commit.Unknown):
            raise ConnectionError("the commit failed")
        return outcome

    return mock.patch.object(commit_loop, "attempt", attempt)


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

    return mock.patch.object(commit_loop, "attempt", attempt)


def _looks_then_overwrites() -> Any:
    """The order of look and write is swapped: where nothing is there, it is written, whatever is there by then."""

    def attempt(store: Any, path: str, data: bytes, token: str, **rest: Any) -> commit.Outcome:
        try:
            return commit.Lost(store.read(path))
        except FileNotFoundError:
            try:
                store.write(path, data, overwrite=True)
            except WriteOutcomeUnknown as error:
                return commit.Unknown(str(error))
            return commit.Won()

    return mock.patch.object(commit_loop, "attempt", attempt)


def _interrupt_is_failure() -> Any:
    """Ctrl-C in the middle of a commit is told as if nothing had been written."""
    return mock.patch.object(commit_loop.CommitLoop, "interrupted", return_value=None)


def one_token_for_each_writer(attempt: Attempt) -> str:
    """The mutant that uses a token twice."""
    return attempt.token.replace(attempt.name.rpartition(".")[2] + ".", "0.")


MUTANTS = (
    Mutant("no read-back", _no_read_back),
    Mutant("exists is lost", _exists_is_lost),
    Mutant("unknown is won", _unknown_is_won),
    Mutant("absent is not committed", _absent_is_not_committed),
    Mutant("goes on from an absent version", _goes_on_from_an_absent_version),
    Mutant("looks, then overwrites", _looks_then_overwrites),
    Mutant("interrupt is failure", _interrupt_is_failure),
)
