"""Checks of a schema and of its partition columns before a commit."""

from collections.abc import Sequence

from ....errors import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError
from .field_metadata import CHAR_VARCHAR_KEY, has_collation, has_lengths_inside
from .lookup import all_fields
from .names import dotted
from .serialization import type_text
from .types import VARIANT, VOID, Column, PrimitiveType, StructType


def check_no_duplicates(schema: StructType) -> None:
    """Raise `SchemaMismatchError` if two columns of one struct, at any depth, have the same name, ignoring case."""
    seen: set[Column] = set()
    for name, _ in all_fields(schema):
        folded = tuple(part.lower() for part in name)
        if folded in seen:
            raise SchemaMismatchError(
                f"the column {dotted(name)} occurs twice (names that differ only in case count as the same name)",
                condition="DELTA_DUPLICATE_COLUMNS_FOUND.DATA",
                parameters={"duplicateCols": dotted(name)},
            )
        seen.add(folded)


_FORBIDDEN = " ,;{}()\n\t="


def check_parquet_names(schema: StructType, known: StructType) -> None:
    """Raise `InvalidArgumentError` for a new name with a character that Delta allows only with column mapping.

    Other engines don't have this rule, so a table may have such columns already: those of `known` are accepted.
    """
    accepted = {name for name, _ in all_fields(known)}
    for name, _ in all_fields(schema):
        if name in accepted:
            continue
        bad = sorted({char for char in name[-1] if char in _FORBIDDEN})
        if bad or not name[-1]:
            shown = ", ".join(repr(char) for char in bad) or "no character"
            raise InvalidArgumentError(
                f"the name of the column {dotted(name)} has {shown}: a column name is not empty and has none of "
                f"{_FORBIDDEN!r} unless the table uses column mapping; rename the column",
                condition="DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
                parameters={"invalidColumnNames": dotted(name)},
            )


def check_partition_columns(schema: StructType, partition_columns: Sequence[str]) -> None:
    """Raise `InvalidArgumentError` unless they are distinct top-level primitive columns, and another column remains."""
    seen: set[str] = set()
    for name in partition_columns:
        field = schema.get(name, case_sensitive=True)
        if field is None:
            raise InvalidArgumentError(
                f"the partition column {name!r} is not in the schema ({', '.join(schema.names)})",
                condition="DELTA_PARTITION_COLUMN_NOT_FOUND",
                parameters={"columnName": name, "schemaMap": ", ".join(schema.names)},
            )
        if name in seen:
            raise InvalidArgumentError(
                f"the partition column {name!r} is listed twice",
                condition="DELTA_DUPLICATE_COLUMNS_FOUND",
                parameters={"duplicateCols": name},
            )
        seen.add(name)
        collated = has_collation(field)
        if not isinstance(field.data_type, PrimitiveType) or field.data_type in (VOID, VARIANT) or collated:
            kind = f"{type_text(field.data_type)} with a collation" if collated else type_text(field.data_type)
            raise InvalidArgumentError(
                f"a table can't be partitioned by {name!r}, which has the type {kind}",
                condition="DELTA_INVALID_PARTITION_COLUMN_TYPE",
                parameters={"name": name, "dataType": kind},
            )
    if partition_columns and len(seen) == len(schema):
        raise InvalidArgumentError(
            "every column is a partition column: a table needs at least one other column",
            condition="DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION",
        )


def check_lengths_inside(new: StructType, old: StructType) -> None:
    """Refuse to change the fields inside a column while the lengths in its metadata have their old names and order.

    Raises UnsupportedFeatureError.
    """
    for field in new:
        known = old.get(field.name)
        if known is None or not has_lengths_inside(field):
            continue
        same = field.metadata[CHAR_VARCHAR_KEY] == known.metadata.get(CHAR_VARCHAR_KEY)
        if same and type_text(field.data_type) != type_text(known.data_type):
            raise lengths_inside(field.name)


def lengths_inside(column: str) -> UnsupportedFeatureError:
    """The error for a change inside a column that has char or varchar inside its type."""
    return UnsupportedFeatureError(
        f"the column {dotted((column,))} has char or varchar inside its type: its fields can't be added, dropped, "
        "renamed, moved or changed in type. Write the table anew with overwriteSchema",
        ("changes of columns with char or varchar inside",),
    )
