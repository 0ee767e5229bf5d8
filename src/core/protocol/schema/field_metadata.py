"""The keys of a field's metadata, and their meaning."""

import re
from collections.abc import Mapping
from dataclasses import replace

from .types import StructField

CHAR_VARCHAR_KEY = "__CHAR_VARCHAR_TYPE_STRING"
COLLATIONS_KEY = "__COLLATIONS"
INVARIANTS_KEY = "delta.invariants"
GENERATION_KEY = "delta.generationExpression"
DEFAULT_KEY = "CURRENT_DEFAULT"
TYPE_CHANGES_KEY = "delta.typeChanges"
IDENTITY_PREFIX = "delta.identity."


def with_name(field: StructField, name: str) -> StructField:
    """The field with another name: its collations are stored by the path of each string, which begins with the name."""
    collations = field.metadata.get(COLLATIONS_KEY)
    if name == field.name or not isinstance(collations, Mapping):
        return replace(field, name=name)
    moved = {
        name + path[len(field.name) :] if path == field.name or path.startswith(f"{field.name}.") else path: collation
        for path, collation in collations.items()
    }
    return replace(field, name=name, metadata={**field.metadata, COLLATIONS_KEY: moved})


def is_identity(field: StructField) -> bool:
    return any(key.startswith(IDENTITY_PREFIX) for key in field.metadata)


def has_collation(field: StructField) -> bool:
    """Whether a string in the column has a collation other than the comparison by bytes."""
    return COLLATIONS_KEY in field.metadata


def has_lengths_inside(field: StructField) -> bool:
    """Whether a column has char or varchar inside its type. Its metadata then has the names of all fields inside."""
    return CHAR_VARCHAR_KEY in field.metadata and char_varchar(field) is None


def char_varchar(field: StructField) -> tuple[str, int] | None:
    """("char" or "varchar", length) of a string column that was declared with such a type, else `None`."""
    match = re.fullmatch(r"(char|varchar)\((\d{1,10})\)", str(field.metadata.get(CHAR_VARCHAR_KEY, "")), re.ASCII)
    return (match[1], int(match[2])) if match else None
