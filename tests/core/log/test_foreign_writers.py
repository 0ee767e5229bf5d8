"""A commit by a writer that doesn't keep to the store's exclusion is warned of: once for each handle and engine."""

import pytest

from support.log_builder import LogBuilder, add
from tablelog.core.txn.operation import Operation
from tablelog.logstore import CountingLogStore, MemoryLogStore
from tablelog.logstore.s3.conditional_put_store import S3LogStore
from tablelog.logstore.s3.dynamodb_store import S3DynamoDBLogStore
from tablelog.logstore.s3.settings import S3Settings

DELTA_SPARK = "Apache-Spark/4.2.0 Delta-Lake/4.4.0"


class Endangered(MemoryLogStore):
    endangered_by = S3LogStore.endangered_by


def test_each_handle_warns_once_of_an_engine(caplog: pytest.LogCaptureFixture) -> None:
    builder = LogBuilder(Endangered()).create()
    builder.commit(add("a"), engine_info=DELTA_SPARK).commit(add("b"), engine_info=DELTA_SPARK)
    log = builder.log(CountingLogStore(builder.store))  # a store around a store says the same
    log.snapshot()
    (warning,) = caplog.messages
    assert f"version 1 of {builder.root} was committed by {DELTA_SPARK}" in warning
    assert "Who may share a log" in warning
    builder.commit(add("c"), engine_info=DELTA_SPARK)
    log.snapshot()
    assert len(caplog.messages) == 1


def test_a_writer_is_told_of_the_commit_that_it_lost_to(caplog: pytest.LogCaptureFixture) -> None:
    builder = LogBuilder(Endangered()).create()
    transaction = builder.log().transaction()
    builder.commit(add("theirs"), engine_info=DELTA_SPARK)
    assert transaction.commit([add("ours")], Operation("WRITE")).version == 2
    assert [DELTA_SPARK in message for message in caplog.messages] == [True]


@pytest.mark.parametrize("store", [MemoryLogStore, Endangered])
def test_others_are_not_warned_of(store: type[MemoryLogStore], caplog: pytest.LogCaptureFixture) -> None:
    builder = LogBuilder(store()).create()
    builder.commit(add("a"), engine_info=DELTA_SPARK if store is MemoryLogStore else "tablelog/0.1.0")
    builder.log().snapshot()
    assert caplog.messages == []


def test_who_endangers_a_log_on_s3() -> None:
    assert any(part in DELTA_SPARK for part in S3LogStore(S3Settings()).endangered_by)
    assert any(part in "delta-rs:py-1.6.6" for part in S3DynamoDBLogStore.endangered_by)
