"""Fixtures of the tests that go through the surface: a table, and the session's configuration for one test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.spark_tables import Table


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Table:
    """A path with no table yet."""
    return Table(spark, tmp_path / "table")


@pytest.fixture
def conf(spark: SparkSession) -> Iterator[Any]:
    """`conf(key, value)` sets a key of the session for one test."""
    before: dict[str, str | None] = {}

    def set_key(key: str, value: str) -> None:
        before.setdefault(key, spark.conf.get(key, None))
        spark.conf.set(key, value)

    yield set_key
    for key, value in before.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)
