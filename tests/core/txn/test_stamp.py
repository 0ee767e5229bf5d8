"""What a commit gets with its version: in-commit timestamps and row ids, alone and against others."""

import json
import random
from dataclasses import replace

import pytest

from support.log_builder import SetClock
from support.memory_table import WRITE, add, create, lines, new_log, other, table
from tablelog.core.deltalog import DeltaLog
from tablelog.core.protocol import features
from tablelog.core.protocol.actions import AddFile, CommitInfo, DomainMetadata, Metadata, Protocol
from tablelog.core.protocol.codec import serialise
from tablelog.core.txn.operation import Operation
from tablelog.core.txn.transaction import Committed
from tablelog.errors import (
    ConcurrentDeleteDeleteException,
    CorruptLogError,
    InvalidArgumentError,
    MetadataChangedException,
    ProtocolChangedException,
)
from tablelog.logstore.memory import MemoryLogStore

SET = Operation("SET TBLPROPERTIES")


def log_with(clock: SetClock, **configuration: str) -> DeltaLog:
    log = new_log(MemoryLogStore(clock), {"spark.databricks.delta.stats.skipping": "true"}, clock)
    create(log, configuration={f"delta.{key}": value for key, value in configuration.items()})
    return log


def put(log: DeltaLog, **configuration: str) -> Committed:
    """Set properties."""
    transaction = log.transaction()
    old = transaction.metadata
    new = {**old.configuration, **{f"delta.{key}": value for key, value in configuration.items()}}
    transaction.set_metadata(replace(old, configuration=new))
    return transaction.commit([], SET)


def append(log: DeltaLog, path: str, rows: int = 1) -> Committed:
    return log.transaction().commit([replace(add(path), stats=f'{{"numRecords":{rows}}}')], WRITE)


def info(log: DeltaLog, version: int) -> dict[str, object]:
    found: dict[str, object] = lines(log, version)[0]["commitInfo"]
    return found


# --- in-commit timestamps -----------------------------------------------------------------------------------------


def test_timestamps_rise_though_the_clock_goes_back() -> None:
    clock = SetClock(5_000)
    log = log_with(clock, enableInCommitTimestamps="true")
    assert "delta.inCommitTimestampEnablementVersion" not in log.snapshot().metadata.configuration
    for time, expected in ((9_000, 9_000), (4_000, 9_001), (9_001, 9_002), (20_000, 20_000)):
        clock.now = time
        version = append(log, f"f{time}").version
        assert info(log, version)["inCommitTimestamp"] == expected
    assert info(log, 0)["inCommitTimestamp"] == 5_000
    fresh = other(log)
    assert [entry.timestamp_ms for entry in fresh.history()] == [20_000, 9_002, 9_001, 9_000, 5_000]
    assert fresh.version_at(9_001) == 2
    crc = json.loads(log.store.read(f"{log.log_path}/{4:020d}.crc"))
    assert crc["inCommitTimestampOpt"] == 20_000


def test_enabling_notes_since_when() -> None:
    clock = SetClock(50_000)
    log = log_with(clock)
    clock.now = 60_000
    append(log, "a")
    clock.now = 20_000  # behind the file of the version before
    put(log, enableInCommitTimestamps="true")
    configuration = log.snapshot().metadata.configuration
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "2"
    assert configuration["delta.inCommitTimestampEnablementTimestamp"] == "60001"
    assert info(log, 2)["inCommitTimestamp"] == 60_001
    put(log, appendOnly="true")
    assert log.snapshot().metadata.configuration["delta.inCommitTimestampEnablementVersion"] == "2"
    assert other(log).version_at(60_001) == 2
    assert other(log).version_at(60_000) == 1

    replaced = log.transaction()
    replaced.set_metadata(
        replace(replaced.metadata, configuration={"delta.enableInCommitTimestamps": "true"}), replaces_table=True
    )
    replaced.commit([], Operation("REPLACE TABLE", replaces_table=True))
    assert log.snapshot().metadata.configuration["delta.inCommitTimestampEnablementTimestamp"] == "60001"

    put(log, enableInCommitTimestamps="false")
    assert "inCommitTimestamp" not in info(log, log.snapshot().version)
    again = put(log, enableInCommitTimestamps="true").version
    assert log.snapshot().metadata.configuration["delta.inCommitTimestampEnablementVersion"] == str(again)


