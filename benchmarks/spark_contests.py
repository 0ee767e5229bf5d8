"""The work that both engines do on Spark: what each contender runs, and what ours must be at most."""

import shutil
from collections.abc import Callable
from pathlib import Path

from benchmarks.turns import CLOSE, Bench, Result
from benchmarks.worker import Worker

SPARK_WORK: dict[str, Callable[[Bench, Worker, Worker], Result]] = {}


def spark_work(function: Callable[[Bench, Worker, Worker], Result]) -> Callable[[Bench, Worker, Worker], Result]:
    SPARK_WORK[function.__name__] = function
    return function


@spark_work
def read(bench: Bench, ours: Worker, delta: Worker) -> Result:
    table = bench.path("read")
    ours("make", path=table, n=bench.rows, files=8)
    plain = bench.path("read-plain")
    shutil.copytree(table, plain, ignore=shutil.ignore_patterns("_delta_log"))
    seconds = bench.alternate(
        {
            "ours": lambda: ours("hash", path=table),
            "spark.read.parquet": lambda: ours("hash", path=plain, format_="parquet"),
            "delta-spark": lambda: delta("hash", path=table),
        },
        least=CLOSE,
    )
    return Result(f"read all and hash, {bench.rows:,} rows", seconds, {"spark.read.parquet": 1.1, "delta-spark": 1.0})


@spark_work
def filter(bench: Bench, ours: Worker, delta: Worker) -> Result:  # noqa: A001 (the name of the work)
    table = bench.path("filter")
    ours("make", path=table, n=1_000_000, files=1000)
    seconds = bench.alternate(
        {
            name: lambda worker=worker: worker("range_filter", path=table, low=500_100, high=502_099)
            for name, worker in (("ours", ours), ("delta-spark", delta))
        }
    )
    return Result("range filter on a clustered column, 1,000 files", seconds, {"delta-spark": 1.0})


def _write(bench: Bench, ours: Worker, delta: Worker, partitions: int) -> Result:
    n = bench.rows
    seconds = bench.alternate(
        {
            "ours": lambda: ours("write", path=bench.path("w1"), n=n, partitions=partitions),
            "df.write.parquet": lambda: ours(
                "write", path=bench.path("w2"), n=n, format_="parquet", partitions=partitions
            ),
            "delta-spark": lambda: delta("write", path=bench.path("w3"), n=n, partitions=partitions),
        }
    )
    into = f" into {partitions} partitions" if partitions else ""
    return Result(f"write {n:,} rows{into}", seconds, {"df.write.parquet": 1.15, "delta-spark": 1.0})


@spark_work
def write(bench: Bench, ours: Worker, delta: Worker) -> Result:
    return _write(bench, ours, delta, 0)


@spark_work
def write_partitioned(bench: Bench, ours: Worker, delta: Worker) -> Result:
    return _write(bench, ours, delta, 20)


@spark_work
def delete(bench: Bench, ours: Worker, delta: Worker) -> Result:
    source, condition = bench.path("delete-source"), "id % 100 = 7"
    ours("make", path=source, n=bench.rows, files=8)
    seconds = bench.alternate(
        {
            "ours": lambda: ours("delete", source=source, path=bench.path("d1"), condition=condition),
            "plain Parquet rewrite": lambda: ours("rewrite", source=source, path=bench.path("d2"), condition=condition),
            "delta-spark": lambda: delta("delete", source=source, path=bench.path("d3"), condition=condition),
        },
        least=CLOSE,
    )
    return Result("DELETE of 1 %, every file touched", seconds, {"plain Parquet rewrite": 1.15, "delta-spark": 1.0})


@spark_work
def delete_partition(bench: Bench, ours: Worker, delta: Worker) -> Result:
    source = bench.path("delete-partitioned")
    ours("make", path=source, n=1_000_000, files=8, partitions=20)
    seconds = bench.alternate(
        {
            name: lambda worker=worker, at=at: worker("delete", source=source, path=bench.path(at), condition="p = 3")
            for name, worker, at in (("ours", ours, "dp1"), ("delta-spark", delta, "dp2"))
        }
    )
    return Result("DELETE of one partition", seconds, {"delta-spark": 1 / 5})


@spark_work
def appends(bench: Bench, ours: Worker, delta: Worker) -> Result:
    seconds = bench.alternate(
        {
            "ours": lambda: ours("appends", path=bench.path("a1"), times=60),
            "delta-spark": lambda: delta("appends", path=bench.path("a2"), times=60),
        }
    )
    return Result("60 appends of 10 rows, one after another", seconds, {"delta-spark": 1 / 3})


@spark_work
def read_vectors(bench: Bench, ours: Worker, delta: Worker) -> Result:
    table, whole = bench.path("vectors"), bench.path("vectors-none")
    ours("make_vectors", path=table, n=bench.rows, files=8, condition="id % 100 = 7")
    ours("make_vectors", path=whole, n=bench.rows, files=8)
    seconds = bench.alternate(
        {
            "ours": lambda: ours("hash", path=table),
            "no deletion vectors": lambda: ours("hash", path=whole),
            "delta-spark": lambda: delta("hash", path=table),
        }
    )
    work = "read through deletion vectors, 1 % of each file"
    return Result(work, seconds, {"no deletion vectors": 1.35, "delta-spark": 1.0})


