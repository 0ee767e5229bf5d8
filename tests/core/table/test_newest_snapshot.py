"""The newest snapshot: the requests of a refresh, and a table that changes under its handle."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from support.counted_table import LIST_ONCE, names, table
from support.log_builder import LogBuilder, add, metadata, remove
from tablelog.core import DeltaLog, Operation
from tablelog.core.log import checksum
from tablelog.core.log.memory_limits import MemoryLimits
from tablelog.core.protocol.paths import checkpoint_name, commit_name, crc_name
from tablelog.errors import CorruptLogError, TableNotFoundError
from tablelog.logstore import CountingLogStore, LogStoreWrapper, MemoryLogStore


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
