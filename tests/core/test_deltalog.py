"""The handle: how many requests it makes, that it notices another table, and which errors it raises."""

import gc
import os
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from support import memory_table
from support.log_builder import LogBuilder, SetClock, add, metadata, remove
from tablelog.core import DeltaLog, Operation
from tablelog.core.log import checksum
from tablelog.core.log.last_checkpoint import LastCheckpoint
from tablelog.core.log.memory_limits import MemoryLimits
from tablelog.core.protocol.actions import AddFile, Protocol
from tablelog.core.protocol.paths import checkpoint_name, commit_name, crc_name
from tablelog.core.table.snapshot import Snapshot
from tablelog.errors import (
    CorruptLogError,
    InvalidArgumentError,
    MissingCommitError,
    TableNotFoundError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from tablelog.logstore import CountingLogStore, LocalLogStore, LogStoreWrapper, MemoryLogStore
from tablelog.logstore.base import FileStatus

LIST_ONCE = {"list_from": 1}


def table(commits: int, *, checkpoint: int | None = None) -> LogBuilder:
    builder = LogBuilder().create(add("0"))
    for number in range(1, commits):
        builder.commit(add(str(number)))
    if checkpoint is not None:
        builder.log().checkpoint(builder.log().snapshot(checkpoint))
    return builder


def names(counting: CountingLogStore) -> list[str]:
    return [path.rpartition("/")[2] for _, path in counting.log]


# --- round trips ------------------------------------------------------------------------------------------------------


def test_opening_a_table_with_a_checkpoint() -> None:
    builder = table(14, checkpoint=10)
    counting = CountingLogStore(builder.store)
    snapshot = builder.log(counting).snapshot()
    assert snapshot.version == 13
    assert names(counting) == [
        "_last_checkpoint",
        "00000000000000000010.",
        checkpoint_name(10),
        commit_name(11),
        commit_name(12),
        commit_name(13),
    ]
    counting.reset()
    assert snapshot.files.num_rows == 14
    assert snapshot.files_with("stats").num_rows == 14
    assert snapshot.num_files == 14
    assert not counting.log


def test_opening_a_table_without_one() -> None:
    builder = table(3)
    counting = CountingLogStore(builder.store)
    assert builder.log(counting).snapshot().version == 2
    assert counting.calls == {"read": 4, "list_from": 1}


def test_a_refresh_is_one_list_and_a_read_for_each_new_commit() -> None:
    builder = table(14, checkpoint=10)
    counting = CountingLogStore(builder.store)
    log = builder.log(counting)
    first = log.snapshot()
    for _ in range(3):
        counting.reset()
        assert log.snapshot() is first
        assert counting.calls == LIST_ONCE
        assert names(counting) == ["00000000000000000013."]
    builder.commit(add("new")).commit(remove("0"))
    counting.reset()
    assert log.snapshot().version == 15
    assert counting.calls == {"list_from": 1, "read": 2}
    assert log.snapshot().num_files == 14


def test_an_old_version_costs_a_list_and_its_files() -> None:
    builder = table(14, checkpoint=10)
    counting = CountingLogStore(builder.store)
    log = builder.log(counting)
    assert log.snapshot(12).num_files == 13
    assert counting.calls == {"list_from": 1, "read": 3}
    log.snapshot()
    counting.reset()
    assert log.snapshot(13).version == 13
    assert counting.calls == LIST_ONCE


def test_what_this_process_committed_is_not_read_again() -> None:
    builder = table(3)
    counting = CountingLogStore(builder.store)
    log = builder.log(counting)
    log.snapshot()
    for number in range(22):
        transaction = log.transaction()
        counting.reset()
        transaction.commit([add(f"new{number}")], Operation("WRITE", {}, {}))
        # The hint is read before it is written: another writer's may name a newer checkpoint.
        due = transaction.read_version % 10 == 9
        assert [path.rpartition("/")[2] for kind, path in counting.log if kind == "read"] == ["_last_checkpoint"] * due
        # Once a day, at a checkpoint, what has expired is looked for.
        assert counting.calls["list_from"] == (3 + number == 10)
        counting.reset()
        assert log.snapshot().version == 3 + number
        assert counting.calls == LIST_ONCE
    assert log.snapshot().num_files == 25
    assert checkpoint_name(10) in builder.names()
    assert builder.log().snapshot().base_version == 20
    assert builder.log().snapshot().files.num_rows == 25  # its checksum agrees
    assert crc_name(24) in builder.names()


def test_a_handle_that_lives_long_takes_a_newer_checkpoint() -> None:
    builder = table(4, checkpoint=3)
    log = builder.log()
    log.clock.monotonic = lambda: 0.0  # type: ignore[method-assign]
    log.snapshot()
    for seconds, expected in ((0.0, 3), (90_000.0, 5)):
        log.clock.monotonic = lambda seconds=seconds: seconds  # type: ignore[method-assign]
        builder.commit(add(f"at {seconds}"))
        builder.log().checkpoint()
        assert log.snapshot().base_version == expected


def test_a_handle_that_sees_but_its_own_commits_opens_anew_each_day() -> None:
    """Its checkpoint may be removed meanwhile, and the one that took its place lies before all that it lists."""
    builder = table(4, checkpoint=3)
    log = builder.log()
    seconds = 0.0
    log.clock.monotonic = lambda: seconds  # type: ignore[method-assign]
    for number in range(2):
        log.transaction().commit([add(f"own {number}")], Operation("WRITE", {"mode": "Append"}))
    builder.log().checkpoint(builder.log().snapshot(4))
    seconds = 86_000.0
    assert log.snapshot().base_version == 3
    seconds = 90_000.0
    builder.delete(checkpoint_name(3), *(commit_name(version) for version in range(4)))
    snapshot = log.snapshot()
    assert (snapshot.base_version, snapshot.version, snapshot.files.num_rows) == (4, 5, 6)
    assert log.snapshot() is snapshot


def test_over_a_large_checkpoint_the_totals_go_on_from_its_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer needn't decode a million files to know how many there are after its commit."""
    monkeypatch.setattr("tablelog.core.log.checkpoint.CheckpointState.at_hand", lambda self: False)
    builder = table(3, checkpoint=2)
    builder.limits = MemoryLimits(kept_file_bytes=0)
    exact = builder.log().snapshot(1).after(2, [[add("2")]], timestamp=lambda _: 0)
    totals = exact.totals()
    assert totals is not None
    builder.write(crc_name(2), checksum.serialise(checksum.of(exact, totals)))
    counting = CountingLogStore(builder.store)
    log = builder.log(counting)
    transaction = log.transaction()
    counting.reset()
    transaction.commit([add("3", size=11)], Operation("WRITE", {}, {}))
    assert names(counting) == [commit_name(3), crc_name(2), crc_name(3)]
    told = checksum.parse(builder.read(crc_name(3)))
    assert (told.totals.num_files, told.totals.size_in_bytes) == (4, 311)
    transaction = log.transaction()
    counting.reset()
    transaction.commit([add("4")], Operation("WRITE", {}, {}))
    assert names(counting) == [commit_name(4), crc_name(4)]
    assert log.snapshot().files.num_rows == 5  # and the checksum agrees
    builder.delete(*(crc_name(version) for version in (2, 3, 4)))
    builder.log().transaction().commit([add("5")], Operation("WRITE", {}, {}))
    assert crc_name(5) not in builder.names()


def test_a_table_made_here_is_told_from_one_made_in_its_place() -> None:
    def create(builder: LogBuilder, log: DeltaLog, name: str) -> None:
        transaction = log.transaction()
        transaction.set_metadata(metadata())
        transaction.commit([add(name)], Operation("CREATE TABLE", {}, {}))

    builder = LogBuilder()
    log = builder.log()
    create(builder, log, "mine")
    builder.delete(*builder.names())
    builder.clock.now += 1000
    create(builder, builder.log(), "other")
    assert log.snapshot().files.column("path").to_pylist() == ["other"]


# --- the hint ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hint",
    [b"", b"{", b'{"version":12,"size":1}', b'{"version":99,"size":1}', b'{"version":3,"size":1}', b'{"version":0}'],
)
def test_a_hint_that_misleads_does_no_harm(hint: bytes) -> None:
    builder = table(14, checkpoint=10)
    expected = builder.paths()
    builder.write("_last_checkpoint", hint)
    snapshot = builder.log().snapshot()
    assert (snapshot.version, snapshot.base_version) == (13, 10)
    assert builder.paths() == expected
    builder.delete("_last_checkpoint")
    assert builder.log().snapshot().base_version == 10


