"""A link whose reply is lost, as on NFS, and file systems without hard links."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from logstore.local_log import Failing, commit
from tablelog.errors import StorageAccessError, UnsupportedEnvironmentError, WriteOutcomeUnknown
from tablelog.logstore import LocalLogStore
from tablelog.logstore.common import posix


@pytest.mark.parametrize("number", [errno.EEXIST, errno.EIO, errno.ETIMEDOUT, errno.ESTALE, errno.EPERM])
def test_a_link_that_was_made_is_won_whatever_it_reports(log: Path, fail: Failing, number: int) -> None:
    fail("link", number, after=True)
    LocalLogStore().write(commit(log), b"mine")
    assert LocalLogStore().read(commit(log)) == b"mine"
    assert os.listdir(log) == [f"{0:020}.json"]


@pytest.mark.parametrize("number", [errno.EIO, errno.ETIMEDOUT, errno.ESTALE])
def test_a_link_that_may_yet_be_made_is_unknown(log: Path, fail: Failing, number: int) -> None:
    fail("link", number)
    with pytest.raises(WriteOutcomeUnknown) as caught:
        LocalLogStore().write(commit(log), b"mine")
    assert caught.value.path == commit(log)
    assert os.listdir(log) == []


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENOENT])
def test_a_link_that_was_refused_is_that_error(log: Path, fail: Failing, number: int) -> None:
    fail("link", number)
    with pytest.raises(OSError, match=os.strerror(number)) as caught:
        LocalLogStore().write(commit(log), b"mine")
    assert caught.value.errno == number
    assert os.listdir(log) == []


def test_a_backups_second_name_of_the_temporary_is_no_win(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The count of links alone would say that we won."""
    real = os.link

    def link(temporary: str, final: str) -> None:
        Path(final).write_bytes(b"theirs")
        real(temporary, log.parent / "backup")
        real(temporary, final)

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(FileExistsError):
        LocalLogStore().write(commit(log), b"mine")
    assert LocalLogStore().read(commit(log)) == b"theirs"


def test_a_loss_that_cant_be_looked_into_is_unknown(log: Path, fail: Failing, monkeypatch: pytest.MonkeyPatch) -> None:
    fail("link", errno.EEXIST)

    def unreachable(_path: str) -> os.stat_result:
        raise OSError(errno.EIO, "unreachable")

    monkeypatch.setattr(posix, "_status", unreachable)
    with pytest.raises(WriteOutcomeUnknown):
        LocalLogStore().write(commit(log), b"mine")


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_without_hard_links_an_exclusive_rename_serves(log: Path, fail: Failing, number: int) -> None:
    fail("link", number)
    LocalLogStore().write(commit(log), b"mine")
    assert LocalLogStore().read(commit(log)) == b"mine"
    assert os.listdir(log) == [f"{0:020}.json"]


def test_an_exclusive_rename_excludes(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer is there first, after all that comes before the rename."""

    def link(_temporary: str, final: str) -> None:
        Path(final).write_bytes(b"theirs")
        raise OSError(errno.EPERM, "no hard links")

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(FileExistsError) as caught:
        LocalLogStore().write(commit(log), b"mine")
    assert caught.value.filename == commit(log)
    assert LocalLogStore().read(commit(log)) == b"theirs"
    assert os.listdir(log) == [f"{0:020}.json"]


def test_a_file_that_is_there_is_a_loss_without_a_flush(log: Path, fail: Failing) -> None:
    LocalLogStore().write(commit(log), b"theirs")
    fail("open", errno.EIO)
    with pytest.raises(FileExistsError) as caught:
        LocalLogStore().write(commit(log), b"mine")
    assert caught.value.filename == commit(log)


def renaming(number: int, *, after: bool = False) -> Callable[..., int]:
    """A renameat2 that fails."""

    def rename(_from: int, old: bytes, _to: int, new: bytes, flags: int) -> int:
        import ctypes

        assert flags == 1
        if after:
            os.rename(old, new)
        ctypes.set_errno(number)
        return -1

    return rename


@pytest.mark.parametrize("rename", [None, renaming(errno.EINVAL), renaming(errno.ENOSYS)])
def test_without_any_exclusive_way_it_refuses(
    log: Path, fail: Failing, monkeypatch: pytest.MonkeyPatch, rename: Callable[..., int] | None
) -> None:
    fail("link", errno.EPERM)
    monkeypatch.setattr(posix, "_renameat2", lambda: rename)
    with pytest.raises(UnsupportedEnvironmentError, match="neither hard links"):
        LocalLogStore().write(commit(log), b"mine")
    assert os.listdir(log) == []
    LocalLogStore().write(f"{log}/_last_checkpoint", b"an overwrite needs no exclusion", overwrite=True)


@pytest.mark.parametrize(
    ("rename", "expected"),
    [
        (renaming(errno.EEXIST), FileExistsError),
        (renaming(errno.EEXIST, after=True), WriteOutcomeUnknown),
        (renaming(errno.EIO), WriteOutcomeUnknown),
        (renaming(errno.EIO, after=True), WriteOutcomeUnknown),
        (renaming(errno.EACCES), StorageAccessError),
    ],
)
def test_an_exclusive_rename_answers_honestly(
    log: Path,
    fail: Failing,
    monkeypatch: pytest.MonkeyPatch,
    rename: Callable[..., int],
    expected: type[BaseException],
) -> None:
    fail("link", errno.EPERM)
    monkeypatch.setattr(posix, "_renameat2", lambda: rename)
    with pytest.raises(expected):
        LocalLogStore().write(commit(log), b"mine")
