"""The report of a run: what was tested, the findings, and the command to repeat it; conversion to and from JSON."""

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from tablelog.logstore import LogStore

from ..calibration import Calibration, MutantResult
from ..model import Check, Context, Finding, Level, Verdict

FORMAT = "tablelog-conformance/1"

GUARANTEES = {
    1: ("Atomic visibility", "a reader sees the complete file or no file"),
    2: ("Mutual exclusion", "exactly one of several writers of a new file wins; the others get FileExistsError"),
    3: ("Consistent listing", "every client's listing shows each completed write immediately, in byte order"),
    4: ("An honest answer", "a write is won, lost or unknown; a write that may have been applied isn't sent again"),
    0: ("The rest of the contract", "overwrites, deletes, names, pickling, forks and declarations"),
}
"""The guarantees of `LogStore` in the order of a report, for readers who don't know the code."""

EXIT_CODES = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.NOT_ESTABLISHED: 3}


@dataclass(frozen=True)
class Report:
    """One run. `root` and `replay` contain no secret; `started` is ISO 8601 in UTC, `seconds` is the total time.

    `not_asked` names the checks that aren't in this level, `leftovers` the paths that couldn't be cleaned up.
    """

    what: str
    root: str
    declared: Mapping[str, Any]
    versions: Mapping[str, str]
    level: Level
    seed: int
    started: str
    seconds: float
    findings: tuple[Finding, ...]
    not_asked: tuple[str, ...]
    leftovers: tuple[str, ...]
    calibration: Calibration | None
    replay: str

    @property
    def verdict(self) -> Verdict:
        """FAIL if anything failed, else NOT ESTABLISHED if anything wasn't (including the calibration), else PASS."""
        worst = worst_of(finding.verdict for finding in self.findings) if self.findings else Verdict.PASS
        if worst is Verdict.PASS and self.calibration is not None and not self.calibration.holds:
            return Verdict.NOT_ESTABLISHED
        return worst

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return EXIT_CODES[self.verdict]

    @property
    def obstacle(self) -> str:
        """The reason why no check was run; empty if any was."""
        reasons = {finding.message for finding in self.findings}
        ran = any(finding.seconds or finding.evidence or finding.verdict is Verdict.PASS for finding in self.findings)
        return reasons.pop() if len(self.findings) > 1 and len(reasons) == 1 and not ran else ""

    def of(self, guarantee: int) -> tuple[Finding, ...]:
        """The findings about one guarantee."""
        return tuple(finding for finding in self.findings if finding.check.guarantee == guarantee)

    def count(self, verdict: Verdict) -> int:
        """The number of findings with this verdict."""
        return sum(finding.verdict is verdict for finding in self.findings)

    def slim(self) -> "Report":
        """The parts that the matrix of the documentation needs: no evidence, no timelines, nothing of the machine."""
        findings = tuple(
            replace(
                finding, evidence={}, timeline=(), seconds=0.0, message=finding.message.replace(self.root or "…", "…")
            )
            for finding in self.findings
        )
        calibration = self.calibration and replace(
            self.calibration,
            mutants=tuple(
                replace(mutant, what="", caught_by=(), missed_by=(), reason="", seconds=0.0)
                for mutant in self.calibration.mutants
            ),
            control=(),
        )
        versions = {name: value for name, value in self.versions.items() if name != "system"}
        return replace(
            self, root="", versions=versions, findings=findings, leftovers=(), calibration=calibration, replay=""
        )


def worst_of(verdicts: Any) -> Verdict:
    """FAIL before NOT ESTABLISHED before PASS; NOT ESTABLISHED if there are none."""
    present = set(verdicts)
    for verdict in (Verdict.FAIL, Verdict.NOT_ESTABLISHED):
        if verdict in present:
            return verdict
    return Verdict.PASS if present else Verdict.NOT_ESTABLISHED


def declared_by(store: LogStore) -> dict[str, Any]:
    """The declarations of a store."""
    kind = type(store)
    return {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        **{name: getattr(store, name, None) for name in ("exclusion", "partial_writes_visible", "atomic_overwrite")},
    }


def versions() -> dict[str, str]:
    """The versions of tablelog, Python and the operating system."""
    return {"tablelog": version("tablelog"), "python": platform.python_version(), "system": platform.platform()}


def to_json(report: Report) -> str:
    """`report` as JSON; `from_json` is the inverse."""
    return json.dumps(
        {
            "format": FORMAT,
            "what": report.what,
            "root": report.root,
            "verdict": str(report.verdict),
            "level": report.level.name.lower(),
            "seed": report.seed,
            "started": report.started,
            "seconds": round(report.seconds, 3),
            "declared": report.declared,
            "versions": report.versions,
            "findings": [_finding_to_json(finding) for finding in report.findings],
            "not_asked": report.not_asked,
            "leftovers": report.leftovers,
            "calibration": None if report.calibration is None else _calibration_to_json(report.calibration),
            "replay": report.replay,
        },
        indent=1,
        ensure_ascii=False,
        default=str,
    )


def from_json(text: str) -> Report:
    """Parse a report from `to_json`; raises `ValueError` for other data or another format version."""
    data = json.loads(text)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(f"not a report of the format {FORMAT}")
    calibration = data["calibration"]
    return Report(
        what=data["what"],
        root=data["root"],
        declared=data["declared"],
        versions=data["versions"],
        level=Level[data["level"].upper()],
        seed=data["seed"],
        started=data["started"],
        seconds=data["seconds"],
        findings=tuple(_finding_from_json(finding) for finding in data["findings"]),
        not_asked=tuple(data["not_asked"]),
        leftovers=tuple(data["leftovers"]),
        calibration=None if calibration is None else _calibration_from_json(calibration),
        replay=data["replay"],
    )


def _finding_to_json(finding: Finding) -> dict[str, Any]:
    check = finding.check
    return {
        "number": check.number,
        "name": check.name,
        "guarantee": check.guarantee,
        "summary": check.summary,
        "verdict": str(finding.verdict),
        "message": finding.message,
        "seconds": round(finding.seconds, 3),
        "evidence": finding.evidence,
        "timeline": finding.timeline,
    }


def _finding_from_json(data: dict[str, Any]) -> Finding:
    check = Check(data["number"], data["name"], data["guarantee"], data["summary"], _not_to_be_run)
    return Finding(
        check,
        Verdict(data["verdict"]),
        data["message"],
        data["seconds"],
        data["evidence"],
        tuple(data["timeline"]),
    )


def _not_to_be_run(_context: Context) -> None:
    raise NotImplementedError("a check from a report can't be run")


def _calibration_to_json(calibration: Calibration) -> dict[str, Any]:
    return {
        "mutants": [vars(mutant) for mutant in calibration.mutants],
        "control": [_finding_to_json(finding) for finding in calibration.control],
        "seconds": round(calibration.seconds, 3),
    }


def _calibration_from_json(data: dict[str, Any]) -> Calibration:
    return Calibration(
        mutants=tuple(_mutant_from_json(mutant) for mutant in data["mutants"]),
        control=tuple(_finding_from_json(finding) for finding in data["control"]),
        seconds=data["seconds"],
    )


def _mutant_from_json(data: dict[str, Any]) -> MutantResult:
    lists = {name: tuple(data[name]) for name in ("caught_by", "missed_by")}
    fields: dict[str, Any] = {**data, **lists}
    return MutantResult(**fields)
