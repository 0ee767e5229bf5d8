"""The work that needs no Spark, each piece in processes of its own: what each contender runs, and our bars."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.log_work import make_large_log
from benchmarks.turns import ROOT, Bench, Result

LOG_WORK: dict[str, Callable[[Bench], Result]] = {}
ON_REQUEST = ("ten_million",)
"""Work that takes minutes and gigabytes of disk: done where it is named."""


def log_work(function: Callable[[Bench], Result]) -> Callable[[Bench], Result]:
    LOG_WORK[function.__name__] = function
    return function


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
