"""A check whose time ends early is NOT ESTABLISHED, or has seen the least that its PASS rests on."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tablelog.conformance import CHECKS, Check, NotEstablishedError, try_out
from tablelog.conformance.checks import suite
from tablelog.conformance.checks.crashes import spread_out
from tablelog.conformance.checks.suite import interleavings, registered, varied_version
from tablelog.conformance.checks.trial import WON, Overlap, Try
from tablelog.conformance.harness.interleave import Interleaving
from tablelog.conformance.model import Context, Level, Target
from tablelog.logstore import LocalLogStore, MemoryLogStore

LASTING = [check for check in CHECKS if check.lasts]
BY_NAME = {check.name: check for check in CHECKS}
LEAST = {
    "steps held at": 5,
    "steps killed at": 5,
    "steps stopped at": 5,
    "rounds": 2,
    "commits": 8,
    "listings meanwhile": 3,
    "files": 1001,
    "largest file": 9 << 20,
    "bytes": 9 << 20,
}
"""What a PASS of any check rests on at least, by what its evidence calls it."""


class Slow(MemoryLogStore):
    """Each write takes a while: time enough for few of them."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        time.sleep(0.02)
        super().write(path, data, overwrite=overwrite)


def passes(check: Check, store: MemoryLogStore | type[LocalLogStore], root: str) -> Context | None:
    """What the check saw when its time was over before it began; None where it isn't established."""
    factory = store if isinstance(store, type) else lambda: store
    try:
        return try_out(check, factory, root, seconds=0)
    except NotEstablishedError:
        return None


def too_little(found: Context) -> dict[str, int]:
    """The parts of the evidence that are less than a PASS needs."""
    evidence = found.evidence
    few_steps = evidence.get("steps in the call", 0) < LEAST["steps held at"]
    return {
        name: evidence[name]
        for name, least in LEAST.items()
        if name in evidence and evidence[name] < least and not (few_steps and name.startswith("steps"))
    }


@pytest.mark.parametrize("check", LASTING, ids=lambda check: check.name)
@pytest.mark.thorough
def test_a_check_that_saw_too_little_does_not_pass(check: Check) -> None:
    found = passes(check, Slow(), "memory://bucket/table")
    assert found is None or too_little(found) == {}


@pytest.mark.parametrize("name", ["a_killed_writer_leaves_all_or_nothing", "a_paused_writer_goes_on_safely"])
def test_a_writer_that_was_stopped_too_seldom_proves_nothing(name: str, tmp_path: Path) -> None:
    found = passes(BY_NAME[name], LocalLogStore, tmp_path.as_uri())
    assert found is None or too_little(found) == {}


def context(seconds: float = 60) -> Context:
    target = Target(MemoryLogStore, "memory://bucket/table", "")
    return Context(target, target.root, Level.QUICK, 0, time.monotonic() + seconds)


def test_steps_only_at_the_beginning_of_a_call_are_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    real = suite.all_interleavings

    def begun(*arguments: Any, **keywords: Any) -> Iterator[Interleaving]:
        """The first 20 cases, as where no time is left for more."""
        return (replace(case, out_of_time=case.step == 19) for case in islice(real(*arguments, **keywords), 20))

    monkeypatch.setattr(suite, "all_interleavings", begun)

    def long_call(_case: int) -> None:
        for _ in range(100):
            pass

    with pytest.raises(NotEstablishedError, match="only those up to number"):
        list(interleavings(context(), long_call, lambda _case: None))


def test_a_race_in_which_nobody_met_is_not_established() -> None:
    overlap = Overlap()
    for _ in range(5):
        overlap.add([Try(0, WON, 0, 1), Try(1, WON, 2, 3)])
    with pytest.raises(NotEstablishedError, match="no race"):
        overlap.saw_enough(3)
    with pytest.raises(NotEstablishedError, match="5 rounds were run, and at least 6"):
        overlap.saw_enough(6)


def test_a_part_of_the_steps_is_spread_over_all_of_them() -> None:
    steps = range(0, 300, 3)
    order = spread_out(steps)
    assert sorted(order) == list(steps)
    for part in (4, 8, 16):
        begun = [*sorted(order[:part]), 300]
        assert max(later - earlier for earlier, later in itertools.pairwise(begun)) <= 2 * 300 // part + 3


def test_versions_of_all_sizes_take_part_at_any_distance_of_rounds() -> None:
    for distance in range(1, 13):
        versions = [varied_version(number) for number in range(0, 60 * distance, distance)]
        assert len(set(versions)) == len(versions)
        for low, high in ((0, 10**4), (10**4, 10**6), (2**31, 2**32), (10**10, 10**11), (2**53, 2**54), (2**62, 2**63)):
            assert any(low <= version < high for version in versions)


def test_two_checks_of_one_name_are_refused() -> None:
    before = list(registered)
    with pytest.raises(ValueError, match="two checks are called absent_is_not_found"):
        suite.check(1, 1)(BY_NAME["absent_is_not_found"].run)
    assert registered == before
    assert len({check.name for check in CHECKS}) == len(CHECKS)
