"""What the package promises as a whole: what it imports, what its wheel holds, what the README says."""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.other_cases import mark_other_cases
from support.shares import select_share

ROOT = Path(__file__).resolve().parents[1]


def imported_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_core_works_with_no_spark() -> None:
    modules = imported_by("from tablelog.core import DeltaLog; from tablelog.logstore import LocalLogStore")
    assert not {name for name in modules if name.split(".")[0] in ("pyspark", "py4j", "pandas")}


def test_the_top_level_imports_nothing_heavy() -> None:
    assert not {"pyspark", "pyarrow", "fsspec"} & imported_by("import tablelog")


def test_parquet_is_loaded_only_where_it_is_read_or_written() -> None:
    assert "pyarrow.parquet" not in imported_by("import tablelog.spark")  # 0.1 s of each start


def test_every_directory_of_modules_is_a_package() -> None:
    for top in ("src", "conformance"):
        for module in (ROOT / top).rglob("*.py"):
            assert (module.parent / "__init__.py").exists(), f"{module} would be missing in the wheel"


def test_the_readme_names_the_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"\bmake ([a-z-]+)\b", (ROOT / "README.md").read_text()))
    assert {"demo", "test"} <= named <= targets


def test_shares_of_the_tests_are_all_of_them() -> None:
    items = [SimpleNamespace(nodeid=name) for name in ("a::x[1]", "a::x[2]", "a::y", "a::z[1]", "b::x", "b::y")]
    shares = [select_share(items, f"{number}/3")[0] for number in (1, 2, 3)]  # type: ignore[arg-type]
    assert [[item.nodeid for item in share] for share in shares] == [
        ["a::x[1]", "a::z[1]", "b::x", "b::y"],
        ["a::x[2]", "b::x", "b::y"],
        ["a::y", "b::x", "b::y"],
    ]


class Case(SimpleNamespace):
    """As much of a case as the choice of cases needs."""

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.markers else None

    def add_marker(self, marker: pytest.MarkDecorator) -> None:
        self.markers.append(marker.name)


def test_the_first_and_the_last_case_of_a_test_with_spark_are_fast_or_only_the_first() -> None:
    def case(name: str, *markers: str, fixtures: tuple[str, ...] = ("spark",)) -> Case:
        return Case(nodeid=name, markers=list(markers), fixturenames=fixtures)

    items = [
        *(case(f"a::x[{letter}]") for letter in "abcd"),
        case("a::y"),
        *(case(f"a::z[{letter}]", fixtures=()) for letter in "abc"),
        *(case("b::x[a]"), case("b::x[b]", "slow"), case("b::x[c]"), case("b::x[d]", "slow")),
        *(case(f"c::x[{letter}]", "one_case") for letter in "abc"),
        case("c::y", "one_case"),
    ]
    mark_other_cases(items)  # type: ignore[arg-type]
    slow = [item.nodeid for item in items if "slow" in item.markers]
    assert slow == ["a::x[b]", "a::x[c]", "b::x[b]", "b::x[d]", "c::x[b]", "c::x[c]"]
