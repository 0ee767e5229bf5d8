"""The tests that docs/security.md names as evidence exist, and its list of dependencies is complete."""

import ast
import re
import tomllib
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_PAGE = (_ROOT / "docs" / "security.md").read_text(encoding="utf-8")


def _functions(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.FunctionDef)}


def test_the_named_tests_exist() -> None:
    named = re.findall(r"`(tests/[a-z0-9_/]+\.py)::(\w+)`", _PAGE)
    assert len(named) >= 25
    assert [f"{file}::{test}" for file, test in named if test not in _functions(_ROOT / file)] == []


def test_the_named_settings_are_declared() -> None:
    from tablelog.settings.declarations import has_effect

    named = set(re.findall(r"`(spark\.tablelog\.\w+)`", _PAGE))
    assert named == {"spark.tablelog.trustedFunctions", "spark.tablelog.externalPaths"}
    assert all(map(has_effect, named))


def test_each_dependency_is_listed_with_its_extra() -> None:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {(_name(text), "") for text in project["dependencies"]}
    for extra, texts in project["optional-dependencies"].items():
        declared |= {(_name(text), extra) for text in texts if extra != "all"}
    rows = re.findall(r"^\| ([\w, -]+) \| (?:`(\w+)`)? ?\| .* \| (?:yes|no) \|$", _PAGE, re.MULTILINE)
    assert {(name.strip(), extra) for names, extra in rows for name in names.split(",")} == declared


def _name(requirement: str) -> str:
    return re.split(r"[\[<>=~! ]", requirement, maxsplit=1)[0]
