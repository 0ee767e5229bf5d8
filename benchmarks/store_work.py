"""Commits on an object store, ours against delta-rs with its conditional put, and the requests that each step costs.

`python -m benchmarks.store_work [--rounds N]` (`make bench-stores`) starts MinIO and prints two Markdown tables. After
each round the log is read back: a commit that is missing, or there twice, is counted.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.log_work import SCHEMA, WARM_UP
from tablelog.core import AddFile, DeltaLog, Metadata, Operation
from tablelog.core.protocol.codec import parse_commit
from tablelog.core.protocol.paths import commit_name
from tablelog.logstore import CountingLogStore, store_for

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
OUTCOMES = ("failed processes", "lost", "doubled")


def add() -> AddFile:
    return AddFile(f"{uuid.uuid4()}.parquet", {}, 1000, 1_700_000_000_000, True, '{"numRecords":10}')


def append(log: DeltaLog) -> None:
    log.transaction().commit([add()], Operation("WRITE", {"mode": "Append", "partitionBy": []}))


def new_table(log: DeltaLog) -> None:
    transaction = log.transaction()
    transaction.set_metadata(Metadata("bench", SCHEMA, configuration={"delta.checkpointInterval": "10"}))
    transaction.commit([add()], Operation("CREATE TABLE"))


def race(server: Any, work: str, processes: int, each: int) -> tuple[float, Counter[str]]:
    """(seconds from the first commit to the last, what became of them)."""
    url = server.url()
    log = DeltaLog.for_path(url, conf=server.conf)
    new_table(log)
    with tempfile.TemporaryDirectory() as meeting:
        environment = {**os.environ, **server.environment, "BENCH_CONF": json.dumps(server.conf)}

        def one(_: int) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-m", "benchmarks.log_work", work, url, str(each), str(processes)]
            return subprocess.run(
                command,
                cwd=ROOT,
                env={**environment, "BENCH_MEETING": f"{meeting}/m"},
                capture_output=True,
                text=True,
                check=False,
            )

        with ThreadPoolExecutor(processes) as pool:
            done = list(pool.map(one, range(processes)))
    failed = [process for process in done if process.returncode]
    for process in failed:
        print(process.stderr[-2000:], file=sys.stderr)
    times = [json.loads(process.stdout) for process in done if not process.returncode]
    if not times:
        raise RuntimeError(f"no process of {work} came to its end")
    snapshot = log.snapshot()
    seen: Counter[str] = Counter()
    for version in range(1, snapshot.version + 1):
        actions = parse_commit(log.store.read(f"{log.log_path}/{commit_name(version)}"))
        seen.update(action.path for action in actions if isinstance(action, AddFile))
    expected = processes * (each + WARM_UP)
    outcome = Counter(
        {
            "failed processes": len(failed),
            "lost": max(0, expected - len(seen)) if not failed else 0,
            "doubled": sum(count > 1 for count in seen.values()),
        }
    )
    return max(end for _, end in times) - min(start for start, _ in times), outcome


def requests(server: Any) -> list[tuple[str, str]]:
    """(step, the requests to the store that it makes)."""
    url = server.url()
    store = CountingLogStore(store_for(url, conf=server.conf))
    rows = []

    def counted(step: str, work: Any) -> None:
        store.reset()
        work()
        rows.append((step, ", ".join(f"{count} {name}" for name, count in sorted(store.calls.items()))))

    log = DeltaLog(store.resolve(url), store)
    new_table(log)
    for _ in range(9):
        append(log)
    counted("append that checkpoints (version 10)", lambda: append(log))
    counted("append", lambda: append(log))
    append(log)
    append(log)
    counted(
        "opening the table, three commits after its checkpoint", lambda: DeltaLog(store.resolve(url), store).snapshot()
    )
    counted("refreshing an unchanged snapshot", log.snapshot)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--commits", type=int, default=200, help="of all processes together")
    arguments = parser.parse_args()
    from servers import MinIO

    server = MinIO.start()
    try:
        print("| commits on MinIO | ours | delta-rs | ratio of time | ours | delta-rs |")
        print("|---|---|---|---|---|---|")
        for processes in (1, 4, 8):
            seconds: dict[str, list[float]] = {"commits_tablelog": [], "commits_deltalake": []}
            outcomes: dict[str, Counter[str]] = {work: Counter() for work in seconds}
            for _ in range(arguments.rounds):
                for work, times in seconds.items():
                    taken, outcome = race(server, work, processes, arguments.commits // processes)
                    times.append(taken)
                    outcomes[work].update(outcome)
                    print(f"    {work}, {processes}: {taken:.2f} s {dict(outcome)}", file=sys.stderr, flush=True)
            ours, theirs = (statistics.median(seconds[work]) for work in seconds)
            said = [", ".join(f"{outcome[name]} {name}" for name in OUTCOMES) for outcome in outcomes.values()]
            print(
                f"| {processes} process(es) | {arguments.commits / ours:.0f}/s | {arguments.commits / theirs:.0f}/s "
                f"| {ours / theirs:.2f} | {said[0]} | {said[1]} |",
                flush=True,
            )
        print("\n| step | requests |\n|---|---|")
        for step, cost in requests(server):
            print(f"| {step} | {cost} |")
    finally:
        server.stop()


if __name__ == "__main__":
    main()
