"""The names of columns as text."""

import re

from .types import Column


def dotted(column: Column) -> str:
    """A column's name for messages: parts with special characters are in backticks."""
    return ".".join(part if re.fullmatch(r"\w+", part) else "`" + part.replace("`", "``") + "`" for part in column)
