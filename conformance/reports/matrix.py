"""The matrix in the documentation: the results for each store, from the reports in a directory.

`python -m tablelog.conformance.reports.matrix DOC.md REPORTS` writes it between the two markers in `DOC.md`; `REPORTS`
has a report (JSON, slim or whole) for each row, and may have `not-run.json`: `[{"what": ..., "why": ...}]`, for stores
that were never tested.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from .. import words
from ..model import Finding, Verdict
from .report import GUARANTEES, Report, from_json, worst_of

BEGIN, END = "<!-- matrix: begin (generated, see tablelog.conformance.reports.matrix) -->", "<!-- matrix: end -->"
NOT_RUN = "not-run.json"


def matrix(reports: Iterable[Report], not_run: Iterable[tuple[str, str]] = ()) -> str:
    """The table in Markdown, a row for each report, followed by the reasons of all NOT ESTABLISHED and FAIL.

    `not_run` has (what, why) of stores that were never tested.
    """
    reports = sorted(reports, key=lambda report: report.what)
    titles = [title for title, _ in GUARANTEES.values()]
    lines = [_row(["store", "run", *titles, "broken stores caught"]), _row(["---"] * (len(titles) + 3))]
    lines += [_row(_cells(report)) for report in reports]
    lines += [_row([what, "never", *["NOT ESTABLISHED"] * len(titles), "-"]) for what, _ in not_run]
    notes = [note for report in reports for note in _notes(report)]
    notes += [f"- **{_plain(what)}**, not run: {_plain(why)}" for what, why in not_run]
    if notes:
        lines += ["", "What failed or wasn't established, and why:", "", *notes]
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cells(report: Report) -> list[str]:
    calibration = report.calibration
    caught = f"{calibration.caught} of {calibration.ran}" if calibration else "not run"
    run = f"{report.started[:10]}, {report.level.name.lower()}"
    return [_plain(report.what), run, *(_cell(report.of(guarantee)) for guarantee in GUARANTEES), caught]


def _cell(findings: Sequence[Finding]) -> str:
    if not findings:
        return "NOT ESTABLISHED"
    verdict = worst_of(finding.verdict for finding in findings)
    passed = sum(finding.verdict is Verdict.PASS for finding in findings)
    return f"{verdict} ({passed} of {len(findings)})"


def _notes(report: Report) -> Iterable[str]:
    """A line for each reason, with its checks; a single line if no check was run."""
    if report.obstacle:
        yield f"- **{_plain(report.what)}**, {report.verdict}: no check was run: {_plain(report.obstacle)}"
        return
    by_reason: dict[tuple[Verdict, str], list[str]] = {}
    for finding in report.findings:
        if finding.verdict is not Verdict.PASS:
            by_reason.setdefault((finding.verdict, finding.message), []).append(words.title(finding.check.name))
    for (verdict, reason), titles in by_reason.items():
        yield f"- **{_plain(report.what)}**, {verdict}: *{'; '.join(map(_plain, titles))}*: {_plain(reason)}"


def _plain(text: str) -> str:
    """`text` without characters that Markdown would read as a table, a tag or a list."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def matrix_of(directory: Path) -> str:
    """`matrix` of the reports in `directory`."""
    reports = [
        from_json(path.read_text(encoding="utf-8")) for path in sorted(directory.glob("*.json")) if path.name != NOT_RUN
    ]
    not_run = directory / NOT_RUN
    never = json.loads(not_run.read_text(encoding="utf-8")) if not_run.exists() else []
    return matrix(reports, [(entry["what"], entry["why"]) for entry in never])


def with_matrix(document: str, table: str) -> str:
    """`document` with `table` between its markers; raises `ValueError` if it has no markers."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the document has no lines {BEGIN} and {END}")
    return f"{before}{begin}\n\n{table}\n{end}{after}"


def main(document: str, directory: str) -> None:
    path = Path(document)
    path.write_text(with_matrix(path.read_text(encoding="utf-8"), matrix_of(Path(directory))), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m tablelog.conformance.reports.matrix DOC.md REPORTS")
    main(*sys.argv[1:])
