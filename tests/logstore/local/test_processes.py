"""Several processes on one log: races with the interleaving forced, and writers that are killed on their way."""

import os
from pathlib import Path

import pytest

from logstore.writers import Gate, writers
from tablelog.conformance.mutants.files import LocksItsOwnThreads, LooksThenRenames, WritesInPlace
from tablelog.logstore import LocalLogStore, remove_stale_temporaries

DATA = b'{"commitInfo":{}}\n' * 200
# In the order of a write: file, half of the data, its flush, the name, the temporary's removal, the directory's flush.
BEFORE_IT_IS_THERE = [
    Gate("before", "open"),
    Gate("after", "open"),
    Gate("half", "write"),
    Gate("after", "write"),
    Gate("before", "fsync"),
    Gate("after", "fsync"),
    Gate("before", "link"),
]
WHEN_IT_IS_THERE = [
    Gate("after", "link"),
    Gate("before", "unlink"),
    Gate("after", "unlink"),
    Gate("before", "fsync", 2),
    Gate("after", "fsync", 2),
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    directory = tmp_path / "table" / "_delta_log"
    directory.mkdir(parents=True)
    return directory


def commit(log: Path, version: int) -> str:
    return f"file://{log}/{version:020}.json"


def listed(log: Path) -> list[str]:
    return [status.path.rpartition("/")[2] for status in LocalLogStore().list_from(f"file://{log}/")]


def test_one_process_wins_when_all_stand_before_the_link(log: Path) -> None:
    """Each has done all that it does before, and asks no more: the link alone decides."""
    with writers(4, gate=Gate("before", "link")) as racing:
        for version in range(10):
            for number, writer in enumerate(racing):
                writer.start(commit(log, version), f"writer {number}".encode())
            for writer in racing:
                writer.wait_until_held()
            for writer in racing:
                writer.go_on()
            answers = [writer.answer() for writer in racing]
            assert sorted(answers) == ["lost", "lost", "lost", "won"]
            assert LocalLogStore().read(commit(log, version)) == f"writer {answers.index('won')}".encode()
    assert sorted(os.listdir(log)) == [f"{version:020}.json" for version in range(10)]


@pytest.mark.parametrize("kind", [LooksThenRenames, LocksItsOwnThreads])
def test_the_same_race_finds_a_store_that_replaces(kind: type[LocalLogStore], log: Path) -> None:
    """So the test above would fail for such a store: a lock within the process doesn't help."""
    with writers(3, gate=Gate("before", "rename"), kind=kind) as racing:
        for writer in racing:
            writer.start(commit(log, 0), DATA)
        for writer in racing:
            writer.wait_until_held()
        for writer in racing:
            writer.go_on()
        assert [writer.answer() for writer in racing] == ["won"] * 3


@pytest.mark.parametrize("gate", BEFORE_IT_IS_THERE, ids=str)
def test_a_writer_that_is_overtaken_loses(gate: Gate, log: Path) -> None:
    with writers(1, gate=gate) as [slow]:
        slow.start(commit(log, 0), b"slow")
        slow.wait_until_held()
        assert listed(log) == []
        LocalLogStore().write(commit(log, 0), b"fast")
        slow.go_on()
        assert slow.answer() == "lost"
    assert LocalLogStore().read(commit(log, 0)) == b"fast"
    assert os.listdir(log) == [f"{0:020}.json"]


@pytest.mark.parametrize("gate", WHEN_IT_IS_THERE, ids=str)
def test_a_writer_that_is_slow_afterwards_has_won(gate: Gate, log: Path) -> None:
    with writers(1, gate=gate) as [slow]:
        slow.start(commit(log, 0), DATA)
        slow.wait_until_held()
        assert listed(log) == [f"{0:020}.json"]
        with pytest.raises(FileExistsError):
            LocalLogStore().write(commit(log, 0), b"fast")
        slow.go_on()
        assert slow.answer() == "won"
    assert LocalLogStore().read(commit(log, 0)) == DATA
    assert os.listdir(log) == [f"{0:020}.json"]


@pytest.mark.parametrize("gate", BEFORE_IT_IS_THERE, ids=str)
def test_a_killed_writer_leaves_no_file_and_hinders_nobody(gate: Gate, log: Path) -> None:
    with writers(1, gate=gate) as [doomed]:
        doomed.start(commit(log, 0), DATA)
        doomed.wait_until_held()
        doomed.kill()
    assert listed(log) == []
    left = os.listdir(log)
    assert len(left) <= 1
    LocalLogStore().write(commit(log, 0), b"next")
    assert listed(log) == [f"{0:020}.json"]
    assert LocalLogStore().read(commit(log, 0)) == b"next"
    for name in left:
        os.utime(log / name, (0, 0))
    assert remove_stale_temporaries(str(log), 1000, 5000) == len(left)
    assert os.listdir(log) == [f"{0:020}.json"]


@pytest.mark.parametrize("gate", WHEN_IT_IS_THERE, ids=str)
def test_a_writer_killed_afterwards_leaves_the_whole_file(gate: Gate, log: Path) -> None:
    with writers(1, gate=gate) as [doomed]:
        doomed.start(commit(log, 0), DATA)
        doomed.wait_until_held()
        doomed.kill()
    assert listed(log) == [f"{0:020}.json"]
    assert LocalLogStore().read(commit(log, 0)) == DATA
    with pytest.raises(FileExistsError):
        LocalLogStore().write(commit(log, 0), b"next")
    for name in set(os.listdir(log)) - {f"{0:020}.json"}:
        os.utime(log / name, (0, 0))  # the same file as the commit, under its other name
    remove_stale_temporaries(str(log), 1000, 5000)
    assert os.listdir(log) == [f"{0:020}.json"]
    assert LocalLogStore().read(commit(log, 0)) == DATA


@pytest.mark.parametrize("gate", [Gate("half", "write"), Gate("before", "replace"), Gate("after", "replace")], ids=str)
def test_a_killed_overwrite_leaves_old_or_new(gate: Gate, log: Path) -> None:
    path = f"file://{log}/_last_checkpoint"
    LocalLogStore().write(path, b"old")
    with writers(1, gate=gate) as [doomed]:
        doomed.start(path, DATA, overwrite=True)
        doomed.wait_until_held()
        assert LocalLogStore().read(path) == (DATA if gate.when == "after" else b"old")
        doomed.kill()
    assert LocalLogStore().read(path) == (DATA if gate.when == "after" else b"old")
    LocalLogStore().write(path, b"next", overwrite=True)
    assert LocalLogStore().read(path) == b"next"
    assert listed(log) == ["_last_checkpoint"]


def test_a_killed_writer_in_place_would_leave_a_part(log: Path) -> None:
    """The control: without a temporary file the same kill leaves a part that blocks the version for ever."""
    with writers(1, gate=Gate("before", "makedirs"), kind=WritesInPlace, file_limit=1000) as [doomed]:
        doomed.start(commit(log, 0), DATA)
        doomed.wait_until_held()
        doomed.go_on()
        assert doomed.answer() == "OSError 27"
    assert len(LocalLogStore().read(commit(log, 0))) == 1000


def test_a_file_size_limit_leaves_nothing(log: Path) -> None:
    with writers(1, file_limit=1000) as [limited]:
        assert limited.write(commit(log, 0), DATA) == "StorageError 27"
        assert os.listdir(log) == []
        assert limited.write(f"file://{log}/_last_checkpoint", DATA, overwrite=True) == "StorageError 27"
        assert os.listdir(log) == []
        assert limited.write(commit(log, 0), b"short") == "won"
    assert LocalLogStore().read(commit(log, 0)) == b"short"


def test_processes_make_one_contiguous_log(log: Path) -> None:
    """Each process takes the next version that it can win, as a commit does; none is lost, none made twice."""
    commits = 15
    with writers(4) as racing:
        wins: dict[int, list[bytes]] = {}
        versions = dict.fromkeys(range(4), 0)
        done = dict.fromkeys(range(4), 0)
        while min(done.values()) < commits:
            busy = [number for number in range(4) if done[number] < commits]
            for number in busy:
                racing[number].start(commit(log, versions[number]), f"{number}-{done[number]}".encode())
            for number in busy:
                if racing[number].answer() == "won":
                    wins.setdefault(versions[number], []).append(f"{number}-{done[number]}".encode())
                    done[number] += 1
                versions[number] += 1
    assert sorted(wins) == list(range(4 * commits))
    assert all(LocalLogStore().read(commit(log, version)) == data for version, [data] in wins.items())
    assert len(listed(log)) == 4 * commits


def test_processes_make_the_table_directory_together(tmp_path: Path) -> None:
    log = tmp_path / "new" / "table" / "_delta_log"
    with writers(3, gate=Gate("before", "mkdir")) as racing:
        for number, writer in enumerate(racing):
            writer.start(commit(log, number), DATA)
        for writer in racing:
            writer.wait_until_held()
        for writer in racing:
            writer.go_on()
        assert [writer.answer() for writer in racing] == ["won"] * 3
    assert len(listed(log)) == 3
