"""Cleanup: what has expired goes, and nothing that a retained version needs; as a property of random histories."""

import json
import os
import time
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.log_builder import LogBuilder, SetClock, add, metadata, remove
from tablelog.core import CommitInfo, DeltaLog, DomainMetadata, Operation, Protocol, SetTransaction, Snapshot
from tablelog.core.log import checksum
from tablelog.core.log.memory_limits import MemoryLimits
from tablelog.core.log.segment import parse_listing
from tablelog.core.log_maintenance.cleanup import DAY_MS, boundaries, cut_off, expired, unreferenced
from tablelog.core.protocol.paths import checkpoint_name, commit_name, compacted_name, crc_name, parse_log_name
from tablelog.errors import VersionNotFoundError
from tablelog.logstore import CountingLogStore
from tablelog.logstore.base import FileStatus
from tablelog.settings.declarations import CHECKPOINT_PART_SIZE

HOUR_MS = 3_600_000
START = 1_700_000_000_000 // DAY_MS * DAY_MS
CLEAN = {"delta.logRetentionDuration": "interval 10 days", "delta.deletedFileRetentionDuration": "interval 1 day"}


def table(days: int, configuration: Mapping[str, str] | None = None, *, features: set[str] | None = None) -> LogBuilder:
    """A commit at noon of each day."""
    builder = LogBuilder()
    builder.clock.now = START
    protocol = (
        Protocol(3, 7, frozenset(features & {"v2Checkpoint"}), frozenset(features)) if features else Protocol(1, 2)
    )
    builder.commit(protocol, metadata({**CLEAN, **(configuration or {})}, table_id="t"), add("0"), at=noon(0))
    for day in range(1, days):
        builder.commit(add(str(day)), SetTransaction("app", day), at=noon(day))
    return builder


def noon(day: int) -> int:
    return START + day * DAY_MS + DAY_MS // 2


def checkpoint(builder: LogBuilder, *versions: int, **conf: str) -> None:
    log = builder.log(conf=conf)
    for version in versions:
        log.checkpoint(log.snapshot(version))


def kept(builder: LogBuilder, kind: str) -> list[int]:
    return sorted({f.version for name in builder.names() if (f := parse_log_name(name)) and f.kind == kind})


def state(snapshot: Snapshot) -> tuple:
    files = {(a.path, a.deletion_vector, a.size, a.stats) for a in snapshot.add_files()}
    removed = set(snapshot.tombstones["path"].to_pylist())
    return files, removed, dict(snapshot.transactions), dict(snapshot.domain_metadata), snapshot.metadata


# --- what goes --------------------------------------------------------------------------------------------------------


def test_all_before_the_newest_expired_checkpoint_goes() -> None:
    builder = table(20)
    checkpoint(builder, 2, 5, 8, 12)
    for version in (4, 5, 6):
        snapshot = builder.log().snapshot(version)
        builder.write(crc_name(version), checksum.serialise(checksum.of(snapshot, snapshot.totals())))
    for first, last in ((3, 4), (4, 6), (5, 7), (6, 7)):
        builder.write(compacted_name(first, last), b"")
    builder.write("_kept_by_someone", b"")
    builder.clock.now = noon(18)  # what is of day 7 and before has expired
    counting = CountingLogStore(builder.store)
    found = builder.log(counting).clean_up()
    assert found.first_version == 5
    assert kept(builder, "commit") == list(range(5, 20))
    assert kept(builder, "checkpoint") == [5, 8, 12]
    assert kept(builder, "crc") == [5, 6]
    assert [name for name in builder.names() if "compacted" in name] == [compacted_name(6, 7)]
    assert "_kept_by_someone" in builder.names()
    assert len(found.removed) == counting.calls["delete"] == 5 + 1 + 1 + 3
    assert builder.log().clean_up().removed == ()


