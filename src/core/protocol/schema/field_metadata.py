"""The keys of a field's metadata, and their meaning."""

import re

from .types import StructField

CHAR_VARCHAR_KEY = "__CHAR_VARCHAR_TYPE_STRING"
COLLATIONS_KEY = "__COLLATIONS"
INVARIANTS_KEY = "delta.invariants"
GENERATION_KEY = "delta.generationExpression"
DEFAULT_KEY = "CURRENT_DEFAULT"
TYPE_CHANGES_KEY = "delta.typeChanges"
IDENTITY_PREFIX = "delta.identity."


def is_identity(field: StructField) -> bool:
    return any(key.startswith(IDENTITY_PREFIX) for key in field.metadata)


def has_lengths_inside(field: StructField) -> bool:
    """Whether a column has char or varchar inside its type. Its metadata then has the names of all fields inside."""
    return CHAR_VARCHAR_KEY in field.metadata and char_varchar(field) is None


def char_varchar(field: StructField) -> tuple[str, int] | None:
    """("char" or "varchar", length) of a string column that was declared with such a type, else `None`."""
    match = re.fullmatch(r"(char|varchar)\((\d{1,10})\)", str(field.metadata.get(CHAR_VARCHAR_KEY, "")), re.ASCII)
    return (match[1], int(match[2])) if match else None
