"""Hadoop's checksum files beside the files of a log."""

import errno
import os
from pathlib import Path

import pytest

from logstore.local_log import Failing, commit
from tablelog.errors import StorageAccessError
from tablelog.logstore import LocalLogStore


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
