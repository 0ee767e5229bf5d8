"""Two drivers run one query with one checkpoint, by mistake: one is told, and each row is written once."""

import threading
from pathlib import Path
from typing import Any

import fsspec
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from support.killed_stream import QUERIES, Order
from support.killed_streams import Growing, has_each_row_once, run_driver
from tablelog.core.streaming.source import TableStream
from tablelog.core.txn.transaction import Transaction
from tablelog.spark.streaming import sink

POINTS = {
    "before the batch is read": (TableStream, "batch", False),
    "after the commit": (sink, "write", True),
    "before the commit to a new table": (Transaction, "commit", False),
    "before the commit": (Transaction, "commit", False),
}
TOLD = {"before the commit": "DELTA_CONCURRENT_TRANSACTION"}
"""Where it isn't Spark that tells."""


class Held:
    """Holds the first call of a function, before or after its work, until `resume`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, where: Any, name: str, after: bool) -> None:
        self._function, self._after = getattr(where, name), after
        self.reached, self.resume = threading.Event(), threading.Event()
        monkeypatch.setattr(where, name, self._called())

    def _called(self) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if not self._after:
                self._hold()
            result = self._function(*args, **kwargs)
            if self._after:
                self._hold()
            return result

        return call

    def _hold(self) -> None:
        if not self.reached.is_set():
            self.reached.set()
            assert self.resume.wait(200)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("point", POINTS)
def test_one_is_told(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """The driver of this process waits at a point of its first batch, while another process runs the whole query."""
    order = Order(f"{tmp_path}/tables", str(tmp_path))
    source = Growing(order.root, {}, fsspec.filesystem("file"))
    source.create()
    source.append()
    if point == "before the commit":
        spark.range(0).write.format("delta").save(f"{order.root}/rows")
    where, name, after = POINTS[point]
    held = Held(monkeypatch, where, name, after)
    stream = spark.readStream.format("delta").options(**QUERIES["rows"]).load(f"{order.root}/source")
    writer = stream.writeStream.format("delta").option("checkpointLocation", f"{order.root}/checkpoints/rows")
    query = writer.start(f"{order.root}/rows")
    try:
        assert held.reached.wait(60)
        source.append()
        run_driver(order)
    finally:
        held.resume.set()
    with pytest.raises(StreamingQueryException, match=TOLD.get(point, "CONCURRENT_STREAM_LOG_UPDATE")):
        query.awaitTermination(120)
    has_each_row_once(f"{order.root}/rows", source, point)
