"""The question before a command changes a table."""

import sys

import click

from .output import Output


def confirmed(question: str, output: Output, *, yes: bool) -> bool:
    """Whether to go on: `--yes`, or a yes on a terminal. Without a terminal nobody can answer, so nothing is done.

    Args:
        question: What the user is asked.
        output: Where the command writes; with JSON nothing is asked.
        yes: Whether the user gave `--yes`.
    """
    if yes:
        return True
    if output.as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    output.flush()
    return click.confirm(question, default=False)
