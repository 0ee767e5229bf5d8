"""REPLACE COLUMNS: all columns of a table at once. Pure functions, like `changes`."""

from dataclasses import replace

from ...errors import InvalidArgumentError
from ..protocol.actions import Metadata, Protocol
from ..protocol.schema import (
    IDENTITY_PREFIX,
    ArrayType,
    Column,
    DataType,
    MapType,
    StructField,
    StructType,
    check_no_duplicates,
    dotted,
    has_same_type,
    parse_schema,
    to_json,
    with_name,
)
from .changes import COMMENT, NewColumn, check_addable, check_type, recorded
from .columns import OF_TYPE


def columns_replaced(metadata: Metadata, protocol: Protocol, columns: StructType) -> Metadata:
    """The metadata with other columns: REPLACE COLUMNS. Existing columns keep their metadata, but take a new comment.

    `InvalidArgumentError` if a column or a field of a struct would be dropped, or gets a type that existing data may
    not fit; dropping has its own command.
    """
    schema = parse_schema(metadata.schema_string)
    if any(key.startswith(IDENTITY_PREFIX) for f in schema for key in f.metadata):
        raise InvalidArgumentError(
            "the columns of a table with identity columns can't be replaced: add, drop or alter single columns",
            condition="DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED",
        )
    check_no_duplicates(columns)
    replaced_schema = _struct_replaced(metadata, protocol, schema, columns, ())
    return replace(metadata, schema_string=to_json(recorded(replaced_schema, schema)))


def _struct_replaced(
    metadata: Metadata, protocol: Protocol, old: StructType, new: StructType, at: Column
) -> StructType:
    dropped_fields = [dotted((*at, f.name)) for f in old if new.get(f.name) is None]
    if dropped_fields:
        raise _columns_not_replaced(f"it would drop {', '.join(dropped_fields)}: use DROP COLUMNS")
    fields = []
    for field in new:
        known = old.get(field.name)
        if known is None:
            check_addable(NewColumn(field, at))
            fields.append(field)
            continue
        name = (*at, known.name)
        if known.nullable and not field.nullable:
            raise _columns_not_replaced(f"the column {dotted(name)} may contain nulls and can't be made NOT NULL")
        new_metadata = {key: value for key, value in known.metadata.items() if key not in OF_TYPE}
        declared = with_name(field, known.name).metadata
        new_metadata |= {key: declared[key] for key in (COMMENT, *OF_TYPE) if key in declared}
        inside = _type_replaced(metadata, protocol, known, field, name)
        fields.append(replace(known, data_type=inside, nullable=field.nullable, metadata=new_metadata))
    return StructType(tuple(fields))


def _type_replaced(metadata: Metadata, protocol: Protocol, old: StructField, new: StructField, at: Column) -> DataType:
    """The type of an existing column, or of what is inside an array or a map, after REPLACE COLUMNS."""
    before, after = old.data_type, new.data_type

    def inner(name: str, old: DataType, other: DataType) -> DataType:
        return _type_replaced(metadata, protocol, StructField(name, old), StructField(name, other), (*at, name))

    if isinstance(before, StructType) and isinstance(after, StructType):
        return _struct_replaced(metadata, protocol, before, after, at)
    if isinstance(before, ArrayType) and isinstance(after, ArrayType):
        return replace(before, element_type=inner("element", before.element_type, after.element_type))
    if isinstance(before, MapType) and isinstance(after, MapType):
        key, value = inner("key", before.key_type, after.key_type), inner("value", before.value_type, after.value_type)
        return replace(before, key_type=key, value_type=value)
    if not has_same_type(old, new):
        try:
            check_type(metadata, protocol, at, old, new)
        except InvalidArgumentError as error:
            raise _columns_not_replaced(str(error)) from error
    return after


def _columns_not_replaced(reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"the columns can't be replaced: {reason}",
        condition="DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
        parameters={"details": reason},
    )
