"""Damaged checkpoints and data files, found in the midst of a command that changes very many files in slices."""

import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.commands import copy_of, rows_of
from support.large_logs import LARGE, twelve_files
from support.large_tables import between
from support.slices import slices_of
from support.spark_tables import Table
from support.table_work import by_route, settings
from tablelog.core import DeltaLog
from tablelog.core.log import checkpoint
from tablelog.core.txn.sliced_removal import SlicedRemoval
from tablelog.errors import CorruptLogError, MissingDataFileError, UnreadableDataFileError
from tablelog.settings.declarations import DELETE_BY_VECTORS
from tablelog.spark import conf


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return twelve_files(spark, tmp_path_factory.mktemp("damaged"))


@pytest.fixture(scope="module")
def expected(base: Table) -> Any:
    alone = copy_of(base, "undamaged")
    _delete(alone)
    return rows_of(alone)


def _delete(table: Table) -> None:
    table.delta.delete("id % 7 in (3, 4)")


def _damage(table: Table) -> None:
    part = sorted(Path(table.path, "_delta_log").glob("*.checkpoint*.parquet"))[1]
    part.write_bytes(bytes(part.stat().st_size))


def _delete_in_slices(
    table: Table, monkeypatch: pytest.MonkeyPatch, patch: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """Delete in slices of three files from a log that is read in pieces; `patch` changes what happens meanwhile."""
    with monkeypatch.context() as patched, settings(table.spark, LARGE):
        patched.setattr(checkpoint, "_AT_ONCE", 0)
        slices_of(patched, 3)
        conf.forget()
        patch(patched)
        _delete(table)


def _without_checkpoints(table: Table) -> Any:
    """The rows by the commits alone."""
    log = Path(table.path, "_delta_log")
    for path in [*log.glob("*.checkpoint*"), log / "_last_checkpoint"]:
        path.unlink(missing_ok=True)
    conf.forget()
    return rows_of(table)


@pytest.mark.slow
def test_before_the_slices_are_joined(base: Table, expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The version is then read from other files of the log."""
    table = copy_of(base, "before")
    total, calls = SlicedRemoval.total, []

    def damaging(self: SlicedRemoval, *args: Any) -> Any:
        _damage(table)
        calls.append(args)
        return total(self, *args)

    _delete_in_slices(table, monkeypatch, lambda patched: patched.setattr(SlicedRemoval, "total", damaging))
    assert calls
    assert rows_of(table) == expected
    assert _without_checkpoints(table) == expected


def test_before_the_commit(base: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another reader of this process has found the damage, so the files come in another order: nothing is committed."""
    table = copy_of(base, "commit")
    before, files = rows_of(table), table.data_files()

    def found() -> None:
        _damage(table)
        snapshot = conf.delta_log(table.path, conf.session_conf(table.spark, table.path)).snapshot()
        with pytest.raises(CorruptLogError):
            list(snapshot.pieces(with_stats=False))

    with pytest.raises(CorruptLogError, match="came in another order than at first"):
        _delete_in_slices(table, monkeypatch, lambda patched: between(patched, found))
    assert table.version == base.version
    assert table.data_files() == files
    assert _without_checkpoints(table) == before


@pytest.mark.slow
def test_before_the_checkpoint(
    base: Table, expected: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The commit is right, and no wrong checkpoint follows."""
    table = copy_of(base, "checkpoint")
    write = DeltaLog.write_checkpoint

    def damaging(self: DeltaLog, *args: Any, **kwargs: Any) -> Any:
        _damage(table)
        return write(self, *args, **kwargs)

    with caplog.at_level(logging.WARNING):
        _delete_in_slices(table, monkeypatch, lambda patched: patched.setattr(DeltaLog, "write_checkpoint", damaging))
    assert "its checkpoint wasn't written" in caplog.text
    assert table.version == base.version + 1
    assert not list(Path(table.path, "_delta_log").glob(f"{table.version:020}.checkpoint*"))
    with suppress(CorruptLogError):  # the old checkpoint is damaged
        assert rows_of(table) == expected
    assert _without_checkpoints(table) == expected


def _removed(path: Path) -> None:
    path.unlink()


def _of_a_stranger(path: Path) -> None:
    path.write_bytes(b"PAR1" + bytes(range(200)) + b"\xff\xff\xff\x7fPAR1")


@pytest.mark.slow
@pytest.mark.parametrize("by_vectors", ["true", "false"])
@pytest.mark.parametrize("route", ["native", "arrow"])
@pytest.mark.parametrize(
    ("change", "error"), [(_removed, MissingDataFileError), (_of_a_stranger, UnreadableDataFileError)]
)
def test_data_files_after_the_first_slice(
    base: Table,
    expected: Any,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path], None],
    error: type[Exception],
    route: str,
    by_vectors: str,
) -> None:
    """Nothing is left of the command. It runs once the files are back."""
    table = copy_of(base, f"data files {change.__name__} {route} {by_vectors}")
    before, names = rows_of(table), table.data_files()
    contents = {path: path.read_bytes() for path in map(table.root.joinpath, names) if path.suffix == ".parquet"}
    put, calls = SlicedRemoval.put, []

    def damaging(self: SlicedRemoval, *args: Any) -> None:
        calls.append(args)
        if len(calls) == 1:
            for path in contents:
                change(path)
                path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        put(self, *args)

    with settings(table.spark, {**by_route(route), DELETE_BY_VECTORS.key: by_vectors}):
        with pytest.raises(error):
            _delete_in_slices(table, monkeypatch, lambda patched: patched.setattr(SlicedRemoval, "put", damaging))
        assert calls
        assert table.version == base.version
        for path, content in contents.items():
            path.write_bytes(content)
        conf.forget()
        assert set(table.root.rglob("*-*.parquet")) - set(table.root.glob("_delta_log/*")) == set(contents)
        assert rows_of(table) == before
        _delete_in_slices(table, monkeypatch, lambda patched: None)
    assert rows_of(table) == expected
