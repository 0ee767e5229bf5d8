"""The transaction over a real store: what it writes, what it refuses, how often it asks, what it survives."""

import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tablelog.clock import SystemClock
from tablelog.core.deltalog import DeltaLog
from tablelog.core.protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    Sidecar,
)
from tablelog.core.protocol.codec import parse_commit, serialise
from tablelog.core.table.predicates import Compare
from tablelog.core.txn.commit import Patience
from tablelog.core.txn.operation import Operation
from tablelog.core.txn.transaction import Transaction
from tablelog.errors import (
    AppendOnlyTableError,
    CommitInterrupted,
    CommitStateUnknownError,
    ConcurrentAppendException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    InvalidArgumentError,
    MetadataChangedException,
    MissingCommitError,
    ProtocolChangedException,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedEnvironmentError,
    UnsupportedFeatureError,
    WriteOutcomeUnknown,
)
from tablelog.logstore.base import FileStatus, LogStore
from tablelog.logstore.counting import CountingLogStore
from tablelog.logstore.local import LocalLogStore
from tablelog.logstore.memory import MemoryLogStore

SCHEMA = (
    '{"type":"struct","fields":['
    '{"name":"p","type":"integer","nullable":true,"metadata":{}},'
    '{"name":"v","type":"long","nullable":true,"metadata":{}}]}'
)
WRITE = Operation("WRITE", {"mode": "Append", "partitionBy": []})
NO_CRC = {"spark.databricks.delta.writeChecksumFile.enabled": "false"}
QUICK = Patience(tries=3, shortest=0.0, longest=0.0)


def schema_of(*fields: tuple[str, str]) -> str:
    return json.dumps(
        {
            "type": "struct",
            "fields": [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in fields],
        }
    )


def add(path: str, p: int | None = None, *, data_change: bool = True, partitioned: bool = False) -> AddFile:
    values = {"p": None if p is None else str(p)} if partitioned or p is not None else {}
    return AddFile(path, values, 10, 1, data_change, stats='{"numRecords":1}')


class Patient(SystemClock):
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.at = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds


def new_log(store: LogStore | None = None, conf: dict[str, str] | None = None, clock: Any = None) -> DeltaLog:
    return DeltaLog.for_path("memory:///t", store=store or MemoryLogStore(), conf=conf or NO_CRC, clock=clock)


def create(log: DeltaLog, *partition_columns: str, configuration: dict[str, str] | None = None) -> None:
    transaction = log.transaction()
    transaction.set_metadata(Metadata("id", SCHEMA, partition_columns, configuration or {}))
    transaction.commit([], Operation("CREATE TABLE"))


def table(*partition_columns: str, conf: dict[str, str] | None = None, **configuration: str) -> DeltaLog:
    log = new_log(conf=conf)
    create(log, *partition_columns, configuration={f"delta.{k}": v for k, v in configuration.items()})
    return log


def other(log: DeltaLog) -> DeltaLog:
    """Another process's handle on the same table."""
    return DeltaLog(log.table, log.store, conf=log.conf, clock=log.clock)


def lines(log: DeltaLog, version: int) -> list[dict[str, Any]]:
    data = log.store.read(f"{log.log_path}/{version:020d}.json")
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.decode().splitlines()]


# --- what a commit holds ------------------------------------------------------------------------------------------


def test_the_first_commit() -> None:
    log = new_log()
    transaction = log.transaction()
    assert transaction.read_version == -1
    assert transaction.snapshot is None
    with pytest.raises(TableNotFoundError):
        _ = transaction.metadata
    transaction.set_metadata(Metadata("id", SCHEMA, ("p",), {"delta.appendonly": "true"}))
    assert transaction.metadata.configuration == {"delta.appendOnly": "true"}, "keys in their proper case"
    assert transaction.protocol == Protocol(1, 2)
    committed = transaction.commit([add("a", 1)], WRITE)
    assert (committed.version, committed.attempts) == (0, 1)
    assert [next(iter(line)) for line in lines(log, 0)] == ["commitInfo", "protocol", "metaData", "add"]
    assert committed.actions == tuple(parse_commit(log.store.read(f"{log.log_path}/{0:020d}.json"))[1:])
    assert "readVersion" not in lines(log, 0)[0]["commitInfo"]
    assert log.snapshot().files.column("path").to_pylist() == ["a"]


