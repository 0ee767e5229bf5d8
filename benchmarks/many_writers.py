"""Many processes on one table on MinIO: mixed commands by ours, and appends by ours and by delta-rs in turn.

`python -m benchmarks.many_writers [--processes 64] [--seconds 600] [--appends 60] [--rounds 2]` starts MinIO and prints
Markdown tables. After each part, everything that a writer was told is compared with the log, read from outside. The
exit code is 1 if they differ in any part, or if a process didn't come to its end.
"""

import argparse
import multiprocessing
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.many_writers_check import Fairness, commits, fairness, faults
from benchmarks.many_writers_work import Result, new_table, results, run
from tablelog.core import DeltaLog

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
_PRELOADED = ["benchmarks.many_writers_work", "tablelog.core.txn.transaction", "pyarrow.compute", "botocore.session",
              "pyarrow.parquet"]  # fmt: skip
_END_SECONDS = 600


@dataclass(frozen=True)
class Part:
    """What came of one part: `per_second` counts commits from the first start to the last end."""

    work: str
    results: list[Result]
    failed: int
    faults: Counter[str]
    per_second: float
    fairness: Fairness

    @property
    def is_sound(self) -> bool:
        """Whether all that the writers were told is true, and all of them came to their end."""
        return not self.faults and not self.failed


def part(server: Any, work: str, processes: int, seconds: float) -> Part:
    """Let processes work on a new table for some time."""
    url = server.url()
    new_table(url, server.conf)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    barrier = context.Barrier(processes)
    with tempfile.TemporaryDirectory() as out:
        arguments = [
            (work, url, server.conf, server.environment, number, processes, seconds, barrier, out)
            for number in range(processes)
        ]
        children = [context.Process(target=run, args=one) for one in arguments]
        for child in children:
            child.start()
        for child in children:
            child.join(seconds + _END_SECONDS)
            child.kill()
        done = results(Path(out), processes)
    failed = processes - len(done)
    if not done:
        raise RuntimeError(f"no process of {work} came to its end")
    log = DeltaLog.for_path(url, conf=server.conf)
    wrong = faults(done, commits(log), log.snapshot().files.column("path").to_pylist())
    taken = max(result.end for result in done) - min(result.start for result in done)
    made = sum(result.commits for result in done)
    return Part(work, done, failed, wrong, made / taken, fairness(done))


def row(name: str, made: Part) -> str:
    """A line of the table of parts."""
    fair = made.fairness
    wrong = ", ".join(f"{count} {what}" for what, count in made.faults.items()) or "nothing"
    command = f"{fair.median_command:.2f} / {fair.p99_command:.2f} s"
    return (
        f"| {name} | {made.per_second:.1f}/s | {fair.fewest} / {fair.median:.0f} / {fair.most} | {fair.jain:.3f} "
        f"| {command} | {fair.longest_wait:.1f} s | {made.failed} | {wrong} |"
    )


HEAD = (
    "| work | commits | fewest / median / most of a process | Jain's index | a command, median / 99 % "
    "| longest wait for a commit | failed processes | lost, doubled, ... |\n|---|---|---|---|---|---|---|---|"
)


def kinds(made: Part) -> str:
    """A table of the kinds of commands."""
    found: dict[str, Counter[str]] = {}
    tries: dict[str, list[int]] = {}
    for attempt in (attempt for result in made.results for attempt in result.attempts):
        found.setdefault(attempt.kind, Counter())[attempt.outcome] += 1
        if attempt.outcome == "acknowledged" and attempt.tries:
            tries.setdefault(attempt.kind, []).append(attempt.tries)
    lines = [
        "| command | acknowledged | conflicts | unknown | versions tried, median / most |",
        "|---|---|---|---|---|",
    ]
    for kind in sorted(found):
        number = tries.get(kind, [0])
        lines.append(
            f"| {kind} | {found[kind]['acknowledged']} | {found[kind]['refused']} | {found[kind]['unknown']} "
            f"| {statistics.median(number):.0f} / {max(number)} |"
        )
    given_up = sum(result.given_up for result in made.results)
    return "\n".join([*lines, "", f"Commands given up after 20 conflicts: {given_up}."])


def main(words: Sequence[str] | None = None) -> int:
    """Run all parts; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=600, help="of the mixed commands")
    parser.add_argument("--appends", type=float, default=60, help="seconds of each part that only appends")
    parser.add_argument("--rounds", type=int, default=2, help="of those parts")
    arguments = parser.parse_args(words)
    from servers import MinIO

    server = MinIO.start()
    try:
        print(HEAD, flush=True)
        rates: dict[str, list[float]] = {"appends": [], "appends by delta-rs": []}
        sound = True
        for _ in range(arguments.rounds):
            for work, of_work in rates.items():
                made = part(server, work, arguments.processes, arguments.appends)
                of_work.append(made.per_second)
                print(row(work, made), flush=True)
                sound &= made.is_sound
        mixed = part(server, "mixed", arguments.processes, arguments.seconds) if arguments.seconds else None
        if mixed is not None:
            print(row("mixed", mixed), flush=True)
            print(f"\n{kinds(mixed)}")
            sound &= mixed.is_sound
        if arguments.rounds:
            ours, theirs = (statistics.median(of_work) for of_work in rates.values())
            print(f"\nAppends of ours to those of delta-rs in the same time: {ours / theirs:.2f}")
    finally:
        server.stop()
    if not sound:
        print("At least one part isn't sound: see its last two columns.", file=sys.stderr)
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
