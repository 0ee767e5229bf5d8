"""`tablelog report`: the health of a table as one HTML page."""

import json
from pathlib import Path

import click

from ... import local_file
from ..output import Output
from ..parameters import Command, Location, on_table, writes_output
from ..progress import command_bar


@click.command(
    cls=Command,
    examples=("tablelog report ./events", "tablelog report s3://bucket/events -o events.html"),
)
@on_table
@click.option(
    "-o",
    "--output",
    "output_file",
    type=click.Path(path_type=Path),
    default="report.html",
    show_default=True,
    help="The file to write.",
)
@click.option("--commits", type=click.IntRange(min=1), default=1_000, show_default=True, help="Read at most N commits.")
@click.option(
    "--check-log/--no-check-log",
    default=None,
    help="Read all files of the log and compare them (default: only if the log is small).",
)
@writes_output
def command(location: Location, output_file: Path, commits: int, check_log: bool | None, output: Output) -> None:
    """Write a page about the health of TABLE: growth, layout, debt, skipping, log, and what to do.

    It reads the log only, and needs no Spark. It changes nothing in the table. With --json it writes the advice to
    standard output, and no page.
    """
    from ...report import report

    if not output.as_json:
        local_file.check(output_file)
    log = location.log()
    with command_bar("report", log.table, enabled=not output.as_json):
        page = report(log, commits=commits, check_log=check_log)
    if output.as_json:
        output.json(json.loads(page.to_json()))
        return
    path = page.save(output_file)
    for item in page.advice:
        output.line(f"{item.severity}: {item.title}. {item.gain}")
    output.line(str(path))
