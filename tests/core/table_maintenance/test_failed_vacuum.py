"""VACUUM on a storage that fails: which error is reported."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from support.log_builder import LogBuilder, add
from tablelog.core.table_maintenance import vacuum
from tablelog.core.txn.operation import Operation
from tablelog.core.txn.transaction import Transaction
from tablelog.errors import StorageAccessError, StorageUnavailableError


def test_an_error_of_the_last_commit_does_not_hide_that_of_the_deletion(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = LogBuilder().create(add("a")).log()
    snapshot = log.snapshot()

    def refused(_: object) -> int:
        raise StorageAccessError("deleting isn't allowed")

    files: Any = SimpleNamespace(
        walk=lambda *_: iter(()), same_place=lambda _: None, behind_links=lambda _: set(), remove_directories=refused
    )
    commit = Transaction.commit

    def failing(self: Transaction, actions: Any, operation: Operation, **options: Any) -> Any:
        if operation.name == "VACUUM END":
            raise StorageUnavailableError("the store is down")
        return commit(self, actions, operation, **options)

    monkeypatch.setattr(Transaction, "commit", failing)
    window = vacuum.window_of(log, snapshot, None, checked=True)
    with caplog.at_level(logging.WARNING), pytest.raises(StorageAccessError, match="deleting isn't allowed"):
        vacuum.vacuum(log, snapshot, files, window, logged=True)
    assert "the end of the failed VACUUM isn't in the log: the store is down" in caplog.text
    assert log.snapshot().version == snapshot.version + 1  # VACUUM START