def test_a_checkpoint_newer_than_the_hint_is_used() -> None:
    builder = table(14, checkpoint=10)
    hint = builder.read("_last_checkpoint")
    builder.log().checkpoint(builder.log().snapshot(12))
    builder.write("_last_checkpoint", hint)
    counting = CountingLogStore(builder.store)
    assert builder.log(counting).snapshot().base_version == 12
    assert counting.calls == {"read": 3, "list_from": 1}


def test_a_commit_that_comes_late_to_its_checkpoint_leaves_the_newer_hint() -> None:
    """Another writer's commits and checkpoint came between this commit and its checkpoint."""
    builder = table(9)
    late, meanwhile = builder.log(), builder.log()
    write = late.write_checkpoint

    def after_others(snapshot: Snapshot, sidecar_writer: None = None) -> LastCheckpoint:
        for number in range(12):
            meanwhile.transaction().commit([add(f"meanwhile {number}")], Operation("WRITE", {"mode": "Append"}))
        assert b'"version":20' in builder.read("_last_checkpoint")
        return write(snapshot, sidecar_writer)

    late.transaction().commit([add("9")], Operation("WRITE", {"mode": "Append"}))
    late.write_checkpoint = after_others  # type: ignore[method-assign]
    late.transaction().commit([add("10")], Operation("WRITE", {"mode": "Append"}))
    assert checkpoint_name(10) in builder.names()
    assert b'"version":20' in builder.read("_last_checkpoint")


