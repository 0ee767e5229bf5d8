"""docs/api.md shows each public name of Python, and no other name."""

import re
from pathlib import Path

from support import public_api

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"
ON_THE_PAGE_AS_TEXT = {"tablelog.__version__"}
_DIRECTIVE = re.compile(r"^::: (\S+)\n((?: .*\n)*)", re.MULTILINE)
_MEMBER = re.compile(r"^ +- (\w+)$", re.MULTILINE)


def listed(text: str) -> list[str]:
    """The names that the page's directives show: of a module with `members`, these."""
    names: list[str] = []
    for name, options in _DIRECTIVE.findall(text + "\n"):
        members = _MEMBER.findall(options)
        names += [f"{name}.{member}" for member in members] or [name]
    return names


def public(text: str) -> set[str]:
    """The names of the public modules in the kept list, without the members of classes."""
    modules = sorted(public_api.MODULES, key=len, reverse=True)
    names = re.findall(r"^tablelog\.[\w.]+", text, re.MULTILINE)
    found = set()
    for name in names:
        module = next(module for module in modules if name.startswith(f"{module}."))
        found.add(f"{module}.{name.removeprefix(f'{module}.').split('.')[0]}")
    return found


def test_the_page_shows_each_public_name_once_and_no_other() -> None:
    names = listed(PAGE.read_text(encoding="utf-8"))
    expected = public(public_api.KEPT.read_text(encoding="utf-8")) - ON_THE_PAGE_AS_TEXT
    assert len(expected) > 100
    assert (sorted(expected - {*names}), sorted({*names} - expected)) == ([], [])
    assert len(names) == len({*names})


OF_A_PAGE = """
::: tablelog.retrying

::: tablelog.errors
    options:
      members:
        - CorruptLogError
        - StorageError
"""
OF_A_LIST = """
tablelog.spark.exceptions.StorageError(*args) is a StorageError, TablelogError
tablelog.core.Snapshot.files
tablelog.retrying(command)
tablelog log: --json
"""


def test_names_are_found_by_directive_and_by_member() -> None:
    assert listed(OF_A_PAGE) == ["tablelog.retrying", "tablelog.errors.CorruptLogError", "tablelog.errors.StorageError"]
    assert sorted(public(OF_A_LIST)) == [
        "tablelog.core.Snapshot",
        "tablelog.retrying",
        "tablelog.spark.exceptions.StorageError",
    ]
