"""`tablelog report` as a command."""

import json
import shlex
from pathlib import Path

import pytest

from report.messy_table import messy
from support.arrow_table import ArrowTable
from support.command_line import Run
from tablelog.cli import exit_codes
from tablelog.logstore import LocalLogStore


@pytest.fixture
def table(tmp_path: Path) -> Path:
    messy(LocalLogStore(), str(tmp_path / "events"), versions=25)
    return tmp_path / "events"


def test_it_writes_the_page_and_says_what_to_do(
    table: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run("report", "events", "-o", "page.html", "--commits", "3", "--no-check-log")
    assert ran.code == 0
    assert "warning: Combine small files in 1 partition. About 18 files fewer: 24 become 6." in ran.out
    assert ran.out.endswith("\npage.html\n")
    assert "<title>events - tablelog report</title>" in Path("page.html").read_text("utf-8")


def test_the_advised_repair_repairs_the_log(tmp_path: Path, run: Run) -> None:
    table = ArrowTable(tmp_path / "some events").with_rows()
    table.log().checkpoint()
    (table.log_directory / "_last_checkpoint").unlink()

    def advised() -> list[str]:
        advice = run("report", table.path, "--check-log", "--json").json["advice"]
        return [item["command"] for item in advice if item["title"] == "Tidy the log"]

    (command,) = advised()
    check, repair = (shlex.split(line) for line in command.splitlines())
    assert "hint-wrong" in run(*check[1:], "--json").out
    assert run(*repair[1:], "--yes").code == 0
    assert advised() == []


def test_json(table: Path, run: Run, tmp_path: Path) -> None:
    ran = run("report", table, "--json", "--output", tmp_path / "page.html")
    assert json.loads(ran.out)["table"] == str(table)
    assert not (tmp_path / "page.html").exists()


def test_no_table(run: Run, tmp_path: Path) -> None:
    ran = run("report", tmp_path, "-o", tmp_path / "page.html")
    assert (ran.code, ran.out) == (exit_codes.NOT_FOUND, "")
    assert not (tmp_path / "page.html").exists()