def test_commit_info_as_delta_writes_it() -> None:
    log = table()
    operation = Operation(
        "DELETE", {"predicate": ["(p = 1)"], "mode": "Append", "n": 3, "flag": True, "none": None}, {"numFiles": 7}
    )
    committed = log.transaction().commit([add("a")], operation, user_metadata="why", tags={"k": "v"})
    info = lines(log, 1)[0]["commitInfo"]
    assert abs(info.pop("timestamp") - SystemClock().now_ms()) < 60_000
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", info["txnId"])
    assert info.pop("txnId") == committed.commit_info.txn_id
    assert re.fullmatch(r"tablelog/\d+\..*", info.pop("engineInfo"))
    assert info == {
        "operation": "DELETE",
        "operationParameters": {"predicate": '["(p = 1)"]', "mode": "Append", "n": 3, "flag": True},
        "readVersion": 0,
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "operationMetrics": {"numFiles": "7"},
        "userMetadata": "why",
        "tags": {"k": "v"},
    }


def test_user_metadata_of_the_session_and_engine_of_the_caller() -> None:
    log = table(conf={**NO_CRC, "spark.databricks.delta.commitInfo.userMetadata": "nightly"})
    log.transaction().commit([add("a")], WRITE, engine_info="Apache-Spark/4.2.0 tablelog/0.1.0")
    info = lines(log, 1)[0]["commitInfo"]
    assert (info["userMetadata"], info["engineInfo"]) == ("nightly", "Apache-Spark/4.2.0 tablelog/0.1.0")


@pytest.mark.parametrize(
    ("reads", "actions", "blind"),
    [
        (lambda t: None, [add("b")], True),
        (lambda t: t.transaction_version("q"), [add("b"), SetTransaction("q", 1)], True),
        (lambda t: None, [], True),
        (lambda t: t.read_files(), [add("b")], False),
        (lambda t: t.read_whole_table(), [add("b")], False),
        (lambda t: t.read_keys([("a", None)]), [add("b")], False),
        (lambda t: t.read_files(Compare("=", ("v",), pa.scalar(1, pa.int64()))), [add("b")], False),
        (lambda t: None, [RemoveFile("a", 1, True)], False),
    ],
)
def test_blind_append(reads: Callable[[Transaction], Any], actions: list[Action], blind: bool) -> None:
    log = table()
    log.transaction().commit([add("a")], WRITE)
    transaction = log.transaction()
    reads(transaction)
    assert transaction.commit(actions, WRITE).commit_info.is_blind_append is blind


def test_default_properties_of_the_session() -> None:
    prefix = "spark.databricks.delta.properties.defaults."
    conf = {**NO_CRC, f"{prefix}isolationLevel": "WriteSerializable", f"{prefix}appendOnly": "true"}
    log = new_log(conf=conf)
    create(log, configuration={"delta.appendOnly": "false"})
    assert log.snapshot().metadata.configuration == {
        "delta.isolationLevel": "WriteSerializable",
        "delta.appendOnly": "false",
    }
    log.transaction().commit([add("a")], WRITE)
    assert lines(log, 1)[0]["commitInfo"]["isolationLevel"] == "WriteSerializable"
    # A session's defaults are for new tables only.
    transaction = other(log).transaction()
    transaction.set_metadata(replace(transaction.metadata, description="x"))
    transaction.commit([], Operation("COMMENT"))
    assert log.snapshot().metadata.configuration["delta.appendOnly"] == "false"