def test_nothing_goes_without_a_checkpoint_that_has_expired() -> None:
    builder = table(20)
    builder.clock.now = noon(18)
    assert builder.log().clean_up().removed == ()
    checkpoint(builder, 9)
    log = builder.log()
    log.snapshot()
    counting = CountingLogStore(builder.store)
    log.store = counting
    assert log.clean_up().removed == ()
    assert builder.names()[0] == commit_name(0)


def test_the_time_is_cut_to_the_day_or_to_the_hour() -> None:
    builder = table(20)
    checkpoint(builder, 7, 8)
    builder.clock.now = noon(18) + HOUR_MS // 2
    assert builder.log().clean_up(retention_ms=10 * DAY_MS).first_version == 7
    assert builder.log().clean_up(retention_ms=10 * DAY_MS, truncate_to_ms=HOUR_MS).first_version == 8
    assert cut_off(noon(1), 0) == START + DAY_MS
    assert cut_off(noon(1), 0, 1) == noon(1) - 300_000  # a transaction may just have listed it


def test_a_commit_cleans_up_when_it_checkpoints() -> None:
    for enabled in ("true", "false"):
        builder = table(20, {"delta.enableExpiredLogCleanup": enabled, "delta.checkpointInterval": "20"})
        checkpoint(builder, 6)
        builder.clock.now = noon(18)
        log = builder.log()
        assert log.transaction().commit([add("x")], Operation("WRITE")).version == 20
        assert kept(builder, "commit")[0] == (6 if enabled == "true" else 0)
        assert kept(builder, "checkpoint") == [6, 20]
        assert log.snapshot().num_files == 21


def test_between_two_days_it_is_not_looked_for_again() -> None:
    builder = table(20, {"delta.checkpointInterval": "1"})
    checkpoint(builder, 6, 7, 8)
    counting = CountingLogStore(builder.store)
    log = builder.log(counting)
    removed = []
    for hours in (0, 2, 11, 12, 13, 36):
        builder.clock.now = noon(18) + hours * HOUR_MS
        transaction = log.transaction()
        counting.reset()
        transaction.commit([], Operation("WRITE"))
        removed.append(counting.calls["delete"])
    assert removed == [8, 0, 0, 2, 0, 0]  # seven commits and a checkpoint; one of each; no checkpoint has expired yet


def test_a_cleanup_that_fails_does_not_fail_the_commit(caplog: pytest.LogCaptureFixture) -> None:
    class Undeletable(CountingLogStore):
        def delete(self, path: str) -> None:
            raise OSError("no")

    builder = table(20, {"delta.checkpointInterval": "20"})
    checkpoint(builder, 6)
    builder.clock.now = noon(18)
    assert builder.log(Undeletable(builder.store)).transaction().commit([], Operation("WRITE")).version == 20
    assert "expired files of its log weren't removed" in caplog.text


# --- what the boundary must be ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["torn", "checksum", "no header"])
def test_the_boundary_is_read_whole_before_anything_goes(damage: str, caplog: pytest.LogCaptureFixture) -> None:
    builder = table(20)
    checkpoint(builder, 3, 6)
    if damage == "torn":
        data = builder.read(checkpoint_name(6))
        builder.write(checkpoint_name(6), data[:40] + bytes(200) + data[240:])  # the footer is fine
    elif damage == "checksum":
        snapshot = builder.log().snapshot(6)
        told = json.loads(checksum.serialise(checksum.of(snapshot, snapshot.totals())))
        builder.write(crc_name(6), json.dumps(told | {"numFiles": 8}).encode())
    else:
        builder.write(checkpoint_name(6), b"")
    builder.clock.now = noon(18)
    assert builder.log().clean_up().first_version == 3
    assert "nothing is removed for the checkpoint" in caplog.text
    assert kept(builder, "commit")[0] == 3


def test_a_sidecar_that_is_missing_spares_what_it_stands_for() -> None:
    builder = table(20, {"delta.checkpointPolicy": "v2"}, features={"v2Checkpoint"})
    checkpoint(builder, 6)
    (sidecar,) = builder.store.list_from(f"{builder.log_path}/_sidecars/0")
    builder.store.delete(sidecar.path)
    builder.clock.now = noon(18)
    assert builder.log().clean_up().removed == ()


