"""The tables of docs/guide/errors.md say what the code says."""

import ast
import re
from functools import cache
from itertools import takewhile
from pathlib import Path

from tablelog import error_conditions, errors

_ROOT = Path(__file__).resolve().parents[2]
_SOURCE = _ROOT / "src"
PAGE = (_ROOT / "docs" / "guide" / "errors.md").read_text(encoding="utf-8")
BY_CLASS = "| class | default condition |"
BY_CAUSE = "| condition | class of tablelog |"
BY_STATE = "| condition | SQLSTATE |"
_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?:\.[A-Z0-9_]+)?|TABLELOG_ERROR")
CLASSES = {
    name: one for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, errors.TablelogError)
}


def rows(head: str) -> list[list[str]]:
    """The cells of the table whose head begins with `head`."""
    _, found, rest = PAGE.partition(f"\n{head}")
    assert found, head
    table = takewhile(lambda line: line.startswith("|"), rest.splitlines()[2:])
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def raised(code: str) -> set[tuple[str, str]]:
    """The names in `condition=...` of each call of a program, with the name of what is called."""
    if "condition=" not in code:
        return set()
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    return {
        (part.value, call.func.id if isinstance(call.func, ast.Name) else "")
        for call in calls
        for keyword in call.keywords
        if keyword.arg == "condition"
        for part in ast.walk(keyword.value)
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and _NAME.fullmatch(part.value)
    }


@cache
def _sources() -> list[str]:
    return [path.read_text(encoding="utf-8") for path in _SOURCE.rglob("*.py") if path.name != "error_conditions.py"]


@cache
def _raised() -> set[tuple[str, str]]:
    return {one for code in _sources() for one in raised(code)}


def test_each_class_is_listed_with_its_condition() -> None:
    listed = {name.strip("`"): condition.strip("`") for name, condition, _ in rows(BY_CLASS)}
    assert listed == {name: kind.condition for name, kind in CLASSES.items()}


def test_each_condition_is_listed_with_its_state_and_class() -> None:
    listed = {name.strip("`"): (state, raises.strip("`")) for name, state, raises in rows(BY_STATE)}
    assert listed == {name: tuple(one) for name, one in error_conditions.CONDITIONS.items()}


def test_each_condition_of_the_source_has_a_row_with_its_cause_and_remedy() -> None:
    listed = {name.strip("`"): (cause, remedy) for name, _, cause, remedy in rows(BY_CAUSE)}
    assert all(len(cause) > 5 and len(remedy) > 5 for cause, remedy in listed.values())
    mentioned = {name for code in _sources() for name in re.findall(rf'"({_NAME.pattern})"', code)}
    given = {name for name, _ in _raised()} | {kind.condition for kind in CLASSES.values()}
    given |= {name for name in mentioned if name.startswith(("DELTA_", "TABLELOG_"))}
    assert sorted(given - listed.keys()) == []
    assert sorted(listed.keys() - mentioned) == []
    known = {name.partition(".")[0] for name in listed}
    assert known == error_conditions.CONDITIONS.keys()


def test_each_row_names_the_classes_that_the_source_raises() -> None:
    listed = {name.strip("`"): set(re.findall(r"\w+", classes)) for name, classes, *_ in rows(BY_CAUSE)}
    assert {name for classes in listed.values() for name in classes} <= CLASSES.keys()
    found = {(name, called) for name, called in _raised() if called in CLASSES}
    assert len(found) > 150
    assert sorted((name, called) for name, called in found if called not in listed[name]) == []


def test_conditions_are_found_in_calls() -> None:
    code = 'raise A("B_C", condition="D_E" if x == "f" else "G_H.I_J", table="K_L")'
    assert raised(code) == {("D_E", "A"), ("G_H.I_J", "A")}
