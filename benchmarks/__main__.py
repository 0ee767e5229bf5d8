"""Ours against plain Parquet, delta-spark and delta-rs, alternating in one run; prints a Markdown table of ratios.

`python -m benchmarks [WORK ...] [--rounds N] [--rows N]`; with no WORK, all. Spark work runs both engines on Spark 4.2
in the environment that TABLELOG_PEER_PYTHON names (`make bench` makes it). Times are medians of the rounds, after a
warm-up; every ratio is ours divided by the other's, so smaller is better.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

from benchmarks.log_work import make_large_log
from benchmarks.worker import Worker

ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Result:
    """Seconds of each contender, round by round, and what ours must be at most, as a ratio to another's median."""

    work: str
    seconds: dict[str, list[float]]
    bars: dict[str, float]
    note: str = ""

    def lines(self) -> Iterator[str]:
        ours = statistics.median(self.seconds["ours"])
        for other, bar in self.bars.items():
            theirs = statistics.median(self.seconds[other])
            ratio = ours / theirs
            verdict = "met" if ratio <= bar else "**missed**"
            cells = (
                self.work,
                f"{ours:.3g} s",
                other,
                f"{theirs:.3g} s",
                f"{ratio:.2f}",
                f"{bar:.2f}",
                verdict,
                self.note,
            )
            yield f"| {' | '.join(cells)} |"


class Bench:
    """Where the tables lie, how many rounds and rows, and the two Spark processes."""

    def __init__(self, directory: Path, rounds: int, rows: int) -> None:
        self.directory, self.rounds, self.rows = directory, rounds, rows

    def path(self, name: str) -> str:
        return str(self.directory / name)

    def alternate(self, contenders: dict[str, Callable[[], float]], least: int = 0) -> dict[str, list[float]]:
        """Each contender in turn, once to warm up and then `rounds` times, or `least`: what drifts, drifts for all.

        The order of turns goes through all there are, six for three contenders, for it matters who came before: a
        process that was idle for some seconds, while another had its turn, is slower by 0.3 s at first.
        """
        seconds: dict[str, list[float]] = {name: [] for name in contenders}
        orders = list(permutations(contenders))
        for round_ in range(max(self.rounds, least) + 1):
            for name in orders[round_ % len(orders)]:
                taken = contenders[name]()
                if round_:
                    seconds[name].append(taken)
                print(f"    {name}: {taken:.3f} s", file=sys.stderr, flush=True)
        return seconds

    @contextmanager
    def engines(self) -> Iterator[tuple[Worker, Worker]]:
        python = os.environ.get("TABLELOG_PEER_PYTHON")
        if not python:
            sys.exit(
                "TABLELOG_PEER_PYTHON names no environment with pyspark 4.2, delta-spark and tablelog: run `make bench`"
            )
        os.chdir(ROOT)
        started = [
            Worker([python, "-m", "benchmarks.command_work", engine], self.directory / f"{engine}.log")
            for engine in ("tablelog", "delta")
        ]
        try:
            for worker in started:
                worker("warm")
            yield started[0], started[1]
        finally:
            for worker in started:
                worker.close()


SPARK_WORK: dict[str, Callable[[Bench, Worker, Worker], Result]] = {}
LOG_WORK: dict[str, Callable[[Bench], Result]] = {}
CLOSE = 12
"""Rounds of what comes close to its bar, where the median of a few says little: two for each order of three."""
ON_REQUEST = ("ten_million",)
"""Work that takes minutes and gigabytes of disk: done where it is named."""


def spark_work(function: Callable[[Bench, Worker, Worker], Result]) -> Callable[[Bench, Worker, Worker], Result]:
    SPARK_WORK[function.__name__] = function
    return function


def log_work(function: Callable[[Bench], Result]) -> Callable[[Bench], Result]:
    LOG_WORK[function.__name__] = function
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


def process(work: str, *arguments: object) -> tuple[float, int]:
    """Seconds and peak memory in KiB of one piece of log work, in a fresh process that is measured as a whole."""
    start = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.log_work", work, *map(str, arguments)], cwd=ROOT, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{work} failed")
    return time.perf_counter() - start, usage.ru_maxrss