def test_a_hint_whose_checkpoint_is_gone() -> None:
    builder = table(14, checkpoint=10)
    builder.delete(checkpoint_name(10))
    assert builder.log().snapshot().base_version == -1
    assert len(builder.paths()) == 14


# --- another table, or a changed one, under a handle ------------------------------------------------------------------


@pytest.mark.parametrize("versions", [1, 3, 5])
def test_a_table_that_was_deleted_and_made_again(versions: int) -> None:
    builder = table(3)
    log = builder.log()
    old = log.snapshot()
    assert old.files.num_rows == 3
    builder.delete(*builder.names())
    builder.version = -1
    builder.create(add("other0"))
    for number in range(1, versions):
        builder.commit(add(f"other{number}"))
    new = log.snapshot()
    assert new.version == versions - 1
    assert sorted(new.files.column("path").to_pylist()) == [f"other{number}" for number in range(versions)]
    assert new.metadata.id != old.metadata.id


def test_a_table_that_was_deleted() -> None:
    builder = table(3)
    log = builder.log()
    log.snapshot()
    builder.delete(*builder.names())
    with pytest.raises(TableNotFoundError):
        log.snapshot()
    builder.version = -1
    builder.create(add("again"))
    assert log.snapshot().num_files == 1


def test_a_log_that_was_cleaned_up_beyond_what_the_handle_knows() -> None:
    builder = table(3)
    log = builder.log()
    log.snapshot()
    for number in range(5):
        builder.commit(add(f"new{number}"))
    builder.log().checkpoint(builder.log().snapshot(6))
    builder.delete(*(commit_name(version) for version in range(6)))
    assert log.snapshot().version == 7
    assert log.snapshot().num_files == 8


class Meddling(LogStoreWrapper):
    """Does something once, right before the first read whose path ends so."""

    def __init__(self, inner: MemoryLogStore, ending: str, action: Callable[[], object]) -> None:
        super().__init__(inner)
        self.ending = ending
        self.action: Callable[[], object] | None = action

    def read(self, path: str) -> bytes:
        if self.action is not None and path.endswith(self.ending):
            action, self.action = self.action, None
            action()
        return super().read(path)


