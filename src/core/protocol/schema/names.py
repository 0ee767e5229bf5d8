"""The names of columns and tables as text: quoted for SQL and for Spark's `col`, and for messages."""

import re

from .types import Column


def quoted(*parts: str) -> str:
    """A name for SQL and for Spark's `col`: each of its parts in backquotes, separated by dots."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def unquoted(part: str) -> str:
    """A part of a name without its backquotes, if it has them."""
    return part[1:-1].replace("``", "`") if part.startswith("`") else part


def dotted(column: Column) -> str:
    """A column's name for messages: parts with special characters are in backquotes."""
    return ".".join(part if re.fullmatch(r"\w+", part) else quoted(part) for part in column)
