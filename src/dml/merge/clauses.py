"""The clauses of a MERGE as the user gave them, and the rules that they have to keep. No Spark job, no table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pyspark.sql import Column

from ...core.protocol.schema import StructType
from ...errors import InvalidArgumentError

Kind: TypeAlias = Literal["matched", "not matched", "not matched by source"]
Action: TypeAlias = Literal["update", "delete", "insert"]

ACTIONS: Mapping[Kind, tuple[Action, ...]] = {
    "matched": ("update", "delete"),
    "not matched": ("insert",),
    "not matched by source": ("update", "delete"),
}
_UNREACHABLE: Mapping[Kind, str] = {
    "matched": "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
    "not matched": "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION",
    "not matched by source": "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
}


@dataclass(frozen=True)
class Clause:
    """One WHEN clause. `values` are the columns that it sets; None for a delete, and for `*`: all columns by name."""

    kind: Kind
    action: Action
    condition: str | Column | None = None
    values: Mapping[str, str | Column] | None = None

    @property
    def is_star(self) -> bool:
        """Whether it is UPDATE * or INSERT *."""
        return self.action != "delete" and self.values is None

    @property
    def text(self) -> str:
        """The clause in words, for messages."""
        return f"WHEN {self.kind.upper()} THEN {self.action.upper()}"


def of_kind(clauses: Sequence[Clause], kind: Kind) -> list[Clause]:
    """The clauses of one kind, in their order."""
    return [clause for clause in clauses if clause.kind == kind]


def check_clauses(clauses: Sequence[Clause]) -> None:
    """InvalidArgumentError for no clause at all, and for one that can never be reached."""
    if not clauses:
        raise InvalidArgumentError(
            "a MERGE needs at least one WHEN clause: whenMatched..., whenNotMatched... or whenNotMatchedBySource...",
            condition="DELTA_MERGE_MISSING_WHEN",
        )
    for kind in ACTIONS:
        found = of_kind(clauses, kind)
        if any(clause.condition is None for clause in found[:-1]):
            raise InvalidArgumentError(
                f"with several WHEN {kind.upper()} clauses only the last one may have no condition: the clauses after "
                "it would never be reached",
                condition=_UNREACHABLE[kind],
            )


def only_delete(clauses: Sequence[Clause]) -> bool:
    """Whether all that is done to matched rows is to delete them: then they may match any number of source rows.

    A row goes where a clause takes it with one of the source's rows at least, in whatever order these come.
    """
    matched = of_kind(clauses, "matched")
    return bool(matched) and all(clause.action == "delete" for clause in matched)


def assigned_columns(
    source: StructType, paths: Sequence[tuple[str, ...]], *, star: bool, case_sensitive: bool
) -> StructType:
    """What of the source's schema clauses bring to the table, by which its schema may grow (schema evolution).

    `paths` are the columns that clauses set by name, `star`: one of them sets all.
    """

    def same(one: str, other: str) -> bool:
        return one == other if case_sensitive else one.lower() == other.lower()

    def begins(path: tuple[str, ...], start: tuple[str, ...]) -> bool:
        return len(path) >= len(start) and all(map(same, path, start))

    def kept(level: StructType, at: tuple[str, ...]) -> StructType:
        fields = []
        for f in level.fields:
            here = (*at, f.name)
            if any(len(path) == len(here) and begins(path, here) for path in paths):
                fields.append(f)
            elif isinstance(f.data_type, StructType) and (star or any(begins(path, here) for path in paths)):
                inner = kept(f.data_type, here)
                fields.append(type(f)(f.name, inner, f.nullable, f.metadata))
            elif star:
                fields.append(f)
        return StructType(tuple(fields))

    return kept(source, ())
