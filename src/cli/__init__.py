"""The `tablelog` command."""

import argparse
from collections.abc import Sequence

from . import conformance
from .version import shown_version

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (by default the process's own); returns the exit code."""
    parser = argparse.ArgumentParser(prog="tablelog", description="Delta tables on any storage: tools.")
    parser.add_argument("--version", action="version", version=shown_version())
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    conformance.add_to(commands)
    parsed = parser.parse_args(arguments)
    code: int = parsed.run(parsed)
    return code
