"""What the schema of new data makes of a table's."""

import json
from typing import Any

import pytest

from tablelog.core.protocol.schema import StructType, parse_schema
from tablelog.core.schema_evolution import merging


def schema(*fields: tuple[Any, ...]) -> StructType:
    """A schema from (name, type, nullable, metadata), the last two optional."""
    return parse_schema(json.dumps(_struct(*fields)))


def _struct(*fields: tuple[Any, ...]) -> dict[str, Any]:
    keys = ("name", "type", "nullable", "metadata")
    return {"type": "struct", "fields": [dict(zip(keys, f, strict=False)) for f in fields]}


def test_a_new_table_takes_every_column_as_nullable_and_no_rule() -> None:
    given = schema(
        ("id", "long", False, {"delta.invariants": "{}", "comment": "kept"}),
        ("a", {"type": "array", "elementType": _struct(("x", "long", False)), "containsNull": False}, False),
    )
    expected = schema(
        ("id", "long", True, {"comment": "kept"}),
        ("a", {"type": "array", "elementType": _struct(("x", "long", True)), "containsNull": True}, True),
    )
    assert merging.as_nullable(given) == expected
    assert expected.fields[0].metadata == merging.as_nullable(given).fields[0].metadata


def test_merging_adds_columns_at_the_end_of_their_struct() -> None:
    current = schema(("id", "long", False), ("s", _struct(("A", "long", False)), True))
    data = schema(("new", "date", False), ("S", _struct(("b", "string", False), ("a", "long"))), ("ID", "integer"))
    merged = merging.merged_schema(current, data)
    assert merged == schema(
        ("id", "long", False), ("s", _struct(("A", "long", False), ("b", "string", True)), True), ("new", "date")
    )


@pytest.mark.parametrize(
    ("current", "given", "merged"),
    [
        ("byte", "short", "short"),
        ("byte", "integer", "integer"),
        ("integer", "byte", "integer"),
        ("integer", "long", "integer"),
        ("long", "integer", "long"),
        ("decimal(10,2)", "decimal(12,2)", "decimal(10,2)"),
        ("void", "string", "string"),
        ("string", "void", "string"),
    ],
)
def test_merging_types(current: str, given: str, merged: str) -> None:
    for wrap in (
        lambda t: t,
        lambda t: {"type": "array", "elementType": t, "containsNull": True},
        lambda t: {"type": "map", "keyType": t, "valueType": t, "valueContainsNull": True},
        lambda t: _struct(("x", t)),
    ):
        found = merging.merged_schema(schema(("c", wrap(current))), schema(("c", wrap(given))))
        assert found == schema(("c", wrap(merged)))
