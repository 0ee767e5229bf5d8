"""The `tablelog` command."""

from collections.abc import Sequence

import click

from . import exit_codes
from .group import root

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (by default the process's own); returns the exit code."""
    try:
        code = root.main(
            args=None if arguments is None else list(arguments), prog_name="tablelog", standalone_mode=False
        )
    except click.exceptions.Abort:
        click.echo("tablelog: interrupted", err=True)
        return exit_codes.INTERRUPTED
    except click.ClickException as error:
        _without_arguments(error).show()
        return error.exit_code
    return code if isinstance(code, int) else exit_codes.OK


def _without_arguments(error: click.ClickException) -> click.ClickException:
    """The error without the arguments that click quotes: a setting without its `--option` may be a secret."""
    if isinstance(error, click.UsageError) and error.message.startswith("Got unexpected extra argument"):
        text = "There are more arguments than the command takes. Settings need --option or --conf before each."
        return click.UsageError(text, error.ctx)
    return error