def test_a_loser_is_later_than_each_winner() -> None:
    clock = SetClock(1_000)
    log = log_with(clock, enableInCommitTimestamps="true")
    mine = log.transaction()
    clock.now = 8_000
    append(other(log), "a")
    clock.now = 2_000
    append(other(log), "b")
    assert mine.commit([add("m")], WRITE).commit_info.in_commit_timestamp == 8_002
    assert info(log, 3)["inCommitTimestamp"] == 8_002


def test_a_commit_that_began_before_timestamps_were_enabled_bears_one() -> None:
    clock = SetClock(1_000)
    log = log_with(clock)
    mine = log.transaction()
    put(other(log), enableInCommitTimestamps="true")
    mine.commit([add("m")], WRITE)
    assert info(log, 2)["inCommitTimestamp"] == 1_002
    assert log.snapshot().metadata.configuration["delta.inCommitTimestampEnablementVersion"] == "1"


def test_the_one_that_enables_notes_the_version_it_got() -> None:
    clock = SetClock(1_000)
    log = log_with(clock)
    mine = log.transaction()
    mine.set_metadata(replace(mine.metadata, configuration={"delta.enableInCommitTimestamps": "true"}))
    clock.now = 7_000
    append(other(log), "a")
    clock.now = 3_000
    committed = mine.commit([], SET)
    assert committed.commit_info.in_commit_timestamp == 7_001, "later than the file of the winner"
    configuration = log.snapshot().metadata.configuration
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "2"
    assert configuration["delta.inCommitTimestampEnablementTimestamp"] == "7001"


# --- row ids ------------------------------------------------------------------------------------------------------


def ids(log: DeltaLog) -> dict[str, tuple[int | None, int | None]]:
    files = other(log).snapshot().files
    names = ("path", "baseRowId", "defaultRowCommitVersion")
    return {path: (row, version) for path, row, version in zip(*(files.column(n).to_pylist() for n in names))}  # noqa: B905


def high_water(log: DeltaLog) -> int:
    value: int = json.loads(other(log).snapshot().domain_metadata["delta.rowTracking"].configuration)[
        "rowIdHighWaterMark"
    ]
    return value


def test_files_get_ids_once() -> None:
    log = table(enableRowTracking="true")
    configuration = log.snapshot().metadata.configuration
    assert configuration["delta.rowTracking.materializedRowIdColumnName"].startswith("_row-id-col-")
    assert "rowTracking" in features.supported(log.snapshot().protocol)
    append(log, "a", 5)
    append(log, "empty", 0)
    append(log, "b", 3)
    assert ids(log) == {"a": (0, 1), "empty": (5, 2), "b": (5, 3)}
    assert high_water(log) == 7
    assert "tags" not in info(log, 3)

    old = log.snapshot().add_files([0])[0]
    committed = log.transaction().commit([old.remove(1), replace(old, path="a2", data_change=False)], WRITE)
    assert ids(log)["a2"] == (0, 1), "what has ids keeps them"
    assert info(log, 4)["tags"] == {"delta.rowTracking.preserved": "true"}
    assert not any(isinstance(action, DomainMetadata) for action in committed.actions)


def test_ids_are_never_given_twice_though_writers_race() -> None:
    log = table(enableRowTracking="true")
    append(log, "a", 5)
    mine = log.transaction()
    append(other(log), "b", 10)
    old = log.transaction()
    old.commit([log.snapshot().add_files([0])[0].remove(1)], WRITE)
    committed = mine.commit([replace(add("m"), stats='{"numRecords":2}')], WRITE)
    assert committed.version == 4
    assert ids(log) == {"b": (5, 2), "m": (15, 4)}
    assert high_water(log) == 16


def test_support_alone_assigns_ids_and_suspension_takes_them_away() -> None:
    log = table(**{"feature.rowTracking": "supported"})
    append(log, "a", 2)
    assert ids(log) == {"a": (0, 1)}
    assert "tags" not in info(log, 1)
    put(log, rowTrackingSuspended="true")
    append(log, "b", 2)
    assert ids(log)["b"] == (None, None)
    with pytest.raises(InvalidArgumentError, match="both"):
        put(log, enableRowTracking="true")


def test_ids_that_came_from_elsewhere_are_not_given_out_again() -> None:
    log = table(enableRowTracking="true")
    foreign = replace(add("f"), stats='{"numRecords":5}', base_row_id=100, default_row_commit_version=0)
    log.transaction().commit([replace(add("a"), stats='{"numRecords":2}'), foreign], WRITE)
    assert ids(log) == {"a": (105, 1), "f": (100, 0)}
    assert high_water(log) == 106


