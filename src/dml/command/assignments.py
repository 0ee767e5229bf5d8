"""The columns that an UPDATE or a MERGE clause assigns, and the resulting column values."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F

from ...core.protocol.schema import StructField, StructType, dotted, find, with_name
from ...engine.read.scan import Alias
from ...errors import InvalidArgumentError, SchemaMismatchError

Path: TypeAlias = tuple[str, ...]
"""The full name of a column, or of a field inside one."""


def path_of(
    name: str,
    parts: Sequence[str],
    columns: StructType,
    alias: Alias | None,
    *,
    case_sensitive: bool,
    command: str = "UPDATE",
) -> Path:
    """Resolve `name`, split into `parts`, to a column or struct field, spelled as in the table's schema.

    The table's alias may come first. `command` names the command in error messages. Raises SchemaMismatchError
    if there is no such column. Fields inside arrays and maps cannot be assigned individually.
    """
    match = None
    for path in (*without_alias(parts, alias), parts):
        match = match or find(columns, path, case_sensitive=case_sensitive)
    if match is None:
        listed = ", ".join(dotted((f.name,)) for f in columns)
        raise SchemaMismatchError(
            f"{command} sets the column {name}, which the table doesn't have; it has {listed}. To change a value "
            "inside an array or a map, set the whole column",
            condition="UNRESOLVED_COLUMN.WITH_SUGGESTION",
            parameters={"objectName": name, "proposal": listed},
        )
    return match[0]


def without_alias(parts: Sequence[str], alias: Alias | None) -> Iterator[Path]:
    """The parts of a name without the table's alias, or without the last parts of it; the longest first."""
    qualifier = [part.lower() for part in ([alias] if isinstance(alias, str) else alias or ())]
    folded = [part.lower() for part in parts]
    for start in range(len(qualifier)):
        count = len(qualifier) - start
        if len(parts) > count and folded[:count] == qualifier[start:]:
            yield tuple(parts[count:])


def field_of(path: Path, columns: StructType) -> StructField:
    """The field at `path`, a result of `path_of`; its name is the full dotted name."""
    known = find(columns, path, case_sensitive=True)
    assert known is not None
    return with_name(known[1], dotted(path))


def check_distinct(paths: Sequence[Path], *, command: str = "UPDATE") -> None:
    """Raise InvalidArgumentError if `command` assigns a column twice, or a column and one of its fields."""
    for i, path in enumerate(paths):
        for other in paths[:i]:
            shared = min(len(path), len(other))
            if path[:shared] == other[:shared]:
                raise InvalidArgumentError(
                    f"{command} sets {dotted(min(path, other, key=len))} more than once"
                    + ("" if path == other else f", as a whole and in {dotted(max(path, other, key=len))}"),
                    condition="DELTA_CONFLICT_SET_COLUMN",
                    parameters={"columnList": dotted(path)},
                )


def whole(at: Path, field: StructField, kept: Column, assigned: Mapping[Path, Column]) -> Column:
    """The new value of the column `at`: assigned fields get their values, other fields keep those of `kept`.

    A null struct becomes a struct if one of its fields is assigned.
    """
    if at in assigned:
        return assigned[at]
    if not any(path[: len(at)] == at for path in assigned):
        return kept
    assert isinstance(field.data_type, StructType)
    return F.struct(
        *(
            whole((*at, inner.name), inner, kept.getField(inner.name), assigned).alias(inner.name)
            for inner in field.data_type
        )
    )
