"""The tables of docs/guide/errors.md say what the code says."""

import re
from pathlib import Path

from tablelog import error_conditions, errors

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "guide" / "errors.md").read_text(encoding="utf-8")


def rows(columns: int) -> list[list[str]]:
    """The cells of the table that has as many columns, without its head."""
    cells = [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if "|" in line
    ]
    return [row for row in cells if len(row) == columns and not row[0].startswith(("-", "class", "condition"))]


def test_each_class_is_listed_with_its_condition() -> None:
    listed = {name: condition for name, condition, _ in rows(3)}
    kinds = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.TablelogError)]
    assert listed == {kind.__name__: kind.condition for kind in kinds}


def test_each_condition_is_listed_with_its_state_and_class() -> None:
    listed = {name: (state, raises) for name, state, raises, _ in rows(4)}
    assert {name.partition(".")[0] for name in listed} == error_conditions.CONDITIONS.keys()
    for name, found in listed.items():
        assert found == tuple(error_conditions.of(name)), name
    for *_, classes in rows(4):
        assert all(hasattr(errors, name) for name in re.findall(r"\w+", classes)), classes
