"""A service that rejects one request in ten (503 SlowDown), under the whole work of a table, with the usual retries."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from support.table_work import STEPS, by_route, settings
from tablelog.conformance.harness.proxy import Exchange, Proxy, Reply

from . import MinIO
from .programs import run_program

_SLOW_DOWN = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)


class Throttle:
    """Rejects one request in ten, by a seed. It counts the requests, and those that it rejected."""

    def __init__(self, seed: int) -> None:
        self.asked = self.rejected = 0
        self._dice, self._lock = Random(seed), threading.Lock()

    def __call__(self, exchange: Exchange) -> Reply | None:
        with self._lock:
            rejects = self._dice.random() < 0.1
            self.asked += 1
            self.rejected += rejects
        return Reply(503, {"Content-Type": "application/xml"}, _SLOW_DOWN) if rejects else exchange.forward()


@pytest.fixture
def throttle(request: pytest.FixtureRequest) -> Throttle:
    """One with its own seed for each test."""
    return Throttle(request.param)


@pytest.fixture
def throttled(minio: MinIO, throttle: Throttle) -> Iterator[MinIO]:
    """The server behind the throttle."""
    with Proxy(minio.endpoint, throttle) as proxy:
        yield replace(minio, port=int(proxy.url.rpartition(":")[2]))


CASES = [
    pytest.param("by tasks", 1, marks=pytest.mark.slow),
    pytest.param("by the driver", 2, marks=pytest.mark.slow),
    pytest.param("concurrent", 3),
    pytest.param("commands", 4),
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("step", "throttle"), CASES, indirect=["throttle"])
def test_the_whole_work(spark: SparkSession, throttled: MinIO, throttle: Throttle, step: str) -> None:
    with settings(spark, {**throttled.conf, **by_route("arrow")}):
        STEPS[step](spark, throttled.url("a table"), throttled.conf)
    assert throttle.rejected > throttle.asked // 20 > 2


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("throttle", [5], indirect=True)
def test_the_whole_work_by_s3a(throttled: MinIO, throttle: Throttle, tmp_path: Path, jars: str) -> None:
    steps = ("by tasks", "commands")
    assert run_program(throttled, tmp_path, "servers.s3a_work", jars, *steps) == "all done: " + ", ".join(steps)
    assert throttle.rejected > throttle.asked // 20 > 2
