"""The matrix of docs/stores.md: what is established, what isn't and why; it is that of the committed reports."""

from dataclasses import replace
from pathlib import Path

import pytest

from support.conformance_reports import ALL_PASSED, OPEN, REPORT
from tablelog.conformance.reports.matrix import BEGIN, END, main, matrix, matrix_of, with_matrix
from tablelog.conformance.reports.report import from_json, to_json

DOCS = Path(__file__).parents[2] / "docs"


def test_a_row_says_how_much_of_each_guarantee_is_established() -> None:
    lines = matrix([REPORT, replace(ALL_PASSED, what="A | B")], [("GCS itself", "nobody has an account")]).splitlines()
    assert lines[0].startswith("| store | run | Atomic visibility | Mutual exclusion |")
    assert lines[2].startswith("| A \\| B | 2026-11-21, standard | PASS (1 of 1) | PASS (1 of 1) | NOT ESTABLISHED |")
    assert "| FAIL (1 of 2) |" in lines[3]
    assert lines[3].endswith("| 1 of 2 |")
    assert lines[4].startswith("| GCS itself | never | NOT ESTABLISHED |")
    assert len({line.replace("\\|", "").count("|") for line in lines[:5]}) == 1


def test_what_failed_or_is_not_established_is_said_once_for_each_reason() -> None:
    twin = replace(OPEN, check=replace(OPEN.check, name="a_write_that_comes_late"))
    notes = [
        line
        for line in matrix([replace(REPORT, findings=(*REPORT.findings, twin))], [("X", "why")]).splitlines()
        if line.startswith("-")
    ]
    assert len(notes) == 3
    assert "FAIL: *One of two writers wins at every step*: 2 of 2 writers" in notes[0]
    assert "*A lost reply is never lost; A write that comes late*: the address of the service" in notes[1]
    assert notes[2] == "- **X**, not run: why"


def test_a_slim_report_makes_the_same_row() -> None:
    slim = to_json(REPORT.slim())
    assert matrix([from_json(slim)]) == matrix([REPORT])
    there = replace(REPORT, findings=(replace(OPEN, message=f"{REPORT.root}/x can't be read"),))
    assert there.slim().findings[0].message == "…/x can't be read"
    assert len(slim) < len(to_json(REPORT))
    assert "writer A" not in slim
    assert REPORT.root not in slim


def test_the_table_goes_between_the_markers(tmp_path: Path) -> None:
    document, reports = tmp_path / "doc.md", tmp_path / "reports"
    reports.mkdir()
    (reports / "one.json").write_text(to_json(REPORT))
    document.write_text(f"before\n{BEGIN}\nwhat was there\n{END}\nafter\n")
    for _ in range(2):
        main(str(document), str(reports))
    said = document.read_text()
    assert said.startswith(f"before\n{BEGIN}\n\n| store |")
    assert said.endswith(f"{END}\nafter\n")
    assert "what was there" not in said
    with pytest.raises(ValueError, match="no lines"):
        with_matrix("no markers", "table")


def test_the_documentation_has_the_matrix_of_the_committed_reports() -> None:
    said = (DOCS / "stores.md").read_text(encoding="utf-8")
    assert with_matrix(said, matrix_of(DOCS / "conformance")) == said, (
        "run `python -m tablelog.conformance.reports.matrix docs/stores.md docs/conformance`"
    )
