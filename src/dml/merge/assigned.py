"""Checks of the columns that a WHEN clause assigns."""

from collections.abc import Sequence

from ...core.protocol.schema import dotted
from ...errors import SchemaMismatchError
from ..command import rows
from ..command.assignments import Path, check_distinct
from ..command.command import Command
from .clauses import Clause


def check_assigned(command: Command, clause: Clause, paths: Sequence[Path]) -> list[str]:
    """The names of the columns that a clause assigns, whole or in part.

    Raises SchemaMismatchError for an INSERT of a part of a column, InvalidArgumentError for a column that is assigned
    twice or whose values the table generates.
    """
    check_distinct(paths, command=clause.text)
    columns = list(dict.fromkeys(path[0] for path in paths))
    if clause.action == "update":
        rows.check_updated(command, columns)
        return columns
    for path in paths:
        if len(path) > 1:
            raise SchemaMismatchError(
                f"{command.log.table}: {clause.text} sets the field {dotted(path)}, but INSERT can only set whole "
                "columns: use named_struct"
            )
    rows.check_inserted(command, columns)
    return columns
