"""`tablelog report` as a command."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from report.messy_table import messy
from tablelog.cli.report import report_command
from tablelog.errors import TableNotFoundError
from tablelog.logstore import LocalLogStore


@pytest.fixture
def table(tmp_path: Path) -> Path:
    messy(LocalLogStore(), str(tmp_path / "events"), versions=25)
    return tmp_path / "events"


def test_it_writes_the_page_and_says_what_to_do(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(report_command, ["events", "-o", "page.html", "--commits", "3", "--no-check-log"])
    assert result.exit_code == 0, result.output
    assert result.stdout == "page.html\n"
    assert "warning: Combine small files in 1 partition. About 18 files fewer: 24 become 6." in result.stderr
    assert "<title>events - tablelog report</title>" in Path("page.html").read_text("utf-8")


def test_json(table: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(report_command, [str(table), "--json", "-o", str(tmp_path / "page.html")])
    assert json.loads(result.stdout)["table"] == str(table)
    assert not (tmp_path / "page.html").exists()


def test_wrong_settings_are_refused_without_their_values(table: Path) -> None:
    result = CliRunner().invoke(report_command, [str(table), "--option", "s3cret"])
    assert result.exit_code == 2
    assert "s3cret" not in result.output


def test_no_table_is_the_error_of_the_core(tmp_path: Path) -> None:
    result = CliRunner().invoke(report_command, [str(tmp_path), "-o", str(tmp_path / "page.html")])
    assert isinstance(result.exception, TableNotFoundError)
    assert not (tmp_path / "page.html").exists()
