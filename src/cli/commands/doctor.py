"""`tablelog doctor`: what this environment can do, and what a path gets."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from .. import environment, exit_codes, text
from ..output import Output, Style
from ..parameters import Command, Location, absolute, store_settings, writes_output
from ..version import shown_version

if TYPE_CHECKING:
    from ..store_report import StoreReport


@click.command(
    cls=Command,
    examples=(
        "tablelog doctor",
        "tablelog doctor s3://bucket/events --option endpoint_url=http://localhost:9000",
        "tablelog doctor gs://bucket/events --probe --json",
    ),
)
@click.argument("table", required=False)
@store_settings
@click.option(
    "--probe",
    is_flag=True,
    help="Write a small file below TABLE and delete it, to compare the store's clock with ours.",
)
@writes_output
def command(table: str | None, options: Mapping[str, Any], conf: Mapping[str, str], probe: bool, output: Output) -> int:
    """Show what this environment has: packages, Java, Spark; and for TABLE: its store, and how safe that is.

    For TABLE it also says whether the storage can be reached, how fast it answers, and where credentials were found,
    never their content. Exit code 1: there is a problem, such as a PySpark or a Java that isn't supported.
    """
    document = _environment()
    if table is not None:
        from ...logstore.common.schemes import about
        from ...logstore.common.uri import scheme_of
        from ..store_report import examine

        location = Location(absolute(table), options, conf)
        log = location.log()
        report = examine(log, probe=probe)
        backend = about(scheme_of(log.table)).backend or ""
        found = environment.credentials(backend, {**options, **conf}, os.environ)
        document["store"] = {"path": text.shown(log.table), **asdict(report), "credentials": found}
        if not output.as_json:
            _write_environment(document, output)
            _write_store(document["store"], report, output)
        document["problems"] += report.problems
    elif not output.as_json:
        _write_environment(document, output)
    if output.as_json:
        output.json(document)
    return exit_codes.PROBLEMS if document["problems"] else exit_codes.OK


def _environment() -> dict[str, Any]:
    packages = environment.packages()
    path, major = environment.java()
    spark = packages["pyspark"]
    java = None if spark is None else environment.java_problem(path, major)
    problems = environment.pyspark_problem(spark), java
    return {
        "tablelog": shown_version().split()[-1],
        "python": environment.python(),
        "java": {"path": path, "version": major},
        "packages": packages,
        "store": None,
        "problems": [problem for problem in problems if problem is not None],
    }


def _write_environment(document: dict[str, Any], output: Output) -> None:
    output.line(f"tablelog {document['tablelog']}, Python {document['python']}", "bold")
    for name, version in document["packages"].items():
        if version is None:
            _line(output, "-", name, f"not installed: pip install 'tablelog[{environment.extra_of(name)}]'", "dim")
        else:
            _line(output, "✓", name, version, "green")
    path, major = document["java"]["path"], document["java"]["version"]
    if path is None:
        needs = f"Spark needs {environment.LEAST_JAVA} or newer"
        _line(output, "-", "java", f"not found in JAVA_HOME or PATH; {needs}", "dim")
    else:
        _line(output, "✓", "java", f"{major or 'unknown version'}, {path}", "green")
    _write_problems(document["problems"], output)


def _write_problems(problems: Sequence[str], output: Output) -> None:
    for problem in problems:
        _line(output, "✗", "problem", problem, "bold red")


def _write_store(store: dict[str, Any], report: "StoreReport", output: Output) -> None:
    output.heading(store["path"])
    safe = report.exclusion != "process" and not report.partial_writes_visible
    _line(output, "✓" if safe else "!", "store", report.name, "green" if safe else "yellow")
    _line(output, "✓" if safe else "!", "safety", report.safety, "green" if safe else "yellow")
    if report.reachable:
        what = "a Delta table" if report.is_table else "no Delta table yet"
        _line(output, "✓", "reachable", f"{what}; answered in {report.list_ms} ms", "green")
    if report.clock_skew_ms is not None and abs(report.clock_skew_ms) < 1000:
        _line(output, "✓", "clock", "the store's agrees with this machine's", "green")
    places = ", ".join(store["credentials"]) or "none in settings, variables and files that are known"
    _line(output, "-", "credentials", places, "")
    _write_problems(report.problems, output)
    output.line(f"  to prove it: tablelog conformance {store['path']}-scratch", "dim")


def _line(output: Output, mark: str, name: str, value: str, style: Style) -> None:
    output.line(f"{mark} {name:<18} {value}", style)
