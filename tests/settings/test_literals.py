"""No key of Spark's configuration is spelled out in the source but where it is declared."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tablelog.settings import declarations, spark_own, unsupported

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
KEY = re.compile(r"(?<![\w.])spark\.(?!(?:catalog|read|readStream)\b)[a-z]\w*\.")
"""A key has two dots at least; `spark.table(...)` in a message has one, and Spark's classes begin with `org.`."""
OWN = re.compile(r"spark\.(?:databricks\.delta|tablelog|delta)\.[A-Za-z0-9_.]*[A-Za-z0-9_*]")


def keys_in(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and the text of each literal that has a key in it. Docstrings are prose."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in prose:
            continue
        if KEY.search(node.value):
            yield node.lineno, node.value


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('KEY = "spark.databricks.delta.some.key"', True),
        ('raise ValueError(f"set spark.sql.some{key} to {value}")', True),
        ('conf.get("spark.job.interruptOnCancel")', True),
        ('KEY = f"spark.hadoop.{prefix}"', True),
        ('"""The setting spark.sql.some.key."""', False),
        ('name = "org.apache.spark.sql.classic"', False),
        ('"spark.table(name).cache()" + "spark.catalog.listColumns"', False),
    ],
)
def test_what_a_key_is(source: str, found: bool) -> None:
    assert bool(list(keys_in(ast.parse(source)))) == found


def test_no_literal_outside_of_the_declarations() -> None:
    files = [path for path in SOURCE.rglob("*.py") if path.parent != SOURCE / "settings"]
    assert len(files) > 200
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text!r}"
        for path in files
        for line, text in keys_in(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found, "declare them in src/settings, and use the declaration"


def test_texts_name_declared_keys_only() -> None:
    """The docs, docstrings and messages have no key that is misspelled or was renamed."""
    families = [one.prefix.rstrip(".") for one in (*declarations.FAMILIES, spark_own.HADOOP)]
    known = declarations.SETTINGS.keys() | unsupported.UNSUPPORTED.keys()
    texts = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *SOURCE.rglob("*.py")]
    unknown = []
    for path in texts:
        for key in OWN.findall(path.read_text(encoding="utf-8")):
            start = key.removesuffix("*").removesuffix(".")
            if not (
                key in known or start.startswith(tuple(families)) or any(one.startswith(f"{start}.") for one in known)
            ):
                unknown.append(f"{path.relative_to(ROOT)}: {key}")
    assert not unknown
