"""The errors of the operating system, files that aren't regular, and modes."""

import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from logstore.local_log import Failing, commit
from tablelog.errors import CorruptLogError, StorageAccessError, StorageError
from tablelog.logstore import LocalLogStore, MemoryLogStore


def test_modes_follow_the_umask(log: Path) -> None:
    """A shared table stays readable for those whom the umask lets read."""
    before = os.umask(0o027)
    try:
        LocalLogStore().write(commit(log), b"x")
    finally:
        os.umask(before)
    assert os.stat(commit(log)).st_mode & 0o777 == 0o640


def test_errors_show_the_path(log: Path) -> None:
    store = LocalLogStore()
    for call in (store.read, store.list_from):
        with pytest.raises(FileNotFoundError) as caught:
            call(f"{log}/no/{0:020}.json")
        assert str(caught.value).startswith(f"[Errno 2] No such file or directory: '{log}/no")
    Path(commit(log)).write_bytes(b"x")
    with pytest.raises(StorageError, match=f"writing {commit(log)}/x: Not a directory"):
        store.write(f"{commit(log)}/x", b"x")
    with pytest.raises(CorruptLogError, match=f"{log} is not a file"):
        store.delete(str(log))
    for call in (store.read, store.list_from):
        with pytest.raises(FileNotFoundError):
            call(f"{commit(log)}/x")


ERRORS = {
    errno.ENOSPC: StorageError, errno.EDQUOT: StorageError, errno.EROFS: StorageAccessError,
    errno.EACCES: StorageAccessError, errno.EIO: StorageError, errno.ENFILE: StorageError,
}  # fmt: skip


@pytest.mark.parametrize("number", ERRORS)
def test_each_error_of_the_system_is_one_of_ours(log: Path, fail: Failing, number: int) -> None:
    LocalLogStore().write(commit(log), b"x")
    fail("open", number)
    for call in (
        lambda: LocalLogStore().write(commit(log, 1), b"x"),
        lambda: LocalLogStore().write(f"{log}/_last_checkpoint", b"x", overwrite=True),
        lambda: LocalLogStore().read(commit(log)),
    ):
        with pytest.raises(ERRORS[number], match=os.strerror(number)) as caught:
            call()
        assert caught.value.errno == number
        assert str(log) in str(caught.value)
    fail("listdir", number)
    with pytest.raises(ERRORS[number], match=os.strerror(number)):
        list(LocalLogStore().list_from(commit(log)))
    fail("unlink", number)
    with pytest.raises(ERRORS[number], match=os.strerror(number)):
        LocalLogStore().delete(commit(log))


def not_files(log: Path) -> Iterator[tuple[str, str]]:
    """(path, what it is) of everything that isn't a regular file."""
    os.mkdir(log / "directory")
    os.mkfifo(log / "pipe")
    os.symlink("/dev/zero", log / "device")
    os.symlink("loop", log / "loop")
    os.symlink("pipe", log / "link")
    with socket.socket(socket.AF_UNIX) as bound:
        before = os.getcwd()
        os.chdir(log)  # the path of a socket has 107 bytes at most
        bound.bind("socket")
        os.chdir(before)
    yield from {
        "directory": "a directory", "pipe": "a pipe", "device": "a device", "loop": "a circular link",
        "link": "a pipe", "socket": "not a file",
    }.items()  # fmt: skip


def test_what_is_no_file_is_not_read(log: Path) -> None:
    for name, what in not_files(log):
        with pytest.raises(CorruptLogError, match=f"{log}/{name} is {what}"):
            LocalLogStore().read(f"{log}/{name}")
        with pytest.raises(CorruptLogError, match=what):
            LocalLogStore().read_at_most(f"{log}/{name}", 10)


def test_a_link_to_a_file_is_that_file(log: Path) -> None:
    LocalLogStore().write(f"{log}/elsewhere", b"x")
    os.symlink("elsewhere", commit(log))
    assert LocalLogStore().read(commit(log)) == b"x"
    assert [status.size for status in LocalLogStore().list_from(commit(log))] == [1, 1]


def test_what_bears_the_name_of_a_commit_and_is_no_file_is_listed(log: Path) -> None:
    """Left out, the version before it would pass for the newest."""
    os.mkfifo(commit(log, 1))
    os.symlink(commit(log, 2), commit(log, 2))
    os.mkdir(commit(log, 3))
    os.mkfifo(log / "zzz")
    found = [status.path.rpartition("/")[2] for status in LocalLogStore().list_from(commit(log))]
    assert found == [f"{number:020}.json" for number in (1, 2)]


def test_a_file_that_is_larger_than_it_can_be_is_not_read(log: Path) -> None:
    with open(log / "sparse", "wb") as file:
        file.truncate(1 << 42)
    with pytest.raises(CorruptLogError, match="sparse has 4398046511104 bytes, but should have 100 at most"):
        LocalLogStore().read_at_most(f"{log}/sparse", 100)
    store = MemoryLogStore()
    store.write("memory:///a", b"1234")
    assert store.read_at_most("memory:///a", 4) == b"1234"
    with pytest.raises(CorruptLogError, match="memory:///a has 4 bytes"):
        store.read_at_most("memory:///a", 3)