def _command(
    bench: Bench, ours: Worker, delta: Worker, name: str, source: str, settings: dict[str, str] | None = None
) -> dict[str, Callable[[], float]]:
    """A command on a copy of one table, by both engines."""
    return {
        engine: lambda worker=worker, at=at: worker(
            "command", name=name, source=source, path=bench.path(at), settings=settings
        )
        for engine, worker, at in (("ours", ours, "c1"), ("delta-spark", delta, "c2"))
    }


@spark_work
def update(bench: Bench, ours: Worker, delta: Worker) -> Result:
    source = bench.path("update-source")
    ours("make", path=source, n=bench.rows, files=8)
    seconds = bench.alternate(
        _command(bench, ours, delta, "update", source)
        | {
            "plain Parquet rewrite": lambda: ours(
                "rewrite_updated", source=source, path=bench.path("u2"), condition="id % 100 = 7"
            )
        },
        least=CLOSE,
    )
    return Result("UPDATE of 1 %, every file touched", seconds, {"plain Parquet rewrite": 1.15, "delta-spark": 1.0})


def _with_vectors(bench: Bench, ours: Worker, delta: Worker, name: str, work: str, bar: float) -> Result:
    source = bench.path("with-vectors")
    if not Path(source).exists():
        ours("make_vectors", path=source, n=bench.rows, files=8)
    return Result(work, bench.alternate(_command(bench, ours, delta, name, source)), {"delta-spark": bar})


@spark_work
def delete_vectors(bench: Bench, ours: Worker, delta: Worker) -> Result:
    return _with_vectors(bench, ours, delta, "delete", "DELETE of 1 %, by deletion vectors", 1.0)


@spark_work
def update_vectors(bench: Bench, ours: Worker, delta: Worker) -> Result:
    return _with_vectors(bench, ours, delta, "update", "UPDATE of 1 %, by deletion vectors", 1.0)


@spark_work
def merge_vectors(bench: Bench, ours: Worker, delta: Worker) -> Result:
    work = f"MERGE of 500,000 rows into {bench.rows:,}, by deletion vectors"
    return _with_vectors(bench, ours, delta, "merge", work, 1 / 1.5)


@spark_work
def merge(bench: Bench, ours: Worker, delta: Worker) -> Result:
    source = bench.path("merge-source")
    ours("make", path=source, n=bench.rows, files=8)
    seconds = bench.alternate(_command(bench, ours, delta, "merge", source))
    return Result(f"MERGE of 500,000 rows into {bench.rows:,}", seconds, {"delta-spark": 1 / 1.3})


@spark_work
def merge_insert(bench: Bench, ours: Worker, delta: Worker) -> Result:
    source = bench.path("merge-insert-source")
    ours("make", path=source, n=bench.rows, files=8)
    seconds = bench.alternate(_command(bench, ours, delta, "merge_insert", source))
    return Result(f"insert-only MERGE of 500,000 rows into {bench.rows:,}", seconds, {"delta-spark": 1 / 1.5})


@spark_work
def merge_small(bench: Bench, ours: Worker, delta: Worker) -> Result:
    source = bench.path("merge-small-source")
    ours("make", path=source, n=100_000, files=4)
    seconds = bench.alternate(_command(bench, ours, delta, "merge_small", source))
    return Result("MERGE of 10 rows into 100,000", seconds, {"delta-spark": 1 / 3})


@spark_work
def optimize(bench: Bench, ours: Worker, delta: Worker) -> Result:
    source = bench.path("small-files")
    ours("make_many", path=source, files=200)
    seconds = bench.alternate(_command(bench, ours, delta, "optimize", source))
    return Result("OPTIMIZE of 200 small files", seconds, {"delta-spark": 1 / 2})


@spark_work
def zorder(bench: Bench, ours: Worker, delta: Worker) -> Result:
    source, rows = bench.path("zorder-source"), bench.rows // 4
    ours("make", path=source, n=rows, files=8)
    settings = {"spark.databricks.delta.optimize.maxFileSize": str(4 << 20)}
    seconds = bench.alternate(_command(bench, ours, delta, "zorder", source, settings))
    return Result(f"ZORDER BY two columns, {rows:,} rows", seconds, {"delta-spark": 1 / 1.3})


_VACUUM = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}


@spark_work
def vacuum_200(bench: Bench, ours: Worker, delta: Worker) -> Result:
    source = bench.path("litter-200")
    ours("make_litter", path=source, files=200)
    seconds = bench.alternate(_command(bench, ours, delta, "vacuum", source, _VACUUM))
    return Result("VACUUM of 200 files", seconds, {"delta-spark": 1 / 10})


@spark_work
def vacuum_100k(bench: Bench, ours: Worker, delta: Worker) -> Result:
    source = bench.path("litter-100k")
    ours("make_litter", path=source, files=100_000)
    seconds = bench.alternate(_command(bench, ours, delta, "vacuum", source, _VACUUM))
    return Result("VACUUM of 100,000 files", seconds, {"delta-spark": 1 / 3})


@spark_work
def convert(bench: Bench, ours: Worker, delta: Worker) -> Result:
    source = bench.path("parquet-5000")
    ours("make_parquet", path=source, files=5000)
    seconds = bench.alternate(_command(bench, ours, delta, "convert", source))
    return Result("convertToDelta of 5,000 files", seconds, {"delta-spark": 1 / 2})
