"""The fenced blocks of all pages, in any language, and the reasons why the tests don't run those that are marked."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = frozenset({"python", "console"})
"""The languages of blocks that the tests run, except where a block of Python is marked itself."""
MARKED = frozenset({"sh", "sql", "dockerfile"})
"""The languages of blocks that need a mark: an HTML comment `not run: <reason>` on the line before."""
SHOWN = frozenset({"", "interleaving", "markdown", "toml", "yaml"})
"""The languages of blocks that aren't programs; "" is output."""

_FENCE = re.compile(r" *(?:```+|~~~+)(.*)$")
_MARK = re.compile(r" *<!-- not run: *(.*?) *-->$")


@dataclass(frozen=True)
class Fence:
    """A fenced block; `line` is the line of its fence, and `not_run` the reason of the comment before it."""

    language: str
    lines: tuple[str, ...]
    line: int
    not_run: str | None


def fences(text: str) -> list[Fence]:
    """The fenced blocks of a page in order; ValueError for a block without an end, and for a mark without a reason."""
    found: list[Fence] = []
    before = ""
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        opened = _FENCE.match(line)
        if opened:
            inside = []
            for _, inner in lines:
                if _FENCE.match(inner):
                    break
                inside.append(inner.strip())
            else:
                raise ValueError(f"line {number}: the block has no end")
            mark = _MARK.match(before)
            if mark and not mark[1]:
                raise ValueError(f"line {number - 1}: say why the block isn't run")
            found.append(Fence(opened[1].strip(), tuple(inside), number, mark[1] if mark else None))
        before = line
    return found
