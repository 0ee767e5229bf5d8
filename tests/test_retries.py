"""`tablelog.retrying`: a command runs again after a conflict, and after nothing else."""

import logging
from dataclasses import replace

import pytest

from support.clocks import ManualClock
from support.memory_table import WRITE, add, other, table
from tablelog import retrying
from tablelog.core.txn.operation import Operation
from tablelog.errors import (
    CommitInterrupted,
    CommitStateUnknownError,
    ConcurrentAppendException,
    StorageError,
)


class Command:
    """Raises the errors in turn, and then returns its number of runs."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.runs = 0

    def __call__(self) -> int:
        self.runs += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.runs


def conflicts(count: int) -> list[ConcurrentAppendException]:
    return [ConcurrentAppendException(f"conflict {number}") for number in range(1, count + 1)]


def test_a_command_without_a_conflict_runs_once_and_never_waits() -> None:
    clock = ManualClock()
    assert retrying(Command(), clock=clock) == 1
    assert clock.sleeps == []


def test_each_wait_is_a_random_part_of_a_doubled_bound() -> None:
    clock, parts = ManualClock(), iter([0.5, 0.25, 0.75, 0.0, 0.5, 0.5, 0.5, 0.5])
    assert retrying(Command(*conflicts(8)), attempts=9, clock=clock, dice=lambda: next(parts)) == 9
    assert clock.sleeps == pytest.approx([0.1, 0.1, 0.6, 0.0, 1.6, 3.2, 5.0, 5.0])


def test_no_wait_is_longer_than_ten_seconds() -> None:
    clock = ManualClock()
    assert retrying(Command(*conflicts(2000)), attempts=2001, clock=clock, dice=lambda: 1.0) == 2001
    assert max(clock.sleeps) == 10.0


def test_the_last_conflict_is_raised_without_a_wait_after_it() -> None:
    clock, command = ManualClock(), Command(*conflicts(9))
    with pytest.raises(ConcurrentAppendException, match="conflict 3"):
        retrying(command, attempts=3, clock=clock)
    assert (command.runs, len(clock.sleeps)) == (3, 2)


@pytest.mark.parametrize(
    "error",
    [
        CommitStateUnknownError("/t", 1, "token", "no answer"),
        CommitInterrupted("/t", 1, "token", False),
        StorageError("the disk is full"),
        KeyError("k"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_other_error_is_retried(error: BaseException) -> None:
    command = Command(error)
    with pytest.raises(type(error)):
        retrying(command, clock=ManualClock())
    assert command.runs == 1


@pytest.mark.parametrize("attempts", [0, -1])
def test_no_attempt_is_an_error(attempts: int) -> None:
    command = Command()
    with pytest.raises(ValueError, match=f"1 or more, not {attempts}"):
        retrying(command, attempts=attempts)
    assert command.runs == 0


def test_a_retry_is_logged_with_its_conflict(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tablelog")
    retrying(Command(*conflicts(1)), clock=ManualClock(), dice=lambda: 0.5)
    assert [record.getMessage() for record in caplog.records] == [
        "attempt 1 of 5 failed, the next follows in 0.10 s: conflict 1"
    ]


def test_a_transaction_that_lost_reads_the_new_version() -> None:
    log = table()
    descriptions = []

    def append() -> int:
        mine = log.transaction()
        descriptions.append(mine.metadata.description)
        if len(descriptions) == 1:
            theirs = other(log).transaction()
            theirs.set_metadata(replace(theirs.metadata, description="new"))
            theirs.commit([], Operation("COMMENT"))
        return mine.commit([add("m")], WRITE).version

    assert retrying(append, clock=ManualClock()) == 2
    assert descriptions == [None, "new"]
