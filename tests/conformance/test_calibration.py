"""The calibration: what caught what, what couldn't be run, and what it does to the verdicts."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tablelog.conformance.calibration import CAUGHT, MISSED, NOT_RUN, Calibration, calibrate, weighed
from tablelog.conformance.failures import GuaranteeBrokenError
from tablelog.conformance.model import Check, Context, Finding, Level, Target, Verdict
from tablelog.conformance.mutants import Mutant
from tablelog.logstore import MemoryLogStore


class Good(MemoryLogStore):
    broken = False


class Bad(MemoryLogStore):
    broken = True


def sees(context: Context) -> None:
    if context.make().broken:  # type: ignore[attr-defined]
        raise GuaranteeBrokenError("it is broken")


def blind(_context: Context) -> None:
    pass


def alarms(_context: Context) -> None:
    raise GuaranteeBrokenError("everything is")


SEES, BLIND, ALARMS = (Check(1, run.__name__, 2, "A check.", run) for run in (sees, blind, alarms))


def target(kind: type[MemoryLogStore]) -> Callable[[str], Target]:
    def make(_directory: str) -> Target:
        store = kind()
        return Target(lambda: store, "memory:///table", "a store")

    return make


def mutant(*caught_by: str, make: Callable[[str], Target] | None = None, missing: str | None = None) -> Mutant:
    return Mutant("mutant", "breaks", caught_by, make or target(Bad), lambda: missing)


def calibrated(*mutants: Mutant, checks: tuple[Check, ...] = (SEES, BLIND)) -> Calibration:
    return calibrate(checks, mutants, target(Good), level=Level.QUICK, seed=1)


def test_a_mutant_is_caught_when_every_check_meant_for_it_fails() -> None:
    found = calibrated(mutant("sees"), mutant("sees", "blind"))
    caught, missed = found.mutants
    assert (caught.outcome, caught.missed_by) == (CAUGHT, ())
    assert (missed.outcome, missed.missed_by) == (MISSED, ("blind",))
    assert (found.caught, found.ran, found.holds) == (1, 2, False)


def test_a_calibration_that_catches_all_holds() -> None:
    found = calibrated(mutant("sees"))
    assert found.holds
    assert [finding.verdict for finding in found.control] == [Verdict.PASS, Verdict.PASS]


def explodes(_directory: str) -> Target:
    raise OSError("the server doesn't start")


@pytest.mark.parametrize(
    ("impossible", "reason"),
    [
        (mutant("sees", missing="moto isn't installed"), "moto isn't installed"),
        (mutant("sees", make=explodes), "the server doesn't start"),
        (mutant("another_check"), "weren't selected"),
    ],
)
def test_what_cannot_be_run_is_said_and_counts_for_nothing(impossible: Mutant, reason: str) -> None:
    found = calibrated(impossible)
    assert found.mutants[0].outcome == NOT_RUN
    assert reason in found.mutants[0].reason
    assert found.ran == 0
    assert not found.holds, "a suite that was tried out on nothing isn't known to see"


def test_a_suite_that_fails_a_correct_store_does_not_hold() -> None:
    found = calibrated(mutant("sees"), checks=(SEES, ALARMS))
    assert found.control_failed == ("alarms",)
    assert not found.holds


def test_a_pass_of_a_blind_check_and_a_fail_of_an_alarmist_are_not_established() -> None:
    calibration = calibrated(mutant("sees", "blind"), checks=(SEES, BLIND, ALARMS))

    def finding(check: Check, verdict: Verdict) -> Finding:
        return Finding(check, verdict, "two won", 0.0, {}, ())

    before = (finding(SEES, Verdict.PASS), finding(BLIND, Verdict.PASS), finding(ALARMS, Verdict.FAIL))
    sees_it, blind_one, alarmist = weighed(before, calibration)
    assert sees_it == before[0]
    assert blind_one.verdict is Verdict.NOT_ESTABLISHED
    assert "mutant" in blind_one.message
    assert alarmist.verdict is Verdict.NOT_ESTABLISHED
    assert "two won" in alarmist.message
    found_all_the_same = replace(before[1], verdict=Verdict.FAIL)
    assert weighed([found_all_the_same], calibration) == (found_all_the_same,)