def test_cleanup_while_the_log_is_read() -> None:
    builder = table(14, checkpoint=10)
    expected = builder.paths()

    def cleanup() -> None:
        builder.log().checkpoint(builder.log().snapshot(12))
        builder.delete(checkpoint_name(10), *(commit_name(version) for version in range(12)))

    for ending in (checkpoint_name(10), commit_name(11)):
        builder = table(14, checkpoint=10)
        snapshot = builder.log(Meddling(builder.store, ending, cleanup)).snapshot()
        assert snapshot.base_version == 12
        assert sorted(snapshot.files.column("path").to_pylist()) == expected


def test_a_table_replaced_while_the_log_is_read() -> None:
    builder = table(3)

    def replace() -> None:
        builder.delete(*builder.names())
        builder.version = -1
        builder.create(add("a-longer-name-0")).commit(add("a-longer-name-1"))

    snapshot = builder.log(Meddling(builder.store, commit_name(1), replace)).snapshot()
    assert sorted(snapshot.files.column("path").to_pylist()) == ["a-longer-name-0", "a-longer-name-1"]


def test_files_that_never_are_as_listed() -> None:
    builder = table(3)

    class Shrinking(LogStoreWrapper):
        def read(self, path: str) -> bytes:
            return super().read(path)[:-1] if path.endswith(commit_name(2)) else super().read(path)

    with pytest.raises(CorruptLogError, match="can't be read as they are listed"):
        builder.log(Shrinking(builder.store)).snapshot()


def test_a_long_tail_is_left_for_a_newer_checkpoint() -> None:
    builder = table(4)
    builder.limits = MemoryLimits(tail_actions=5)
    log = builder.log()
    assert log.snapshot().base_version == -1
    builder.commit(add("a")).commit(add("b"))
    builder.log().checkpoint()
    assert log.snapshot().base_version == -1  # six actions now, and seen after the fact
    builder.commit(add("c"))
    assert log.snapshot().base_version == 5
    assert log.snapshot().num_files == 7


# --- errors -----------------------------------------------------------------------------------------------------------


def test_no_table() -> None:
    builder = LogBuilder()
    assert not builder.log().exists()
    with pytest.raises(TableNotFoundError, match="no _delta_log directory"):
        builder.log().snapshot()
    builder.write("readme.txt", b"")
    builder.write("_last_checkpoint", b'{"version":0,"size":1}')
    assert not builder.log().exists()
    for call in (lambda log: log.snapshot(), lambda log: log.snapshot(0), lambda log: log.history()):
        with pytest.raises(TableNotFoundError, match="has no commit and no checkpoint"):
            call(builder.log())
    with pytest.raises(TableNotFoundError):
        builder.log().version_at(0)
    assert builder.log().transaction().snapshot is None
    builder.create()
    assert builder.log().exists()


def test_a_version_that_is_not_there_names_the_range() -> None:
    builder = table(5)
    for version in (5, 99, -1):
        with pytest.raises(VersionNotFoundError, match=f"version {version} of .* the versions that can: 0 to 4"):
            builder.log().snapshot(version)
    builder.log().checkpoint(builder.log().snapshot(3))
    builder.delete(commit_name(0), commit_name(1))
    for version in (0, 1, 2, 5):
        with pytest.raises(VersionNotFoundError, match="3 to 4"):
            builder.log().snapshot(version)
    assert builder.log().snapshot(3).num_files == 4
    with pytest.raises(InvalidArgumentError):
        builder.log().snapshot(1, 2)


def test_a_hole_is_an_error_and_not_an_older_version() -> None:
    builder = table(5)
    log = builder.log()
    log.snapshot()
    builder.version = 6
    builder.commit(add("7"))
    for handle in (log, builder.log()):
        with pytest.raises(MissingCommitError, match=r"00000000000000000005\.json to 00000000000000000006\.json"):
            handle.snapshot()
    assert builder.log().snapshot(4).num_files == 5
    builder.delete(commit_name(0))
    with pytest.raises(MissingCommitError, match=r"00000000000000000000\.json is missing"):
        builder.log().snapshot()


