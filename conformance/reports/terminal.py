"""The output in a terminal: a progress bar or plain lines during the run, and a summary at the end."""

import contextlib
import os
import shutil
import textwrap
from collections.abc import Iterator
from typing import TextIO

from .. import words
from ..calibration import CAUGHT, MISSED
from ..model import Finding, Verdict
from .report import GUARANTEES, Report, worst_of

_MARKS = {Verdict.PASS: "✓", Verdict.FAIL: "✗", Verdict.NOT_ESTABLISHED: "?"}
_COLOURS = {Verdict.PASS: "32", Verdict.FAIL: "1;31", Verdict.NOT_ESTABLISHED: "33"}
_BAR = 24
_WIDEST, _NARROWEST = 120, 60
_TIMELINE_LINES = 14
_EVIDENCE_LETTERS = 240


class Paint:
    """Colours, if the stream supports them."""

    def __init__(self, stream: TextIO) -> None:
        self.on = stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def __call__(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on else text


class Ticker:
    """Shows the progress of a run: a bar that is redrawn on a terminal, else a line for each result."""

    def __init__(self, stream: TextIO, doing: str) -> None:
        self._stream = stream
        self._bar = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._doing = doing
        self._number = self._total = 0

    def starts(self, name: str, number: int, total: int) -> None:
        self._number, self._total = number, total
        if self._bar:
            full = _BAR * (number - 1) // total
            line = f"{self._doing} {'█' * full}{'░' * (_BAR - full)} {number}/{total} {name}"
            self._write(f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}")

    def ended(self, name: str, result: str, seconds: float) -> None:
        if not self._bar:
            self._write(f"{self._doing} {self._number:>2}/{self._total} {result:<15} {name} ({seconds:.1f} s)\n")
        elif self._number == self._total:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # nobody reads it any more
            self._stream.write(text)
            self._stream.flush()


def summary(report: Report, paint: Paint, width: int) -> str:
    """The whole report for a terminal with `width` columns."""
    width = max(_NARROWEST, min(width, _WIDEST))
    return "\n".join(_lines(report, paint, width)) + "\n"


def _lines(report: Report, paint: Paint, width: int) -> Iterator[str]:
    yield ""
    yield paint(report.what, "1") + (f"  {report.root}" if report.root else "")
    facts = {"exclusion": report.declared.get("exclusion"), "level": report.level.name.lower(), "seed": report.seed}
    yield paint("  ".join(f"{key} {value}" for key, value in facts.items() if value is not None), "2")
    if report.obstacle:
        yield ""
        yield from _wrapped(f"No check was run: {report.obstacle}", "", width, paint, _COLOURS[report.verdict])
    for guarantee, (title, meaning) in GUARANTEES.items():
        findings = report.of(guarantee)
        if not findings or report.obstacle:
            continue
        verdict = worst_of(finding.verdict for finding in findings)
        head = f"{guarantee}. {title}" if guarantee else f"   {title}"
        yield ""
        gap = " " * max(2, width - len(head) - len(verdict))
        yield f"{paint(head, '1')}{gap}{paint(verdict, _COLOURS[verdict])}"
        yield from _wrapped(meaning, "   ", width, paint, "2")
        for finding in findings:
            yield from _finding(finding, paint, width)
    yield from _calibration(report, paint, width)
    yield ""
    if report.not_asked:
        yield from _wrapped(
            f"{len(report.not_asked)} checks belong to a higher --level and weren't run: "
            + ", ".join(report.not_asked),
            "",
            width,
            paint,
            "2",
        )
    for path in report.leftovers:
        yield paint("not deleted: ", "33") + path
    counts = {verdict: report.count(verdict) for verdict in Verdict}
    ending = words.sentence(counts, len(report.findings)) if report.findings else "only the suite itself was tested"
    first, *more = textwrap.wrap(f"{report.verdict}  {ending}, in {report.seconds:.0f} s", width)
    yield first.replace(report.verdict, paint(report.verdict, _COLOURS[report.verdict]), 1)
    yield from more
    yield f"run again: {report.replay}"


def _finding(finding: Finding, paint: Paint, width: int) -> Iterator[str]:
    mark = paint(_MARKS[finding.verdict], _COLOURS[finding.verdict])
    seconds = f"{finding.seconds:.1f} s"
    name = words.title(finding.check.name)
    room = max(1, width - 5 - len(name) - len(seconds))
    yield f"   {mark} {name}{' ' * room}{paint(seconds, '2')}"
    if finding.message:
        colour = _COLOURS[finding.verdict].removeprefix("1;")
        yield from _wrapped(finding.message, "       ", width, paint, colour)
    evidence = words.evidence(finding.evidence)
    if len(evidence) > _EVIDENCE_LETTERS:
        evidence = f"{evidence[:_EVIDENCE_LETTERS]}… (complete in the page and the JSON)"
    yield from _wrapped(evidence, "       ", width, paint, "2")
    if finding.verdict is Verdict.FAIL and finding.timeline:
        for line in finding.timeline[:_TIMELINE_LINES]:
            yield from _wrapped(line, "       │ ", width, paint, "")
        if len(finding.timeline) > _TIMELINE_LINES:
            yield f"       │ ({len(finding.timeline) - _TIMELINE_LINES} more lines in the page and the JSON)"


def _calibration(report: Report, paint: Paint, width: int) -> Iterator[str]:
    calibration = report.calibration
    if calibration is None:
        return
    verdict = Verdict.PASS if calibration.holds else Verdict.NOT_ESTABLISHED
    head = "   The suite itself, in this environment"
    tally = f"{calibration.caught} of {calibration.ran} caught"
    yield ""
    yield f"{paint(head, '1')}{' ' * max(2, width - len(head) - len(tally))}{paint(tally, _COLOURS[verdict])}"
    yield from _wrapped("broken stores that the checks must catch", "   ", width, paint, "2")
    for mutant in calibration.mutants:
        if mutant.outcome == CAUGHT:
            continue
        kind = Verdict.FAIL if mutant.outcome == MISSED else Verdict.NOT_ESTABLISHED
        text = f"{mutant.name}: {mutant.outcome}, {mutant.reason}"
        yield from _wrapped(text, f"   {_MARKS[kind]} ", width, paint, _COLOURS[kind].removeprefix("1;"))
    failed = calibration.control_failed
    control = f"failed {'; '.join(map(words.title, failed))}" if failed else "failed no check"
    yield from _wrapped(f"a correct store {control}", "   ", width, paint, "31" if failed else "2")
    for race in words.races(calibration.control):
        yield from _wrapped(f"on the correct store: {race[:1].lower()}{race[1:]}", "   ", width, paint, "2")


def _wrapped(text: str, indent: str, width: int, paint: Paint, colour: str) -> Iterator[str]:
    later = indent if "│" in indent else " " * len(indent)
    for line in textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=later, break_on_hyphens=False):
        yield paint(line, colour) if colour else line
