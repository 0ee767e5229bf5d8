"""LocalLogStore against a file system that fails, lies, fills up or lacks a feature; names, sidecars, leftovers."""

import errno
import multiprocessing
import os
import pickle
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from logstore.writers import write_in_child
from tablelog.errors import (
    CorruptLogError,
    InvalidArgumentError,
    StorageAccessError,
    StorageError,
    UnsupportedEnvironmentError,
    WriteOutcomeUnknown,
)
from tablelog.logstore import LocalLogStore, MemoryLogStore, remove_stale_temporaries
from tablelog.logstore.common import posix

Failing = Callable[..., None]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    directory = tmp_path / "_delta_log"
    directory.mkdir()
    return directory


def commit(log: Path, version: int = 0) -> str:
    return f"{log}/{version:020}.json"


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Failing:
    """`fail("link", errno.EIO)`: `os.link` raises; with `after=True` once it has done its work."""

    def install(call: str, number: int, *, after: bool = False, from_call: int = 1) -> None:
        real: Callable[..., Any] = getattr(os, call)
        calls = 0

        def failing(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls < from_call:
                return real(*args, **kwargs)
            if after:
                real(*args, **kwargs)
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, call, failing)

    return install


# ---- a link whose reply is lost (NFS) ----


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


# ---- no hard links ----


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


# ---- disks that fail or fill up ----


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


# ---- Hadoop's checksum sidecars ----


