"""`tablelog doctor`: what it finds, what it never shows, and the commands that need Spark when it isn't there."""

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from support.arrow_table import ArrowTable
from support.command_line import Run, in_process, on_terminal
from tablelog.cli import environment
from tablelog.cli.store_report import StoreReport


def test_it_shows_the_environment(run: Run) -> None:
    ran = run("doctor")
    assert ran.code == 0
    assert "pyarrow" in ran.out
    document = run("doctor", "--json").json
    assert document["packages"]["pyarrow"]
    assert document["store"] is None


def test_it_lists_the_packages_of_all_extras(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "version", lambda package: "1.0" if package == "grpcio" else _missing(package))
    lines = run("doctor").out.splitlines()
    assert "✓ grpcio             1.0" in lines
    assert "- pyiceberg          not installed: pip install 'tablelog[iceberg]'" in lines
    assert "- opentelemetry-api  not installed: pip install 'tablelog[opentelemetry]'" in lines


def _missing(package: str) -> str:
    raise PackageNotFoundError(package)


@pytest.mark.parametrize(
    ("versions", "java", "problems"),
    [
        ({"pyspark": "4.1.0"}, ("/j", 17), []),
        ({"pyspark": "4.0.1"}, ("/j", 17), ["PySpark 4.0.1 isn't supported: tablelog needs 4.1, 4.2 or 4.3"]),
        ({"pyspark": "4.1.0"}, ("/j", 11), ["Java 11, /j: Spark needs 17 or newer"]),
        ({"pyspark": "4.1.0"}, (None, None), []),
        ({"pyspark": None}, ("/j", 11), []),
    ],
)
def test_what_spark_cannot_work_with_is_a_problem(
    versions: dict[str, str | None],
    java: tuple[str | None, int | None],
    problems: list[str],
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(environment, "packages", lambda: versions)
    monkeypatch.setattr(environment, "java", lambda: java)
    as_json, shown = run("doctor", "--json"), run("doctor")
    assert as_json.json["problems"] == problems
    assert as_json.code == shown.code == (1 if problems else 0)
    assert [line for line in shown.out.splitlines() if line.startswith("✗")] == [
        f"✗ problem            {p}" for p in problems
    ]


def test_it_shows_the_store_of_a_table(table: ArrowTable, run: Run) -> None:
    store = run("doctor", table.path, "--json").json["store"]
    assert (store["name"], store["exclusion"], store["reachable"], store["is_table"]) == (
        "LocalLogStore",
        "host",
        True,
        True,
    )
    assert "safe for writers on this machine" in on_terminal("doctor", table.path).out


def test_a_probe_leaves_nothing(table: ArrowTable, run: Run) -> None:
    before = sorted(path.name for path in table.root.iterdir())
    store = run("doctor", table.path, "--probe", "--json").json["store"]
    assert store["clock_skew_ms"] == 0
    assert sorted(path.name for path in table.root.iterdir() if path.is_file() or any(path.iterdir())) == before


def test_a_store_that_cannot_be_reached_is_a_problem(run: Run) -> None:
    ran = run("doctor", "s3://bucket/t", "--option", "endpoint_url=http://127.0.0.1:1", "--option", "key=a",
              "--option", "secret=pa55word", "--json")  # fmt: skip
    assert ran.code == 1
    assert ran.json["store"]["reachable"] is False
    assert "pa55word" not in ran.out + ran.err
    assert {"setting key", "setting secret"} <= {*ran.json["store"]["credentials"]}


def test_a_commit_from_the_future_shows_a_wrong_clock(table: ArrowTable, run: Run) -> None:
    import os
    import time

    ahead = time.time() + 3600
    os.utime(table.commit_file(3), (ahead, ahead))
    ran = run("doctor", table.path)
    assert ran.code == 1
    assert "synchronise the clocks" in ran.out


def test_only_the_places_of_credentials_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text("[default]\naws_secret_access_key = pa55\n")
    found = environment.credentials("s3", {"endpoint_url": "x", "secret": "pa55"}, {"AWS_ACCESS_KEY_ID": "pa55"})
    assert found == ["setting secret", "variable AWS_ACCESS_KEY_ID", "file ~/.aws/credentials"]


@pytest.mark.parametrize(
    ("text", "major"),
    [('openjdk version "21.0.2" 2024', 21), ('java version "1.8.0_392"', 8), ("not java", None), ('version "17"', 17)],
)
def test_the_version_of_java(text: str, major: int | None) -> None:
    assert environment.major_version(text) == major


@pytest.mark.parametrize(
    ("version", "expected"), [("4.0.1", False), ("4.1.0", True), ("4.3.2", True), ("4.4.0", False)]
)
def test_the_versions_of_spark(version: str, expected: bool) -> None:
    assert environment.supports_spark(version) == expected


def test_an_unsafe_store_is_a_problem() -> None:
    report = StoreReport("X", "process", "", True, False, True, True, 1, None, 60_000)
    assert len(report.problems) == 2


@pytest.mark.parametrize("command", ["optimize", "convert"])
def test_a_command_that_needs_spark_says_so(command: str, table: ArrowTable, tmp_path: Path) -> None:
    place = table.path if command == "optimize" else str(tmp_path)
    without_java = in_process(command, place, environment={"JAVA_HOME": "/nowhere"})
    assert without_java.code == 7
    assert "needs Java 17" in without_java.err
    assert len(without_java.err.splitlines()) == 1
    with_option = in_process(command, place, "--option", "key=pa55")
    assert with_option.code == 2
    assert "pa55" not in with_option.err


_NO_MASTERS = "", "nonsense", "local[two]", "local[0]", "local[2", "local[2,x]", "spark://one", "spark://a:1,b", "k8s"
_MASTERS = (
    "local",
    "local[2]",
    "local[02]",
    "local[*, 3]",
    "local-cluster[2,1,1024]",
    "local-cluster[ 2, 1 , 1024]",
    "yarn",
    "spark://one:7077,[::1]:1",
    "k8s://one",
)


@pytest.mark.parametrize("master", [*_NO_MASTERS, *_MASTERS])
def test_the_master_is_checked_before_spark_starts(
    table: ArrowTable, run: Run, monkeypatch: pytest.MonkeyPatch, master: str
) -> None:
    """The masters that Spark may accept go on to the check of Java, which is missing here."""
    monkeypatch.setattr(environment, "java", lambda: (None, None))
    ran = run("optimize", table.path, "--master", master)
    refused = master in _NO_MASTERS
    assert ran.code == (2 if refused else 7)
    assert ran.err.startswith(f"tablelog optimize: {'--master: ' if refused else 'this command needs Java'}")
    assert len(ran.err.splitlines()) == 1


def test_a_wrong_master_has_the_same_exit_code_with_verbose(table: ArrowTable) -> None:
    ran = in_process("--verbose", "optimize", table.path, "--master", "spark://one")
    assert ran.code == 2
    assert "tablelog optimize: --master: 'spark://one' is no master of Spark" in ran.err


@pytest.mark.slow
def test_the_reason_why_java_does_not_start_is_said(table: ArrowTable, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        "#!/bin/sh\n"
        '[ "$1" = -version ] && { echo \'openjdk version "21.0.2"\'; exit; }\n'
        "echo 'WARNING: Using incubator modules' >&2; echo 'Could not reserve enough space' >&2; exit 1\n"
    )
    java.chmod(0o755)
    home = {"JAVA_HOME": str(tmp_path)}
    ran = in_process("optimize", table.path, environment=home)
    assert ran.code == 7
    assert ran.err.startswith("tablelog optimize: Spark doesn't start: Could not reserve enough space")
    assert len(ran.err.splitlines()) == 1
    assert "WARNING: Using incubator modules" in in_process("--verbose", "optimize", table.path, environment=home).err


def test_a_directory_to_convert_must_exist(tmp_path: Path, run: Run) -> None:
    ran = run("convert", tmp_path / "nothing")
    assert ran.code == 4
    assert ran.err == f"tablelog convert: there is no directory {tmp_path / 'nothing'}\n"


def test_a_delta_table_is_not_converted_again(table: ArrowTable, run: Run) -> None:
    assert run("convert", table.path).code == 4
