"""Queries from many threads, and what they leave behind."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tablelog.engine.jvm.connection.callbacks import Connections
from tablelog.engine.jvm.connection.gateway import Gateway
from tablelog.engine.read import scan

from .tables import HandMade


def test_eight_threads_share_one_log(spark: SparkSession, clustered: HandMade) -> None:
    log = clustered.log
    shared = scan.frame(spark, log)

    def work(number: int) -> list[int]:
        own = scan.frame(spark, log, snapshot=log.snapshot())
        return [
            frame.where(f"p = {number % 4} and id < 50").groupBy("p").count().count()
            + frame.where(f"id = {number}").count()
            for frame in (shared, own)
        ]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [[2] * 2] * 8


def test_appends_while_others_read(spark: SparkSession, clustered: HandMade) -> None:
    frame = scan.frame(spark, clustered.log)
    counts: list[int] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            counts.append(frame.count())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(3):
            clustered.append(pa.table({"id": pa.array([1000 + number], pa.int64()), "s": ["x"]}), {"p": "0"})
            assert frame.count() == 201 + number
    finally:
        stop.set()
        reader.join(60)
    assert counts == sorted(counts)
    assert set(counts) <= set(range(200, 204))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors by /proc")
@pytest.mark.slow
def test_sixty_queries_leave_neither_threads_nor_descriptors(spark: SparkSession, clustered: HandMade) -> None:
    frame = scan.frame(spark, clustered.log)

    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    for _ in range(10):
        frame.count()
    threads, open_files = threading.active_count(), descriptors()
    most = 0
    for _ in range(60):  # each shuffles, and so is planned on a thread of the JVM that is new
        frame.count()
        most = max(most, threading.active_count())
    assert most <= threads + 12
    assert descriptors() <= open_files + 12


def test_a_connection_in_use_is_never_closed(spark: SparkSession, clustered: HandMade) -> None:
    """A query inside a callback of Spark's own (foreachBatch), with sweeps in between, must not cut that callback."""
    gateway = Gateway.of(spark)
    connections = Connections.of(gateway)
    frame = scan.frame(spark, clustered.log)
    seen: list[int] = []

    class Runner:
        def run(self) -> None:
            with connections.entered():
                seen.append(frame.count())
                connections._close(connections._idle())
                seen.append(frame.count())

        class Java:
            implements = ["java.lang.Runnable"]  # noqa: RUF012

    thread = gateway.jvm.java.lang.Thread(Runner())
    thread.start()
    thread.join(60_000)
    assert not thread.isAlive()
    assert seen == [200, 200]
    assert frame.count() == 200
