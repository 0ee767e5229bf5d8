"""Names of files, listings, and the spellings of a table's path."""

import os
from pathlib import Path

import pytest

from logstore.local_log import TEMPORARIES, commit
from tablelog.errors import InvalidArgumentError, StorageError
from tablelog.logstore import LocalLogStore


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
