"""VACUUM keeps what a path only seems to name, the files of tables below the table, and what comes back meanwhile."""

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.arrow_table import ArrowTable
from tablelog.core.protocol import paths
from tablelog.core.table_maintenance import table_files, vacuum
from tablelog.core.table_maintenance.restore import check_there, restoration
from tablelog.core.table_maintenance.vacuum import Mode, Vacuumed, Window
from tablelog.errors import (
    ChecksumMismatchError,
    ConcurrentDeleteReadException,
    ConcurrentWriteException,
    CorruptLogError,
)

HOUR = 3_600_000


def now() -> int:
    return int(time.time() * 1000)


def window() -> Window:
    """Every file that the newest version doesn't need is old."""
    return Window(now() + HOUR, 0, HOUR, checked=False)


def vacuumed(table: ArrowTable, mode: Mode = "FULL") -> Vacuumed:
    log = table.log()
    return vacuum.vacuum(log, log.snapshot(), table_files.of_table(log), window(), mode=mode)


def missing(table: ArrowTable) -> list[str]:
    """The files of the newest version that don't exist."""
    return table_files.of_table(table.log()).absent(table.log().snapshot().files.column("path").to_pylist())


@pytest.mark.parametrize("mode", ["FULL", "LITE"])
def test_the_files_of_a_lost_commit_are_kept(tmp_path: Path, mode: Mode) -> None:
    """The checksum of the newest commit is still there, and the commit isn't."""
    table = ArrowTable(tmp_path).with_rows()
    table.commit_file(3).unlink()
    log = table.log()
    begun = Window(now() - HOUR, HOUR, HOUR, checked=False)
    for path in (table.root / name for name in table.files):
        os.utime(path, (1, 1))
    with pytest.raises(CorruptLogError, match="a checksum of version 3, and its newest commit is 2"):
        vacuum.vacuum(log, log.snapshot(), table_files.of_table(log), begun, mode=mode)
    assert (table.root / table.files[2]).exists()


# --- LITE --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("below", ["src", "day=x/src"])
def test_lite_keeps_the_files_of_a_table_below(tmp_path: Path, below: str) -> None:
    outer = ArrowTable(tmp_path)
    inner = ArrowTable(tmp_path / below).with_rows(2)
    source = inner.log().snapshot()
    adopted = [replace(add, path=paths.absolute_uri(source.table, add.path)) for add in source.add_files()]
    own = outer.append(0)
    outer.commit(*adopted)
    outer.commit(own.remove(now()), *(add.remove(now()) for add in adopted))
    assert vacuumed(outer, "LITE").files == (own.path,)
    assert missing(inner) == []


@pytest.mark.parametrize("spelling", ["./{}", "../table/{}", "{root}/{}", "day=2024-05-01/../{}"])
def test_lite_keeps_a_file_that_was_removed_by_another_spelling(tmp_path: Path, spelling: str) -> None:
    table = ArrowTable(tmp_path / "table")
    add = table.append(0)
    other = replace(add, path=spelling.format(add.path, root=table.log().table))
    for removed, added in ((add, other), (other, add)):
        table.commit(removed.remove(now()))
        table.commit(added)
    assert vacuumed(table, "LITE").files == ()
    assert missing(table) == []


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("x.parquet", "x.parquet"),
        ("a%20b/x.parquet", "a b/x.parquet"),
        ("s3a://wh/t/x.parquet", "x.parquet"),
        ("s3a://other/t/x.parquet", None),
        ("s3://wh/t/x.parquet", None),
        ("s3a://wh/elsewhere/x.parquet", None),
        ("/t/x.parquet", "x.parquet"),
        ("../u/x.parquet", None),
        ("", None),
    ],
)
def test_the_one_name_of_a_file(path: str, name: str | None) -> None:
    assert paths.own_name("s3a://wh/t", path) == name