def test_a_time_that_depends_on_an_earlier_commit_is_no_boundary() -> None:
    """Version 5's clock was behind: its time counts as that of version 4 and a millisecond, while that is there."""
    builder = table(5)
    builder.commit(add("5"), at=noon(1))
    for day in range(6, 20):
        builder.commit(add(str(day)), at=noon(day))
    checkpoint(builder, 5)
    builder.clock.now = noon(18)
    assert builder.log().version_at(noon(4) + 1) == 5
    assert builder.log().clean_up().removed == ()
    checkpoint(builder, 6)
    assert builder.log().clean_up().first_version == 6


def test_in_commit_timestamps_count_as_well_as_files_times() -> None:
    def of_day(version: int, told: int) -> Iterable[object]:
        return CommitInfo(in_commit_timestamp=told, operation="WRITE"), add(f"{version}.parquet")

    configuration = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "3",
        "delta.inCommitTimestampEnablementTimestamp": str(noon(13)),
    }
    builder = table(3)
    builder.write_commit(
        3,
        [
            CommitInfo(in_commit_timestamp=noon(13)),
            Protocol(1, 7, None, frozenset({"inCommitTimestamp"})),
            metadata({**CLEAN, **configuration}, table_id="t"),
        ],
        at=noon(3),
    )
    for version in range(4, 12):  # the files' times are of another clock, ten days behind
        builder.write_commit(version, of_day(version, noon(version + 10)), at=noon(version))
    checkpoint(builder, 2, 4, 7)
    builder.clock.now = noon(24)
    assert builder.log().clean_up().first_version == 2  # 4 is of day 14 by its own word: not full ten days ago
    builder.clock.now = noon(25)
    assert builder.log().clean_up().first_version == 4


@pytest.mark.parametrize("before", [3, 8, 30])
def test_checkpoint_protection(before: int) -> None:
    """Its second exception: the boundary has its checkpoint, and none at or after it goes."""
    configuration = {"delta.requireCheckpointProtectionBeforeVersion": str(before)}
    builder = table(20, configuration, features={"checkpointProtection"})
    checkpoint(builder, 2, 6, 9, 12)
    builder.clock.now = noon(18)
    assert builder.log().clean_up().first_version == 6
    assert kept(builder, "checkpoint") == [6, 9, 12]


# --- sidecars and leftovers -------------------------------------------------------------------------------------------


def test_sidecars_that_nobody_names_go_with_their_checkpoint() -> None:
    builder = table(20, {"delta.checkpointPolicy": "v2"}, features={"v2Checkpoint"})
    builder.clock.now = noon(12)
    checkpoint(builder, 3, 6, 12, **{CHECKPOINT_PART_SIZE.key: "3"})
    mine = f"_sidecars/{uuid.uuid4()}.parquet"
    builder.clock.now = noon(18)
    builder.write(mine, b"of a checkpoint that is being written")

    def sidecars() -> list[str]:
        return [
            s.path.rpartition("/_delta_log/")[2] for s in builder.store.list_from(f"{builder.log_path}/_sidecars/0")
        ]

    states = {version: state(builder.log().snapshot(version)) for version in range(6, 20)}
    assert len(sidecars()) == 2 + 3 + 5 + 1
    assert builder.log().clean_up().first_version == 6
    assert len(sidecars()) == 3 + 5 + 1
    assert mine in sidecars()
    assert states == {version: state(builder.log().snapshot(version)) for version in range(6, 20)}
    # A reader that knows no V2 checkpoint finds the protocol, and the others the same files by either name.
    assert checkpoint_name(12) in builder.names()
    builder.delete(*(name for name in builder.names() if name.endswith(".json") and "checkpoint" in name))
    assert states[19] == state(builder.log().snapshot())
    assert builder.log().snapshot().base_version == 12


