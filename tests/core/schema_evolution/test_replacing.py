"""REPLACE COLUMNS, as a pure function on metadata."""

import pytest

from tablelog.core.protocol.actions import Metadata, Protocol
from tablelog.core.protocol.schema import (
    DEFAULT_KEY,
    LONG,
    STRING,
    ArrayType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    parse_schema,
    to_json,
)
from tablelog.core.schema_evolution.replacing import columns_replaced
from tablelog.errors import InvalidArgumentError, SchemaMismatchError

INT = PrimitiveType("integer")
PLAIN = Protocol(1, 2)
WIDENING = Protocol(3, 7, frozenset({"typeWidening"}), frozenset({"typeWidening"}))


def of(*fields: StructField) -> StructType:
    return StructType(fields)


def metadata(*fields: StructField, **properties: str) -> Metadata:
    return Metadata(
        "m", to_json(of(*fields)), configuration={f"delta.{key}": value for key, value in properties.items()}
    )


def replaced(old: Metadata, *fields: StructField, protocol: Protocol = PLAIN) -> StructType:
    return parse_schema(columns_replaced(old, protocol, of(*fields)).schema_string)


def test_existing_columns_keep_their_metadata_and_take_comments() -> None:
    old = metadata(
        StructField("a", INT, False, {"delta.columnMapping.id": 1, "comment": "kept"}),
        StructField("s", of(StructField("x", INT), StructField("y", STRING)), metadata={"comment": "old"}),
    )
    new = replaced(
        old,
        StructField(
            "s",
            of(StructField("z", LONG), StructField("y", STRING), StructField("x", INT)),
            metadata={"comment": "new"},
        ),
        StructField("A", INT),
        StructField("n", STRING, metadata={"comment": "c"}),
    )
    assert new == of(
        StructField(
            "s",
            of(StructField("z", LONG), StructField("y", STRING), StructField("x", INT)),
            metadata={"comment": "new"},
        ),
        StructField("a", INT, True, {"delta.columnMapping.id": 1, "comment": "kept"}),
        StructField("n", STRING, metadata={"comment": "c"}),
    )


def test_inside_arrays_and_maps() -> None:
    old = metadata(StructField("m", MapType(STRING, ArrayType(of(StructField("x", INT)), False), True)))
    wider = MapType(STRING, ArrayType(of(StructField("x", INT), StructField("y", INT)), True), False)
    assert replaced(old, StructField("m", wider)) == of(
        StructField("m", MapType(STRING, ArrayType(of(StructField("x", INT), StructField("y", INT)), False), True))
    )


def test_a_wider_type_is_recorded() -> None:
    old = metadata(StructField("a", INT), enableTypeWidening="true")
    (field,) = replaced(old, StructField("a", LONG), protocol=WIDENING).fields
    assert (field.data_type, field.metadata["delta.typeChanges"]) == (
        LONG,
        [{"fromType": "integer", "toType": "long"}],
    )


@pytest.mark.parametrize(
    "columns",
    [
        of(StructField("a", INT)),
        of(StructField("a", STRING), StructField("s", of(StructField("x", INT)))),
        of(StructField("a", LONG), StructField("s", of(StructField("x", INT)))),
        of(StructField("a", INT), StructField("s", of(StructField("y", INT)))),
        of(StructField("a", INT, False), StructField("s", of(StructField("x", INT)))),
        of(StructField("a", INT), StructField("s", ArrayType(INT, True))),
    ],
)
def test_what_existing_data_may_not_fit(columns: StructType) -> None:
    old = metadata(StructField("a", INT), StructField("s", of(StructField("x", INT))))
    with pytest.raises(InvalidArgumentError) as raised:
        columns_replaced(old, PLAIN, columns)
    assert raised.value.condition == "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"


def test_new_columns_and_names() -> None:
    old = metadata(StructField("a", INT))
    with pytest.raises(InvalidArgumentError, match="NOT NULL"):
        replaced(old, StructField("a", INT), StructField("b", INT, False))
    with pytest.raises(InvalidArgumentError):
        replaced(old, StructField("a", INT), StructField("b", INT, metadata={DEFAULT_KEY: "1"}))
    with pytest.raises(SchemaMismatchError):
        replaced(old, StructField("a", INT), StructField("A", INT))
    numbered = metadata(StructField("a", LONG, metadata={"delta.identity.start": 1}))
    with pytest.raises(InvalidArgumentError) as raised:
        replaced(numbered, StructField("a", LONG))
    assert raised.value.condition == "DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED"
