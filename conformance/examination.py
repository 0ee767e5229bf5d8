"""One examination of a store: the checks, the calibration, and the report, from which secrets are removed."""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from tablelog.logstore.common.uri import shown

from .calibration import calibrate, weighed
from .checks import CHECKS
from .model import Level
from .mutants import MUTANTS, POSITIVE_CONTROL
from .reports.report import Report, declared_by, versions
from .runner import Progress, Run, chosen, run
from .secrecy import Scrubber, replay_command
from .targets import Asked


def examine(
    asked: Asked | None,
    *,
    level: Level,
    seed: int,
    only: Sequence[str] = (),
    calibrated: bool = False,
    patience: float = 1.0,
    checking: Progress | None = None,
    calibrating: Progress | None = None,
) -> tuple[Report, tuple[str, ...]]:
    """The report on a target, and the names of the checks that hang and were abandoned.

    The time limits of the level, for each check and for all of them, are multiplied by `patience`. Without a target,
    only the suite itself is tested. Raises `UnknownCheckError` for an unknown name in `only`.
    """
    began, started = datetime.now(UTC), time.monotonic()
    checks = chosen(CHECKS, level, only)
    run_result, declared = Run((), (), ()), {}
    if asked is not None:
        run_result = run(asked.target, checks, level=level, seed=seed, progress=checking, patience=patience)
        declared = declared_by(asked.target.factory())
    calibration = None
    if calibrated:
        mutants = [mutant for mutant in MUTANTS if not only or {check.name for check in checks} & {*mutant.caught_by}]
        calibration = calibrate(
            checks, mutants, POSITIVE_CONTROL, level=level, seed=seed, progress=calibrating, patience=patience
        )
    findings = run_result.findings if calibration is None else weighed(run_result.findings, calibration)
    scrub = Scrubber(asked.secrets if asked else ())
    findings = tuple(
        replace(
            finding,
            message=scrub(finding.message),
            evidence=scrub(finding.evidence),
            timeline=scrub(finding.timeline),
        )
        for finding in findings
    )
    report = Report(
        what=scrub(asked.target.what) if asked else "The suite itself",
        root=shown(asked.target.root) if asked else "",
        declared=declared,
        versions=versions(),
        level=level,
        seed=seed,
        started=began.isoformat(timespec="seconds"),
        seconds=time.monotonic() - started,
        findings=findings,
        not_asked=() if only else tuple(check.name for check in CHECKS if check.level.value > level.value),
        leftovers=tuple(scrub(shown(path)) for path in run_result.leftovers),
        calibration=calibration,
        replay=_replay(asked, level, seed, only, calibrated, patience),
    )
    return report, run_result.stuck


def _replay(
    asked: Asked | None, level: Level, seed: int, only: Sequence[str], calibrated: bool, patience: float
) -> str:
    words = ["tablelog", "conformance", *(asked.words if asked else ()), "--level", level.name.lower()]
    words += ["--seed", str(seed), *(word for name in only for word in ("--only", name))]
    words += ["--patience", f"{patience:g}"] if patience != 1 else []
    return replay_command([*words, *["--calibrate"] * calibrated])