@pytest.mark.parametrize("policy", ["v2", "classic"])
def test_a_handle_whose_checkpoint_is_removed_opens_the_table_anew(policy: str) -> None:
    builder = table(20, {"delta.checkpointPolicy": policy}, features={"v2Checkpoint"})
    builder.limits = MemoryLimits(kept_file_bytes=0)
    builder.clock.now = noon(6)
    checkpoint(builder, 3)
    log = builder.log()
    for newest in (log.snapshot(), log.snapshot(4)):
        assert newest.base_version == 3
    if policy == "classic":
        assert log.snapshot().files.num_rows == 20  # the statistics are still to come
    checkpoint(builder, 6)
    builder.clock.now = noon(18)
    builder.log().clean_up()
    with pytest.raises(VersionNotFoundError, match=r"removed or replaced since it was opened.*Take a new snapshot"):
        log.snapshot().files_with("stats")
    assert log.snapshot().files_with("stats").num_rows == 20
    assert log.snapshot().base_version == 6


def test_sidecars_of_a_table_that_has_dropped_the_feature() -> None:
    builder = table(6, {"delta.checkpointPolicy": "v2"}, features={"v2Checkpoint"})
    builder.clock.now = noon(5)
    checkpoint(builder, 3)
    builder.commit(Protocol(1, 2), metadata(CLEAN, table_id="t"), at=noon(6))
    builder.commit(add("7"), at=noon(7))
    checkpoint(builder, 7)
    builder.clock.now = noon(20)
    assert builder.log().clean_up().first_version == 7
    assert list(builder.store.list_from(f"{builder.log_path}/_sidecars/0")) == []


def test_the_decision_on_sidecars() -> None:
    def status(name: str, at: int) -> FileStatus:
        return FileStatus(f"x/{name}", 1, at)

    today = START + 5 * DAY_MS
    found = [status("old", today - DAY_MS - 1), status("named", 0), status("of yesterday", today - DAY_MS)]
    assert unreferenced(found, {"named"}, today + 1) == found[:1]


def test_staged_commits_of_what_is_gone() -> None:
    builder = table(20)
    checkpoint(builder, 6)
    for version, at in ((3, noon(3)), (6, noon(6)), (19, noon(17))):
        builder.clock.now = at
        builder.write(f".tmp/{commit_name(version)}.{uuid.UUID(int=version)}", b"")
    builder.clock.now = noon(18)
    builder.log().clean_up()
    left = [s.path.rpartition("/")[2] for s in builder.store.list_from(f"{builder.log_path}/.tmp/0")]
    assert [name[:20] for name in left] == [f"{6:020d}", f"{19:020d}"]


# --- the property -----------------------------------------------------------------------------------------------------


@st.composite
def history(draw: st.DrawFn) -> tuple[LogBuilder, int]:
    """A table whose commits are hours to days apart, some with a clock that goes back; checkpoints of every kind."""
    v2 = draw(st.booleans())
    builder = LogBuilder()
    configuration = {**CLEAN, "delta.logRetentionDuration": f"interval {draw(st.integers(1, 12))} days"}
    configuration["delta.checkpointPolicy"] = "v2" if v2 else "classic"
    protocol = Protocol(3, 7, frozenset({"v2Checkpoint"}), frozenset({"v2Checkpoint"})) if v2 else Protocol(1, 2)
    now = START
    builder.commit(protocol, metadata(configuration, table_id="t"), add("0"), at=now)
    versions = draw(st.integers(1, 14))
    for version in range(1, versions + 1):
        now += draw(st.integers(-30, 70)) * HOUR_MS
        actions = [add(str(version), size=version)]
        if draw(st.booleans()):
            actions.append(remove(str(draw(st.integers(0, version - 1))), at=now))
        if draw(st.integers(0, 3)) == 0:
            actions.append(DomainMetadata("d", str(version), draw(st.booleans())))
        builder.commit(*actions, SetTransaction("app", version), at=now)
    for version in draw(st.lists(st.integers(0, versions), max_size=5, unique=True)):
        conf = {CHECKPOINT_PART_SIZE.key: "2"} if draw(st.booleans()) else {}
        builder.log(conf=conf).checkpoint(builder.log().snapshot(version))
        if draw(st.integers(0, 5)) == 0 and not v2:
            broken = next(name for name in builder.names() if f"{version:020d}.checkpoint" in name)
            builder.write(broken, builder.read(broken)[:-9])
    return builder, now + draw(st.integers(0, 20)) * DAY_MS


