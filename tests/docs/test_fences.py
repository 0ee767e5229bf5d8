"""Each block of code in the documentation is run by a test, or is marked with the reason why it isn't."""

import re
from pathlib import Path

import pytest

from support import public_api

from . import fences, pages, test_consoles, test_pages

ROOT = fences.ROOT
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
COMMAND = re.compile(r"(?:\$ |pip |python |pytest |make |tablelog |spark-submit |from \w+ import |import \w+$)")
"""How a line of a command or of Python begins."""


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def problems(text: str) -> list[str]:
    """What is wrong with the blocks of a page."""
    python = {block.line for block in pages.blocks(text)}
    found = []
    for one in fences.fences(text):
        if one.language not in fences.RUN | fences.MARKED | fences.SHOWN:
            found.append(f"line {one.line}: the tests don't know the language {one.language!r}")
        elif one.language in fences.MARKED and one.not_run is None:
            found.append(f"line {one.line}: write the comment 'not run: <reason>' on the line before")
        elif one.language == "" and any(map(COMMAND.match, one.lines)):
            found.append(f"line {one.line}: a command or program needs its language")
        elif one.language == "python" and one.line not in python:
            found.append(f"line {one.line}: the tests don't see this block")
    return found


@pytest.mark.parametrize("page", fences.PAGES, ids=_name)
def test_each_block_is_run_or_marked(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert problems(text) == []
    languages = {one.language for one in fences.fences(text)}
    if "python" in languages and pages.has_code(page):
        assert page in [*test_pages.PAGES, test_pages.LANDING]
    if "console" in languages:
        assert page in [*test_consoles.PAGES, test_pages.TUTORIAL]


def _shell_lines() -> list[tuple[str, str]]:
    return [
        (_name(page), line)
        for page in fences.PAGES
        for one in fences.fences(page.read_text(encoding="utf-8"))
        if one.language == "sh"
        for line in one.lines
    ]


def test_the_targets_of_make_that_pages_name_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    named = {(page, match[1]) for page, line in _shell_lines() if (match := re.match(r"make ([a-z-]+)", line))}
    assert len(named) > 20
    assert [(page, target) for page, target in named if target not in targets] == []


def test_the_commands_of_tablelog_that_pages_name_exist() -> None:
    options = dict(re.findall(r"^tablelog ([a-z-]+): (.*)$", public_api.KEPT.read_text(encoding="utf-8"), re.MULTILINE))
    named = [(page, line) for page, line in _shell_lines() if line.startswith("tablelog ")]
    assert len(named) > 5
    for page, line in named:
        words = line.partition("#")[0].split()
        assert words[1] in options, f"{page}: {line}"
        unknown = [word for word in words if word.startswith("-") and word not in re.split(r"[ ,]+", options[words[1]])]
        assert unknown == [], f"{page}: {line}"


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ("```sh\nls\n```", "comment"),
        ("```sql\nSELECT 1\n```", "comment"),
        ("```\n$ ls\n```", "language"),
        ("```\nfrom a import b\n```", "language"),
        ("```py\n1\n```", "language"),
        ("<!-- not run: slow -->\n```sh\nls\n```", None),
        ("  ```python\n  1\n  ```", None),
        ("```\noutput\n```", None),
    ],
)
def test_a_block_that_is_neither_run_nor_marked_is_found(block: str, problem: str | None) -> None:
    found = problems(block)
    assert bool(found) == bool(problem), found
    if problem:
        assert problem in found[0]


def test_a_mark_without_a_reason_is_refused() -> None:
    with pytest.raises(ValueError, match="why"):
        fences.fences("<!-- not run: -->\n```sh\nls\n```")
    with pytest.raises(ValueError, match="no end"):
        fences.fences("```sh\nls\n")
