"""A command that fails, and then can't delete the files that it wrote; no JVM is needed."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from tablelog.dml.command.command import Command
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