# --- links -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["FULL", "LITE"])
@pytest.mark.parametrize("link", ["link", "_link", "sub/_link"])
def test_a_file_that_is_named_by_a_link_stays(tmp_path: Path, mode: Mode, link: str) -> None:
    table = ArrowTable(tmp_path)
    add = table.append(0)
    directory, _, base = add.path.partition("/")
    (tmp_path / link).parent.mkdir(exist_ok=True)
    os.symlink(tmp_path / directory, tmp_path / link)
    table.commit(add.remove(now()), replace(add, path=f"{link}/{base}"))
    assert vacuumed(table, mode).files == ()
    assert missing(table) == []


# --- meanwhile ---------------------------------------------------------------------------------------------------


def test_another_table_in_place_of_this_one_keeps_its_files(tmp_path: Path) -> None:
    table = ArrowTable(tmp_path)
    add = table.append(0)
    table.commit(add.remove(now()))
    table.append(10)
    log = table.log()
    snapshot, files = log.snapshot(), table_files.of_table(log)
    assert add.path in vacuum.vacuum(log, snapshot, files, window(), dry_run=True).files
    shutil.rmtree(table.log_directory)
    other = ArrowTable(tmp_path)
    other.commit(add)
    with pytest.raises(ConcurrentWriteException, match="another table was created here"):
        vacuum.vacuum(log, snapshot, files, window())
    assert missing(other) == []


def test_a_commit_between_two_batches_of_deletions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ArrowTable(tmp_path)
    adds = [table.append(number) for number in range(3)]
    table.commit(*(add.remove(now()) for add in adds))
    monkeypatch.setattr(vacuum, "_DELETED_AT_ONCE", 1)
    files: Any = table_files.of_table(table.log())
    delete: Callable[..., int] = files.delete
    deleted: list[str] = []

    def restoring(names: list[str], **options: Any) -> int:
        deleted.extend(names)
        if len(deleted) == 1:
            table.commit(*(add for add in adds if add.path not in deleted))
        return delete(names, **options)

    monkeypatch.setattr(files, "delete", restoring)
    log = table.log()
    result = vacuum.vacuum(log, log.snapshot(), files, window())
    assert len(deleted) == len(result.files) == result.removed == 1
    assert missing(table) == []


@pytest.mark.parametrize("logged", [True, False])
def test_restore_does_not_follow_a_vacuum_that_it_has_not_seen(tmp_path: Path, logged: bool) -> None:
    """RESTORE has found the files. Only commits of VACUUM can tell it that they went."""
    table = ArrowTable(tmp_path)
    add = table.append(0)
    table.commit(add.remove(now()))
    restoring = table.log()
    transaction = restoring.transaction()
    assert transaction.snapshot is not None
    change = restoration(restoring.snapshot(1), transaction.snapshot, downgrade=False)
    check_there(restoring.table, table_files.of_table(restoring), change, 1, lambda _: None)
    log = table.log()
    assert vacuum.vacuum(log, log.snapshot(), table_files.of_table(log), window(), logged=logged).files == (add.path,)
    operation = change.operation(1, None, downgrade=False)
    if logged:
        with pytest.raises(ConcurrentDeleteReadException, match="VACUUM START"):
            transaction.commit(change.actions(now()), operation)
        assert missing(table) == []
    else:
        transaction.commit(change.actions(now()), operation)
        assert missing(table) == [add.path]


# --- a wrong checkpoint ------------------------------------------------------------------------------------------


def test_a_commit_on_a_wrong_checkpoint_does_not_hide_it(tmp_path: Path) -> None:
    """The checksum of the new version agrees with the wrong state."""
    table = ArrowTable(tmp_path).with_rows(3)
    table.log().checkpoint()
    table.lose_file(3)
    table.append(100)
    names = {file.name for file in tmp_path.rglob("part-*.parquet")}
    for mode in ("FULL", "LITE"):
        with pytest.raises(ChecksumMismatchError, match=r"version 3 .*the number of files is 2, the checksum says 3"):
            vacuumed(table, mode)
    assert {file.name for file in tmp_path.rglob("part-*.parquet")} == names
