"""A command that fails, and then can't delete what it wrote or cached; no JVM is needed."""

import errno
import logging
import os
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tablelog.core.protocol import deletion_vectors
from tablelog.dml.command.command import Command
from tablelog.dml.merge import write as merge_write
from tablelog.dml.merge.matching import Matches
from tablelog.engine.sql import stored_frame
from tablelog.engine.write import deletion_vector_writer
from tablelog.engine.write.routes import local
from tablelog.engine.write.routes.hadoop import HadoopRoute
from tablelog.errors import ConcurrentAppendException, StorageError, StorageUnavailableError


class _Removed:
    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.names: list[str] = []

    def remove(self, names: list[str]) -> None:
        self.names += names
        if self.error is not None:
            raise self.error


def test_the_error_of_the_command_is_reported_and_all_routes_are_cleaned(caplog: pytest.LogCaptureFixture) -> None:
    command: Any = object.__new__(Command)
    command.log = SimpleNamespace(table="file:///t")
    command.txn = SimpleNamespace(may_be_committed=False)
    command.resources = ExitStack()
    broken, healthy = _Removed(StorageUnavailableError("the store is down")), _Removed()
    command._written = [(broken, ["a"]), (healthy, ["b"])]
    with caplog.at_level(logging.WARNING), pytest.raises(ConcurrentAppendException), command.discarded_on_failure():
        raise ConcurrentAppendException("another writer appended")
    assert (broken.names, healthy.names) == (["a"], ["b"])
    assert "left to VACUUM: the store is down" in caplog.text


def test_the_error_of_a_rename_is_reported() -> None:
    route: Any = object.__new__(HadoopRoute)
    route._table, route._renames = "hdfs://h/t", True

    def fail(what: str) -> Any:
        raise StorageError(what)

    route._rename = lambda name: fail("the rename failed")
    route.remove = lambda names: fail("the removal failed")
    with pytest.raises(StorageError, match="the rename failed"):
        route.publish(["a"], durable=True)


def test_the_error_of_a_rename_on_a_local_disk_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    staging, root = tmp_path / "staging", tmp_path / "table"
    staging.mkdir()
    root.mkdir()
    for name in ("a", "b", "c"):
        (staging / name).write_text(name)
    rename, unlink = os.rename, os.unlink

    def full_at_c(source: str, target: str) -> None:
        if target.endswith("c"):
            raise OSError(errno.ENOSPC, "the disk is full", target)
        rename(source, target)

    def a_stays(path: str) -> None:
        if path.endswith("a"):
            raise PermissionError(errno.EPERM, "the file is immutable", path)
        unlink(path)

    monkeypatch.setattr(os, "rename", full_at_c)
    monkeypatch.setattr(os, "unlink", a_stays)
    with caplog.at_level(logging.WARNING), pytest.raises(OSError, match="the disk is full"):
        local.publish(str(staging), str(root), ["a", "b", "c"], durable=False)
    assert os.listdir(root) == ["a"]
    assert "1 files of a failed write could not be deleted and are left to VACUUM" in caplog.text
    assert "the file is immutable" in caplog.text


class _Cached:
    def unpersist(self) -> None:
        raise RuntimeError("the JVM has gone")


def test_the_error_of_a_merge_is_reported_though_its_rows_stay_cached(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cached: Any = _Cached()
    matches = Matches(pa.array([], pa.int64()), pairs=cached)
    with caplog.at_level(logging.WARNING):
        matches.release("file:///t")
    assert "file:///t: the rows that a MERGE matched stay in Spark's cache" in caplog.text
    assert "the JVM has gone" in caplog.text

    class Stored(stored_frame.StoredFrame):
        def __init__(self, frame: Any, *, replicated: bool = False) -> None:
            self.frame = frame

        @property
        def _spark(self) -> Any:
            raise RuntimeError("the JVM has gone")

    monkeypatch.setattr(merge_write, "StoredFrame", Stored)
    monkeypatch.setattr(merge_write, "union", lambda frames: frames[0])
    command: Any = SimpleNamespace(log=SimpleNamespace(table="file:///t"))
    source: Any = SimpleNamespace(replicated=False)
    pieces: list[Any] = ["a frame"]
    with pytest.raises(ConcurrentAppendException), merge_write._once(command, pieces, source, held=False):
        raise ConcurrentAppendException("another writer appended")
    assert "file:///t: the rows of a MERGE's changes stay in Spark's cache" in caplog.text


def test_the_error_of_a_file_of_deletion_vectors_is_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Route:
        prefix = ""

        def save(self, name: str, make: Any) -> Any:
            raise OSError(errno.ENOSPC, "the disk is full")

        def clear(self) -> None:
            raise PermissionError(errno.EPERM, "the directory is immutable")

    monkeypatch.setattr(deletion_vector_writer.routes, "choose", lambda spark, log: Route())
    log: Any = SimpleNamespace(table="file:///t")
    rows = deletion_vectors.DeletedRows.of([1])
    with caplog.at_level(logging.WARNING), pytest.raises(OSError, match="the disk is full"):
        deletion_vector_writer.write(None, log, [rows])  # type: ignore[arg-type]
    assert "file:///t: files of a failed write could not be deleted and are left to VACUUM" in caplog.text
