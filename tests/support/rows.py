"""Rows as a multiset that compares exactly: NaN equals itself, a map is a set of pairs, order of rows doesn't count."""

import datetime as dt
import math
from collections import Counter
from typing import Any

import pyarrow as pa


def canonical(value: Any) -> Any:
    """A hashable value that is equal exactly where two readers gave the same."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, dict):
        return tuple(sorted((name, canonical(item)) for name, item in value.items()))
    if isinstance(value, list):
        if value and all(isinstance(item, tuple) and len(item) == 2 for item in value):  # a map, as Arrow gives it
            return frozenset((canonical(key), canonical(item)) for key, item in value)
        return tuple(canonical(item) for item in value)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    return value


def multiset(table: pa.Table) -> Counter[Any]:
    """The rows of `table`, each with its columns by name."""
    names = sorted(table.column_names)
    columns = [table.column(name).to_pylist() for name in names]
    if not columns:
        return Counter({(): table.num_rows})
    return Counter(tuple(zip(names, map(canonical, row), strict=True)) for row in zip(*columns, strict=True))


def assert_same_rows(actual: pa.Table, expected: pa.Table) -> None:
    """The two tables hold the same rows, or the message shows a few that only one has."""
    assert sorted(actual.column_names) == sorted(expected.column_names)
    if _the_same_when_sorted(actual, expected):
        return
    ours, theirs = multiset(actual), multiset(expected)
    assert ours == theirs, f"only actual: {list(ours - theirs)[:3]}\nonly expected: {list(theirs - ours)[:3]}"


def _the_same_when_sorted(actual: pa.Table, expected: pa.Table) -> bool:
    """Whether large tables are surely equal, without a Python object for each value."""
    if actual.num_rows < 1000 or any(pa.types.is_nested(column.type) for column in actual.columns):
        return False
    order = [(name, "ascending") for name in sorted(actual.column_names)]
    ours, theirs = (table.select([name for name, _ in order]) for table in (actual, expected))
    return ours.schema.types == theirs.schema.types and ours.sort_by(order).equals(theirs.sort_by(order))
