"""The `tablelog` command."""

import os
import sys
from collections.abc import Sequence

import click

from . import exit_codes
from .group import root
from .text import one_line

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (by default the process's own); returns the exit code."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115  # a shell closed it
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    try:
        code = root.main(
            args=None if arguments is None else list(arguments), prog_name="tablelog", standalone_mode=False
        )
    except click.exceptions.Abort:
        click.echo("tablelog: interrupted", err=True)
        return exit_codes.INTERRUPTED
    except click.ClickException as error:
        click.echo(f"Error: {_shown(error)}", err=True)
        return error.exit_code
    return code if isinstance(code, int) else exit_codes.OK


def _shown(error: click.ClickException) -> str:
    """The error in one line, with the command whose help has more."""
    text = one_line(_message(error))
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return text
    return f"{text}{'' if text.endswith(('.', '?')) else '.'} Try '{error.ctx.command_path} --help'."


def _message(error: click.ClickException) -> str:
    """The message without the arguments that click quotes: a setting without its `--option` may be a secret."""
    if isinstance(error, click.UsageError) and error.message.startswith("Got unexpected extra argument"):
        return "There are more arguments than the command takes. Settings need --option or --conf before each."
    return error.format_message()
