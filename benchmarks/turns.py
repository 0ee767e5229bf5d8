"""How contenders take turns, and what comes of it: a line of the table."""

import os
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path

from benchmarks.worker import Worker

ROOT = Path(__file__).resolve().parents[1]
CLOSE = 12
"""Rounds of what comes close to its bar, where the median of a few says little: two for each order of three."""


@dataclass(frozen=True)
class Margin:
    """A bar that isn't a ratio: how many seconds longer than the other ours may take."""

    seconds: float


@dataclass
class Result:
    """Seconds of each contender, round by round, and what ours must be at most, as a ratio to another's median.

    `details` is a table of its own, for the parts of the work.
    """

    work: str
    seconds: dict[str, list[float]]
    bars: dict[str, float | Margin]
    note: str = ""
    details: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        ours = statistics.median(self.seconds["ours"])
        for other, bar in self.bars.items():
            theirs = statistics.median(self.seconds[other])
            ratio = ours / theirs
            met = ours <= theirs + bar.seconds if isinstance(bar, Margin) else ratio <= bar
            shown = f"+{1000 * bar.seconds:g} ms" if isinstance(bar, Margin) else f"{bar:.2f}"
            cells = (
                self.work,
                f"{ours:.3g} s",
                other,
                f"{theirs:.3g} s",
                f"{ratio:.2f}",
                shown,
                "met" if met else "**missed**",
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
            Worker([python, "-m", "benchmarks.stream_work", engine], self.directory / f"{engine}.log")
            for engine in ("tablelog", "delta")
        ]
        try:
            for worker in started:
                worker("warm")
            yield started[0], started[1]
        finally:
            for worker in started:
                worker.close()
