"""Names of columns in the arguments of the command: a name with a special character is in backquotes."""

import re
from typing import TYPE_CHECKING

from ..errors import InvalidArgumentError

if TYPE_CHECKING:
    from ..core.protocol.schema import Column, StructField, StructType

IN_BACKQUOTES = "`(?:[^`]|``)+`"
"""The pattern of a name in backquotes, or of a part of one."""


def listed(text: str, option: str) -> list[str]:
    """The names in a list that is separated by commas, as they are written.

    Raises:
        InvalidArgumentError: There is none; the message names `option`.
    """
    names = [name.strip() for name in re.findall(rf"(?:{IN_BACKQUOTES}|[^,])+", text)]
    if not any(names):
        raise InvalidArgumentError(f"{option} needs the name of a column, or several with commas between them")
    return names


def found(name: str, schema: "StructType", option: str) -> "tuple[Column, StructField]":
    """The column `name`, or the field `a.b` inside a struct.

    Raises:
        InvalidArgumentError: There is no such column; the message names `option`.
    """
    from ..core.protocol.schema import find
    from ..core.schema_evolution.changes import column_of

    located = find(schema, (name,), case_sensitive=False)
    if located is None:
        try:
            located = find(schema, column_of(name), case_sensitive=False)
        except InvalidArgumentError:
            located = None
    if located is None:
        raise InvalidArgumentError(f"{option}: there is no column {name!r}; the table has {', '.join(schema.names)}")
    return located
