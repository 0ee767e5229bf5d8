"""A log of a stranger, or a damaged one: the right answer or an error of ours, in bounded memory and time."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.log.hostile_logs import CASES, CHANGES_COMMITS, base

pytestmark = [pytest.mark.timeout(1000), pytest.mark.thorough]
READER = Path(__file__).with_name("hostile_reader.py")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """How each case ended: all are read by one process, which has little memory."""
    import shutil

    root = tmp_path_factory.mktemp("hostile")
    base(root / "base")
    names = {"0": "untouched"}
    shutil.copytree(root / "base", root / "cases" / "0")
    for number, (name, change) in enumerate(CASES.items(), 1):
        table = root / "cases" / str(number)
        shutil.copytree(root / "base", table)
        change(table / "_delta_log")
        names[str(number)] = name
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, str(READER), str(root / "cases")],
        capture_output=True, text=True, timeout=900, check=False, env=environment,
    )  # fmt: skip
    found = {names[line["case"]]: line for line in map(json.loads, run.stdout.splitlines())}
    assert found.keys() == set(names.values()), run.stderr[-2000:]
    shutil.rmtree(root, ignore_errors=True)
    return found


def test_no_log_leads_to_an_error_that_is_not_ours(outcomes: dict[str, dict[str, Any]]) -> None:
    assert {name: found["untyped"] for name, found in outcomes.items() if "untyped" in found} == {}


def test_each_error_has_the_table_and_that_of_a_snapshot_the_version(outcomes: dict[str, dict[str, Any]]) -> None:
    without = {
        (name, key): text
        for name, found in outcomes.items()
        for key, text in found.items()
        if key.endswith("without table") or (key == "uses" and text)
    }
    assert without == {}


def test_what_the_commits_say_is_what_is_read(outcomes: dict[str, dict[str, Any]]) -> None:
    right = outcomes["untouched"]["state"]
    assert right is not None
    wrong = {
        name: found["state"]
        for name, found in outcomes.items()
        if name not in CHANGES_COMMITS and found["state"] not in (right, None)
    }
    assert wrong == {}


def test_a_checkpoint_that_cannot_be_read_costs_no_version(outcomes: dict[str, dict[str, Any]]) -> None:
    """All commits are there: whatever else is wrong, the table can be read."""
    right = outcomes["untouched"]["state"]
    refused = {
        name: found["state error"] + ": " + found["state message"]
        for name, found in outcomes.items()
        if name not in CHANGES_COMMITS and found["state"] != right
    }
    # What it says may be in order and untrue: then a checksum beside it, or what it lacks, speaks against it.
    untrue = ["doesn't match its checksum", "has no protocol action", "has no metaData action", "is invalid"]
    # Statistics are read last, when the files were given out.
    untrue.append("Invalid UTF8 payload")
    assert {name: text for name, text in refused.items() if not any(part in text for part in untrue)} == {}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("6 million transactions", "has more rows of txn than a file of its size can"),
        ("long texts", "decompresses to more than"),
        ("one long text many times", "decodes to more than"),
        ("a path that is no UTF-8", "Invalid UTF8"),
        ("sidecar /dev/zero", "that isn't in _sidecars"),
        ("sidecar elsewhere", "that isn't in _sidecars"),
        ("sidecar %2Fdev%2Fzero", "that isn't in _sidecars"),
        ("sidecar of no bytes", "that isn't in _sidecars"),
        ("sidecar http", "is missing"),
        ("sidecar is a pipe", "is a pipe, not a file"),
        ("endless sidecar", "has 4398046511104 bytes, but should have 100 at most"),
        ("noise as sidecar", "doesn't end like a Parquet file"),
    ],
)
def test_why_a_checkpoint_is_not_used(outcomes: dict[str, dict[str, Any]], name: str, reason: str) -> None:
    assert reason in outcomes[name]["health"]


def test_none_takes_long(outcomes: dict[str, dict[str, Any]]) -> None:
    """Seconds of the processor; one that waits for ever is ended after two minutes, with another error than ours."""
    assert {name: found["seconds"] for name, found in outcomes.items() if found["seconds"] > 10} == {}
