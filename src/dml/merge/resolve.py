"""Resolves the conditions and values of a MERGE's clauses with Spark, and the table's schema after the MERGE."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...core.protocol import schema
from ...core.protocol.schema import StructField, StructType
from ...engine.jvm.connection import settings
from ...engine.jvm.types import frame_schema, table_schema
from ...engine.read import scan
from ...engine.read.scan import Alias
from ...engine.sql.resolution import Expression, Scope, literal_null, printed, reshaped
from ...settings.spark_own import MAX_TO_STRING_FIELDS
from ..command.assignments import Path, field_of, whole
from ..command.command import Command
from .assigned import check_assigned
from .clauses import Clause, only_delete
from .names import Names, stage_evolution


@dataclass(frozen=True)
class Taken:
    """A resolved clause. `values` are the assigned columns by the table's names, cast to the table's types."""

    clause: Clause
    condition: Expression | None
    values: dict[str, Column] = field(default_factory=dict)

    @property
    def test(self) -> Column:
        """The condition; TRUE if the clause has none."""
        return F.lit(True) if self.condition is None else self.condition.column


@dataclass(frozen=True)
class Resolved:
    """A resolved MERGE. `columns` is the table's schema after the commit, `kept` the values of an unchanged row in it.

    `needed` are the positions of the source columns that any expression refers to, `compared` those of the table's
    columns that conditions refer to.
    """

    scope: Scope
    condition: Expression
    matched: list[Taken]
    inserts: list[Taken]
    by_source: list[Taken]
    columns: StructType
    kept: dict[str, Column]
    needed: list[int]
    compared: list[int]
    parameters: dict[str, object]

    @property
    def changing(self) -> list[Taken]:
        """The clauses that change existing rows; the index of a clause in this list is its number."""
        return [*self.matched, *self.by_source]

    @property
    def updates(self) -> list[int]:
        """The numbers of the UPDATE clauses."""
        return [i for i, resolved in enumerate(self.changing) if resolved.clause.action == "update"]

    @property
    def inserts_only(self) -> bool:
        return not self.changing

    @property
    def refuses_several_matches(self) -> bool:
        """Whether a table row that matches several source rows is an error."""
        return bool(self.changing) and not only_delete([resolved.clause for resolved in self.matched])


def resolve(
    command: Command,
    source: DataFrame,
    condition: str | Column,
    clauses: Sequence[Clause],
    *,
    alias: Alias | None,
    evolve: bool,
) -> Resolved:
    """Resolve the condition and the clauses; with `evolve`, stage the evolved schema in the transaction.

    Raises Spark's AnalysisException for an expression that doesn't resolve, SchemaMismatchError, InvalidArgumentError
    and UnsupportedFeatureError.
    """
    command.avoid_columns(source.columns)
    scope = Scope(scan.for_conditions(command.spark, command.snapshot, alias), source)
    names = Names(command, scope.target, table_schema(source.schema), alias)
    if evolve:
        stage_evolution(command, names, clauses)
    columns = frame_schema(schema.parse_schema(command.txn.metadata.schema_string))
    resolver = _Clauses(command, scope, names, columns, evolve)
    search = scope.condition(condition, scope.both, "the search condition of MERGE")
    taken = [resolver.take(clause) for clause in clauses]
    return _frozen(command, scope, search, taken, columns, resolver.kept)


class _Clauses:
    def __init__(self, command: Command, scope: Scope, names: Names, columns: StructType, evolve: bool) -> None:
        self._command = command
        self._scope = scope
        self._names = names
        self._columns = columns
        self._evolve = evolve
        self.kept = self._kept(table_schema(scope.target.schema))

    def _kept(self, before: StructType) -> dict[str, Column]:
        """The table's columns cast to their types after the commit; new columns are null."""
        kept: dict[str, Column] = {}
        changed: list[tuple[StructField, Column]] = []
        old = {f.name: (f.data_type, column) for f, column in zip(before, self._scope.target_columns, strict=True)}
        for struct_field in self._columns:
            if struct_field.name not in old:
                kept[struct_field.name] = literal_null(struct_field)
                continue
            data_type, kept[struct_field.name] = old[struct_field.name]
            if data_type != struct_field.data_type:
                changed.append((struct_field, reshaped(kept[struct_field.name], data_type, struct_field.data_type)))
        stored = self._scope.stored(changed, self._command.log.table)
        return kept | {f.name: value for (f, _), value in zip(changed, stored, strict=True)}

    def take(self, clause: Clause) -> Taken:
        over = {
            "matched": self._scope.both,
            "not matched": self._scope.source,
            "not matched by source": self._scope.target,
        }[clause.kind]
        condition = None
        if clause.condition is not None:
            condition = self._scope.condition(clause.condition, over, f"the condition of {clause.text}")
        if clause.action == "delete":
            return Taken(clause, condition)
        assigned = self._star(clause) if clause.is_star else self._named(clause, over)
        check_assigned(self._command, clause, [path for path, _ in assigned])
        return Taken(clause, condition, self._values(clause, assigned))

    def _named(self, clause: Clause, over: DataFrame) -> list[tuple[Path, Column]]:
        assert clause.values is not None
        paths = [self._names.path(name, self._columns, clause) for name in clause.values]
        values = self._scope.values(list(clause.values.values()), over, f"the values of {clause.text}")
        return list(zip(paths, values, strict=True))

    def _star(self, clause: Clause) -> list[tuple[Path, Column]]:
        assigned = self._names.star(clause, self._columns, evolve=self._evolve)
        return [(path, self._scope.source_columns[place]) for path, place in assigned]

    def _values(self, clause: Clause, assigned: Sequence[tuple[Path, Column]]) -> dict[str, Column]:
        """The new value of each assigned column; nested assignments are merged into whole columns."""
        fields = [field_of(path, self._columns) for path, _ in assigned]
        values = [value for _, value in assigned]
        if self._evolve:  # structs of the source may lack fields of the table's structs
            keeps = clause.is_star and clause.action == "update"
            values = [
                reshaped(value, data_type, f.data_type, self.kept[path[0]] if keeps else None)
                for (path, value), data_type, f in zip(assigned, self._scope.types(values), fields, strict=True)
            ]
        stored = self._scope.stored(list(zip(fields, values, strict=True)), self._command.log.table)
        by_path = dict(zip((path for path, _ in assigned), stored, strict=True))
        values_of = {}
        for path in by_path:
            if path[0] not in values_of:
                top = self._columns.get(path[0], case_sensitive=True)
                assert top is not None
                values_of[path[0]] = whole((path[0],), top, self.kept[path[0]], by_path)
        return values_of


