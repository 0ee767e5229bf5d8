"""What docs/conformance.md shows does what it says."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tablelog.cli import main
from tablelog.conformance.reports.report import from_json
from tablelog.conformance.runner import BUDGET_SECONDS, SHARE_SECONDS

DOC = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text(encoding="utf-8")
EXAMPLE = re.search(r"<!-- example: (\w+)\.py -->\n```python\n(.*?)```", DOC, re.S)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    assert EXAMPLE is not None
    (tmp_path / f"{EXAMPLE[1]}.py").write_text(EXAMPLE[2])
    monkeypatch.syspath_prepend(str(tmp_path))
    yield EXAMPLE[1]
    sys.modules.pop(EXAMPLE[1], None)


def test_the_example_is_short() -> None:
    assert EXAMPLE is not None
    assert len(EXAMPLE[2].splitlines()) < 60


@pytest.mark.slow
def test_the_example_passes_the_suite(module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, report = tmp_path / "place", tmp_path / "report.json"
    store = f"{module}:FolderLogStore"
    code = main(["conformance", "--store", store, "--root", str(place), "--level", "quick", "--json", str(report)])
    assert code == 0, capsys.readouterr().out
    assert from_json(report.read_text()).declared["class"] == f"{module}.FolderLogStore"
    assert not place.exists()


def test_without_the_honest_answer_the_check_that_the_doc_names_fails(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / f"{module}.py"
    said = file.read_text()
    naive = said.replace("raise WriteOutcomeUnknown(path, str(error)) from error", "raise")
    assert naive != said
    file.write_text(naive)
    words = [
        "conformance",
        "--store",
        f"{module}:FolderLogStore",
        "--root",
        str(tmp_path / "place"),
        "--level",
        "quick",
    ]
    assert main([*words, "--only", "a_lost_reply_is_never_a_loss"]) == 1, capsys.readouterr().out


def test_the_bounds_are_those_that_the_doc_gives() -> None:
    shares = "{:.0f}, {:.0f} or {:.0f} seconds".format(*SHARE_SECONDS.values())
    budgets = "{:.0f}, {:.0f} or {:.0f} minutes".format(*(seconds / 60 for seconds in BUDGET_SECONDS.values()))
    assert shares in DOC
    assert budgets in DOC


def test_the_options_that_the_doc_names_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "--help"]) == 0
    known = {*re.findall(r"--[a-z]+", capsys.readouterr().out), "--pyargs", "--logstore"}
    assert set(re.findall(r"(?<![\w-])--[a-z]+\b(?!-)", DOC)) <= known
