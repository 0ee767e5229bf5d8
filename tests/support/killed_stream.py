"""`python -m support.killed_stream <JSON>`: a driver with streaming queries, which kills itself or reads all there is.

The JSON is an `Order`. The driver runs three queries over one table at the same time: they copy its rows, its changes,
and its rows by `foreachBatch`.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from support.sessions import session_builder

QUERIES: dict[str, dict[str, str]] = {
    "rows": {"maxFilesPerTrigger": "1"},
    "changes": {"maxFilesPerTrigger": "2", "readChangeFeed": "true", "startingVersion": "0"},
    "foreach": {"maxFilesPerTrigger": "3"},
}
"""Name -> options of its source. The name is also that of its target and its checkpoint."""

POINTS = (
    "before the offsets are stored",
    "between offsets and batch",
    "before the sink commits",
    "after the sink's commit is put",
    "before the batch is stored as done",
    "after the batch is stored as done",
)


@dataclass(frozen=True)
class Order:
    """What a driver does: which tables it uses, and when it kills whom.

    It dies at the `passage`-th time that a query passes `point`, or `seconds` after its first batch has begun. Without
    either it reads all there is and ends. `jvm_too`: the JVM dies at the same time, and not soon after.
    """

    root: str
    scratch: str
    conf: Mapping[str, str] = field(default_factory=dict)
    class_path: str = ""
    point: str = ""
    passage: int = 1
    seconds: float = 0.0
    jvm_too: bool = True

    @property
    def dies(self) -> bool:
        return bool(self.point or self.seconds)


def _session(order: Order) -> Any:
    hadoop = {f"spark.hadoop.{key}": value for key, value in order.conf.items()}
    settings = {
        "spark.sql.warehouse.dir": f"{order.scratch}/warehouse",
        "spark.local.dir": f"{order.scratch}/local",
        "spark.sql.shuffle.partitions": "1",
        **hadoop,
    }
    if order.class_path:
        settings["spark.driver.extraClassPath"] = order.class_path
    return session_builder("local[2]", settings).getOrCreate()


def _wrapped(where: Any, name: str, *, before: Callable[[], None] | None = None, after: Any = None) -> None:
    function = getattr(where, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        if before is not None:
            before()
        result = function(*args, **kwargs)
        if after is not None:
            after()
        return result

    setattr(where, name, call)


def _watch(passed: Callable[[str], None]) -> None:
    """Have `passed` called with the name of each point that a query passes."""
    from tablelog.core.streaming.source import TableStream
    from tablelog.core.txn import transaction
    from tablelog.core.txn.transaction import Transaction
    from tablelog.spark.streaming import sink, source

    def at(point: str) -> Callable[[], None]:
        return lambda: passed(point)

    offsets, batch, commit, put, done, after = map(at, POINTS)
    _wrapped(TableStream, "latest", after=offsets)
    _wrapped(TableStream, "batch", before=batch)
    _wrapped(Transaction, "commit", before=commit)
    _wrapped(transaction, "after_commit", before=put)
    _wrapped(sink, "write", after=done)
    # Spark asks for the metrics of a batch when it has stored that the batch is done.
    _wrapped(source.TableSource, "metrics", before=after)


def _started(spark: Any, order: Order, name: str) -> Any:
    options, target = dict(QUERIES[name]), f"{order.root}/{name}"
    if not order.dies:
        del options["maxFilesPerTrigger"]
    stream = spark.readStream.format("delta").options(**options).load(f"{order.root}/source")
    rows = stream.drop("_commit_version", "_commit_timestamp").withColumnRenamed("_change_type", "kind")
    writer = rows.writeStream.option("checkpointLocation", f"{order.root}/checkpoints/{name}")
    writer = writer.trigger(processingTime="0 seconds") if order.dies else writer.trigger(availableNow=True)
    if name != "foreach":
        return writer.format("delta").start(target)

    def write(batch: Any, number: int) -> None:
        once = {"txnAppId": name, "txnVersion": number}
        batch.write.format("delta").mode("append").options(**once).save(target)

    return writer.foreachBatch(write).start()


def main(order: Order) -> None:
    spark = _session(order)
    from tablelog.spark import enable

    enable(spark)
    group, lock, passages = os.getpgrp(), threading.Lock(), [0]

    def die() -> None:
        if order.jvm_too:
            os.killpg(group, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    def passed(point: str) -> None:
        with lock:
            if order.seconds and not passages[0]:
                threading.Timer(order.seconds, die).start()
                passages[0] = 1
            elif point == order.point:
                passages[0] += 1
                if passages[0] == order.passage:
                    die()

    _watch(passed)
    print(spark._jvm.java.lang.ProcessHandle.current().pid(), flush=True)
    for query in [_started(spark, order, name) for name in QUERIES]:
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Order(**json.loads(sys.argv[1])))