def test_isolation_level_is_settable_as_a_property_but_not_snapshot_isolation() -> None:
    log = table(isolationLevel="WriteSerializable")
    first = log.transaction()
    first.read_whole_table()
    other(log).transaction().commit([add("a")], WRITE)
    committed = first.commit([add("b")], WRITE)
    assert committed.version == 2, "a blind append doesn't matter at this level"
    with pytest.raises(InvalidArgumentError, match="isolationLevel"):
        table(isolationLevel="SnapshotIsolation")


def test_compaction_is_checked_at_snapshot_isolation() -> None:
    log = table()
    log.transaction().commit([add("a"), add("b")], WRITE)
    compaction = log.transaction()
    assert compaction.snapshot is not None
    compaction.read_whole_table()
    removes = [file.remove(1, data_change=False) for file in compaction.snapshot.add_files()]
    other(log).transaction().commit([add("c")], WRITE)
    # It has read all of the table, but changes no data: what others append doesn't matter.
    committed = compaction.commit([*removes, add("ab", data_change=False)], Operation("OPTIMIZE", changes_data=False))
    assert committed.commit_info.isolation_level == "SnapshotIsolation"
    assert sorted(log.snapshot().files.column("path").to_pylist()) == ["ab", "c"]


def test_transaction_identifiers() -> None:
    log = table()
    transaction = log.transaction()
    assert transaction.transaction_version("q") is None
    transaction.commit([SetTransaction("q", 7, 1), SetTransaction("q", 7, 1), add("a")], WRITE)
    assert sum("txn" in line for line in lines(log, 1)) == 1
    one, two = log.transaction(), log.transaction()
    assert one.transaction_version("q") == two.transaction_version("q") == 7
    one.commit([SetTransaction("q", 8)], WRITE)
    with pytest.raises(ConcurrentTransactionException, match="'q'"):
        two.commit([SetTransaction("q", 8)], WRITE)
    assert log.snapshot().transactions["q"].version == 8


# --- what is refused ----------------------------------------------------------------------------------------------

REFUSED: list[tuple[str, list[Action], type[Exception], str]] = [
    ("two metaData", [Metadata("id", SCHEMA), Metadata("id", SCHEMA)], InvalidArgumentError, "metaData twice"),
    ("two protocols", [Protocol(1, 2), Protocol(1, 3)], InvalidArgumentError, "protocol twice"),
    ("added twice", [add("a"), add("a")], InvalidArgumentError, "added twice"),
    ("removed twice", [RemoveFile("a", 1, True)] * 2, InvalidArgumentError, "removed twice"),
    ("added and removed", [add("a"), RemoveFile("a", 1, True)], InvalidArgumentError, "both add and remove"),
    ("two txn", [SetTransaction("q", 1), SetTransaction("q", 2)], InvalidArgumentError, "both 1 and 2"),
    ("two domains", [DomainMetadata("d", "", False)] * 2, InvalidArgumentError, "'d' twice"),
    ("commitInfo", [CommitInfo()], InvalidArgumentError, "CommitInfo is no action"),
    ("sidecar", [Sidecar("x", 1, 1)], InvalidArgumentError, "Sidecar is no action"),
    ("stray partition value", [add("a", 1)], InvalidArgumentError, "partitioned by"),
    ("lower protocol", [Protocol(1, 1)], InvalidArgumentError, "can't be lowered"),
    ("unbuilt feature", [Protocol(1, 7, None, frozenset({"appendOnly", "invariants", "domainMetadata"}))],
     UnsupportedFeatureError, "domainMetadata"),
    ("other partitioning", [Metadata("id", SCHEMA, ("p",))], InvalidArgumentError, "overwriteSchema"),
    ("other id", [Metadata("new", SCHEMA)], InvalidArgumentError, "id of"),
    ("case twins", [Metadata("id", schema_of(("a", "long"), ("A", "long")))], SchemaMismatchError, "twice"),
    ("bad name", [Metadata("id", schema_of(("a b", "long")))], InvalidArgumentError, "a b"),
    ("unknown property", [Metadata("id", SCHEMA, (), {"delta.nope": "1"})], InvalidArgumentError, "delta.nope"),
    ("bad property", [Metadata("id", SCHEMA, (), {"delta.appendOnly": "maybe"})], InvalidArgumentError, "appendOnly"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "actions", "error", "text"), REFUSED, ids=[case[0] for case in REFUSED])
