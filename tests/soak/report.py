"""The report of a soak as values and as Markdown."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from soak.journal import Journals
from soak.resources import Verdict

OUTCOMES = ("acknowledged", "refused", "unknown", "failed", "killed")


@dataclass(frozen=True)
class Report:
    """`operations`: kind -> outcome -> number; `counts`: place -> what -> number."""

    seed: int
    seconds: float
    retention_seconds: int
    kills: Mapping[str, int]
    counts: Mapping[str, Mapping[str, int]]
    operations: Mapping[str, Mapping[str, int]]
    resources: Mapping[str, Verdict]
    problems: list[str]


def tallied(journals: Journals) -> dict[str, dict[str, int]]:
    """How often each kind of operation had each outcome."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for intent in journals.intents.values():
        found[intent.kind][intent.outcome or "killed"] += 1
    return {kind: dict(found[kind]) for kind in sorted(found)}


def markdown(report: Report, target: str) -> str:
    kills = ", ".join(f"{name}: {number}" for name, number in report.kills.items())
    lines = [
        f"# Soak: {target}, {report.seconds:.0f} s, seed {report.seed}",
        "",
        f"Retention of removed files: {report.retention_seconds} s. Kills by SIGKILL: {kills}.",
        "",
        "| operation | " + " | ".join(OUTCOMES) + " |",
        "|---" * (len(OUTCOMES) + 1) + "|",
    ]
    for kind, outcomes in report.operations.items():
        lines.append(f"| {kind} | " + " | ".join(str(outcomes.get(name, 0)) for name in OUTCOMES) + " |")
    names = list(next(iter(report.counts.values()), {}))
    lines += ["", "| place | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for place, counts in report.counts.items():
        lines.append(f"| {place} | " + " | ".join(str(counts[name]) for name in names) + " |")
    lines += ["", "| process | memory early, MiB | late | descriptors early | late |", "|---|---|---|---|---|"]
    for what, judged in report.resources.items():
        (memory, later), (open_, open_later) = judged.memory, judged.descriptors
        lines.append(f"| {what} | {memory:.0f} | {later:.0f} | {open_:.0f} | {open_later:.0f} |")
    lines += ["", "No problem was found." if not report.problems else f"{len(report.problems)} problems:", ""]
    return "\n".join(lines + [f"- {problem}" for problem in report.problems]) + "\n"
