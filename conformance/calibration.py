"""Tests the suite itself in this environment: it must catch every broken store, and accept a correct one."""

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from .model import Check, Finding, Level, Target, Verdict
from .mutants import Mutant
from .runner import Progress, run

CAUGHT, MISSED, NOT_RUN = "caught", "missed", "not run"
CONTROL = "positive control"


@dataclass(frozen=True)
class MutantResult:
    """One broken store: `outcome` is caught (every check meant for it failed), missed, or not run for `reason`."""

    name: str
    what: str
    caught_by: tuple[str, ...]
    outcome: str
    missed_by: tuple[str, ...]
    reason: str
    seconds: float


@dataclass(frozen=True)
class Calibration:
    """The broken stores, and the findings on the positive control: a correct store that every check must accept."""

    mutants: tuple[MutantResult, ...]
    control: tuple[Finding, ...]
    seconds: float

    @property
    def ran(self) -> int:
        """The number of broken stores that could be run here."""
        return sum(mutant.outcome != NOT_RUN for mutant in self.mutants)

    @property
    def caught(self) -> int:
        """The number of broken stores that were caught."""
        return sum(mutant.outcome == CAUGHT for mutant in self.mutants)

    @property
    def control_failed(self) -> tuple[str, ...]:
        """The checks that failed the correct store."""
        return tuple(finding.check.name for finding in self.control if finding.verdict is Verdict.FAIL)

    @property
    def holds(self) -> bool:
        """Whether every broken store that ran was caught, and no check failed the correct store."""
        return 0 < self.ran == self.caught and not self.control_failed


def calibrate(
    checks: Sequence[Check],
    mutants: Sequence[Mutant],
    control: Callable[[str], Target],
    *,
    level: Level,
    seed: int,
    progress: Progress | None = None,
    patience: float = 1.0,
) -> Calibration:
    """Run each of `mutants` against the checks meant for it, and all of `checks` against the positive control."""
    started = time.monotonic()
    by_name = {check.name: check for check in checks}
    results = []
    for number, mutant in enumerate(mutants, 1):
        if progress:
            progress.starts(mutant.name, number, len(mutants) + 1)
        meant = [by_name[name] for name in mutant.caught_by if name in by_name]
        result = _tried(mutant, meant, level, seed, patience)
        results.append(result)
        if progress:
            progress.ended(mutant.name, result.outcome, result.seconds)
    if progress:
        progress.starts(CONTROL, len(mutants) + 1, len(mutants) + 1)
    began = time.monotonic()
    with _directory() as directory:
        selected = [check for check in checks if check.level.value <= level.value]
        control_findings = run(control(directory), selected, level=level, seed=seed, patience=patience).findings
    calibration = Calibration(tuple(results), control_findings, time.monotonic() - started)
    if progress:
        failed = calibration.control_failed
        progress.ended(
            CONTROL, f"failed {', '.join(failed)}" if failed else "failed no check", time.monotonic() - began
        )
    return calibration


def _directory() -> tempfile.TemporaryDirectory[str]:
    """A directory on a disk, where a write takes some time: in memory, concurrent writers hardly ever overlap."""
    return tempfile.TemporaryDirectory(prefix="tablelog-conformance-")


def _tried(mutant: Mutant, meant: Sequence[Check], level: Level, seed: int, patience: float) -> MutantResult:
    result = MutantResult(mutant.name, mutant.what, tuple(mutant.caught_by), NOT_RUN, (), "", 0.0)
    missing = mutant.available() if meant else "the checks that must catch it weren't selected"
    if missing is not None:
        return replace(result, reason=missing)
    started = time.monotonic()
    try:
        with _directory() as directory:
            findings = run(mutant.make_target(directory), meant, level=level, seed=seed, patience=patience).findings
    except Exception as error:  # for example a server that doesn't start: only this mutant can't be run
        return replace(result, reason=f"{type(error).__name__}: {error}", seconds=time.monotonic() - started)
    missed = tuple(finding.check.name for finding in findings if finding.verdict is not Verdict.FAIL)
    reason = "; ".join(f"{f.check.name}: {f.verdict} {f.message}".rstrip() for f in findings if f.check.name in missed)
    return replace(
        result,
        outcome=MISSED if missed else CAUGHT,
        missed_by=missed,
        reason=reason,
        seconds=time.monotonic() - started,
    )


def weighed(findings: Iterable[Finding], calibration: Calibration) -> tuple[Finding, ...]:
    """`findings`, corrected by the calibration.

    The PASS of a check that missed a broken store becomes NOT ESTABLISHED, and so does the FAIL of a check that a
    correct store fails too.
    """
    blind: Mapping[str, str] = {
        name: mutant.name for mutant in calibration.mutants if mutant.outcome == MISSED for name in mutant.missed_by
    }
    return tuple(_weighed(finding, blind, calibration.control_failed) for finding in findings)


def _weighed(finding: Finding, blind: Mapping[str, str], alarmed: Sequence[str]) -> Finding:
    name = finding.check.name
    if finding.verdict is Verdict.PASS and name in blind:
        reason = f"the check passed, but in this environment it doesn't catch the broken store {blind[name]}"
    elif finding.verdict is Verdict.FAIL and name in alarmed:
        reason = f"the check failed, but in this environment a correct store fails it too: {finding.message}"
    else:
        return finding
    return replace(finding, verdict=Verdict.NOT_ESTABLISHED, message=reason)
