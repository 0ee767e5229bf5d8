"""The columns that a MERGE's clauses name, and the schema evolution that they ask for: for every kind of session."""

from collections.abc import Sequence

from pyspark.sql import DataFrame

from ...core.protocol.schema import StructType, dotted
from ...engine.jvm.connection import settings
from ...engine.read.scan import Alias
from ...engine.sql.assigned_values import name_parts
from ...errors import SchemaMismatchError
from ..command import target_metadata
from ..command.assignments import Path, path_of, without_alias
from ..command.command import Command
from .clauses import Clause, assigned_columns


class Names:
    """Finds the columns whose names the user wrote.

    `target` is a frame in whose session names are parsed, `source` the schema of the source.
    """

    def __init__(self, command: Command, target: DataFrame, source: StructType, alias: Alias | None) -> None:
        self._table = command.log.table
        self._target = target
        self._alias = alias
        self.case_sensitive = settings.case_sensitive(command.spark)
        self.source = source

    def parts(self, name: str) -> Path:
        """The parts of a name, without the table's alias."""
        parts = name_parts(self._target, name)
        return next(without_alias(parts, self._alias), parts)

    def path(self, name: str, columns: StructType, clause: Clause) -> Path:
        """The column of the table with this name. Raises SchemaMismatchError if there is none."""
        parts = name_parts(self._target, name)
        try:
            return path_of(name, parts, columns, self._alias, case_sensitive=self.case_sensitive, command=clause.text)
        except SchemaMismatchError as error:
            raise SchemaMismatchError(
                f"{self._table}: {error}. To add columns of the source to the table, use withSchemaEvolution()",
                condition="DELTA_MERGE_UNRESOLVED_EXPRESSION",
                parameters={"sqlExpr": name, "clause": clause.text, "cols": ", ".join(columns.names)},
            ) from None

    def star(self, clause: Clause, columns: StructType, *, evolve: bool) -> list[tuple[Path, int]]:
        """The columns that UPDATE * or INSERT * assigns, with the positions of their values in the source.

        Without `evolve` the source must have all `columns`: SchemaMismatchError is raised if it lacks one.
        """
        if evolve:
            return [(self._known(brought.name, clause, columns), place) for place, brought in enumerate(self.source)]
        assigned: list[tuple[Path, int]] = []
        for struct_field in columns:
            position = self._place(struct_field.name)
            if position is None:
                listed = ", ".join(dotted((column.name,)) for column in self.source)
                raise SchemaMismatchError(
                    f"{self._table}: {clause.text} * needs a column {struct_field.name} in the source, "
                    f"which has: {listed}. List the columns to set, or use withSchemaEvolution()",
                    condition="DELTA_MERGE_UNRESOLVED_EXPRESSION",
                    parameters={"sqlExpr": struct_field.name, "clause": clause.text, "cols": listed},
                )
            assigned.append(((struct_field.name,), position))
        return assigned

    def _known(self, name: str, clause: Clause, columns: StructType) -> Path:
        """The column of the table for a column of the source after the schema evolution, which ignores case."""
        known = columns.get(name, case_sensitive=self.case_sensitive)
        if known is not None:
            return (known.name,)
        raise SchemaMismatchError(
            f"{self._table}: {clause.text} * can't add the column {dotted((name,))} of the source, because a column of "
            "the table differs from it only in case, and the session is case-sensitive. Rename it in the source",
            condition="DELTA_DUPLICATE_COLUMNS_FOUND.DATA",
            parameters={"duplicateCols": dotted((name,))},
        )

    def _place(self, name: str) -> int | None:
        """The position of the source column with this name; None if there is none. Raises SchemaMismatchError if the
        name is ambiguous."""
        same = [
            i
            for i, f in enumerate(self.source)
            if f.name == name or (not self.case_sensitive and f.name.lower() == name.lower())
        ]
        if len(same) > 1:
            raise SchemaMismatchError(f"the source of MERGE has {len(same)} columns named {name}")
        return same[0] if same else None


def stage_evolution(command: Command, names: Names, clauses: Sequence[Clause]) -> None:
    """Stage the schema evolution (`mergeSchema`) for the source columns that clauses assign."""
    from_source = [clause for clause in clauses if clause.kind != "not matched by source"]
    paths = [names.parts(name) for clause in from_source for name in clause.values or ()]
    star = any(clause.is_star for clause in from_source)
    brought = assigned_columns(names.source, paths, star=star, case_sensitive=names.case_sensitive)
    current = command.txn.metadata
    changed = target_metadata.evolved(command, brought)
    if changed != current:
        command.txn.set_metadata(changed)
