"""Which columns an UPDATE, or a clause of a MERGE, sets, and what a row is once they are set."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F

from ...core.protocol.schema import StructField, StructType, dotted, find
from ...errors import InvalidArgumentError, SchemaMismatchError

Path: TypeAlias = tuple[str, ...]
"""The full name of a column, or of a field inside one."""


def path_of(
    name: str,
    parts: Sequence[str],
    columns: StructType,
    alias: str | None,
    *,
    case_sensitive: bool,
    command: str = "UPDATE",
) -> Path:
    """The column that the parts of `name` say, with or without the table's alias in front, as the table spells it.

    `command` says in messages what sets it. SchemaMismatchError where there is none: fields inside of arrays and maps
    can't be set by themselves.
    """
    found = None
    if alias is not None and len(parts) > 1 and parts[0].lower() == alias.lower():
        found = find(columns, parts[1:], case_sensitive=case_sensitive)
    found = found or find(columns, parts, case_sensitive=case_sensitive)
    if found is None:
        listed = ", ".join(dotted((f.name,)) for f in columns)
        raise SchemaMismatchError(
            f"{command} sets the column {name}, and the table has none of that name; it has {listed}. What lies inside "
            "an array or a map is set with the whole column",
            condition="UNRESOLVED_COLUMN.WITH_SUGGESTION",
            parameters={"objectName": name, "proposal": listed},
        )
    return found[0]


def field_of(path: Path, columns: StructType) -> StructField:
    """What `path_of` found in these columns, by its full name."""
    known = find(columns, path, case_sensitive=True)
    assert known is not None
    return replace(known[1], name=dotted(path))


def check_distinct(paths: Sequence[Path], *, command: str = "UPDATE") -> None:
    """InvalidArgumentError where a column is set twice, or as a whole and inside; `command` is what sets them."""
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


def whole(at: Path, f: StructField, kept: Column, assigned: Mapping[Path, Column]) -> Column:
    """The value of the column `at`: fields inside it that aren't set are `kept`. A null struct gets its fields."""
    if at in assigned:
        return assigned[at]
    if not any(path[: len(at)] == at for path in assigned):
        return kept
    assert isinstance(f.data_type, StructType)
    return F.struct(
        *(
            whole((*at, inner.name), inner, kept.getField(inner.name), assigned).alias(inner.name)
            for inner in f.data_type
        )
    )
