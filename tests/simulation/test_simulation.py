"""Ten thousand schedules hold every invariant, and each mutant of the core breaks one within a few hundred."""

import pytest

from .runs import MUTANTS, FailedSchedule, one_token_for_each_writer, quick_core, run, run_in_processes
from .scheduler import Workers
from .world import COMMITS, WRITERS, World

SCHEDULES = 10_000
FIRST_SEED = 0


@pytest.mark.timeout(600)
def test_ten_thousand_schedules() -> None:
    summary = run_in_processes(FIRST_SEED, SCHEDULES)
    assert summary.schedules == SCHEDULES
    # The schedules are worth something: every fault befell many, and most writers still got their commits through.
    assert all(count > SCHEDULES / 100 for count in summary.faults.values()), summary.faults
    assert len(summary.faults) == 9
    told = summary.told
    assert told["committed"] > 0.6 * told.total(), told
    assert min(told["unknown"], told["crashed"], told["not committed"]) > SCHEDULES / 100, told
    assert told.total() > 0.95 * SCHEDULES * WRITERS * COMMITS


def test_a_seed_replays() -> None:
    def log_of(seed: int) -> dict[str, tuple[bytes, int]]:
        workers = Workers(WRITERS)
        with quick_core():
            world = World(seed, workers).run()
        workers.stop()
        return world.disk.files

    assert log_of(11) == log_of(11)
    assert log_of(11) != log_of(12)


ENOUGH = 500


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_found(name: str) -> None:
    with MUTANTS[name](), pytest.raises(FailedSchedule, match="python -m simulation"):
        run(range(ENOUGH))


def test_a_token_used_twice_is_found() -> None:
    with pytest.raises(FailedSchedule):
        run(range(ENOUGH), new_token=one_token_for_each_writer)