def test_refused(name: str, actions: list[Action], error: type[Exception], text: str) -> None:
    log = table()
    with pytest.raises(error, match=text):
        log.transaction().commit(actions, WRITE)
    assert other(log).snapshot().version == 0, "nothing was written"


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        (Metadata("id", SCHEMA, ("q",)), "'q' is not in the schema"),
        (Metadata("id", SCHEMA, ("p", "v")), "every column is a partition column"),
        (Metadata("id", SCHEMA, ("p", "p")), "given twice"),
    ],
)
def test_bad_partition_columns(metadata: Metadata, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        new_log().transaction().set_metadata(metadata)


def test_a_new_table_needs_metadata() -> None:
    log = new_log()
    with pytest.raises(InvalidArgumentError, match="needs the table's metadata"):
        log.transaction().commit([add("a")], WRITE)
    assert not log.exists()


def test_append_only() -> None:
    log = table(appendOnly="true")
    log.transaction().commit([add("a"), add("b")], WRITE)
    with pytest.raises(AppendOnlyTableError, match=r"delta\.appendOnly"):
        log.transaction().commit([RemoveFile("a", 1, True)], Operation("DELETE"))
    log.transaction().commit(
        [RemoveFile("a", 1, False), RemoveFile("b", 1, False), add("ab", data_change=False)], Operation("OPTIMIZE")
    )
    assert log.snapshot().files.column("path").to_pylist() == ["ab"]


def test_a_property_that_another_writer_set_stays() -> None:
    log = table()
    metadata = replace(log.snapshot().metadata, configuration={"delta.fromTheFuture": "1", "mine": "x"})
    log.store.write(f"{log.log_path}/{1:020d}.json", serialise([CommitInfo(), metadata]))
    transaction = log.transaction()
    transaction.set_metadata(replace(transaction.metadata, description="d"))
    transaction.commit([], Operation("COMMENT"))
    assert log.snapshot().metadata.configuration == {"delta.fromTheFuture": "1", "mine": "x"}


def test_metadata_that_needs_a_higher_protocol() -> None:
    log = table()
    transaction = log.transaction()
    transaction.set_metadata(
        replace(transaction.metadata, configuration={"delta.feature.vacuumProtocolCheck": "supported"})
    )
    expected = Protocol(
        3, 7, frozenset({"vacuumProtocolCheck"}), frozenset({"vacuumProtocolCheck", "appendOnly", "invariants"})
    )
    assert transaction.protocol == expected
    transaction.commit([], Operation("SET TBLPROPERTIES"))
    assert log.snapshot().protocol == expected
    assert log.snapshot().metadata.configuration == {}, "such a key asks, and isn't stored"


def test_overwriting_the_schema_may_change_the_partitioning_but_no_file_of_the_old_layout_may_stay() -> None:
    log = table()
    log.transaction().commit([add("a")], WRITE)
    overwrite = log.transaction()
    overwrite.set_metadata(replace(overwrite.metadata, partition_columns=("p",)))
    other(log).transaction().commit([add("b")], WRITE)
    operation = Operation("WRITE", {"mode": "Overwrite"}, replaces_table=True)
    with pytest.raises(ConcurrentAppendException):
        overwrite.commit([RemoveFile("a", 1, True), add("c", 1)], operation)
    again = log.transaction()
    again.set_metadata(replace(again.metadata, partition_columns=("p",)))
    again.commit([RemoveFile("a", 1, True), RemoveFile("b", 1, True), add("c", 1)], operation)
    assert log.snapshot().partition_columns == ("p",)


def test_a_transaction_is_for_one_commit() -> None:
    transaction = table().transaction()
    transaction.commit([add("a")], WRITE)
    with pytest.raises(InvalidArgumentError, match="committed before"):
        transaction.commit([add("b")], WRITE)


def test_a_store_that_shows_parts_of_files_is_refused() -> None:
    class Torn(MemoryLogStore):
        partial_writes_visible = True

    log = new_log(Torn())
    transaction = log.transaction()
    transaction.set_metadata(Metadata("id", SCHEMA))
    with pytest.raises(UnsupportedEnvironmentError, match="Torn"):
        transaction.commit([], WRITE)
    assert not log.exists()


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
    raised = Protocol(1, 7, None, frozenset({"appendOnly", "invariants", "domainMetadata"}))
    log.store.write(f"{log.log_path}/{1:020d}.json", serialise([CommitInfo(), raised]))
    with pytest.raises(UnsupportedFeatureError, match="domainMetadata"):
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
    assert clock.slept == sorted(clock.slept)
    assert len(clock.slept) == 11, "the first loss costs no wait"
    assert clock.slept[-1] <= 1.0


def test_the_number_of_attempts_may_be_bounded() -> None:
    store = Racing(0)
    log = new_log(store, conf={**NO_CRC, "spark.databricks.delta.maxCommitAttempts": "3"}, clock=Patient())
    create(log)
    store.losses = 100
    with pytest.raises(ConcurrentWriteException, match="4 versions in a row"):
        log.transaction().commit([add("m")], WRITE)
    assert log.snapshot().version == 4
    assert "m" not in log.snapshot().files.column("path").to_pylist()


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
        ("list_from", "01."),
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
    said = [record.getMessage() for record in caplog.records if record.name == "tablelog.core.txn.transaction"]
    assert len(said) == 2
    assert re.fullmatch(r"memory:///t: version 1, attempt 1: lost, \d+ ms", said[0])
    assert re.fullmatch(r"memory:///t: version 2, attempt 2: won, \d+ ms", said[1])


# --- what was read ------------------------------------------------------------------------------------------------


def p_is(value: int) -> Compare:
    return Compare("=", ("p",), pa.scalar(value, pa.int32()))


def test_writers_in_different_partitions_do_not_disturb_one_another() -> None:
    log = table("p")
    log.transaction().commit([add("a", 1), add("b", 2)], WRITE)
    mine, theirs = log.transaction(), other(log).transaction()
    assert mine.read_files(p_is(1)).column("path").to_pylist() == ["a"]
    assert theirs.read_files(p_is(2)).column("path").to_pylist() == ["b"]
    theirs.commit([RemoveFile("b", 1, True), add("b2", 2)], Operation("UPDATE"))
    assert mine.commit([RemoveFile("a", 1, True), add("a2", 1)], Operation("UPDATE")).version == 3


def test_a_file_added_to_what_was_read_is_a_conflict() -> None:
    log = table("p")
    log.transaction().commit([add("a", 1)], WRITE)
    mine = log.transaction()
    mine.read_predicate(p_is(1))
    mine.read_table(log.snapshot().files)
    other(log).transaction().commit([add("new", 1)], WRITE)
    with pytest.raises(ConcurrentAppendException, match=r"\[p=1\]"):
        mine.commit([RemoveFile("a", 1, True)], Operation("DELETE"))


def test_listing_is_not_trusted_over_what_was_read_back() -> None:
    # A rival's commit was read back at version 1: it counts even when a stale listing doesn't show it.
    class Stale(MemoryLogStore):
        hide = False

        def list_from(self, path: str) -> Iterator[FileStatus]:
            found = super().list_from(path)
            return iter([s for s in found if not (self.hide and s.path.endswith("01.json"))])

    store = Stale()
    log = new_log(store)
    create(log)
    mine = log.transaction()
    mine.read_whole_table()
    other(log).transaction().commit([add("a")], WRITE)
    store.hide = True
    with pytest.raises(ConcurrentAppendException):
        mine.commit([add("m")], WRITE)
