"""Other writers win: what is rebased, how often the store is asked, when it ends."""

from collections.abc import Iterator
from dataclasses import replace
from threading import Barrier

import pytest

from support.memory_table import NO_CRC, SCHEMA, WRITE, Patient, add, create, lines, new_log, other, schema_of, table
from tablelog.core.deltalog import DeltaLog
from tablelog.core.protocol.actions import CommitInfo, Metadata, Protocol
from tablelog.core.protocol.codec import serialise
from tablelog.core.txn.operation import Operation
from tablelog.core.txn.transaction import Transaction
from tablelog.errors import (
    ConcurrentWriteException,
    InvalidArgumentError,
    MetadataChangedException,
    MissingCommitError,
    ProtocolChangedException,
    UnsupportedFeatureError,
)
from tablelog.logstore.base import FileStatus
from tablelog.logstore.memory import MemoryLogStore
from tablelog.logstore.wrappers.counting import CountingLogStore

# --- others win ---------------------------------------------------------------------------------------------------


def test_a_blind_append_is_rebased() -> None:
    log = table()
    mine = log.transaction()
    for path in "abc":
        other(log).transaction().commit([add(path)], WRITE)
    committed = mine.commit([add("m")], WRITE)
    assert (committed.version, committed.attempts) == (4, 2)
    assert lines(log, 4)[0]["commitInfo"]["readVersion"] == 0, "what it read stays what it read"
    assert log.snapshot().files.column("path").to_pylist() == ["a", "b", "c", "m"]


def test_metadata_that_changed_is_a_conflict() -> None:
    log = table()
    mine = log.transaction()
    theirs = other(log).transaction()
    theirs.set_metadata(replace(theirs.metadata, description="new"))
    theirs.commit([], Operation("COMMENT"))
    with pytest.raises(MetadataChangedException, match="version 1"):
        mine.commit([add("m")], WRITE)
    assert log.snapshot().version == 1


@pytest.mark.parametrize(("commits", "seconds"), [(3, 0), (0, 25)])
def test_a_table_that_was_created_again_is_another_one(commits: int, seconds: int) -> None:
    clock = Patient()
    log = new_log(clock=clock)
    create(log)
    other(log).transaction().commit([add("a")], WRITE)
    mine = log.transaction()
    first = [status.path for status in log.store.list_from(f"{log.log_path}/")]
    for path in first:
        log.store.delete(path)
    again = other(log).transaction()
    again.set_metadata(Metadata("another", schema_of(("id", "string"))))
    again.commit([add("theirs")], Operation("CREATE TABLE"))
    for number in range(1 + commits):
        other(log).transaction().commit([add(f"f{number}")], WRITE)
    clock.at += seconds
    before = [status.path for status in log.store.list_from(f"{log.log_path}/")]
    with pytest.raises(MetadataChangedException, match="another one created in its place"):
        mine.commit([add("m")], WRITE)
    assert [status.path for status in log.store.list_from(f"{log.log_path}/")] == before
    assert log.transaction().commit([add("m")], WRITE).version == 2 + commits


def test_a_commit_file_that_was_written_again_is_the_same_table() -> None:
    """As by the recovery of a store with a database."""
    log = table()
    mine = log.transaction()
    path = f"{log.log_path}/{0:020d}.json"
    log.store.write(path, log.store.read(path) + b"\n", overwrite=True)
    other(log).transaction().commit([add("a")], WRITE)
    assert mine.commit([add("m")], WRITE).version == 2


def test_two_writers_create_the_table() -> None:
    log = new_log()
    mine = log.transaction()
    mine.set_metadata(Metadata("mine", SCHEMA))
    create(other(log))
    with pytest.raises(ProtocolChangedException, match="created the table"):
        mine.commit([], Operation("CREATE TABLE"))
    assert log.snapshot().metadata.id == "id"