def test_a_commit_that_is_no_json_names_version_and_line() -> None:
    builder = table(2)
    builder.write(commit_name(2), b'{"add":{}}\n')
    with pytest.raises(CorruptLogError, match="version 2 of memory:///table: line 1"):
        builder.log().snapshot()


def test_a_feature_that_is_not_built_is_refused_by_name() -> None:
    builder = table(2)
    builder.commit(Protocol(3, 7, frozenset({"fromTheFuture"}), frozenset({"fromTheFuture"})))
    with pytest.raises(UnsupportedFeatureError, match="fromTheFuture") as raised:
        builder.log().snapshot()
    assert raised.value.features == ("fromTheFuture",)
    assert builder.log().snapshot(1).num_files == 2
    assert len(builder.log().history()) == 3


# --- the rest ---------------------------------------------------------------------------------------------------------


def test_find_commit() -> None:
    builder = table(3)
    builder.commit(add("x"), txn_id="the-token").commit(add("the-other-token"))
    log = builder.log()
    assert log.find_commit("the-token") == 3
    assert log.find_commit("the-other-token") is None
    assert log.find_commit("") is None


def test_a_handle_on_a_local_path(tmp_path: Path) -> None:
    builder = LogBuilder(LocalLogStore(), str(tmp_path / "a table")).create(add("x"))
    for path in (str(tmp_path / "a table"), f"file://{tmp_path}/a%20table", f"{tmp_path}/a table/"):
        log = DeltaLog.for_path(path)
        assert log.table == f"file://{tmp_path}/a%20table"
        assert log.log_path == f"file://{tmp_path}/a%20table/_delta_log"
        assert log.snapshot().num_files == 1
    os.utime(tmp_path / "a table/_delta_log" / commit_name(0), (1_600_000_000, 1_600_000_000))
    assert DeltaLog.for_path(str(tmp_path / "a table")).snapshot().timestamp_ms == 1_600_000_000_000
    assert builder.log().exists()
    assert not DeltaLog.for_path(str(tmp_path)).exists()


def test_many_threads_on_one_handle() -> None:
    builder = table(3)
    log = builder.log()
    start, problems = threading.Barrier(9), []
    versions: list[list[int]] = [[] for _ in range(8)]

    def look(mine: list[int]) -> None:
        try:
            start.wait(10)
            for _ in range(30):
                snapshot = log.snapshot()
                assert snapshot.num_files == snapshot.files.num_rows == snapshot.version + 1
                mine.append(snapshot.version)
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=look, args=(mine,)) for mine in versions]
    for thread in threads:
        thread.start()
    start.wait(10)
    for number in range(20):
        builder.commit(add(f"new{number}"))
    for thread in threads:
        thread.join()
    assert not problems
    assert all(mine == sorted(mine) and len(mine) == 30 for mine in versions)


