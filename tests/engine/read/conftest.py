"""Tables to read."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tablelog.core.log import checkpoint
from tablelog.settings.declarations import LOG_DRIVER_BYTES, READ_ROUTE, READ_SCRATCH, SNAPSHOT_PARTITIONS

from .tables import HandMade


class Make(Protocol):
    def __call__(self, schema: Mapping[str, str], partition_columns: Sequence[str] = ()) -> HandMade: ...


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Make an empty table in a directory of its own, whose name needs escaping in a URI."""
    count = 0

    def table(schema: Mapping[str, str], partition_columns: Sequence[str] = ()) -> HandMade:
        nonlocal count
        count += 1
        return HandMade(tmp_path / f"a table % {count}", schema, partition_columns)

    return table


@pytest.fixture
def clustered(make: Make) -> HandMade:
    """20 files of 10 rows: id 0 to 199 in order, partitioned by p (0 to 3, between id and s), s as v0 to v9."""
    table = make({"id": "long", "p": "integer", "s": "string"}, ["p"])
    table.commit(
        [
            table.file(
                pa.table({"id": pa.array(range(i * 10, i * 10 + 10), pa.int64()), "s": [f"v{j}" for j in range(10)]}),
                {"p": str(i % 4)},
            )
            for i in range(20)
        ]
    )
    return table


@contextmanager
def own_python(spark: SparkSession) -> Iterator[None]:
    """Python workers with the packages that the tests have."""
    context = spark.sparkContext
    before = context.pythonExec
    context.pythonExec = sys.executable
    try:
        yield
    finally:
        context.pythonExec = before


@pytest.fixture
def by_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Any log with a checkpoint is large."""
    monkeypatch.setattr(checkpoint, "_AT_ONCE", 0)
    spark.conf.set(LOG_DRIVER_BYTES.key, "0")
    spark.conf.set(SNAPSHOT_PARTITIONS.key, "2")
    yield
    spark.conf.unset(LOG_DRIVER_BYTES.key)
    spark.conf.unset(SNAPSHOT_PARTITIONS.key)


@pytest.fixture(params=["native", "manifest", "arrow"])
def route(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    spark.conf.set(READ_ROUTE.key, request.param)
    spark.conf.set(READ_SCRATCH.key, str(tmp_path / "scratch"))
    with own_python(spark):
        yield request.param
    spark.conf.unset(READ_ROUTE.key)
    spark.conf.unset(READ_SCRATCH.key)
