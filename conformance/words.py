"""The texts of a report: the same in the terminal, in JUnit and on the page."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .model import Finding, Verdict
from .titles import TITLES

_COUNTED = frozenset({"cases", "commits", "files", "processes", "readers", "threads", "writes"})
_STEP = re.compile(
    r"\s*(?:(?P<at>\+?[\d.,]+ ?(?:µs|us|ms|s)) +)?(?:(?P<numbered>(?:writer|reader) \d+):? |(?P<actor>[^:|/]{1,40}): )"
    r"(?P<what>.*)",
    re.S,
)


def evidence(observed: Mapping[str, Any]) -> str:
    """The evidence of a check as text: `40 rounds x 8 writers; rounds that overlapped: 38`. The seed is left out."""
    rest = {key.replace("_", " "): value for key, value in observed.items() if key != "seed"}
    counted = [_counted(rest.pop(key), key) for key in ("rounds", "writers") if key in rest]
    parts = [" x ".join(counted)] if counted else []
    parts += [
        _counted(value, key) if key in _COUNTED and _is_count(value) else f"{key}: {_value(value)}"
        for key, value in rest.items()
    ]
    return "; ".join(parts)


def _counted(count: Any, what: str) -> str:
    return f"{_value(count)} {what.removesuffix('s') if count == 1 else what}"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_value(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_value(item) for item in value)
    return str(value)


def races(findings: Iterable[Finding]) -> list[str]:
    """How much the writers of a run overlapped, one line for each race."""
    return [
        f"{title(finding.check.name)}: {evidence(finding.evidence)}"
        for finding in findings
        if finding.verdict is Verdict.PASS and any("overlap" in name for name in finding.evidence)
    ]


def title(check_name: str) -> str:
    """The title of a check by its id. A report of another version may have other checks: their ids become words."""
    words = check_name.replace("_", " ")
    return TITLES.get(check_name) or words[:1].upper() + words[1:]


def step(line: str) -> tuple[str, str, str]:
    """Returns (time, actor, event) of one line of a timeline; time and actor may be empty."""
    match = _STEP.fullmatch(line)
    if match is None:
        return "", "", line
    return match["at"] or "", (match["actor"] or match["numbered"]).strip(), match["what"]


def sentence(counts: Mapping[Verdict, int], asked: int) -> str:
    """The result of a run in one line."""
    if not asked:
        return "no check was run"
    parts = [f"{counts[Verdict.PASS]} of {asked} checks passed"]
    if counts[Verdict.FAIL]:
        parts.append(f"{counts[Verdict.FAIL]} failed")
    if counts[Verdict.NOT_ESTABLISHED]:
        parts.append(f"{counts[Verdict.NOT_ESTABLISHED]} not established")
    return ", ".join(parts)