class TellingClock(SetClock):
    """A monotonic clock on which every look takes a second."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def monotonic(self) -> float:
        self.seconds += 1
        return self.seconds


def test_slow_reads_run_side_by_side() -> None:
    builder = table(4)
    meeting = threading.Barrier(3)

    class Waiting(LogStoreWrapper):
        def read(self, path: str) -> bytes:
            if path.endswith(".json") and not path.endswith(commit_name(0)):
                meeting.wait(30)  # passes only when the three others are read at once
            return super().read(path)

    log = DeltaLog.for_path(builder.root, store=Waiting(builder.store), clock=TellingClock())
    assert log.snapshot().num_files == 4


def test_nothing_but_its_handle_keeps_a_snapshot() -> None:
    """In a cycle the columns of large tables would stay in memory until Python next looks for cycles."""
    builder = table(2)
    first = builder.log()
    gc.disable()
    try:
        log = builder.log()
        loser = log.transaction()
        assert loser.snapshot is not None
        read = weakref.ref(loser.snapshot)
        first.transaction().commit([add("b")], Operation("WRITE"))
        assert loser.commit([add("c")], Operation("WRITE")).version == 3
        handle = weakref.ref(log)
        del log, loser
        assert (handle(), read()) == (None, None)
    finally:
        gc.enable()


# --- memory -----------------------------------------------------------------------------------------------------------


def rewritten(log: DeltaLog, times: int, files: int) -> list[int]:
    """Commits that each replace all files of the table; how many actions the handle held over its base after each."""
    live: list[AddFile] = []
    held = []
    for number in range(times):
        new = [add(f"f-{number}-{file}") for file in range(files)]
        gone = [file.remove(log.clock.now_ms(), data_change=True) for file in live]
        log.transaction().commit([*new, *gone], Operation("WRITE", {"mode": "Overwrite"}))
        live = new
        held.append(len(log.snapshot().overlay))
    return held


def test_a_handle_that_alone_writes_a_table_takes_each_checkpoint_for_its_base() -> None:
    """What its commits say would else stay in memory for as long as the handle lives: 60,000 actions here."""
    log = memory_table.table(checkpointInterval="50")
    held = rewritten(log, 1500, 20)
    # 2,000 actions, and those of the commits until the checkpoint that follows.
    assert max(held) <= 2_000 + 51 * 40
    snapshot, fresh = log.snapshot(), memory_table.other(log).snapshot()
    assert snapshot.base_version > 1400
    for ours, theirs in ((snapshot.files, fresh.files), (snapshot.tombstones, fresh.tombstones)):
        assert sorted(ours.column("path").to_pylist()) == sorted(theirs.column("path").to_pylist())
    assert (snapshot.num_files, snapshot.tombstones.num_rows) == (20, 1499 * 20)


def test_a_checkpoint_that_cannot_be_read_is_not_tried_at_each_refresh() -> None:
    builder = table(8, checkpoint=6)
    builder.limits = MemoryLimits(tail_actions=5)
    builder.write(checkpoint_name(6), b"PAR1 torn")
    counting = CountingLogStore(builder.store)
    log = builder.log(counting)
    assert log.snapshot().base_version == -1
    assert log.snapshot().num_files == 8
    counting.reset()
    for _ in range(3):
        log.snapshot()
    assert counting.calls == {"list_from": 3}


class Copying(LogStoreWrapper):
    """A store whose reads give bytes of their own, as all do but that in memory."""

    def read(self, path: str) -> bytes:
        return bytes(bytearray(super().read(path)))


def test_a_history_holds_the_bytes_of_some_commits_at_a_time() -> None:
    builder = table(1)
    for number in range(60):
        builder.commit(replace(add(str(number)), tags={"long": "x" * (1 << 20)}))
    log = builder.log(Copying(builder.store))
    log.snapshot()
    tracemalloc.start()
    try:
        assert len(log.history()) == 61
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30 << 20, "the commits have 60 MiB"


def test_files_are_read_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = LogBuilder().create().log().reader
    asked: list[list[str]] = []
    monkeypatch.setattr(
        reader, "many", lambda some: asked.append([one.path for one in some]) or [b"" for _ in some], raising=True
    )
    sizes = [1] * 130 + [9 << 20, 8 << 20, 20 << 20]
    statuses = [FileStatus(str(number), size, 0) for number, size in enumerate(sizes)]
    assert len(list(reader.each(statuses))) == len(sizes)
    assert [len(some) for some in asked] == [64, 64, 3, 1, 1]
    assert [path for some in asked for path in some] == [status.path for status in statuses]
    assert list(reader.each([])) == []


def test_a_replacement_warns_only_if_another_handle_made_it(caplog: pytest.LogCaptureFixture) -> None:
    builder = table(1)
    log, other = builder.log(), builder.log()
    first = log.snapshot()
    assert other.snapshot().metadata.id == first.metadata.id
    txn = log.transaction()
    txn.set_metadata(replace(first.metadata, id="of the replacement"), replaces_table=True)
    txn.commit([], Operation("REPLACE TABLE", replaces_table=True))
    assert log.snapshot().metadata.id == "of the replacement"
    assert not caplog.records
    assert other.snapshot().version == 1
    assert [record.levelname for record in caplog.records] == ["WARNING"]
