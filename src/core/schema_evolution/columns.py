"""Finding a column in a schema by its name, and replacing it."""

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from ...errors import InvalidArgumentError
from ..protocol.column_mapping import transformed
from ..protocol.schema import (
    CHAR_VARCHAR_KEY,
    COLLATIONS_KEY,
    ArrayType,
    Column,
    DataType,
    MapType,
    StructField,
    StructType,
    dotted,
    with_name,
)

OF_TYPE = (CHAR_VARCHAR_KEY, COLLATIONS_KEY)
"""The keys of a field's metadata that belong to its type."""


def resolved(schema: StructType, column: Column) -> tuple[Column, StructField | None]:
    """(the exact name, the field) of a column; no field for the inside of an array or a map.

    Case is ignored; `element`, `key` and `value` refer to the inside. `InvalidArgumentError` if it doesn't exist.
    """
    level: DataType = schema
    exact: list[str] = []
    field: StructField | None = None
    for part in column:
        if isinstance(level, StructType):
            field = level.get(part)
            inner = {} if field is None else {field.name: field.data_type}
        else:
            field, inner = None, _parts(level)
        name = next(iter(inner), "") if field is not None else part.lower()
        if name not in inner:
            known = ", ".join(level.names if isinstance(level, StructType) else inner) or "nothing"
            raise InvalidArgumentError(
                f"there is no column {dotted(column)}: {dotted(tuple(exact)) or 'the table'} has {known}",
                condition="UNRESOLVED_COLUMN.WITH_SUGGESTION",
                parameters={"objectName": dotted(column), "proposal": known},
            )
        exact.append(name)
        level = inner[name]
    return tuple(exact), field


def _parts(data_type: DataType) -> dict[str, DataType]:
    if isinstance(data_type, ArrayType):
        return {"element": data_type.element_type}
    if isinstance(data_type, MapType):
        return {"key": data_type.key_type, "value": data_type.value_type}
    return {}


def type_at(schema: DataType, at: Column) -> DataType:
    """The type at an exact name; for an empty name the schema itself."""
    for part in at:
        if isinstance(schema, StructType):
            field = schema.get(part, case_sensitive=True)
            assert field is not None
            schema = field.data_type
        else:
            schema = _parts(schema)[part]
    return schema


def rebuilt(level: DataType, at: Column, make: Callable[[DataType], DataType]) -> DataType:
    """The type with `make` applied to the part at an exact name."""
    if not at:
        return make(level)
    part, rest = at[0], at[1:]
    if isinstance(level, StructType):
        fields = (replace(f, data_type=rebuilt(f.data_type, rest, make)) if f.name == part else f for f in level.fields)
        return StructType(tuple(fields))
    if isinstance(level, ArrayType):
        return replace(level, element_type=rebuilt(level.element_type, rest, make))
    assert isinstance(level, MapType)
    if part == "key":
        return replace(level, key_type=rebuilt(level.key_type, rest, make))
    return replace(level, value_type=rebuilt(level.value_type, rest, make))


def with_struct(schema: StructType, at: Column, struct: StructType) -> StructType:
    """The schema with the struct at an exact name replaced; for an empty name the schema itself is replaced."""
    return cast(StructType, rebuilt(schema, at, lambda _: struct))


def with_type(schema: StructType, at: Column, new: StructField) -> StructType:
    """The schema with a column changed to the type of `new`; if it is a field, to its length and collation too."""
    retyped = cast(StructType, rebuilt(schema, at, lambda _: new.data_type))

    def changed(field: StructField, name: Column) -> StructField:
        if name != at:
            return field
        kept = {key: value for key, value in field.metadata.items() if key not in OF_TYPE}
        declared = {key: value for key, value in with_name(new, field.name).metadata.items() if key in OF_TYPE}
        metadata = {**kept, **declared}
        return field if field.metadata == metadata else replace(field, metadata=metadata)

    return cast(StructType, transformed(retyped, changed))
