"""The work by streaming queries: what each contender runs, and what ours must be at most."""

from typing import Any

from benchmarks.spark_contests import spark_work
from benchmarks.turns import Bench, Result
from benchmarks.worker import Worker

BAR = {"delta-spark": 1 / 1.5}
_ROWS = 10


def _drained(
    bench: Bench, ours: Worker, delta: Worker, source: str, rows: int, options: dict[str, Any], sink: str = "noop"
) -> dict[str, list[float]]:
    return bench.alternate(
        {
            name: lambda worker=worker, at=at: worker(
                "drain", source=source, path=bench.path(at), rows=rows, options=options, sink=sink
            )
            for name, worker, at in (("ours", ours, "s1"), ("delta-spark", delta, "s2"))
        }
    )


@spark_work
def stream_latency(bench: Bench, ours: Worker, delta: Worker) -> Result:
    seconds = bench.alternate(
        {
            name: lambda worker=worker, at=at: worker(
                "latency", source=bench.path(f"{at}-source"), path=bench.path(at), commits=20
            )
            for name, worker, at in (("ours", ours, "l1"), ("delta-spark", delta, "l2"))
        }
    )
    return Result("stream: from a commit to the sink's commit, median of 20", seconds, BAR)


@spark_work
def stream_batches(bench: Bench, ours: Worker, delta: Worker) -> Result:
    source = bench.path("stream-batches")
    ours("make_source", path=source, commits=100)
    options = {"maxFilesPerTrigger": 1, "startingVersion": 0}
    seconds = _drained(bench, ours, delta, source, 100 * _ROWS, options, "delta")
    return Result("stream: 100 batches of one small file, into a table", seconds, BAR)


@spark_work
def stream_snapshot(bench: Bench, ours: Worker, delta: Worker) -> Result:
    source = bench.path("stream-snapshot")
    ours("make_source", path=source, commits=1, files=10_000)
    seconds = _drained(bench, ours, delta, source, 10_000 * _ROWS, {})
    return Result("stream: the initial snapshot of 10,000 files, 10 batches", seconds, BAR)


@spark_work
def stream_backlog(bench: Bench, ours: Worker, delta: Worker) -> Result:
    source = bench.path("stream-backlog")
    ours("make_source", path=source, commits=5000)
    seconds = _drained(bench, ours, delta, source, 5000 * _ROWS, {"startingVersion": 0})
    return Result("stream: a backlog of 5,000 commits, 5 batches", seconds, BAR)


@spark_work
def stream_changes(bench: Bench, ours: Worker, delta: Worker) -> Result:
    source, updates = bench.path("stream-changes"), 50
    ours("make_changes", path=source, updates=updates)
    options = {"readChangeFeed": "true", "startingVersion": 0, "maxFilesPerTrigger": 4}
    seconds = _drained(bench, ours, delta, source, 10_000 + updates * 2 * 1000, options, "delta")
    return Result(f"stream: the change data feed of {updates} updates, into a table", seconds, BAR)
