"""Disks that fail or fill up, flushes, and the system calls of a usual write."""

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from logstore.local_log import Failing, commit
from tablelog.errors import WriteOutcomeUnknown
from tablelog.logstore import LocalLogStore


@pytest.mark.parametrize(("call", "from_call"), [("open", 1), ("write", 1), ("write", 2), ("fsync", 1)])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_failure_before_the_name_leaves_nothing(
    log: Path, fail: Failing, monkeypatch: pytest.MonkeyPatch, *, call: str, from_call: int, overwrite: bool
) -> None:
    if from_call == 2:
        real = os.write
        monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:100]))
    fail(call, errno.ENOSPC, from_call=from_call)
    with pytest.raises(OSError, match="No space left") as caught:
        LocalLogStore().write(commit(log), b"x" * 1000, overwrite=overwrite)
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.undo()
    assert os.listdir(log) == []
    LocalLogStore().write(commit(log), b"next")


def test_a_write_in_small_pieces_is_whole(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:7]))
    LocalLogStore().write(commit(log), bytes(range(256)))
    assert LocalLogStore().read(commit(log)) == bytes(range(256))


def test_pieces_are_on_their_way_to_the_disk_while_the_next_is_made(log: Path) -> None:
    sizes = []

    def pieces() -> Iterator[bytes]:
        for letter in (b"a", b"b", b"c"):
            sizes.append(sum(entry.stat().st_size for entry in os.scandir(log)))
            yield letter * 1000

    LocalLogStore().write_pieces(commit(log), pieces())
    assert sizes == [0, 1000, 2000]
    assert LocalLogStore().read(commit(log)) == b"a" * 1000 + b"b" * 1000 + b"c" * 1000


def test_no_piece_is_made_for_a_name_that_is_taken(log: Path) -> None:
    def pieces() -> Iterator[bytes]:
        raise AssertionError("asked for")
        yield b""

    LocalLogStore().write(commit(log), b"there")
    with pytest.raises(FileExistsError):
        LocalLogStore().write_pieces(commit(log), pieces())
    assert os.listdir(log) == [f"{0:020}.json"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    directory = tmp_path / "small"
    directory.mkdir()
    try:
        command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(directory)]
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("mounting a small file system needs root")
    yield directory
    subprocess.run(["umount", str(directory)], check=True)


def test_a_full_disk_leaves_nothing(small_disk: Path) -> None:
    log = small_disk / "_delta_log"
    LocalLogStore().write(commit(log), b"first")
    for overwrite in (False, True):
        with pytest.raises(OSError, match="No space left"):
            LocalLogStore().write(commit(log, 1), b"x" * 100_000, overwrite=overwrite)
        assert os.listdir(log) == [f"{0:020}.json"]
    LocalLogStore().write(commit(log, 1), b"x" * 30_000)
    assert len(LocalLogStore().read(commit(log, 1))) == 30_000


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_directory_that_cant_be_flushed_makes_it_unknown(log: Path, fail: Failing, overwrite: bool) -> None:
    """Others may have built on the file, so it stays; a reader of the answer looks and finds it."""
    fail("fsync", errno.EIO, from_call=2)
    with pytest.raises(WriteOutcomeUnknown, match="flushed"):
        LocalLogStore().write(commit(log), b"mine", overwrite=overwrite)
    assert LocalLogStore().read(commit(log)) == b"mine"


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EBADF, errno.EOPNOTSUPP])
def test_a_file_system_that_doesnt_flush_directories_is_fine(log: Path, fail: Failing, number: int) -> None:
    fail("fsync", number, from_call=2)
    LocalLogStore().write(commit(log), b"mine")


def test_a_new_directory_is_on_disk_before_the_file_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        flushed.append(os.readlink(f"/proc/self/fd/{descriptor}").removeprefix(str(tmp_path)))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    LocalLogStore().write(commit(tmp_path / "a" / "b" / "_delta_log"), b"x")
    assert flushed[:3] == ["", "/a", "/a/b"]
    assert flushed[3].startswith("/a/b/_delta_log/.00000000000000000000.json.")
    assert flushed[4:] == ["/a/b/_delta_log"]


def test_a_usual_write_flushes_twice_and_asks_little(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for name in ("open", "write", "fsync", "link", "unlink", "mkdir", "listdir", "rename", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, _n=name, _r=real, **k: (calls.append(_n), _r(*a, **k))[1])
    LocalLogStore().write(commit(log), b"x")
    assert calls == ["open", "write", "fsync", "link", "unlink", "open", "fsync"]


def test_many_losers_leave_no_descriptor_and_no_file(log: Path) -> None:
    store = LocalLogStore()
    store.write(commit(log), b"x")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(200):
        with pytest.raises(FileExistsError):
            store.write(commit(log), b"y")
    assert len(os.listdir("/proc/self/fd")) == before
    assert os.listdir(log) == [f"{0:020}.json"]