def test_rows_that_nobody_counted_get_no_ids() -> None:
    log = table(enableRowTracking="true")
    with pytest.raises(InvalidArgumentError, match="don't have its number of rows"):
        log.transaction().commit([replace(add("a"), stats=None)], WRITE)


def test_tracking_cannot_be_enabled_over_files_without_ids() -> None:
    log = table()
    append(log, "a")
    with pytest.raises(InvalidArgumentError, match="no row ids yet"):
        put(log, enableRowTracking="true")


def test_the_domain_is_the_commits_own() -> None:
    log = table(enableRowTracking="true")
    with pytest.raises(InvalidArgumentError, match=r"delta\.rowTracking"):
        log.transaction().commit([DomainMetadata("delta.rowTracking", "{}", False)], WRITE)
    log.store.write(
        f"{log.log_path}/{1:020d}.json", serialise([CommitInfo(), DomainMetadata("delta.rowTracking", "{}", False)])
    )
    with pytest.raises(CorruptLogError, match="rowIdHighWaterMark"):
        append(other(log), "a")


def test_domains_need_their_feature() -> None:
    domain = DomainMetadata("app", "{}", False)
    with pytest.raises(InvalidArgumentError, match="domainMetadata"):
        table().transaction().commit([domain], WRITE)
    log = table(**{"feature.domainMetadata": "supported"})
    log.transaction().commit([domain], WRITE)
    assert set(log.snapshot().domain_metadata) == {"app"}


def tracked(log: DeltaLog) -> None:
    """Support, ids for the files that are there, and then the property, as `setProperties` does it."""
    upgrade = log.transaction()
    upgrade.commit([features.protocol_of({"appendOnly", "invariants", "rowTracking"})], Operation("UPGRADE PROTOCOL"))
    backfill(log)
    put(log, enableRowTracking="true")


def backfill(log: DeltaLog) -> Committed:
    transaction = log.transaction()
    assert transaction.snapshot is not None
    files = [replace(file, data_change=False) for file in transaction.snapshot.add_files() if file.base_row_id is None]
    return transaction.commit(files, Operation("ROW TRACKING BACKFILL", {"batchId": 0}, restates_files=True))


def test_a_transaction_passes_a_backfill_and_takes_over_its_ids() -> None:
    log = table()
    append(log, "a", 4)
    append(log, "b", 4)
    mine = log.transaction()
    mine.read_whole_table()
    assert mine.snapshot is not None
    old = mine.snapshot.add_files()[0]
    tracked(other(log))
    assert info(log, 5)["tags"] == {"rowTrackingEnablementOnly": "true"}
    committed = mine.commit([old.remove(1), replace(add("m"), stats='{"numRecords":1}')], WRITE)
    removed = next(action for action in committed.actions if not isinstance(action, AddFile | DomainMetadata))
    assert (removed.base_row_id, removed.default_row_commit_version) == (0, 4)  # type: ignore[union-attr]
    assert ids(log) == {"b": (4, 4), "m": (8, 6)}
    assert info(log, 6)["tags"] == {"delta.rowTracking.preserved": "false"}


def test_a_backfill_leaves_alone_what_others_touched() -> None:
    log = table()
    append(log, "a", 4)
    append(log, "b", 4)
    put(log, **{"feature.rowTracking": "supported"})
    transaction = log.transaction()
    assert transaction.snapshot is not None
    files = [replace(file, data_change=False) for file in transaction.snapshot.add_files()]
    other(log).transaction().commit([files[0].remove(1)], WRITE)
    transaction.commit(files, Operation("ROW TRACKING BACKFILL", restates_files=True))
    assert ids(log) == {"b": (0, 5)}


# --- what may pass ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("properties", "passes"),
    [
        ({"enableDeletionVectors": "true"}, True),
        ({"columnMapping.mode": "name"}, True),
        ({"enableInCommitTimestamps": "true"}, True),
        ({"appendOnly": "true"}, False),
        ({"enableDeletionVectors": "true", "appendOnly": "true"}, False),
        ({"checkpointInterval": "7"}, False),
    ],
)
def test_some_metadata_lets_a_concurrent_append_pass(properties: dict[str, str], passes: bool) -> None:
    log = table()
    mine = log.transaction()
    theirs = put(other(log), **properties)
    if not passes:
        with pytest.raises(MetadataChangedException):
            mine.commit([add("m")], WRITE)
        return
    assert mine.commit([add("m")], WRITE).version == theirs.version + 1
    assert log.snapshot().metadata == other(log).snapshot().metadata