@log_work
def snapshot(bench: Bench) -> Result:
    table = bench.path("large")
    make_large_log(Path(table), 1_000_000)
    peaks: dict[str, list[int]] = {"ours": [], "delta-rs": []}

    def run(name: str, work: str) -> float:
        seconds, peak = process(work, table)
        peaks[name].append(peak)
        return seconds

    seconds = bench.alternate(
        {
            "ours": lambda: run("ours", "snapshot_tablelog"),
            "delta-rs": lambda: run("delta-rs", "snapshot_deltalake"),
        }
    )
    ours, theirs = (statistics.median(peaks[name]) / 1024 for name in ("ours", "delta-rs"))
    note = f"peak memory {ours:.0f} against {theirs:.0f} MiB: {ours / theirs:.2f}, bar 0.80"
    return Result("snapshot of 1 M adds with its paths, fresh process", seconds, {"delta-rs": 1 / 2}, note)


def told(work: str, *arguments: object) -> dict[str, float]:
    """What a piece of log work, in a fresh process, measures of itself."""
    command = [sys.executable, "-m", "benchmarks.log_work", work, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _cpu_note(cpu: dict[str, list[float]], rounds: int) -> str:
    ours, theirs = (statistics.median(taken[-rounds:]) for taken in cpu.values())
    return f"seconds of CPU {ours:.3g} against {theirs:.3g}: {ours / theirs:.2f}"


@log_work
def refresh(bench: Bench) -> Result:
    commits, tables = 200, {"ours": 1_000_000, "10,000 adds": 10_000}
    cpu: dict[str, list[float]] = {name: [] for name in tables}
    for adds in tables.values():
        make_large_log(Path(bench.path(f"refresh-{adds}")), adds)

    def run(name: str) -> float:
        table = bench.path(f"refresh-{tables[name]}")
        taken = told("refresh_tablelog", table, commits)
        for version in range(1, commits + 1):
            Path(table, "_delta_log", f"{version:020}.json").unlink()
        cpu[name].append(taken["cpu"])
        return taken["seconds"]

    seconds = bench.alternate({name: partial(run, name) for name in tables})
    note = _cpu_note(cpu, bench.rounds)
    return Result(f"{commits} refreshes by a commit of another, 1 M adds", seconds, {"10,000 adds": 1.2}, note)


@log_work
def ten_million(bench: Bench) -> Result:
    """Each figure that docs/scale.md has goes to the standard error, as JSON."""
    table, files = bench.path("ten-million"), 10_000_000

    def work(name: str, *arguments: object) -> Any:
        command = [sys.executable, "-m", "benchmarks.large_log", name, table, *map(str, arguments)]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        print(f"    {name}: {done.stdout}", file=sys.stderr, flush=True)
        return json.loads(done.stdout) if done.stdout else None

    work("make", files, 50)
    spark, driver = work("by_spark", bench.rounds), work("driver")
    work("checkpoint")
    work("checkpoint_by_spark")
    shutil.rmtree(table)
    told = f"peak memory of Python {spark['driver, MiB']:.0f} against {driver['peak, MiB']:.0f} MiB"
    seconds = {
        "ours": [spark["open"]["seconds"] + taken for taken in spark["5 files by statistics"]],
        "the driver alone": [sum(driver[step]["seconds"] for step in ("open", "columns", "first plan"))],
    }
    return Result("opening and planning for 5 of 10 M files, by Spark", seconds, {"the driver alone": 2.0}, told)


@log_work
def checkpoint(bench: Bench) -> Result:
    table = bench.path("checkpointed")
    make_large_log(Path(table), 1_000_000)
    log, info = Path(table, "_delta_log"), {"partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    # The first one makes structs of all the texts: after it, as usual, there are both.
    (log / f"{1:020}.json").write_text(json.dumps({"add": {"path": "one.parquet", **info}}))
    first = told("checkpoint_tablelog", table)
    (log / f"{2:020}.json").write_text(json.dumps({"add": {"path": "two.parquet", **info}}))
    made, pointer = log / f"{2:020}.checkpoint.parquet", log / "_last_checkpoint"
    before = pointer.read_text()
    works = {"ours": "checkpoint_tablelog", "pyarrow": "checkpoint_pyarrow"}
    cpu: dict[str, list[float]] = {name: [] for name in works}

    def run(name: str) -> float:
        # From the checkpoint before it each time; and both make a new file, for to overwrite one is cheaper: the memory
        # that it has in the page cache serves again.
        for file in (made, Path(f"{table}.parquet")):
            file.unlink(missing_ok=True)
        pointer.write_text(before)
        taken = told(works[name], table)
        cpu[name].append(taken["cpu"])
        return taken["seconds"]

    seconds = bench.alternate({name: partial(run, name) for name in works})
    note = f"{_cpu_note(cpu, bench.rounds)}; the first, from statistics as JSON alone, {first['seconds']:.3g} s"
    return Result("classic checkpoint of 1 M adds, statistics in both forms", seconds, {"pyarrow": 1.5}, note)


@log_work
def planning(bench: Bench) -> Result:
    table = bench.path("planned")
    make_large_log(Path(table), 1_000_000)
    found = [told("planning_tablelog", table, 9) for _ in range(bench.rounds + 1)][1:]
    first = statistics.median(one["first"] for one in found)
    cpu = {name: [one[name] for one in found] for name in ("cpu", "open_cpu")}
    seconds = {"ours": [one["seconds"] for one in found], "opening it": [one["open"] for one in found]}
    note = f"{_cpu_note(cpu, bench.rounds)}; the first plan, which parses the statistics, {first:.3g} s"
    return Result("planning a filter for 5 of 1 M files, warm statistics", seconds, {"opening it": 0.3}, note)


def _commits(bench: Bench, processes: int, each: int) -> Result:
    failed = {"ours": 0, "delta-rs": 0}

    def run(name: str, work: str) -> float:
        table = Path(bench.path(f"commits-{uuid.uuid4()}"))
        make_large_log(table, 10)

        def one(_: int) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-m", "benchmarks.log_work", work, str(table), str(each), str(processes)]
            return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

        with ThreadPoolExecutor(processes) as pool:
            done = list(pool.map(one, range(processes)))
        failed[name] += sum(bool(process.returncode) for process in done)
        times = [json.loads(process.stdout) for process in done if not process.returncode]
        return float(max(end for _, end in times) - min(start for start, _ in times))

    seconds = bench.alternate(
        {"ours": lambda: run("ours", "commits_tablelog"), "delta-rs": lambda: run("delta-rs", "commits_deltalake")}
    )
    total = processes * each
    rates = {name: total / statistics.median(taken) for name, taken in seconds.items()}
    note = f"{rates['ours']:.0f} against {rates['delta-rs']:.0f} commits a second"
    note += f"; processes that failed: {failed['ours']} against {failed['delta-rs']}"
    return Result(f"{total} commits from {processes} process(es), core alone", seconds, {"delta-rs": 1 / 2}, note)


@log_work
def commits_1(bench: Bench) -> Result:
    return _commits(bench, 1, 400)


@log_work
def commits_8(bench: Bench) -> Result:
    return _commits(bench, 8, 50)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", nargs="*", help=f"of {', '.join([*SPARK_WORK, *LOG_WORK])}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000_000)
    arguments = parser.parse_args()
    wanted = arguments.work or [name for name in (*SPARK_WORK, *LOG_WORK) if name not in ON_REQUEST]
    if unknown := set(wanted) - {*SPARK_WORK, *LOG_WORK}:
        parser.error(f"no such work: {', '.join(unknown)}")
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="tablelog-bench-") as directory:
        bench = Bench(Path(directory), arguments.rounds, arguments.rows)
        for name in (name for name in LOG_WORK if name in wanted):
            print(f"  {name}", file=sys.stderr, flush=True)
            results.append(LOG_WORK[name](bench))
        if any(name in SPARK_WORK for name in wanted):
            with bench.engines() as (ours, delta):
                for name in (name for name in SPARK_WORK if name in wanted):
                    print(f"  {name}", file=sys.stderr, flush=True)
                    results.append(SPARK_WORK[name](bench, ours, delta))
    print("| work | ours | against | theirs | ratio | bar | verdict | remark |\n|---|---|---|---|---|---|---|---|")
    for result in results:
        for line in result.lines():
            print(line)


if __name__ == "__main__":
    main()
