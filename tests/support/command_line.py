"""The command line as a process of its own, with or without a terminal."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        return [line.split("\t") for line in self.out.splitlines()]


Run = Callable[..., Ran]


def in_process(*words: object, environment: dict[str, str] | None = None, **arguments: Any) -> Ran:
    """Run the command in a process of its own, without a terminal."""
    ran = subprocess.run(
        [sys.executable, "-m", "tablelog.cli", *map(str, words)],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **arguments,
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def on_terminal(
    *words: object, environment: dict[str, str] | None = None, keys: bytes = b"", output: IO[bytes] | None = None
) -> Ran:
    """Run the command on a pseudo-terminal of 100 columns; `keys` are typed into it.

    Args:
        words: The command and its arguments.
        environment: Variables to add.
        keys: What is typed.
        output: The file that gets standard output instead of the terminal.
    """
    parent, child = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "tablelog.cli", *map(str, words)],
            env={**os.environ, "COLUMNS": "100", "TERM": "xterm-256color", **(environment or {})},
            stdin=child,
            stdout=child if output is None else output,
            stderr=child,
            start_new_session=True,
        )
    finally:
        os.close(child)
    if keys:
        os.write(parent, keys)
    written = b""
    try:
        while part := os.read(parent, 65536):
            written += part
    except OSError:  # the terminal's end, on Linux
        pass
    os.close(parent)
    return Ran(process.wait(60), written.decode(), "")