def _frozen(
    command: Command,
    scope: Scope,
    search: Expression,
    taken: Sequence[Taken],
    columns: StructType,
    kept: dict[str, Column],
) -> Resolved:
    """Resolve all expressions with one current timestamp for the whole MERGE, and collect the referenced columns."""
    values = {(i, name): column for i, clause in enumerate(taken) for name, column in clause.values.items()}
    conditions = {i: clause.condition for i, clause in enumerate(taken) if clause.condition is not None}
    (search, *tests), columns_of_values, needed = scope.together([search, *conditions.values()], list(values.values()))
    of_values = dict(zip(values, columns_of_values, strict=True))
    by_clause = dict(zip(conditions, tests, strict=True))
    done = [
        replace(clause, condition=by_clause.get(i), values={name: of_values[i, name] for name in clause.values})
        for i, clause in enumerate(taken)
    ]
    tested = [search, *by_clause.values()]
    width = settings.of(command.spark, MAX_TO_STRING_FIELDS)

    def predicates_of(kind: str) -> list[dict[str, str]]:
        predicates = []
        for taken_clause in done:
            if taken_clause.clause.kind == kind:
                condition = (
                    {} if taken_clause.condition is None else {"predicate": printed(taken_clause.condition, width)}
                )
                predicates.append({**condition, "actionType": taken_clause.clause.action})
        return predicates

    return Resolved(
        scope=scope,
        condition=search,
        matched=[resolved for resolved in done if resolved.clause.kind == "matched"],
        inserts=[resolved for resolved in done if resolved.clause.kind == "not matched"],
        by_source=[resolved for resolved in done if resolved.clause.kind == "not matched by source"],
        columns=columns,
        kept=kept,
        needed=needed,
        compared=sorted({place for expression in tested for place in expression.of_target}),
        parameters={
            "predicate": [printed(search, width)],
            "matchedPredicates": predicates_of("matched"),
            "notMatchedPredicates": predicates_of("not matched"),
            "notMatchedBySourcePredicates": predicates_of("not matched by source"),
        },
    )
