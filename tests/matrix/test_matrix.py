"""The selection of cells, the choice of Pythons, and the table of docs/tested.md."""

import platform
from dataclasses import replace
from pathlib import Path

import pytest

from matrix import environments, report
from matrix.cells import CELLS, PREVIEW, PYTHONS, SMOKE, SPARKS, Cell, pairs, possible, selected
from matrix.runs import FAILED, NOT_RUN, PASSED, Result, _counts

README = Path(__file__).resolve().parents[2] / "README.md"
PAGE = README.parent / "docs" / "tested.md"


def test_every_pair_of_values_is_in_a_cell() -> None:
    assert pairs(possible()) - pairs(CELLS) == set()
    assert set(CELLS) <= set(possible())
    assert len({cell.name for cell in CELLS}) == len(CELLS)


def test_no_cell_is_superfluous() -> None:
    for cell in CELLS:
        others = pairs(other for other in CELLS if other != cell)
        assert pairs(possible()) - others, cell.name


def test_names_and_settings_of_a_cell() -> None:
    cell = Cell("3.12", "4.1", "connect", "America/New_York", ansi=False, case_sensitive=True)
    assert cell.name == "3.12-4.1-connect-New_York-no_ANSI-caseSensitive"
    assert cell.settings == {
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.catalogImplementation": "in-memory",
    }
    assert cell.session == "Connect, New York, no ANSI, caseSensitive"
    assert Cell("3.13", "4.3").name == "3.13-4.3-classic"
    assert Cell("3.13", "4.3").session == "classic, Spark's defaults"


def test_cells_are_selected_by_patterns() -> None:
    assert selected([]) == list(CELLS)
    assert {cell.python for cell in selected(["3.12-*"])} == {"3.12"}
    assert [cell.hive for cell in selected(["*-Hive"])] == [True] * 5
    assert selected([SMOKE[1].name]) == [SMOKE[1]]
    assert selected([PREVIEW]) == []


def test_a_python_that_is_not_here_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "python3.12"
    program.write_text("#!/bin/sh\necho 3.11\n")  # another version by this name
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PYTHON_3_12", raising=False)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    with pytest.raises(environments.NotHereError, match=r"no python3\.12 \(set PYTHON_3_12\)"):
        environments.python_of("3.12")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("#!/bin/sh\necho 3.12\n")
    elsewhere.chmod(0o755)
    monkeypatch.setenv("PYTHON_3_12", str(elsewhere))
    assert environments.python_of("3.12") == str(elsewhere)


def test_what_did_not_pass_is_counted(tmp_path: Path) -> None:
    xml = tmp_path / "x.xml"
    xml.write_text(
        '<testsuites><testsuite><testcase classname="a" name="fine"/>'
        '<testcase classname="a" name="wrong"><failure>no</failure></testcase>'
        '<testcase classname="a" name="left"><skipped/></testcase></testsuite></testsuites>'
    )
    assert _counts(xml) == (1, ("a.wrong", "a.left"))
    assert _counts(tmp_path / "absent.xml") == (0, ())


def test_the_readme_says_of_each_python_and_spark_what_was_run_when() -> None:
    results = [
        Result("a", "3.13.0", "4.3.0", "classic, Hive", PASSED, "9 passed", on="2026-11-23"),
        Result("b", "3.13.0", "4.3.0", "classic, UTC", PASSED, "9 passed", on="2026-11-21"),
        Result("c", "3.13.0", "4.3.0", "Connect, UTC", FAILED, "1 failed", on="2026-11-22"),
        Result("d", "3.12", "4.10", "Connect, UTC", NOT_RUN, "no python3.12", on=""),
    ]
    assert report.overview(results).splitlines() == [
        "|  | PySpark 4.3 | PySpark 4.10 |",
        "| --- | --- | --- |",
        "| Python 3.12 |  | Connect: not run |",
        "| Python 3.13 | classic: passed 2026-11-21<br>Connect: failed 2026-11-22 |  |",
    ]


def test_the_table_says_what_was_run_and_what_was_not(tmp_path: Path) -> None:
    results = [
        Result("a", "3.13.0", "4.3.0", "classic, Hive", PASSED, "9 passed", 9, on="2026-11-23"),
        Result("b", "3.12", "4.1", "Connect, Kolkata", NOT_RUN, "no python3.12 (set PYTHON_3_12)", on="2026-11-23"),
        Result("c", "3.11.7", "4.2.1", "Connect, no ANSI", FAILED, "1 failed", 8, ("t.wrong",), on="2026-11-23"),
    ]
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.into_page(page, report.markdown(results))
    assert page.read_text().startswith(f"before\n{report.BEGIN}\n{platform.system()} ")
    assert page.read_text().endswith(
        "| Python | Spark | session | result | run on |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| 3.13.0 | 4.3.0 | classic, Hive | 9 passed | 2026-11-23 |\n"
        "| 3.12 | 4.1 | Connect, Kolkata | not run: no python3.12 (set PYTHON_3_12) | 2026-11-23 |\n"
        "| 3.11.7 | 4.2.1 | Connect, no ANSI | failed: 1 failed | 2026-11-23 |\n"
        f"{report.END}\nafter\n"
    )
    assert report.text(results).splitlines()[-1] == "  c: t.wrong"
    for result in results:
        report.keep(result, tmp_path)
    other = replace(results[0], name="d")
    assert report.newest([*(replace(result, says="") for result in results), other], tmp_path) == [*results, other]
    page.write_text("no markers")
    with pytest.raises(ValueError, match="no markers"):
        report.into_page(page, "")


def minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def test_the_page_has_a_row_for_each_cell() -> None:
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(report.BEGIN)
    table = rest.partition(report.END)[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines() if row.startswith("| ")][2:]
    shown = [(minor(python), minor(spark), session) for python, spark, session, *_ in rows[:-1]]
    assert shown == [(cell.python, cell.spark, cell.session) for cell in CELLS]
    assert "the newest preview on PyPI" in rows[-1][2]


def test_the_readme_has_a_row_for_each_python_and_a_column_for_each_spark() -> None:
    _, _, rest = README.read_text(encoding="utf-8").partition(report.BEGIN)
    head, _, *rows = rest.partition(report.END)[0].strip().splitlines()
    assert head == f"|  | {' | '.join(f'PySpark {spark}' for spark in SPARKS)} |"
    assert [row.split(" | ")[0] for row in rows] == [f"| Python {python}" for python in PYTHONS]
    assert all(cell.strip() for row in rows for cell in row.strip("| ").split("|"))
