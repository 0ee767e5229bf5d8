"""Ctrl-C at each step of a command: what is said to be committed is what the log has, and no row of it is lost.

`tests/failures/test_every_interrupt.py` does the same to every command.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.commands import KINDS, copy_of, made, rows_of, values
from support.interruptions import SEVERAL_COMMITS, compacted_after, every_step_is_told, optimized_in_batches
from support.spark_tables import Table
from tablelog.core.deltalog import DeltaLog
from tablelog.core.txn.transaction import Transaction
from tablelog.dml.maintain import auto_compact as after_commit
from tablelog.engine.read import scan
from tablelog.errors import CommandInterrupted, ConcurrentDeleteReadException


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    table = made(spark, tmp_path_factory.mktemp("interrupts"))
    table.write(values(spark, (5, 1)))  # two files in each partition
    return table


@pytest.mark.parametrize("name", ["vacuum", "add a column"])
def test_a_command_says_what_is_committed(table: Table, name: str) -> None:
    every_step_is_told(table, name, KINDS[name].run)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a write, compacted after it", "row ids for old files"])
def test_a_command_of_several_commits_says_which_are_made(table: Table, name: str) -> None:
    every_step_is_told(table, name, SEVERAL_COMMITS[name])


def test_what_follows_the_commit_never_removes_its_files(
    table: Table, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The compaction after a write loses its race, and is interrupted there: its own commit surely isn't made."""
    own = copy_of(table, request.node.name)
    commit = Transaction.commit

    def lost(self: Transaction, actions: object, operation: object, **rest: object) -> object:
        if getattr(operation, "name", "") != "OPTIMIZE":
            return commit(self, actions, operation, **rest)  # type: ignore[arg-type]
        with monkeypatch.context() as patch:
            # Another writer has the version, which the look after the interrupt sees.
            own_log = DeltaLog.for_path(own.path)
            taken = Path(own.root / "_delta_log" / f"{own.version + 1:020}.json")

            def write(*_: object, **__: object) -> None:
                taken.write_bytes(own_log.reader.commit_bytes(own.version))
                raise KeyboardInterrupt

            patch.setattr("tablelog.logstore.local.store.LocalLogStore.write", write)
            return commit(self, actions, operation, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Transaction, "commit", lost)
    with pytest.raises(CommandInterrupted) as caught:
        compacted_after(own)
    assert caught.value.versions == (table.version + 1,)
    assert caught.value.committed is True
    assert (20, 0) in rows_of(own), "its data file is there"


def test_a_failure_after_commits_says_what_stays(
    table: Table, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    own = copy_of(table, request.node.name)
    commit, done = Transaction.commit, []

    def second_fails(self: Transaction, *args: object, **rest: object) -> object:
        if done:
            raise ConcurrentDeleteReadException("nothing was committed to it")
        done.append(commit(self, *args, **rest))  # type: ignore[arg-type]
        return done[0]

    monkeypatch.setattr(Transaction, "commit", second_fails)
    with pytest.raises(ConcurrentDeleteReadException) as caught:
        optimized_in_batches(own)
    (note,) = caught.value.__notes__
    assert f"version {table.version + 1} of" in note
    assert "was committed (OPTIMIZE) and remains" in note


@pytest.mark.parametrize("step", ["refresh_cached", "_compacts"])
def test_an_error_after_the_commit_is_none_of_the_command(
    table: Table,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
    step: str,
) -> None:
    own = copy_of(table, request.node.name)

    def fail(*_: object) -> None:
        raise RuntimeError("after the commit")

    monkeypatch.setattr(scan if step == "refresh_cached" else after_commit, step, fail)
    own.write(values(own.spark, (20, 0)))
    assert f"version {table.version + 1} is committed" in caplog.text
    assert (20, 0) in rows_of(own)


def test_a_command_run_while_an_interrupt_is_handled_was_not_interrupted(table: Table) -> None:
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        with pytest.raises(Exception, match=r"UNRESOLVED_COLUMN"):
            table.delta.delete("nowhere = 1")
