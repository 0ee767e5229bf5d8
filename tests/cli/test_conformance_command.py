"""`tablelog conformance`: its words, its files, its exit codes, and that it keeps secrets and hands."""

import json
import os
import re
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tablelog.cli import main
from tablelog.conformance import CHECKS
from tablelog.conformance.reports.report import from_json
from tablelog.conformance.words import title

STORES = Path(__file__).parents[1] / "conformance"


@pytest.fixture(autouse=True)
def _own_store_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(STORES))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "place"
    place.mkdir()
    return place


def run(*words: object) -> int:
    """What the command exits with."""
    return main(["conformance", *map(str, words)])


def test_a_sound_store_passes(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(place, "--level", "quick", "--only", "second_writer_loses", "--seed", 7) == 0
    said = capsys.readouterr()
    assert "PASS  1 of 1 checks passed" in said.out
    assert f"again: tablelog conformance {place} --level quick --seed 7 --only second_writer_loses" in said.out
    assert "1/1 PASS" in said.err
    assert list(place.iterdir()) == []


def test_a_broken_store_fails_in_every_form(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {form: tmp_path / f"report.{form}" for form in ("json", "junit", "html")}
    outputs = [word for form, path in files.items() for word in (f"--{form}", path)]
    words = ("--store", "own_store:Replaces", "--root", place, "--only", "second_writer_loses", "--what", "Some 1.0")
    assert run(*words, *outputs) == 1
    assert "FAIL  0 of 1 checks passed, 1 failed" in capsys.readouterr().out
    report = from_json(files["json"].read_text())
    assert (report.what, report.verdict) == ("Some 1.0", "FAIL")
    assert report.declared["class"] == "own_store.Replaces"
    assert "<failure" in files["junit"].read_text()
    assert "A transaction log can lose data on this store." in files["html"].read_text()


def test_the_report_as_json_can_be_the_output(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(place, "--level", "quick", "--only", "second_writer_loses", "--json", "-") == 0
    assert from_json(capsys.readouterr().out).verdict == "PASS"
    assert not (tmp_path / "-").exists()


def test_what_is_not_established_is_an_exit_code_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--factory", "own_store:in_memory", "--only", "one_winner_among_processes") == 3
    assert "1 not established" in " ".join(capsys.readouterr().out.split())


def test_secrets_are_in_nothing_that_is_written(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / name for name in ("j", "u", "h")]
    words = ("--store", "own_store:Quotes", "--option", "password=pa55-word", "--conf", "fs.own.key=pa55-key")
    outputs = ("--json", files[0], "--junit", files[1], "--html", files[2])
    assert run(place, *words, *outputs, "--only", "reads_what_was_written") == 1
    said = capsys.readouterr()
    texts = [said.out, said.err, *(path.read_text() for path in files)]
    assert all("pa55" not in text for text in texts)
    assert "log in with '… …'" in " ".join(said.out.split())
    assert "--option password=…" in said.out


def test_calibration_is_part_of_the_report(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    assert run(place, "--level", "quick", "--only", "second_writer_loses", "--calibrate", "--json", file) == 0
    calibration = json.loads(file.read_text())["calibration"]
    assert calibration["mutants"]
    assert {mutant["outcome"] for mutant in calibration["mutants"]} <= {"caught", "not run"}
    assert [finding["verdict"] for finding in calibration["control"]] == ["PASS"]


def test_the_checks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--list", "--level", "thorough") == 0
    lines = [re.sub(r"^[\s\d]+", "", line) for line in capsys.readouterr().out.splitlines()]
    assert all({title(check.name), check.name, check.summary} <= {*lines} for check in CHECKS)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("/proc/x",), 3, "nothing can be written below file:///proc/x"),
        (("--factory", "own_store:NeedsMore"), 3, "a path on Own needs the package own"),
        (("--factory", "own_store:Ignored"), 1, "the service at Own ignores If-None-Match"),
    ],
)
def test_what_is_in_the_way_of_all_checks_is_said_once(
    words: tuple[str, ...], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == code
    shown = capsys.readouterr()
    assert " ".join((shown.out + shown.err).split()).count(said) == 1
    assert len(shown.out.splitlines()) < 15


@pytest.mark.parametrize("words", [("--version",), ("conformance", "--version")])
def test_the_version_is_shown(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(list(words)) == 0
    assert capsys.readouterr().out == f"tablelog {version('tablelog')}\n"


@pytest.mark.parametrize("words", [["--list"], ["{place}", "--only", "absent_is_not_found"]])
def test_it_ends_quietly_when_nobody_reads_it(words: list[str], place: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)  # as `head` does when it has read enough
    words = [word.format(place=place) for word in words]
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "tablelog.cli", "conformance", *words],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)
    assert ran.returncode == 0
    assert "Traceback" not in ran.stderr
    assert "BrokenPipe" not in ran.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("/tmp", "--patience", "0"), "expected a number above 0"),
        ((), "set the location to test"),
        (("--store", "own_store:OwnStore"), "set the location to test"),
        (("/tmp", "--root", "/tmp"), "set twice"),
        (("nosuch://bucket/x",), "no store supports nosuch"),
        (("/tmp", "--only", "no_such_check"), "no_such_check"),
        (("/tmp", "--json", "/no/such/directory/x"), "there is no directory"),
        (("/tmp", "--level", "deep"), "'deep' is not one of"),
        (("/tmp", "--option", "my-secret"), "expected name=value"),
        (("--factory", "own_store:raises"), "no configuration found"),
        (("--factory", "own_store:OwnStore", "--option", "a=b"), "can't be combined with --option"),
        (("--factory", "own_store:OwnStore", "--store", "own_store:OwnStore"), "can't be combined"),
    ],
)
def test_wrong_usage_is_said_at_once(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*words) == 2
    shown = capsys.readouterr().err
    assert said in " ".join(shown.split())
    assert "my-secret" not in shown


def test_an_error_of_the_suite_is_no_verdict_on_the_store(place: Path) -> None:
    code = (
        "import sys, tablelog.cli.conformance as command\n"
        "def examine(*_, **__): raise ZeroDivisionError('of the suite')\n"
        "command.examine = examine\n"
        f"from tablelog.cli import main; sys.exit(main(['conformance', {str(place)!r}]))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 3
    assert ran.stderr.startswith("tablelog conformance: internal error: ZeroDivisionError: of the suite.")
    assert len(ran.stderr.splitlines()) == 1


def test_an_interrupt_ends_it_at_once_and_leaves_nothing(place: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    words = ["conformance", str(place), "--store", "own_store:Hangs", "--only", "second_writer_loses"]
    ran = subprocess.Popen(
        [sys.executable, "-m", "tablelog.cli", *words],
        env={**os.environ, "PYTHONPATH": str(STORES), "PIPE": str(pipe)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        with open(pipe):  # opens when the check hangs
            ran.send_signal(signal.SIGINT)
            assert "interrupted" in ran.communicate(timeout=60)[1]
    finally:
        ran.kill()
    assert ran.returncode == 130
    assert list(place.iterdir()) == []


def test_the_command_needs_no_spark() -> None:
    code = "import sys, tablelog.cli; print(' '.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pyspark", "py4j", "pandas", "pytest", "pyarrow"} & {*ran.stdout.split()}


def test_the_module_is_the_command() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tablelog.cli", "conformance", "--help"], capture_output=True, text=True, check=True
    )
    assert "Exit codes" in ran.stdout