def test_a_protocol_that_cannot_be_written_stops_the_rebase() -> None:
    log = table()
    mine = log.transaction()
    raised = Protocol(1, 7, None, frozenset({"appendOnly", "invariants", "futureWriter"}))
    log.store.write(f"{log.log_path}/{1:020d}.json", serialise([CommitInfo(), raised]))
    with pytest.raises(UnsupportedFeatureError, match="futureWriter"):
        mine.commit([add("m")], WRITE)
    assert other(log).snapshot().version == 1


def test_a_protocol_that_can_be_written_is_taken_over() -> None:
    log = table()
    mine = log.transaction()
    log.store.write(f"{log.log_path}/{1:020d}.json", serialise([CommitInfo(), Protocol(1, 3)]))
    assert mine.commit([add("m")], WRITE).version == 2
    assert log.snapshot().protocol == Protocol(1, 3)


class Racing(MemoryLogStore):
    """Somebody else is faster at each of the first `losses` attempts."""

    def __init__(self, losses: int) -> None:
        super().__init__()
        self.losses = losses

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        if b'"m"' in data and self.losses:
            self.losses -= 1
            rival = serialise([CommitInfo(txn_id=f"rival-{self.losses}", is_blind_append=True), add(f"r{self.losses}")])
            super().write(path, rival)
        super().write(path, data, overwrite=overwrite)


def test_losing_again_and_again_backs_off_by_the_clock() -> None:
    clock, store = Patient(), Racing(0)
    log = new_log(store, clock=clock)
    create(log)
    store.losses = 12
    transaction = Transaction(log, log.snapshot(), dice=lambda: 1.0)
    committed = transaction.commit([add("m")], WRITE)
    assert (committed.version, committed.attempts) == (13, 13)
    assert len(clock.slept) == 11, "the first loss costs no wait"
    bounds = [round(1000 * slept) for slept in clock.slept]
    assert bounds == [2, 4, 8, 16, 32, 1, 1, 1, 1, 1, 1], "who lost often goes before those who lost a few times"


class SlowInPairs(MemoryLogStore):
    """Reads of commits are slow, and all but the first two wait until two are under way."""

    def __init__(self, clock: Patient) -> None:
        super().__init__()
        self.clock, self.pair, self.reads = clock, Barrier(2), 0
        self.slow = False

    def read(self, path: str) -> bytes:
        if self.slow and path.endswith(".json"):
            self.reads += 1
            self.clock.at += 1
            if self.reads > 2:
                self.pair.wait(20)
        return super().read(path)


def test_commits_that_came_first_are_read_in_parallel() -> None:
    # Else a writer that is behind stays behind: the others commit as fast as it reads.
    clock = Patient()
    store = SlowInPairs(clock)
    log = new_log(store, conf=NO_CRC, clock=clock)
    create(log)
    mine = log.transaction()
    for number in range(6):
        other(log).transaction().commit([add(f"f{number}")], WRITE)
    store.slow = True
    assert mine.commit([add("m")], WRITE).version == 7
    assert store.reads == 6


class Unlisted(MemoryLogStore):
    """The listings don't have a commit."""

    missing = ""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        return (status for status in super().list_from(path) if not self.missing or self.missing not in status.path)

    def read(self, path: str) -> bytes:
        if self.missing and self.missing in path:
            raise FileNotFoundError(path)
        return super().read(path)


class Vanishing(Unlisted):
    """A commit is removed after it was listed."""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        return MemoryLogStore.list_from(self, path)


@pytest.mark.parametrize("store", [Unlisted(), Vanishing()], ids=lambda store: type(store).__name__)
def test_a_commit_that_cannot_be_checked_ends_the_transaction(store: Unlisted) -> None:
    log = new_log(store, conf=NO_CRC)
    create(log)
    mine = log.transaction()
    for number in range(3):
        other(log).transaction().commit([add(f"f{number}")], WRITE)
    store.missing = f"{2:020d}.json"
    with pytest.raises(MissingCommitError, match=r"version 2 of .* is missing, but version 3 exists"):
        mine.commit([add("m")], WRITE)
    store.missing = ""
    assert other(log).snapshot().version == 3


