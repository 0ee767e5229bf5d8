"""Running schedules by the thousand."""

import gc
import os
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context

from .invariants import Attempt
from .quick import quick_core
from .scheduler import Workers
from .world import WRITERS, World


@dataclass
class Summary:
    """What many schedules came to.

    `told` counts what writers were told, `faults` what befell them, `seen` the rarer things that happened: commits
    that passed a change of the metadata, leaps of days, restarts, readings of old versions, cleanups.
    """

    schedules: int = 0
    steps: int = 0
    commits: int = 0
    told: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)

    def add(self, world: World) -> None:
        self.schedules += 1
        self.steps += world.scheduler.steps
        self.commits += len(world.disk.commits)
        self.told.update(attempt.told for attempt in world.attempts)
        self.faults.update(fault for *_, fault in world.events if fault)
        for name in ("leaps", "restarts", "reads", "passed", "cleaned"):
            self.seen[name] += getattr(world, name)

    def merge(self, other: "Summary") -> "Summary":
        self.schedules += other.schedules
        self.steps += other.steps
        self.commits += other.commits
        self.told.update(other.told)
        self.faults.update(other.faults)
        self.seen.update(other.seen)
        return self


class FailedSchedule(AssertionError):
    """A schedule broke an invariant; the message has the command that replays it."""


def run(seeds: Iterable[int], *, only: str | None = None, new_token: Callable[[Attempt], str] | None = None) -> Summary:
    """Run the schedules of these seeds, of one kind only if asked; FailedSchedule at the first that breaks one."""
    summary = Summary()
    workers = Workers(WRITERS)
    try:
        with quick_core():
            for number, seed in enumerate(seeds):
                if number % 200 == 0:
                    gc.collect()
                world = World(seed, workers, only)
                if new_token is not None:
                    world.new_token = new_token
                try:
                    summary.add(world.run())
                except BaseException as error:
                    raise FailedSchedule(
                        f"seed {seed}: {type(error).__name__}: {error}\n"
                        f"replay it with: PYTHONPATH=tests python -m simulation {only or ''} {seed}"
                    ) from error
    finally:
        workers.stop()
    return summary


def _run_range(first: int, last: int) -> Summary:
    return run(range(first, last))


def run_in_processes(first: int, count: int, processes: int | None = None) -> Summary:
    """`run` for a range of seeds, spread over processes."""
    processes = processes or min(os.cpu_count() or 1, 4)
    bounds = [first + count * number // processes for number in range(processes + 1)]
    summary = Summary()
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for part in pool.map(_run_range, bounds[:-1], bounds[1:]):
            summary.merge(part)
    return summary
