"""The group of all commands. A command's module is imported when the command runs, so that `tablelog` starts fast."""

import importlib
import logging
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from . import exit_codes
from .text import one_line
from .version import shown_version

_COMMANDS = {
    "history": "The commits of a table, newest first.",
    "detail": "What a table is: version, size, protocol, properties.",
    "schema": "The columns of a table.",
    "files": "The data files of a version, with statistics and filters.",
    "log": "The actions of one version, or the difference of two.",
    "cat": "The rows of a table.",
    "check": "Whether a whole table is sound: log, files, footers, vectors, row ids.",
    "report": "The health of a table as one HTML page, with advice.",
    "repair": "Repair the log, and take missing data files out of the table.",
    "vacuum": "Delete files that no version within the retention period needs.",
    "restore": "Make an older version the newest one again.",
    "export": "The locations of the data files, as a list or as manifests.",
    "optimize": "Rewrite small files as larger ones (runs Spark).",
    "convert": "Make a Delta table of Parquet files (runs Spark).",
    "doctor": "What this environment has, and what store a path gets.",
    "conformance": "Test whether a transaction log is safe on a store.",
    "demo": "Make a small table to try the other commands on.",
    "completion": "The script by which a shell completes the command's words.",
}
"""The commands in the order of the help, with one line about each."""


_MODULES = {"conformance": ".conformance"}


class Commands(click.Group):
    """Loads each command when it is needed, and turns errors into one line and an exit code."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without a command, show the help."""
        return super().parse_args(ctx, args or ["--help"])

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_COMMANDS]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module = importlib.import_module(_MODULES.get(name, f".commands.{name}"), __package__)
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([*_COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], _COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"There is no command {one_line(args[0])!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        verbose = bool(ctx.params.get("verbose"))
        with _log_lines(verbose):
            try:
                result = super().invoke(ctx)
                sys.stdout.flush()
                return result
            except (click.ClickException, click.exceptions.Exit, click.exceptions.Abort):
                raise
            except BaseException as error:
                if isinstance(error, SystemExit):
                    raise
                raise click.exceptions.Exit(_ended(error, ctx.invoked_subcommand, verbose=verbose)) from error


def _ended(error: BaseException, command: str | None, *, verbose: bool) -> int:
    """Report the error that ended a command in one line; returns the exit code."""
    if exit_codes.is_broken_pipe(error):
        # The rest of the buffer is discarded, otherwise the interpreter reports the pipe again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_codes.OK
    if verbose:
        traceback.print_exception(error)
    code = exit_codes.code_of(error)
    text = str(error) or type(error).__name__
    if code == exit_codes.INTERNAL:
        text = f"internal error: {type(error).__name__}: {error}. Run it again with `tablelog --verbose`, and report it"
    elif code == exit_codes.INTERRUPTED and not str(error):
        text = "interrupted"
    click.echo(f"tablelog {command or ''}: {one_line(text)}".replace(" :", ":"), err=True)
    return code


class _Lines(logging.Formatter):
    """Log records as single lines without control characters; a traceback only if the user asks for details."""

    def __init__(self, *, verbose: bool) -> None:
        super().__init__()
        self._verbose = verbose

    def format(self, record: logging.LogRecord) -> str:
        line = f"tablelog: {record.levelname.lower()}: {one_line(record.getMessage())}"
        if self._verbose and record.exc_info:
            line += f"\n{self.formatException(record.exc_info)}"
        return line


@contextmanager
def _log_lines(verbose: bool) -> Iterator[None]:
    """Write the warnings of tablelog to standard error, and nothing of other libraries, while a command runs."""
    logger, silent = logging.getLogger("tablelog"), logging.NullHandler()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines(verbose=verbose))
    level = logger.level
    logger.addHandler(handler)
    logging.getLogger().addHandler(silent)
    if verbose:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logging.getLogger().removeHandler(silent)
        logger.setLevel(level)


def _epilog() -> str:
    codes = "\n".join(f"{code:>4}  {meaning}" for code, meaning in exit_codes.MEANINGS.items())
    return f"\b\nExit codes:\n{codes}"


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_epilog(),
)
@click.version_option(message=shown_version(), package_name="tablelog")
@click.option("--verbose", is_flag=True, help="Show details of what happens, and the traceback of an error.")
def root(verbose: bool) -> None:
    """Delta tables on any storage: look at them, check them, repair them.

    TABLE is a path or a URL: s3://bucket/table, abfss://..., gs://..., hdfs://..., /data/table, ./table.
    Most commands need no Spark.
    """