def test_an_overwrite_takes_the_stale_sidecar_away_first(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, sidecar = f"{log}/_last_checkpoint", log / "._last_checkpoint.crc"
    Path(path).write_bytes(b"old")
    sidecar.write_bytes(b"crc\0 of old")
    real = os.replace

    def replace(old: str, new: str) -> None:
        assert not sidecar.exists()
        real(old, new)

    monkeypatch.setattr(os, "replace", replace)
    LocalLogStore().write(path, b"new", overwrite=True)
    assert sorted(os.listdir(log)) == ["_last_checkpoint"]


def test_a_create_takes_the_sidecar_of_a_file_that_is_gone_away(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sidecar = log / f".{0:020}.json.crc"
    sidecar.write_bytes(b"crc\0 of another")
    real = os.link

    def link(old: str, new: str) -> None:
        assert not sidecar.exists()
        real(old, new)

    monkeypatch.setattr(os, "link", link)
    LocalLogStore().write(commit(log), b"new")
    assert os.listdir(log) == [f"{0:020}.json"]


def test_a_loser_leaves_the_winners_sidecar(log: Path) -> None:
    Path(commit(log)).write_bytes(b"theirs")
    (log / f".{0:020}.json.crc").write_bytes(b"crc\0")
    with pytest.raises(FileExistsError):
        LocalLogStore().write(commit(log), b"mine")
    assert len(os.listdir(log)) == 2


def test_a_sidecar_that_cant_be_removed_stops_the_write(log: Path, fail: Failing) -> None:
    (log / "._last_checkpoint.crc").write_bytes(b"crc\0")
    Path(log / "_last_checkpoint").write_bytes(b"old")
    fail("unlink", errno.EPERM)
    with pytest.raises(StorageAccessError):
        LocalLogStore().write(f"{log}/_last_checkpoint", b"new", overwrite=True)
    assert (log / "_last_checkpoint").read_bytes() == b"old"


def test_a_delete_takes_the_sidecar_too(log: Path) -> None:
    Path(commit(log)).write_bytes(b"theirs")
    (log / f".{0:020}.json.crc").write_bytes(b"crc\0")
    LocalLogStore().delete(commit(log))
    assert os.listdir(log) == []


# ---- temporary files ----

UUID = "0c2b1f5e-1111-4222-8333-0123456789ab"
TEMPORARIES = [
    f".{0:020}.json.{UUID}.tmp",
    f"._last_checkpoint.{UUID}.tmp",
    f"..{0:020}.json.{UUID}.tmp.crc",
]
OTHERS = [
    f"{0:020}.json",
    f".{0:020}.json.crc",
    "_last_checkpoint",
    ".hidden",
    f".{0:020}.json.tmp",
    f"{0:020}.{UUID}.tmp",
    f"{0:020}.checkpoint.{UUID}.parquet",
]
DAY_MS = 24 * 3600 * 1000


def test_stale_temporaries_go_and_nothing_else(log: Path) -> None:
    for name in [*TEMPORARIES, *OTHERS]:
        (log / name).write_bytes(b"x")
        os.utime(log / name, (1000, 1000))
    fresh = f".{1:020}.json.{UUID}.tmp"
    (log / fresh).write_bytes(b"x")
    os.utime(log / fresh, (1500, 1500))
    assert remove_stale_temporaries(f"file://{log}", 1_000_000, 2_000_000) == 0
    assert remove_stale_temporaries(f"file://{log}", 1_000_000, 2_000_001) == len(TEMPORARIES)
    assert sorted(os.listdir(log)) == sorted([*OTHERS, fresh])


class FakeClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.ms = 10 * DAY_MS

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000

    def sleep(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)


def test_a_checkpoint_takes_temporaries_older_than_a_day_away(log: Path) -> None:
    """Writing `_last_checkpoint` is the log's regular overwrite; a look each hour is enough."""
    clock = FakeClock()
    store = LocalLogStore(clock)

    def leave(age_ms: int) -> Path:
        path = log / f".{0:020}.json.{UUID}.tmp"
        path.write_bytes(b"half")
        os.utime(path, ns=((clock.ms - age_ms) * 1_000_000,) * 2)
        return path

    left = leave(DAY_MS + 1)
    store.write(commit(log), b"a commit doesn't look")
    assert left.exists()
    store.write(f"{log}/_last_checkpoint", b"1", overwrite=True)
    assert not left.exists()
    left = leave(DAY_MS - 1)
    clock.sleep(1)
    store.write(f"{log}/_last_checkpoint", b"2", overwrite=True)
    assert left.exists()
    clock.sleep(3600)
    store.write(f"{log}/_last_checkpoint", b"3", overwrite=True)
    assert not left.exists()


def test_a_failed_look_for_leftovers_only_warns(log: Path, fail: Failing, caplog: pytest.LogCaptureFixture) -> None:
    fail("listdir", errno.EACCES)
    LocalLogStore().write(f"{log}/_last_checkpoint", b"1", overwrite=True)
    assert "stale temporary files" in caplog.text


# ---- names ----


@pytest.mark.parametrize("name", [*TEMPORARIES, f".{0:020}.json.crc", f"{0:020}.json#1", ""])
def test_a_name_that_a_listing_hides_cant_be_written(log: Path, name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="listings omit files"):
        LocalLogStore().write(f"{log}/{name}", b"x")
    assert os.listdir(log) == []


def test_what_other_writers_are_writing_is_not_listed(log: Path) -> None:
    for name in [*TEMPORARIES, f"{1:020}.json#1", f".{0:020}.json.crc", f"{0:020}.json", f"{0:020}.crc", ".hidden"]:
        (log / name).write_bytes(b"x")
    found = [status.path.rpartition("/")[2] for status in LocalLogStore().list_from(f"{log}/")]
    assert found == [".hidden", f"{0:020}.crc", f"{0:020}.json"]


def test_the_longest_names_work(log: Path) -> None:
    for name in ("n" * 255, "é" * 127):
        LocalLogStore().write(f"{log}/{name}", b"x")
        assert LocalLogStore().read(f"{log}/{name}") == b"x"
    with pytest.raises(StorageError, match="File name too long"):
        LocalLogStore().write(f"{log}/{'n' * 256}", b"x")
    assert len(os.listdir(log)) == 2


def test_a_name_that_isnt_utf8_keeps_its_bytes(log: Path) -> None:
    with open(os.fsencode(log) + b"/a\xff.json", "wb") as file:
        file.write(b"x")
    [status] = LocalLogStore().list_from(f"{log}/")
    assert status.path == f"file://{log}/a%FF.json"
    assert LocalLogStore().read(status.path) == b"x"


def test_only_listed_files_are_asked_for_their_size(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in range(50):
        Path(commit(log, version)).write_bytes(b"x")
    asked: list[bytes] = []
    real = os.stat
    monkeypatch.setattr(os, "stat", lambda path, *a, **k: (asked.append(path), real(path, *a, **k))[1])
    listing = LocalLogStore().list_from(commit(log, 48))
    assert asked == []
    assert next(listing).size == 1
    assert len(asked) == 1
    assert len(list(listing)) == 1


def test_a_file_that_goes_during_the_listing_is_left_out(log: Path) -> None:
    for version in range(3):
        Path(commit(log, version)).write_bytes(b"x")
    listing = LocalLogStore().list_from(commit(log))
    next(listing)
    os.unlink(commit(log, 1))
    assert [status.path for status in listing] == [f"file://{commit(log, 2)}"]


def test_a_commit_missed_while_others_were_made_is_no_hole(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory is read in pieces: 2 is made behind the reading, 3 before it, and 4 to 6 during the second look."""
    store = LocalLogStore()
    for version in range(2):
        store.write(commit(log, version), b"x")
    Path(log / "_last_checkpoint").write_bytes(b"x")
    real = os.listdir
    scans = 0

    def listdir(path: bytes) -> list[bytes]:
        nonlocal scans
        scans += 1
        made, missed = {1: ((2, 3), (2,)), 2: ((4, 5, 6), (5,))}[scans]
        for version in made:
            Path(commit(log, version)).write_bytes(b"x")
        return [name for name in real(path) if name not in {b"%020d.json" % version for version in missed}]

    monkeypatch.setattr(os, "listdir", listdir)
    found = [status.path.rpartition("/")[2] for status in store.list_from(commit(log, 1))]
    assert found == [f"{version:020}.json" for version in (1, 2, 3)] + ["_last_checkpoint"]


@pytest.mark.parametrize(
    ("versions", "start", "scans"),
    [
        ((0, 1, 2), f"{0:020}.json", 1),
        ((0, 1, 2), f"{2:020}.json", 1),
        ((0, 1, 2), f"{3:020}.json", 1),
        ((0, 1, 2), "", 1),
        ((0, 1, 3), f"{0:020}.json", 2),
        ((0, 1, 3), f"{2:020}.", 2),
        ((0, 1, 3), f"{3:020}.json", 1),
        ((5, 6), f"{0:020}.json", 2),
        ((5, 6), "", 1),
        ((), "", 1),
    ],
)
def test_a_second_look_only_where_there_is_a_gap(
    log: Path, monkeypatch: pytest.MonkeyPatch, versions: tuple[int, ...], start: str, scans: int
) -> None:
    for version in versions:
        for kind in ("json", "crc", "checkpoint.parquet"):
            (log / f"{version:020}.{kind}").write_bytes(b"x")
    for name in ("0", "1234", "_last_checkpoint", "00000000000000000009", "00000000000000000009x.json"):
        (log / name).write_bytes(b"x")
    looked: list[bytes] = []
    real = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: (looked.append(path), real(path))[1])
    found = [status.path.rpartition("/")[2] for status in LocalLogStore().list_from(f"{log}/{start}")]
    assert len(looked) == scans
    monkeypatch.undo()
    assert found == sorted(name for name in os.listdir(log) if name >= start)


def test_spellings_of_one_table(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = log.parent / "a b%é"
    table.mkdir()
    (log.parent / "link").symlink_to(table)
    monkeypatch.chdir(log.parent)
    store = LocalLogStore()
    canonical = f"file://{log.parent}/a%20b%25%C3%A9"
    for spelling in (
        str(table),
        f"{table}/",
        "a b%é",
        "./link",
        f"{log.parent}/_delta_log/../a b%é",
        f"file:{log.parent}/a%20b%25%C3%A9",
        f"file://{log.parent}/a b%25é",
        f"FILE://localhost{log.parent}/a%20b%25%c3%a9/",
        f"file:///{log.parent}/link",
        f"/{table}",
    ):
        assert store.resolve(spelling) == canonical, spelling
        store.write(f"{spelling}/x", b"x", overwrite=True)
    assert os.listdir(table) == ["x"]
    assert [status.path for status in store.list_from(f"{canonical}/")] == [f"{canonical}/x"]


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


# ---- other processes ----


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_store_goes_to_another_process(log: Path, method: str) -> None:
    store = LocalLogStore()
    store.write(commit(log), b"parent")
    child = multiprocessing.get_context(method).Process(target=write_in_child, args=(store, commit(log, 1)))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert store.read(commit(log, 1)) == b"child"


def test_a_pickle_holds_no_state(log: Path) -> None:
    store = LocalLogStore()
    store.write(f"{log}/_last_checkpoint", b"1", overwrite=True)
    assert pickle.loads(pickle.dumps(store))._swept == {}
