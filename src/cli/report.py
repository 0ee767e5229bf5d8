"""`tablelog report`: the health of a table as one HTML page."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from ..conformance.targets import option, setting
from ..logstore.common.uri import scheme_of


def _pairs(parse: Callable[[str], tuple[str, Any]]) -> Callable[[Any, Any, Sequence[str]], dict[str, Any]]:
    """A callback that parses repeated NAME=VALUE; its message has no value, which may be a secret."""

    def read(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> dict[str, Any]:
        try:
            return dict(map(parse, texts))
        except ValueError as error:
            raise click.BadParameter(str(error), context, parameter) from None

    return read


@click.command(
    "report",
    epilog="\b\nExamples:\n  tablelog report ./events\n  tablelog report s3://bucket/events -o events.html",
)
@click.argument("table")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
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
@click.option("--json", "as_json", is_flag=True, help="Write the advice as JSON to standard output, and no page.")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_pairs(option),
    help="A storage option with fsspec's name; may be repeated.",
)
@click.option(
    "--conf",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_pairs(setting),
    help="A key of Hadoop's or Spark's configuration; may be repeated.",
)
def report_command(
    table: str,
    output: Path,
    commits: int,
    check_log: bool | None,
    as_json: bool,
    options: dict[str, Any],
    conf: dict[str, Any],
) -> None:
    """Write a page about the health of TABLE: growth, layout, debt, skipping, log, and what to do.

    It reads the log only, and needs no Spark. It changes nothing.
    """
    from ..report import report

    if scheme_of(table) == "file" and not table.startswith(("/", "file:")):
        table = str(Path(table).absolute())
    made = report(table, storage_options=options, conf=conf, commits=commits, check_log=check_log)
    if as_json:
        click.echo(made.to_json())
        return
    path = made.save(output)
    for item in made.advice:
        click.echo(f"{item.severity}: {item.title}. {item.gain}", err=True)
    click.echo(str(path) if not sys.stdout.isatty() else f"The report is in {path}")


command = report_command
"""The name by which the group of all commands finds it."""
