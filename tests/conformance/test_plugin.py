"""The suite as pytest items: outcomes, reasons in sight, nothing that can be overridden, nothing left."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

HERE = Path(__file__).parent


def run_pytest(where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "tablelog.conformance.plugin", "-p", "no:cacheprovider"),
            *("--pyargs", "tablelog.conformance", "--conformance-level", "quick", *arguments),
        ],
        cwd=where,
        env={**os.environ, "PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_each_check_is_an_item_and_nothing_stays_behind(tmp_path: Path) -> None:
    place, report = tmp_path / "place", tmp_path / "report.xml"
    place.mkdir()
    some = "second_writer_loses or absent_is_not_found"
    ran = run_pytest(
        tmp_path, "--logstore", "own_store:OwnStore", "--root", str(place), "-k", some, f"--junitxml={report}"
    )
    assert ran.returncode == 0, ran.stdout
    assert "2 passed" in ran.stdout
    assert {case.get("name") for case in ElementTree.parse(report).iter("testcase")} == {
        "second_writer_loses",
        "absent_is_not_found",
    }
    assert list(place.iterdir()) == []


def test_a_broken_guarantee_fails_with_its_message(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, "--logstore", "own_store:Replaces", "-k", "second_writer_loses")
    assert ran.returncode == 1, ran.stdout
    assert "must raise FileExistsError" in ran.stdout
    assert "Traceback" not in ran.stdout
    assert "tablelog.conformance::second_writer_loses" in ran.stdout


def test_what_is_not_established_is_shown_with_its_reason(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, "--logstore", "own_store:in_memory", "-k", "one_winner_among_processes")
    assert ran.returncode == 0, ran.stdout
    assert "1 not established" in ran.stdout
    assert "one_winner_among_processes: NOT ESTABLISHED: the store declares" in ran.stdout


def test_what_is_in_the_way_of_all_checks_is_said_once(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, "--logstore", "own_store:NeedsMore", "-k", "lists")
    assert ran.stdout.count("pip install 'tablelog[own]'") == 1
    assert "not established" in ran.stdout


def test_what_could_not_be_deleted_is_shown(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, "--logstore", "own_store:keeps", "-k", "second_writer_loses")
    assert ran.returncode == 0, ran.stdout
    assert "not deleted" in ran.stdout
    assert "keeps://here/there/tablelog-conformance-" in ran.stdout


def test_the_seed_is_shown_and_repeats(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, "--logstore", "own_store:in_memory", "-k", "nothing", "--conformance-seed", "77")
    assert "conformance of own_store:in_memory, seed 77" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((), "--logstore mypackage:factory"), (("--logstore", "own_store:nothing"), "own_store:nothing can't be loaded")],
)
@pytest.mark.thorough
def test_wrong_usage(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    ran = run_pytest(tmp_path, *arguments)
    assert ran.returncode not in {0, 1}
    assert said in ran.stdout + ran.stderr
