"""Finding columns and fields of a schema: by name, at every depth, and those that have statistics."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .field_metadata import COLLATIONS_KEY, char_varchar, has_collation, is_identity, with_name
from .types import (
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    Column,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    UserDefinedType,
)


def leaves(schema: StructType, prefix: Column = ()) -> Iterator[tuple[Column, StructField]]:
    """Each column that isn't a struct, in schema order, with its full name; arrays and maps are leaves."""
    for field in schema.fields:
        if isinstance(field.data_type, StructType):
            yield from leaves(field.data_type, (*prefix, field.name))
        else:
            yield (*prefix, field.name), field


def find(
    schema: StructType, column: Sequence[str], *, case_sensitive: bool = False
) -> tuple[Column, StructField] | None:
    """The exact name and the field of `column`, each part looked up as in `StructType.get`; `None` if it is missing."""
    exact: list[str] = []
    field: StructField | None = None
    level: DataType = schema
    for part in column:
        if not isinstance(level, StructType):
            return None
        field = level.get(part, case_sensitive=case_sensitive)
        if field is None:
            return None
        exact.append(field.name)
        level = field.data_type
    return (tuple(exact), field) if field is not None else None


def collations(field: StructField) -> dict[Column, Mapping[str, Any]]:
    """The collations of the strings in a column: for each field at any depth that has some, as in its metadata."""
    fields = all_fields(StructType((field,)))
    return {name: inner.metadata[COLLATIONS_KEY] for name, inner in fields if has_collation(inner)}


def has_other_collations(one: StructField, other: StructField) -> bool:
    """Whether strings in two fields of the same type, whose names may differ, have other collations."""
    return collations(one) != collations(with_name(other, one.name))


def has_same_type(one: StructField, other: StructField) -> bool:
    """Whether two fields, whose names may differ, have the same type, length of char or varchar, and collations."""
    same = one.data_type == other.data_type and char_varchar(one) == char_varchar(other)
    return same and not has_other_collations(one, other)


def contains(data_type: DataType, test: Callable[[DataType], bool]) -> bool:
    """Whether `test` holds for the type or for any type inside it."""
    if test(data_type):
        return True
    if isinstance(data_type, StructType):
        return any(contains(f.data_type, test) for f in data_type.fields)
    if isinstance(data_type, ArrayType):
        return contains(data_type.element_type, test)
    if isinstance(data_type, MapType):
        return contains(data_type.key_type, test) or contains(data_type.value_type, test)
    return isinstance(data_type, UserDefinedType) and contains(data_type.sql_type, test)


def all_fields(data_type: DataType, prefix: Column = ()) -> Iterator[tuple[Column, StructField]]:
    """Every field at every depth, including structs inside arrays (`element`) and maps (`key`, `value`)."""
    if isinstance(data_type, StructType):
        for field in data_type.fields:
            yield (*prefix, field.name), field
            yield from all_fields(field.data_type, (*prefix, field.name))
    elif isinstance(data_type, ArrayType):
        yield from all_fields(data_type.element_type, (*prefix, "element"))
    elif isinstance(data_type, MapType):
        yield from all_fields(data_type.key_type, (*prefix, "key"))
        yield from all_fields(data_type.value_type, (*prefix, "value"))


def has_min_max(data_type: DataType) -> bool:
    """Whether Delta has minimum and maximum for a column of this type: numbers, dates, timestamps and strings."""
    return isinstance(data_type, PrimitiveType) and (
        data_type.is_numeric or data_type in (DATE, TIMESTAMP, TIMESTAMP_NTZ, STRING)
    )


def indexed_leaves(
    schema: StructType,
    partition_columns: Sequence[str],
    num_indexed: int = 32,
    stats_columns: Sequence[Column] | None = None,
) -> list[tuple[Column, StructField]]:
    """The leaves with statistics, in schema order.

    These are the first `num_indexed` leaves that aren't partition columns (all if negative; an array or a map counts as
    one leaf), or, with `stats_columns` (`delta.dataSkippingStatsColumns`), the leaves at or below these names, ignoring
    case. Identity columns are always included, because the next high-water mark comes from their bounds. Every indexed
    leaf has a null count; `has_min_max` says which ones also have bounds.
    """
    all_leaves = list(leaves(schema.without(partition_columns)))
    if stats_columns is None:
        return [(name, f) for i, (name, f) in enumerate(all_leaves) if not 0 <= num_indexed <= i or is_identity(f)]
    names = [tuple(part.lower() for part in name) for name in stats_columns]
    return [
        (name, f)
        for name, f in all_leaves
        if is_identity(f) or any(tuple(part.lower() for part in name[: len(w)]) == w for w in names)
    ]
