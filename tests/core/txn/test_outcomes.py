"""Lost answers, interrupts, and what follows a commit."""

import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.memory_table import (
    QUICK,
    WRITE,
    Patient,
    add,
    create,
    new_log,
    other,
    table,
)
from tablelog.core.deltalog import DeltaLog
from tablelog.core.protocol.actions import Action
from tablelog.core.txn.transaction import Transaction
from tablelog.errors import CommitInterrupted, CommitStateUnknownError, ConcurrentAppendException, WriteOutcomeUnknown
from tablelog.logstore.local.store import LocalLogStore
from tablelog.logstore.memory import MemoryLogStore

# --- answers that are lost ----------------------------------------------------------------------------------------


class Faulty(MemoryLogStore):
    """Runs `before` and `after` each write of a commit that adds the file `m`."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[], None] | None = None
        self.after: Callable[[], None] | None = None
        self.unreadable = False

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        mine = path.endswith(".json") and b'"m"' in data
        if mine and self.before:
            self.before()
        super().write(path, data, overwrite=overwrite)
        if mine and self.after:
            self.after()

    def read(self, path: str) -> bytes:
        if self.unreadable:
            raise ConnectionError("no route")
        return super().read(path)


def raiser(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


@pytest.fixture
def faulty() -> tuple[Faulty, DeltaLog]:
    store = Faulty()
    log = new_log(store, clock=Patient())
    create(log)
    return store, log


def begun(log: DeltaLog) -> Transaction:
    return Transaction(log, log.snapshot(), patience=QUICK)


def test_a_lost_reply_makes_no_second_commit(faulty: tuple[Faulty, DeltaLog]) -> None:
    store, log = faulty
    store.after = raiser(WriteOutcomeUnknown("x", "reset"))
    assert begun(log).commit([add("m")], WRITE).version == 1
    store.after = raiser(FileExistsError("asked twice"))
    assert begun(log).commit([add("m")], WRITE).version == 2
    assert log.snapshot().version == 2


def test_an_honest_error_of_the_store_comes_through(faulty: tuple[Faulty, DeltaLog]) -> None:
    store, log = faulty
    store.before = raiser(PermissionError("read-only"))
    with pytest.raises(PermissionError, match="read-only"):
        begun(log).commit([add("m")], WRITE)
    assert log.snapshot().version == 0


def test_an_unknown_outcome_names_table_version_and_token(faulty: tuple[Faulty, DeltaLog]) -> None:
    store, log = faulty
    store.after = raiser(WriteOutcomeUnknown("x", "reset"))
    store.unreadable = True
    with pytest.raises(CommitStateUnknownError) as raised:
        begun(log).commit([add("m")], WRITE)
    error = raised.value
    assert (error.table, error.version) == (log.table, 1)
    assert error.token in str(error)
    assert "find_commit" in str(error)
    store.unreadable = False
    assert other(log).find_commit(error.token) == 1
    assert other(log).find_commit("no-such-token") is None


# --- interrupts ---------------------------------------------------------------------------------------------------


def test_an_interrupt_before_anything_was_written_is_just_that() -> None:
    log = table()

    def actions() -> Iterator[Action]:
        yield add("m")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as raised:
        log.transaction().commit(actions(), WRITE)
    assert not isinstance(raised.value, CommitInterrupted)
    assert log.snapshot().version == 0


@pytest.mark.parametrize("unreadable", [False, True])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_in_a_write_says_what_became_of_it(
    faulty: tuple[Faulty, DeltaLog], when: str, unreadable: bool
) -> None:
    store, log = faulty
    transaction = begun(log)
    setattr(store, when, raiser(KeyboardInterrupt()))
    store.unreadable = unreadable
    with pytest.raises(CommitInterrupted) as raised:
        transaction.commit([add("m")], WRITE)
    interrupt = raised.value
    store.unreadable = False
    assert isinstance(interrupt, KeyboardInterrupt)
    assert not isinstance(interrupt, Exception)
    assert interrupt.committed is (True if when == "after" and not unreadable else None)
    assert log.find_commit(interrupt.token) == (1 if when == "after" else None)


def test_an_interrupt_after_another_won_says_that_nothing_was_committed(faulty: tuple[Faulty, DeltaLog]) -> None:
    store, log = faulty
    transaction = begun(log)
    other(log).transaction().commit([add("a")], WRITE)
    store.before = raiser(KeyboardInterrupt())
    with pytest.raises(CommitInterrupted) as raised:
        transaction.commit([add("m")], WRITE)
    assert raised.value.committed is False


@pytest.mark.parametrize("when", ["before", "after"])
def test_any_other_way_out_of_a_write_leaves_it_open(faulty: tuple[Faulty, DeltaLog], when: str) -> None:
    store, log = faulty
    transaction = begun(log)
    assert not transaction.may_be_committed
    setattr(store, when, raiser(SystemExit()))
    with pytest.raises(SystemExit):
        transaction.commit([add("m")], WRITE)
    assert transaction.may_be_committed


def test_a_conflict_or_an_honest_error_is_certain(faulty: tuple[Faulty, DeltaLog]) -> None:
    store, log = faulty
    loser, refused = begun(log), begun(log)
    loser.read_whole_table()
    other(log).transaction().commit([add("a")], WRITE)
    with pytest.raises(ConcurrentAppendException):
        loser.commit([add("m")], WRITE)
    store.before = raiser(PermissionError("read-only"))
    with pytest.raises(PermissionError):
        refused.commit([add("m")], WRITE)
    assert not loser.may_be_committed
    assert not refused.may_be_committed


def test_an_interrupt_after_the_commit_says_that_it_stands(
    faulty: tuple[Faulty, DeltaLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, log = faulty
    monkeypatch.setattr(DeltaLog, "committed", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    with pytest.raises(CommitInterrupted, match=r"version 1 of .* was committed") as raised:
        begun(log).commit([add("m")], WRITE)
    assert raised.value.committed is True


# --- after the commit ---------------------------------------------------------------------------------------------


def test_checkpoints_and_checksums_are_written(tmp_path: Path) -> None:
    log = DeltaLog.for_path(str(tmp_path / "t"))
    create(log, configuration={"delta.checkpointInterval": "3"})
    for number in range(1, 8):
        log.transaction().commit([add(f"f{number}")], WRITE)
    names = sorted(path.name for path in (tmp_path / "t" / "_delta_log").iterdir())
    assert [name for name in names if "checkpoint" in name] == [
        f"{3:020d}.checkpoint.parquet",
        f"{6:020d}.checkpoint.parquet",
        "_last_checkpoint",
    ]
    assert [name for name in names if name.endswith(".crc")] == [f"{v:020d}.crc" for v in range(8)]
    hint = json.loads((tmp_path / "t" / "_delta_log" / "_last_checkpoint").read_text())
    assert hint["version"] == 6
    told = json.loads((tmp_path / "t" / "_delta_log" / f"{7:020d}.crc").read_text())
    assert (told["numFiles"], told["tableSizeBytes"]) == (7, 70)
    assert DeltaLog.for_path(str(tmp_path / "t")).snapshot().num_files == 7


class NothingButCommits(LocalLogStore):
    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        if not path.endswith(".json"):
            raise PermissionError(f"no {path}")
        super().write(path, data, overwrite=overwrite)


def test_what_fails_after_the_commit_only_warns(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = DeltaLog.for_path(str(tmp_path / "t"), store=NothingButCommits())
    create(log, configuration={"delta.checkpointInterval": "1"})
    caplog.clear()
    assert log.transaction().commit([add("a")], WRITE).version == 1
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(said) == 2
    assert "its checksum wasn't written" in said[0]
    assert "its checkpoint wasn't written" in said[1]
    assert log.snapshot().files.column("path").to_pylist() == ["a"]


def test_every_attempt_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tablelog.core.txn")
    log = table()
    mine = log.transaction()
    other(log).transaction().commit([add("a")], WRITE)
    caplog.clear()
    mine.commit([add("m")], WRITE)
    said = [record.getMessage() for record in caplog.records if record.name == "tablelog.core.txn.commit_loop"]
    assert len(said) == 2
    assert re.fullmatch(r"memory:///t: version 1, attempt 1: lost, \d+ ms", said[0])
    assert re.fullmatch(r"memory:///t: version 2, attempt 2: won, \d+ ms", said[1])
