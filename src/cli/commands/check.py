"""`tablelog check`: whether a whole table is sound."""

from typing import TYPE_CHECKING, Any

import click

from ...errors import CorruptLogError
from ...units import size
from .. import exit_codes, text
from ..output import Output, Style
from ..parameters import Command, Location, on_table, writes_output
from ..progress import command_bar

if TYPE_CHECKING:
    from ...core.log_maintenance.problems import LogHealth, Problem
    from ...core.table_maintenance.check import DataCheck

_LOG_CHECKS = {
    "log": "each commit is there and can be read",
    "checkpoints": "checkpoints and sidecars agree with the commits",
    "compactions": "log compactions agree with the commits",
    "checksums": "version checksums agree with the commits",
}
_DATA_CHECKS = {
    "files": "each data file is there, with its size",
    "actions": "the log has what it needs about each file",
    "footers": "each footer agrees with the schema and the number of rows",
    "vectors": "deletion vectors can be read, and fit their files",
    "row ids": "row ids are unique, and below the high-water mark",
}
_CHECK_OF = {"commit": "log", "versions": "log", "commits": "log", "checksum": "checksums", "compaction": "compactions"}
_SHOWN = 10


@click.command(
    cls=Command,
    examples=(
        "tablelog check ./events",
        "tablelog check s3://bucket/events --no-footers && echo sound",
        "tablelog check ./events --json | jq '.checks[] | select(.errors > 0)'",
    ),
)
@on_table
@click.option("--footers/--no-footers", default=True, help="Whether to open each data file (default: yes).")
@click.option("--strict", is_flag=True, help="Count warnings as errors for the exit code.")
@writes_output
def command(location: Location, footers: bool, strict: bool, output: Output) -> int:
    """Check all of TABLE, and change nothing.

    It reads the whole log, compares checkpoints, sidecars, log compactions and checksums with the commits, looks for
    each data file of the newest version, compares its footer with the log, reads the deletion vectors, and counts the
    files that nothing refers to. Exit code 1: there are errors; `tablelog repair` repairs some of them.
    """
    from ...core.table_maintenance import table_files
    from ...core.table_maintenance.check import check_data

    log = location.log()
    with command_bar("check", log.table, enabled=not output.as_json):
        health = log.health()
        data, obstacle = None, None
        try:
            snapshot = log.snapshot()
            _ = snapshot.files
        except CorruptLogError as error:
            obstacle = str(error)
        else:
            files = table_files.of_table(log)
            data = check_data(log, snapshot, files, reads_files=footers)
    result = document(health, data, obstacle)
    if output.as_json:
        output.json(result)
    else:
        _write(result, output)
    failed = result["errors"] or (strict and result["warnings"])
    return exit_codes.PROBLEMS if failed else exit_codes.OK


def check_of(problem: "Problem") -> str:
    """The check that a problem of the log belongs to."""
    return _CHECK_OF.get(problem.kind.partition("-")[0], "checkpoints")


def document(health: "LogHealth", data: "DataCheck | None", obstacle: str | None) -> dict[str, Any]:
    """The result as JSON.

    Args:
        health: The state of the log.
        data: The results for the data files; `None`: they weren't checked.
        obstacle: Why the data files weren't checked.
    """
    numbers = {"log": health.commits, "checkpoints": len(health.checkpoints)}
    checks: list[dict[str, Any]] = []
    for name, meaning in _LOG_CHECKS.items():
        problems = [problem for problem in health.problems if check_of(problem) == name]
        checks.append(
            {
                "name": name,
                "meaning": meaning,
                "examined": numbers.get(name),
                "errors": sum(problem.severity == "error" for problem in problems),
                "warnings": sum(problem.severity == "warning" for problem in problems),
                "problems": [
                    {"severity": p.severity, "kind": p.kind, "files": list(p.files), "message": p.message}
                    for p in problems
                ],
            }
        )
    if obstacle is not None and all(problem.message != obstacle for problem in health.problems):
        problem = {"severity": "error", "kind": "version-unreadable", "files": [], "message": obstacle}
        checks[0]["errors"] += 1
        checks[0]["problems"].append(problem)
    for result in data.results if data is not None else ():
        checks.append(
            {
                "name": result.name,
                "meaning": _DATA_CHECKS[result.name],
                "examined": result.examined,
                "errors": result.num_errors,
                "warnings": result.num_warnings,
                "problems": [
                    {
                        "severity": p.severity,
                        "kind": result.name.replace(" ", "-"),
                        "files": [] if p.path is None else [p.path],
                        "message": p.message,
                    }
                    for p in result.problems
                ],
            }
        )
    orphans = None
    if data is not None:
        orphans = {
            "numFiles": data.orphans.num_files,
            "sizeInBytes": data.orphans.size_in_bytes,
            "examples": list(data.orphans.examples),
        }
    errors, warnings = (sum(check[key] for check in checks) for key in ("errors", "warnings"))
    return {
        "table": text.shown(health.table),
        "version": health.newest,
        "sound": errors == 0,
        "errors": errors,
        "warnings": warnings,
        "readableVersions": [list(range_) for range_ in health.readable],
        "checks": checks,
        "orphans": orphans,
    }


_MARKS: dict[str, tuple[str, Style]] = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "error": ("✗", "bold red")}
_UNITS = {"log": "commit", "checkpoints": "checkpoint", "vectors": "vector"}


def _write(result: dict[str, Any], output: Output) -> None:
    output.line(f"{result['table']}, version {result['version']}", "bold")
    for check in result["checks"]:
        state = "error" if check["errors"] else "warning" if check["warnings"] else "ok"
        mark, style = _MARKS[state]
        number = check["examined"]
        many = "" if number is None else f" ({text.count(number, _UNITS.get(check['name'], 'file'))})"
        output.line(f"{mark} {check['name']:<11} {check['meaning']}{many}", style)
        for problem in check["problems"][:_SHOWN]:
            _, colour = _MARKS[problem["severity"]]
            where = f"{problem['files'][0]}: " if check["name"] in _DATA_CHECKS and problem["files"] else ""
            output.line(f"    {problem['severity']}: {where}{problem['message']}", colour if output.is_terminal else "")
        total = check["errors"] + check["warnings"]
        if total > _SHOWN:
            output.line(f"    … and {total - _SHOWN:,} more (--json has up to 100)", "dim")
    orphans = result["orphans"]
    if orphans is not None and orphans["numFiles"]:
        many = f"{text.count(orphans['numFiles'], 'file')} ({size(orphans['sizeInBytes'])})"
        output.line(f"  orphans: {many} that no version in the log has; `tablelog vacuum` removes the old ones", "dim")
    if result["errors"]:
        output.line(f"{text.count(result['errors'], 'error')}, {text.count(result['warnings'], 'warning')}", "bold red")
    elif result["warnings"]:
        output.line(f"sound, with {text.count(result['warnings'], 'warning')}", "bold yellow")
    else:
        output.line("sound", "bold green")
