"""A large commit without a checkpoint: it is sorted on the local disk, and the version is the same as by replay."""

import gc
import os
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.log.test_replay import commit, state, tombstones
from support.log_builder import LogBuilder, add, metadata, remove
from tablelog.core import DeltaLog, Operation, Protocol, Snapshot
from tablelog.core.log import checkpoint, large_commits
from tablelog.core.log.reader import LogReader
from tablelog.core.log_maintenance import sorted_commits
from tablelog.core.protocol.actions import AddFile, DomainMetadata, SetTransaction
from tablelog.core.protocol.paths import checkpoint_name, commit_name, compacted_name
from tablelog.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    CorruptLogError,
    MetadataChangedException,
    StorageError,
    WriteOutcomeUnknown,
)
from tablelog.logstore import CountingLogStore, MemoryLogStore

STATS = '{"numRecords":3,"minValues":{"id":1},"maxValues":{"id":9},"nullCount":{"id":0}}'
KEPT = {"delta.deletedFileRetentionDuration": "interval 1000 weeks"}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Commits of more than 2,000 bytes are large, and are read a few lines at a time into some buckets."""
    monkeypatch.setattr(large_commits, "LARGE_COMMIT", 2_000)
    monkeypatch.setattr(large_commits, "_BATCH_BYTES", 500)
    monkeypatch.setattr(sorted_commits, "_BUCKET_BYTES", 600)
    monkeypatch.setattr(sorted_commits, "_PART_ROWS", 20)
    return monkeypatch


def adds(name: str, count: int) -> list[AddFile]:
    return [add(f"{name}{number}.parquet", size=number, stats=STATS) for number in range(count)]


def foreign(count: int = 40) -> LogBuilder:
    """Version 0 with a checkpoint; in version 1 another engine removed each file and added others; version 2."""
    builder = LogBuilder().create(*adds("old", count), configuration=KEPT)
    builder.log().checkpoint()
    builder.commit(*(remove(f"old{number}.parquet") for number in range(count)), *adds("new", count))
    builder.commit(add("last.parquet"), SetTransaction("app", 3))
    return builder


def as_replayed(builder: LogBuilder, monkeypatch: pytest.MonkeyPatch, version: int) -> Snapshot:
    with monkeypatch.context() as patched:
        patched.setattr(large_commits, "LARGE_COMMIT", 1 << 60)
        snapshot = builder.log().snapshot(version)
        assert snapshot.base is None or snapshot.base.in_log
        _ = snapshot.files, snapshot.tombstones
        return snapshot


def is_sorted(snapshot: Snapshot) -> bool:
    return snapshot.base is not None and not snapshot.base.in_log


@settings(max_examples=10, deadline=None)
@given(st.lists(commit(), min_size=1, max_size=7), st.data())
@pytest.mark.thorough
def test_each_version_is_the_same_as_by_replay(commits: list, data: st.DataObject) -> None:
    builder = LogBuilder().create(configuration=KEPT)
    for actions in commits:
        builder.commit(*actions)
    at = data.draw(st.integers(-1, len(commits)), label="checkpoint at")
    if at >= 0:
        builder.log().checkpoint(builder.log().snapshot(at))
    expected = [builder.log().snapshot(version) for version in range(len(commits) + 1)]
    of_all = [(state(snapshot), tombstones(snapshot)) for snapshot in expected]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(large_commits, "LARGE_COMMIT", data.draw(st.sampled_from([0, 250, 400]), label="large"))
        patched.setattr(large_commits, "_BATCH_BYTES", 1)
        patched.setattr(sorted_commits, "_BUCKET_BYTES", data.draw(st.sampled_from([40, 1 << 20]), label="bucket"))
        patched.setattr(sorted_commits, "_PART_ROWS", 2)
        patched.setattr(checkpoint, "_AT_ONCE", data.draw(st.sampled_from([0, 1 << 28]), label="large checkpoint"))
        log = builder.log()
        for version in data.draw(st.permutations(range(len(commits) + 1)), label="order"):
            found = log.snapshot(version)
            assert (state(found), tombstones(found)) == of_all[version]
        newest = log.snapshot()
        assert (state(newest), tombstones(newest)) == of_all[-1]


def test_a_foreign_engines_commit_of_removes_and_adds(
    small: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    builder = foreign()
    log = builder.log()
    for version, sorted_ in ((0, False), (1, True), (2, True)):
        found, expected = log.snapshot(version), as_replayed(builder, small, version)
        assert is_sorted(found) == sorted_
        assert (state(found), tombstones(found)) == (state(expected), tombstones(expected))
        assert found.timestamp_ms == expected.timestamp_ms
    assert "version 1 has a commit of more than" in caplog.text
    assert log.snapshot().base_version == 1
    assert log.snapshot().transactions["app"].version == 3
    assert builder.names()[-3:] == [commit_name(1), commit_name(2), "_last_checkpoint"]  # nothing was written


def test_paths_in_other_spellings_are_the_same_files(small: pytest.MonkeyPatch) -> None:
    builder = LogBuilder().create(*(add(f"/x/a%20{number}") for number in range(40)))
    builder.log().checkpoint()
    builder.commit(*(remove(f"memory:///x/%61%20{number}") for number in range(30)))
    found = builder.log().snapshot()
    assert is_sorted(found)
    assert found.num_files == 10


def test_a_table_without_a_checkpoint(small: pytest.MonkeyPatch) -> None:
    builder = LogBuilder().create(*adds("a", 40), DomainMetadata("d", "{}", False))
    found = builder.log().snapshot()
    assert is_sorted(found)
    assert found.num_files == 40
    assert found.domain_metadata["d"].configuration == "{}"
    assert sorted(found.files_with("stats").column("stats").unique().to_pylist()) == [STATS]


def test_a_compaction_of_a_large_commit_is_not_read_as_a_whole(small: pytest.MonkeyPatch) -> None:
    builder = foreign()
    with small.context() as patched:
        patched.setattr(large_commits, "LARGE_COMMIT", 1 << 60)
        builder.log().compact(1, 2)
    assert compacted_name(1, 2) in builder.names()
    found, expected = builder.log().snapshot(), as_replayed(builder, small, 2)
    assert is_sorted(found)
    assert state(found) == state(expected)


# --- requests, disk and threads ---------------------------------------------------------------------------------------


def test_requests(small: pytest.MonkeyPatch) -> None:
    builder = foreign()
    store = CountingLogStore(builder.store)
    log = builder.log(store)
    newest = log.snapshot()
    reads = [path.rpartition("/")[2] for method, path in store.log if method == "read"]
    assert reads == ["_last_checkpoint", checkpoint_name(0), commit_name(1), commit_name(2)]
    store.reset()
    _ = newest.files
    assert not store.calls["read"]  # what was sorted is read from temporary files
    store.reset()
    of_version = log.snapshot(1)
    assert of_version.base is newest.base  # time travel sorts nothing again
    assert commit_name(2) not in str(store.log)


def test_a_handle_that_comes_upon_a_large_commit(small: pytest.MonkeyPatch) -> None:
    builder = LogBuilder().create(*adds("old", 5), configuration=KEPT)
    log = builder.log()
    assert not is_sorted(log.snapshot())
    builder.commit(*adds("new", 40))
    assert is_sorted(log.snapshot())
    builder.commit(add("small"))
    again = log.snapshot()
    assert (again.num_files, is_sorted(again)) == (46, True)
    builder.log().checkpoint()
    builder.commit(*adds("more", 40))
    after = log.snapshot()
    assert (after.num_files, after.base_version) == (86, 3)


def test_two_threads_sort_once(small: pytest.MonkeyPatch) -> None:
    builder = foreign()
    log = builder.log()
    sorted_ = log._loader._sort
    began, calls = threading.Event(), []

    def slow(*arguments: object) -> checkpoint.CheckpointState:
        calls.append(1)
        began.set()
        threading.Event().wait(0.05)
        return sorted_(*arguments)  # type: ignore[arg-type]

    small.setattr(log._loader, "_sort", slow)
    found: list[Snapshot] = []
    first = threading.Thread(target=lambda: found.append(log.snapshot(1)))
    first.start()
    began.wait()
    second = threading.Thread(target=lambda: found.append(log.snapshot(2)))
    second.start()
    first.join()
    second.join()
    assert len(calls) == 1
    assert found[0].base is found[1].base
    assert {snapshot.num_files for snapshot in found} == {40, 41}


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_the_temporary_files_have_no_names_and_end_with_the_snapshots(
    small: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    small.setattr(tempfile, "tempdir", str(tmp_path))
    builder = foreign()
    gc.collect()
    before = _open_files()
    log = builder.log()
    snapshot: Snapshot | None = log.snapshot()
    assert snapshot is not None
    assert _open_files() > before
    assert os.listdir(tmp_path) == []
    assert snapshot.num_files == 41
    log.forget()
    snapshot = None
    assert _open_files() == before


@pytest.mark.parametrize("after", [0, 3, 6])
def test_a_full_disk(small: pytest.MonkeyPatch, after: int) -> None:
    """It fails with a typed error that says what to do, and the handle works once there is space."""
    builder = foreign()
    log = builder.log()
    create, made = tempfile.TemporaryFile, []

    def full(*arguments: object, **options: object) -> object:
        made.append(1)
        return open("/dev/full", "wb+", buffering=0) if len(made) > after else create(*arguments, **options)  # type: ignore[call-overload]

    with small.context() as patched:
        patched.setattr(tempfile, "TemporaryFile", full)
        with pytest.raises(StorageError, match=r"sorted on the local disk.*No space left.*TMPDIR"):
            log.snapshot()
    assert log.snapshot().num_files == 41


def test_no_directory_for_temporary_files(small: pytest.MonkeyPatch) -> None:
    small.setattr(tempfile, "tempdir", "/does/not/exist")
    with pytest.raises(StorageError, match="no temporary file can be created"):
        foreign().log().snapshot()


# --- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data.replace(b'"path":"new20', b'"path":7,"x":"new20'), "line 62: .*'path'"),
        (lambda data: data[: len(data) - 30], "version 1 of memory.*line"),
        (lambda data: b"\n" * 3_000, "the file is empty"),
    ],
)
def test_a_damaged_large_commit(small: pytest.MonkeyPatch, damage: object, message: str) -> None:
    builder = foreign()
    builder.write(commit_name(1), damage(builder.read(commit_name(1))))  # type: ignore[operator]
    with pytest.raises(CorruptLogError, match=message):
        builder.log().snapshot()
    assert builder.log().snapshot(0).num_files == 40


def test_a_commit_that_repeats_its_files(small: pytest.MonkeyPatch) -> None:
    """The protocol forbids it; the later action wins, as in ordinary replay."""
    builder = LogBuilder().create(*(add("one", size=number, stats=STATS) for number in range(50)), remove("two"))
    found, expected = builder.log().snapshot(), as_replayed(builder, small, 0)
    assert is_sorted(found)
    assert state(found) == state(expected)
    assert found.size_in_bytes == 49


def test_a_large_log_without_metadata(small: pytest.MonkeyPatch) -> None:
    builder = LogBuilder().commit(Protocol(1, 2), *adds("a", 40))
    with pytest.raises(CorruptLogError, match="no metaData action"):
        builder.log().snapshot()


def test_a_damaged_checkpoint_before_the_commit(small: pytest.MonkeyPatch) -> None:
    """Other files of the log are read instead: here all commits."""
    builder = foreign()
    data = builder.read(checkpoint_name(0))
    builder.write(checkpoint_name(0), data[:200] + bytes(len(data) - 400) + data[-200:])
    assert builder.log().snapshot().num_files == 41


def test_health_reads_a_large_commit_line_by_line(small: pytest.MonkeyPatch) -> None:
    builder = foreign()
    with small.context() as patched:
        patched.setattr(large_commits, "LARGE_COMMIT", 1 << 60)
        expected = builder.log().health()
        builder.log().checkpoint()
    parsed: list[int] = []
    whole = LogReader.parsed

    def noted(self: LogReader, version: int, data: bytes) -> object:
        parsed.append(version)
        return whole(self, version, data)

    small.setattr(LogReader, "parsed", noted)
    health = builder.log().health()
    assert health.ok
    assert 1 not in parsed
    assert (health.readable, health.checkpoints) == (expected.readable, (0, 2))
    builder.write(checkpoint_name(2), builder.read(checkpoint_name(0)))
    assert {problem.kind for problem in builder.log().health().problems} == {"checkpoint-wrong"}
    builder.write(commit_name(1), builder.read(commit_name(1))[:-30])
    assert "commit-damaged" in [problem.kind for problem in builder.log().health().problems]


# --- late writers -----------------------------------------------------------------------------------------------------


def late(builder: LogBuilder, stage: object, *winner: object) -> str:
    """The outcome of a transaction that began before `winner` was committed."""
    log = builder.log()
    txn = log.transaction()
    actions = stage(txn)  # type: ignore[operator]
    builder.commit(*winner)  # type: ignore[arg-type]
    try:
        committed = txn.commit(actions, Operation("WRITE"))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    builder.version = committed.version
    found = builder.log().snapshot()
    return f"{committed.version}, {sorted(found.files.column('path').to_pylist())}"


def whole(txn: object) -> list:
    txn.read_whole_table()  # type: ignore[attr-defined]
    return [add("mine")]


def one(txn: object) -> list:
    txn.read_keys([("old3.parquet", None)])  # type: ignore[attr-defined]
    return [add("mine")]


MOVED = SetTransaction("a", 2)
CHANGED = metadata(schema='{"type":"struct","fields":[]}')
REMOVES = tuple(remove(f"old{number}.parquet") for number in range(40))


@pytest.mark.parametrize(
    ("stage", "winner", "error"),
    [
        (lambda txn: [add("mine")], (*REMOVES, *adds("new", 3)), None),
        (lambda txn: [add("mine"), SetTransaction("a", 1)], (*adds("new", 40), MOVED), ConcurrentTransactionException),
        (lambda txn: [add("mine")], (*adds("new", 40), CHANGED), MetadataChangedException),
        (whole, adds("new", 40), ConcurrentAppendException),
        (whole, REMOVES, ConcurrentDeleteReadException),
        (one, REMOVES, ConcurrentDeleteReadException),
        (one, adds("new", 40), None),
        (lambda txn: [remove("old39.parquet")], REMOVES, ConcurrentDeleteDeleteException),
        (lambda txn: [remove("old39.parquet")], REMOVES[:39], None),
    ],
)  # fmt: skip
def test_a_late_writer_meets_a_large_commit_as_it_meets_a_small_one(
    monkeypatch: pytest.MonkeyPatch, stage: object, winner: tuple, error: type[Exception] | None
) -> None:
    outcomes = []
    for limit in (1 << 60, 2_000):
        builder = LogBuilder().create(*adds("old", 40), table_id="t")
        builder.log().checkpoint()
        monkeypatch.setattr(large_commits, "LARGE_COMMIT", limit)
        monkeypatch.setattr(large_commits, "_BATCH_BYTES", 500)
        outcomes.append(late(builder, stage, *winner))
        monkeypatch.setattr(large_commits, "LARGE_COMMIT", 1 << 60)
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].startswith(error.__name__ if error else "2, ")


def test_the_writer_after_a_large_commit_writes_the_checkpoint(small: pytest.MonkeyPatch) -> None:
    """Then no reader sorts the commit again, and later commits of the same handle write no further checkpoint."""
    builder = foreign()
    log = builder.log()
    for number in (3, 4):
        log.transaction().commit([add(f"{number}")], Operation("WRITE"))
    assert [name for name in builder.names() if "checkpoint." in name] == [checkpoint_name(0), checkpoint_name(3)]
    assert not is_sorted(log.snapshot())
    fresh = builder.log().snapshot()
    assert (fresh.base_version, fresh.num_files) == (3, 43)


def test_a_late_writer_writes_the_checkpoint_too(small: pytest.MonkeyPatch) -> None:
    builder = LogBuilder().create(*adds("old", 5))
    log = builder.log()
    txn = log.transaction()
    builder.commit(*adds("new", 40))
    txn.commit([add("mine")], Operation("WRITE"))
    fresh = builder.log().snapshot()
    assert (fresh.base_version, fresh.num_files, is_sorted(fresh)) == (2, 46, False)


def test_a_large_commit_is_recognised_as_ones_own(small: pytest.MonkeyPatch) -> None:
    """The store writes the commit, but its answer is lost: the writer reads it back."""
    write = MemoryLogStore.write

    def silent(self: MemoryLogStore, path: str, data: bytes, *, overwrite: bool = False) -> None:
        write(self, path, data, overwrite=overwrite)
        if path.endswith(commit_name(1)):
            raise WriteOutcomeUnknown(path, "the answer was lost")

    small.setattr(MemoryLogStore, "write", silent)
    builder = LogBuilder().create()
    log: DeltaLog = builder.log()
    committed = log.transaction().commit(adds("a", 40), Operation("WRITE"))
    assert committed.version == 1
    assert builder.log().snapshot().num_files == 40