def test_what_is_switched_off_or_changed_twice_is_a_conflict() -> None:
    log = table(enableDeletionVectors="true")
    mine, changing = log.transaction(), log.transaction()
    put(other(log), enableDeletionVectors="false")
    with pytest.raises(MetadataChangedException):
        mine.commit([add("m")], WRITE)
    changing.set_metadata(replace(changing.metadata, description="x"))
    with pytest.raises(MetadataChangedException):
        changing.commit([], SET)


def identity(high_water_mark: int | None) -> Metadata:
    marked = {} if high_water_mark is None else {"delta.identity.highWaterMark": high_water_mark}
    fields = [
        {"name": "k", "type": "long", "nullable": True, "metadata": {"delta.identity.start": 1, **marked}},
        {"name": "v", "type": "long", "nullable": True, "metadata": {}},
    ]
    return Metadata("id", json.dumps({"type": "struct", "fields": fields}))


def test_a_new_high_water_mark_says_so_and_lets_others_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    known = features.FEATURES["identityColumns"]
    monkeypatch.setitem(features.FEATURES, "identityColumns", replace(known, write=True))  # type: ignore[arg-type]
    log = new_log()
    first = log.transaction()
    first.set_metadata(identity(None))
    first.commit([], Operation("CREATE TABLE"))
    mine, numbering = log.transaction(), log.transaction()
    theirs = other(log).transaction()
    theirs.set_metadata(identity(7))
    theirs.commit([add("i")], WRITE)
    assert info(log, 1)["tags"] == {"delta.identity.schemaUpdate": "true"}
    numbering.set_metadata(identity(5))
    with pytest.raises(MetadataChangedException):
        numbering.commit([add("n")], WRITE)
    mine.commit([add("m")], WRITE)
    assert log.snapshot().metadata.schema_string == identity(7).schema_string


def test_a_commit_that_drops_a_feature_stands_on_what_it_read() -> None:
    log = table(**{"feature.domainMetadata": "supported"})
    drop = Operation("DROP FEATURE", {"featureName": "domainMetadata"}, lowers_protocol=True)
    late, lowered = log.transaction(), Protocol(1, 2)
    append(other(log), "a")
    with pytest.raises(ProtocolChangedException, match="drops a feature"):
        late.commit([lowered], drop)
    mine = log.transaction()
    log.transaction().commit([lowered], drop)
    assert log.snapshot().protocol == lowered
    with pytest.raises(ProtocolChangedException, match="dropped the feature domainMetadata"):
        mine.commit([add("m")], WRITE)
    with pytest.raises(InvalidArgumentError, match="lowered"):
        log.transaction().commit([Protocol(1, 1)], SET)


def test_a_removal_still_conflicts_with_one_of_the_same_file() -> None:
    log = table(enableRowTracking="true")
    append(log, "a", 4)
    mine = log.transaction()
    file = log.snapshot().add_files()[0]
    other(log).transaction().commit([file.remove(1)], WRITE)
    with pytest.raises(ConcurrentDeleteDeleteException):
        mine.commit([file.remove(1)], WRITE)


@pytest.mark.parametrize("seed", range(8))
def test_in_any_order_of_commits_times_rise_and_ids_are_apart(seed: int) -> None:
    dice = random.Random(seed)
    clock = SetClock(10_000)
    log = log_with(clock, enableInCommitTimestamps="true", enableRowTracking="true")
    open_transactions = [other(log).transaction() for _ in range(4)]
    for number in range(12):
        clock.now = dice.randrange(5_000, 15_000)
        transaction = open_transactions.pop(dice.randrange(len(open_transactions)))
        rows = dice.randrange(4)
        transaction.commit([replace(add(f"f{number}"), stats=f'{{"numRecords":{rows}}}')], WRITE)
        open_transactions.append(other(log).transaction())
    times = [entry.timestamp_ms for entry in other(log).history()]
    assert times == sorted(set(times), reverse=True)
    taken: set[int] = set()
    for file in other(log).snapshot().add_files():
        assert file.base_row_id is not None
        own = set(range(file.base_row_id, file.base_row_id + json.loads(file.stats or "{}")["numRecords"]))
        assert not own & taken
        taken |= own
    assert not taken or max(taken) == high_water(log)
