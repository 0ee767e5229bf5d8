"""The pages of the guide as programs: their blocks of Python, run in order, and the output that they show, compared."""

import ast
import contextlib
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

_DATA = re.compile(r"/(?:data|tmp)/")
"""Where the pages say that their tables lie; a run puts another directory in its place."""

_OPENS = re.compile(r"( *)(?:```python|<!-- setup)\s*$")
_NOT_RUN = re.compile(r"# not run: *(.*)$")
_SHOWN = ("# +", "# |", "# > ")
"""How a comment begins that shows output: a part of a table, or after `>` another line."""


@dataclass(frozen=True)
class Block:
    """Python code of a page; `line` is the page's line before its first one. `not_run`: why it can't be run here."""

    code: str
    line: int
    not_run: str | None = None


def blocks(text: str) -> list[Block]:
    """The Python of a page: its blocks, and what HTML comments that begin with `setup` prepare for them, unseen.

    A block whose first line is `# not run: <reason>` is for the reader alone.
    """
    found, lines = [], iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        opened = _OPENS.match(line)
        if not opened:
            continue
        end = "```" if "```" in line else "-->"
        code = []
        for _, inner in lines:
            if inner.strip() == end:
                break
            code.append(inner.removeprefix(opened[1]))
        else:
            raise ValueError(f"line {number}: the block has no end")
        marked = _NOT_RUN.match(code[0]) if code else None
        if marked and not marked[1]:
            raise ValueError(f"line {number + 1}: say why the block isn't run")
        found.append(Block("\n".join(code), number, marked[1] if marked else None))
    return found


def has_code(page: Path) -> bool:
    """Whether the page has a block that is run."""
    return any(block.not_run is None for block in blocks(page.read_text(encoding="utf-8")))


def run(page: Path, names: Mapping[str, Any], data: Path) -> None:
    """Run the page's blocks in one namespace that begins with `names`, with its tables below `data`.

    What comments right under a statement show is what the statement prints: AssertionError where it isn't.
    """
    space = {"__name__": "page", **names}
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.not_run is None:
            _run(block, page, space, data)


def _run(block: Block, page: Path, space: dict[str, Any], data: Path) -> None:
    code = _DATA.sub(f"{data}/", block.code)
    lines = code.splitlines()
    for statement in ast.parse(code, str(page)).body:
        last = statement.end_lineno
        assert last is not None
        shown = _shown(lines[last:])
        ast.increment_lineno(statement, block.line)  # so that an error names the page's own line
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(ast.Module([statement], []), str(page), "exec"), space)
        output = printed.getvalue()
        if shown and output.rstrip().splitlines() != shown:
            raise AssertionError(f"{page}, line {block.line + last}, shows this, and what is printed is:\n{output}")


def _shown(after: list[str]) -> list[str]:
    """The output that comments show from the first of these lines on; [] where they show none."""
    return [_line_of_output(line) for line in takewhile(lambda line: line.startswith(_SHOWN), after)]


def shown(code: str) -> list[str]:
    """All output that the comments of a block show."""
    return [_line_of_output(line) for line in code.splitlines() if line.startswith(_SHOWN)]


def _line_of_output(comment: str) -> str:
    return comment.removeprefix("# ").removeprefix("> ").rstrip()
