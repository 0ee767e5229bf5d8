"""The WHEN clauses of a MERGE, and checks that need neither Spark nor the table."""

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
    """One WHEN clause. `values` are the assigned columns; None for DELETE, UPDATE * and INSERT *."""

    kind: Kind
    action: Action
    condition: str | Column | None = None
    values: Mapping[str, str | Column] | None = None

    @property
    def is_star(self) -> bool:
        """Whether the clause is UPDATE * or INSERT *."""
        return self.action != "delete" and self.values is None

    @property
    def text(self) -> str:
        """The clause as text for error messages."""
        return f"WHEN {self.kind.upper()} THEN {self.action.upper()}"


def of_kind(clauses: Sequence[Clause], kind: Kind) -> list[Clause]:
    """The clauses of this kind, in their order."""
    return [clause for clause in clauses if clause.kind == kind]


def check_clauses(clauses: Sequence[Clause]) -> None:
    """Raise InvalidArgumentError if there is no clause, or if a clause can never apply."""
    if not clauses:
        raise InvalidArgumentError(
            "a MERGE needs at least one WHEN clause: whenMatched..., whenNotMatched... or whenNotMatchedBySource...",
            condition="DELTA_MERGE_MISSING_WHEN",
        )
    for kind in ACTIONS:
        same_kind = of_kind(clauses, kind)
        if any(clause.condition is None for clause in same_kind[:-1]):
            raise InvalidArgumentError(
                f"only the last WHEN {kind.upper()} clause may have no condition: clauses after one without a "
                "condition never apply",
                condition=_UNREACHABLE[kind],
            )


def only_delete(clauses: Sequence[Clause]) -> bool:
    """Whether every WHEN MATCHED clause is a DELETE: then a table row may match any number of source rows.

    A row is deleted if a clause applies to it with at least one of its source rows, in any order.
    """
    matched = of_kind(clauses, "matched")
    return bool(matched) and all(clause.action == "delete" for clause in matched)


def assigned_columns(
    source: StructType, paths: Sequence[tuple[str, ...]], *, star: bool, case_sensitive: bool
) -> StructType:
    """The part of the source's schema that the clauses assign, by which the table's schema may evolve.

    `paths` are the columns that clauses assign by name; `star`: a clause assigns all columns.
    """

    def same(left: str, right: str) -> bool:
        return left == right if case_sensitive else left.lower() == right.lower()

    def begins(path: tuple[str, ...], start: tuple[str, ...]) -> bool:
        return len(path) >= len(start) and all(map(same, path, start))

    def kept(level: StructType, at: tuple[str, ...]) -> StructType:
        fields = []
        for field in level.fields:
            path = (*at, field.name)
            if any(len(assigned) == len(path) and begins(assigned, path) for assigned in paths):
                fields.append(field)
            elif isinstance(field.data_type, StructType) and (
                star or any(begins(assigned, path) for assigned in paths)
            ):
                inner = kept(field.data_type, path)
                fields.append(type(field)(field.name, inner, field.nullable, field.metadata))
            elif star:
                fields.append(field)
        return StructType(tuple(fields))

    return kept(source, ())
