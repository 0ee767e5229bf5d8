"""What a transaction writes, and what it refuses."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.memory_table import NO_CRC, SCHEMA, WRITE, add, create, lines, new_log, other, schema_of, table
from tablelog.clock import SystemClock
from tablelog.core.deltalog import DeltaLog
from tablelog.core.protocol.actions import (
    Action,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    Sidecar,
)
from tablelog.core.protocol.codec import parse_commit, serialise
from tablelog.core.skipping.predicates import Compare
from tablelog.core.txn.operation import Operation
from tablelog.core.txn.transaction import Transaction
from tablelog.errors import (
    AppendOnlyTableError,
    ConcurrentAppendException,
    ConcurrentTransactionException,
    InvalidArgumentError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedEnvironmentError,
    UnsupportedFeatureError,
)
from tablelog.logstore.base import FileStatus
from tablelog.logstore.memory import MemoryLogStore

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


class _Late(SystemClock):
    """A clock by which each step takes minutes."""

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        self._now += 600.0
        return self._now


def test_the_first_commit_of_a_table_whose_data_took_long(tmp_path: Path) -> None:
    log = DeltaLog.for_path(str(tmp_path / "new"), conf=NO_CRC, clock=_Late())
    transaction = log.transaction()
    transaction.set_metadata(Metadata("id", SCHEMA, ("p",)))
    assert transaction.commit([add("a", 1)], WRITE).version == 0
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
        (lambda t: t.read_files(time_zone="UTC"), [add("b")], False),
        (lambda t: t.read_whole_table(), [add("b")], False),
        (lambda t: t.read_keys([("a", None)]), [add("b")], False),
        (lambda t: t.read_files(Compare("=", ("v",), pa.scalar(1, pa.int64())), time_zone="UTC"), [add("b")], False),
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
    ("commitInfo", [CommitInfo()], InvalidArgumentError, "CommitInfo can't be committed"),
    ("sidecar", [Sidecar("x", 1, 1)], InvalidArgumentError, "Sidecar can't be committed"),
    ("stray partition value", [add("a", 1)], InvalidArgumentError, "partitioned by"),
    ("lower protocol", [Protocol(1, 1)], InvalidArgumentError, "can't be lowered"),
    ("unbuilt feature", [Protocol(1, 7, None, frozenset({"appendOnly", "invariants", "futureWriter"}))],
     UnsupportedFeatureError, "futureWriter"),
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
        (Metadata("id", SCHEMA, ("p", "p")), "listed twice"),
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


# --- what was read ------------------------------------------------------------------------------------------------


def p_is(value: int) -> Compare:
    return Compare("=", ("p",), pa.scalar(value, pa.int32()))


def test_writers_in_different_partitions_do_not_disturb_one_another() -> None:
    log = table("p")
    log.transaction().commit([add("a", 1), add("b", 2)], WRITE)
    mine, theirs = log.transaction(), other(log).transaction()
    assert mine.read_files(p_is(1), time_zone="UTC").column("path").to_pylist() == ["a"]
    assert theirs.read_files(p_is(2), time_zone="UTC").column("path").to_pylist() == ["b"]
    theirs.commit([RemoveFile("b", 1, True), add("b2", 2)], Operation("UPDATE"))
    assert mine.commit([RemoveFile("a", 1, True), add("a2", 1)], Operation("UPDATE")).version == 3


def test_a_file_added_to_what_was_read_is_a_conflict() -> None:
    log = table("p")
    log.transaction().commit([add("a", 1)], WRITE)
    mine = log.transaction()
    mine.read_predicate(p_is(1), time_zone="UTC")
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
