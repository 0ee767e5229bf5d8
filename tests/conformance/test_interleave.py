"""Interleavings are forced, not waited for."""

import itertools
import threading
from functools import partial

import pytest

from support.clocks import ManualClock
from tablelog.conformance.harness.interleave import all_interleavings, count_steps, interleave, run_with
from tablelog.logstore import MemoryLogStore


def test_a_call_is_held_before_each_of_its_steps() -> None:
    """`between` sees exactly what the held call has done by then."""
    done: dict[int, list[int]] = {}

    def held(case: int) -> None:
        done[case] = []
        done[case].append(1)
        done[case].append(2)

    seen = [len(case.between.value) for case in all_interleavings(held, lambda case: list(done.get(case, ())))]
    assert sorted(set(seen)) == [0, 1, 2]
    assert seen == sorted(seen)
    assert len(seen) == count_steps(partial(held, -1))


def test_a_long_call_is_held_at_steps_that_are_evenly_spread() -> None:
    def held(_case: int) -> None:
        for _ in range(1000):
            pass

    cases = list(all_interleavings(held, lambda _case: None, max_cases=20))
    assert 15 <= len(cases) <= 21
    gaps = {later.step - earlier.step for earlier, later in itertools.pairwise(cases)}
    assert gaps == {1 + cases[0].steps // 20}


def test_a_lock_ends_the_hold() -> None:
    """A correct store with a lock passes: the other call waits and is served afterwards."""
    store = MemoryLogStore()
    store.write("memory:///t/0", b"")
    waited = [
        interleave(
            lambda n=step: store.write(f"memory:///t/a{n}", b"1"),
            lambda n=step: store.write(f"memory:///t/a{n}", b"2"),
            step,
            0.02,
        )
        for step in range(count_steps(lambda: store.write("memory:///t/x", b"1")))
    ]
    assert any(case.between_waited for case in waited)
    assert all((case.held.error is None) != (case.between.error is None) for case in waited)


def test_a_store_that_starts_threads_is_never_held_with_the_lock_of_all_threads() -> None:
    """`between` starts a thread too, and each start takes one lock of the interpreter's: it never waits for it."""

    def works_in_a_thread(_case: int) -> None:
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()

    cases = list(all_interleavings(works_in_a_thread, works_in_a_thread))
    assert len(cases) >= 3
    assert not any(case.between_waited for case in cases)


def test_a_slow_call_is_held_at_fewer_steps_from_the_first_to_the_last() -> None:
    clock = ManualClock()

    def held(_case: int) -> None:
        for _ in range(100):
            pass
        clock.time += 0.02

    cases = list(all_interleavings(held, lambda _case: None, seconds=0.4, clock=clock))
    assert 3 < len(cases) < 50
    assert cases[0].step == 0
    assert cases[-1].step > cases[-1].steps / 2


@pytest.mark.parametrize(("longest", "least", "most"), [(100.0, 7, 9), (2.5, 2, 3)])
def test_calls_that_are_slow_only_when_they_compete_get_more_time(longest: float, least: int, most: int) -> None:
    clock = ManualClock()

    def held(_case: int) -> None:
        for _ in range(100):
            pass

    def between(case: int) -> None:
        clock.time += 1.0 if case < 10**6 else 0.01

    cases = list(all_interleavings(held, between, seconds=0.4, fewest=8, longest=longest, clock=clock))
    assert least <= len(cases) <= most
    assert longest < 100 or cases[-1].step > cases[-1].steps / 2


def test_what_happened_is_told_step_by_step() -> None:
    steps: list[str] = []

    def fail() -> None:
        raise FileExistsError("taken")

    case = interleave(lambda: steps.append("a"), fail, 1)
    assert case.timeline[-3].startswith("first: is stopped before")
    assert case.timeline[-2] == "second: runs and raises FileExistsError('taken')"
    assert case.timeline[-1] == "first: continues and returns"


def test_something_is_done_before_a_step_in_the_same_thread() -> None:
    seen: list[int] = []
    done: list[int] = []

    def call() -> str:
        done.append(1)
        done.append(2)
        return "end"

    steps = count_steps(call)
    done.clear()
    assert run_with(call, steps - 1, lambda _where: seen.append(len(done))).value == "end"
    assert seen == [2]
    assert run_with(call, 10 * steps, lambda _where: seen.append(-1)).value == "end"
    assert seen == [2]
