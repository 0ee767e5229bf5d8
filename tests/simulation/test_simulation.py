"""Twenty thousand schedules hold every invariant, and each mutant of the core breaks one within a few hundred."""

import pytest

from .mutants import Mutant, every
from .mutants.outcomes import one_token_for_each_writer
from .quick import quick_core
from .runs import FailedSchedule, run, run_in_processes
from .scheduler import Workers
from .world import WRITERS, World
from .writer import COMMITS


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("first", "schedules"), [(0, 1_000), pytest.param(1_000, 19_000, marks=pytest.mark.slow)])
@pytest.mark.thorough
def test_no_schedule_breaks_a_promise(first: int, schedules: int) -> None:
    summary = run_in_processes(first, schedules)
    assert summary.schedules == schedules
    # The schedules are worth something: every fault befell many, and most writers still got their commits through.
    assert all(count > schedules / 100 for count in summary.faults.values()), summary.faults
    assert len(summary.faults) == 9
    told = summary.told
    assert told["committed"] > 0.6 * told.total(), told
    assert min(told["unknown"], told["crashed"], told["not committed"]) > schedules / 100, told
    assert told.total() > 0.9 * schedules * WRITERS * COMMITS
    seen = summary.seen
    assert min(seen["passed"], seen["restarts"], seen["reads"]) > schedules / 20, seen
    assert min(seen["leaps"], seen["cleaned"]) >= schedules / 1000, seen


@pytest.mark.parametrize("only", [None, "whole", "long"])
def test_a_seed_replays(only: str | None) -> None:
    def log_of(seed: int) -> dict[str, tuple[bytes, int]]:
        workers = Workers(WRITERS)
        with quick_core():
            world = World(seed, workers, only).run()
        workers.stop()
        return world.disk.files

    for seed in (11, 12, 13):
        assert log_of(seed) == log_of(seed)
    assert log_of(11) != log_of(12)


@pytest.mark.many
@pytest.mark.parametrize("mutant", list(every()), ids=lambda mutant: mutant.name)
@pytest.mark.thorough
def test_mutants_are_found(mutant: Mutant) -> None:
    with mutant.patch(), pytest.raises(FailedSchedule, match="python -m simulation"):
        run(range(mutant.enough), only=mutant.only)


def test_a_token_used_twice_is_found() -> None:
    with pytest.raises(FailedSchedule):
        run(range(500), new_token=one_token_for_each_writer)
