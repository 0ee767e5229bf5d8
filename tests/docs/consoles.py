"""The commands that pages show after `$ `, run in a shell on a terminal, and the output that they show, compared."""

import os
import pty
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_DATA = re.compile(r"/(?:data|tmp)/")
_WIDTH, _HEIGHT = 200, 100
_VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?"), "TIME"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r"\d[\d.,]* (?:[KMG]iB|B|s)\b"), "SIZE"),
)
"""What is another at each run, or with another version of a library, and isn't compared."""


@dataclass(frozen=True)
class Command:
    """A command of a page with the output that the page shows; `line` is the page's line of the command."""

    command: str
    shown: list[str]
    line: int


def commands(text: str) -> list[Command]:
    """The commands of the console blocks of a page, in their order."""
    found: list[Command] = []
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            inside = line == "```console"
        elif inside and line.startswith("$ "):
            found.append(Command(line.removeprefix("$ "), [], number))
        elif inside and found:
            found[-1].shown.append(line.rstrip())
    return found


def run(page: Path, data: Path) -> int:
    """Run the page's commands with their tables below `data`; returns how many they are.

    AssertionError where a command prints something else than the page shows, or fails where the page shows nothing.
    """
    found = commands(page.read_text(encoding="utf-8"))
    for command in found:
        lines = printed(command.command, data, must_succeed=not command.shown)
        if command.shown and _comparable(lines) != _comparable(command.shown):
            shown = "\n".join(lines)
            raise AssertionError(f"{page}, line {command.line}: `{command.command}` prints:\n{shown}")
    return len(found)


def printed(command: str, data: Path, *, must_succeed: bool = False) -> list[str]:
    """What a command prints on a terminal without colours, with the paths of the page."""
    ours, theirs = pty.openpty()
    size = {"TERM": "dumb", "COLUMNS": str(_WIDTH), "LINES": str(_HEIGHT)}
    environment = {**os.environ, **size, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    process = subprocess.Popen(
        ["bash", "-c", _DATA.sub(f"{data}/", command)],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=environment,
    )
    os.close(theirs)
    output = _read(ours)
    os.close(ours)
    code = process.wait()
    text = output.decode().replace(f"{data}/", "/tmp/")
    assert code == 0 or not must_succeed, f"`{command}` ended with {code}:\n{text}"
    return [line.rstrip() for line in text.rstrip().splitlines()]


def _read(terminal: int) -> bytes:
    """Everything that is written to a terminal until its last writer has gone."""
    output = bytearray()
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # Linux says so when nobody has the other side open
            return bytes(output)
        if not piece:
            return bytes(output)
        output += piece


def _comparable(lines: list[str]) -> list[str]:
    """The lines without what varies; the spaces that align columns vary with it."""
    for pattern, name in _VARYING:
        lines = [pattern.sub(name, line) for line in lines]
    return [re.sub(r" {2,}|\t", "  ", line).rstrip() for line in lines if line.strip()]