def test_the_number_of_attempts_may_be_bounded() -> None:
    store = Racing(0)
    log = new_log(store, conf={**NO_CRC, "spark.databricks.delta.maxCommitAttempts": "3"}, clock=Patient())
    create(log)
    store.losses = 100
    with pytest.raises(ConcurrentWriteException, match="4 versions in a row"):
        log.transaction().commit([add("m")], WRITE)
    assert log.snapshot().version == 4
    assert "m" not in log.snapshot().files.column("path").to_pylist()


def test_a_bad_number_of_attempts_is_named() -> None:
    made = table()
    log = DeltaLog(made.table, made.store, conf={"spark.databricks.delta.maxCommitAttempts": "many"})
    with pytest.raises(InvalidArgumentError, match=r"maxCommitAttempts is .*: it must be a whole number"):
        log.transaction().commit([add("a")], WRITE)


# --- round trips --------------------------------------------------------------------------------------------------


def counted(log: DeltaLog) -> tuple[DeltaLog, CountingLogStore]:
    store = CountingLogStore(log.store)
    return DeltaLog(log.table, store, conf=log.conf), store


def test_a_blind_append_is_one_list_and_one_write() -> None:
    log, store = counted(table())
    log.snapshot()
    for path in ("a", "b", "c"):
        store.reset()
        log.transaction().commit([add(path)], WRITE)
        assert store.calls == {"list_from": 1, "write": 1}, store.log
    store.reset()
    assert log.snapshot().files.column("path").to_pylist() == ["a", "b", "c"]
    assert store.calls == {"list_from": 1}, "its own commits aren't read again"


def test_the_checksum_is_one_more_write() -> None:
    log, store = counted(table())
    log = DeltaLog(log.table, store, conf={})
    log.snapshot()
    store.reset()
    log.transaction().commit([add("a")], WRITE)
    assert [(call, path.rpartition("/")[2]) for call, path in store.log] == [
        ("list_from", "00000000000000000000."),
        ("write", "00000000000000000001.json"),
        ("write", "00000000000000000001.crc"),
    ]


def test_a_lost_race_is_one_list_one_read_for_each_winner_and_one_write() -> None:
    base = table()
    log, store = counted(base)
    mine = log.transaction()
    for path in "abc":
        other(base).transaction().commit([add(path)], WRITE)
    store.reset()
    mine.commit([add("m")], WRITE)
    assert [(call, path.rpartition("/")[2][18:]) for call, path in store.log] == [
        ("write", "01.json"),
        ("read", "01.json"),
        ("list_from", "00."),
        ("read", "02.json"),
        ("read", "03.json"),
        ("write", "04.json"),
    ]
    store.reset()
    assert log.snapshot().version == 4
    assert store.calls == {"list_from": 1}, "neither are the winners read again"


def test_a_transaction_that_took_long_looks_before_it_writes() -> None:
    clock = Patient()
    log, store = counted(table())
    log = DeltaLog(log.table, store, conf=NO_CRC, clock=clock)
    mine = log.transaction()
    other(log).transaction().commit([add("a")], WRITE)
    clock.at += 3600
    store.reset()
    assert mine.commit([add("m")], WRITE).version == 2
    assert [call for call, _ in store.log] == ["list_from", "read", "write"]


def test_a_version_that_cleanup_removed_is_not_committed_again() -> None:
    # Else the commit would lie below the checkpoint, where no reader looks.
    clock = Patient()
    log = new_log(conf=NO_CRC, clock=clock)
    create(log)
    mine = log.transaction()
    for number in range(1, 12):
        other(log).transaction().commit([add(f"f{number}")], WRITE)
    for version in range(1, 10):
        log.store.delete(f"{log.log_path}/{version:020d}.json")
    clock.at += 3600
    with pytest.raises(MissingCommitError, match="version 1 of"):
        mine.commit([add("m")], WRITE)