@settings(max_examples=30)
@given(history())
def test_each_retained_version_is_as_it_was(drawn: tuple[LogBuilder, int]) -> None:
    builder, now = drawn
    builder.clock.now = now
    log = builder.log()
    newest = log.snapshot()
    cutoff = cut_off(now, newest.properties.log_retention_ms)
    before = {version: state(builder.log().snapshot(version)) for version in range(newest.version + 1)}
    times = {entry.version: entry.timestamp_ms for entry in builder.log().history()}
    found = builder.log().clean_up()
    first = found.first_version or 0
    # Whatever was committed after the cutoff is retained, and what was the newest version then.
    at_cutoff = max((version for version, time in times.items() if time <= cutoff), default=0)
    assert first <= at_cutoff
    for version in range(first, newest.version + 1):
        assert state(builder.log().snapshot(version)) == before[version]
    after = {entry.version: entry.timestamp_ms for entry in builder.log().history()}
    assert after == {version: time for version, time in times.items() if version >= first}
    assert builder.log().version_at(times[newest.version]) == newest.version
    for version in range(first):
        with pytest.raises(VersionNotFoundError):
            builder.log().snapshot(version)
    assert builder.log().clean_up().removed == ()


def test_the_decision_alone() -> None:
    names = [commit_name(v) for v in range(6)] + [checkpoint_name(v) for v in (2, 4)] + [compacted_name(2, 3), "_x"]
    statuses = [FileStatus(f"t/{name}", 1, START + int(name[:20] if name[0] == "0" else 0)) for name in sorted(names)]
    listing = parse_listing(statuses)
    assert [c.version for c in boundaries(listing, START + 3)] == [2]
    assert [c.version for c in boundaries(listing, START + 4)] == [4, 2]
    assert boundaries(listing, START - 1) == []
    gone = [s.path[2:] for s in expired(statuses, 2)]
    assert gone == [commit_name(0), commit_name(1), compacted_name(2, 3)]


@pytest.mark.parametrize("in_commit_timestamps", ["false", "true"])
def test_on_a_file_system(tmp_path: Path, in_commit_timestamps: str) -> None:
    """With directories of their own, and times that the file system gives."""
    clock = SetClock(int(time.time() * 1000))
    log = DeltaLog.for_path(str(tmp_path), clock=clock, conf={CHECKPOINT_PART_SIZE.key: "4"})
    for number in range(23):
        transaction = log.transaction()
        if number == 0:
            properties = {"checkpointPolicy": "v2", "enableInCommitTimestamps": in_commit_timestamps}
            configuration = {**CLEAN, **{f"delta.{name}": value for name, value in properties.items()}}
            transaction.set_metadata(metadata(configuration, table_id="t"))
        transaction.commit([add(str(number))], Operation("WRITE"))
        # Two commits within one tick of the file system's clock have one time, and the later one is no boundary then.
        os.utime(tmp_path / "_delta_log" / f"{number:020}.json", (clock.now / 1000 + number,) * 2)
    sidecars = tmp_path / "_delta_log" / "_sidecars"
    assert len(list(sidecars.iterdir())) == 3 + 6
    before = [state(log.snapshot(version)) for version in range(23)]
    clock.now += 40 * DAY_MS
    found = log.clean_up()
    assert found.first_version == 20
    assert len(list(sidecars.iterdir())) == 6
    assert [state(DeltaLog.for_path(str(tmp_path)).snapshot(version)) for version in (20, 21, 22)] == before[20:]
    assert log.health().ok
    assert checkpoint_name(20) in {path.name for path in (tmp_path / "_delta_log").iterdir()}
