"""MERGE INTO, as a statement and by `DataFrame.mergeInto`."""

from pyspark.sql import DataFrame

from ....core.protocol.schema import dotted
from ....dml.merge.clauses import Clause, Kind
from ....engine.jvm.statements import row_changes
from ....engine.jvm.statements.positions import Position, position_of
from ....engine.jvm.statements.row_changes import Action, CommonTables
from ....engine.read.scan import Alias
from ....errors import InvalidArgumentError, SchemaMismatchError
from ...delta_table.merge import execute_merge
from ...options import only_of_commit
from .. import positions
from ..statement import Statement
from ..tables import NamedTable
from . import changes


def run_merge(statement: Statement) -> DataFrame | None:
    """MERGE [WITH SCHEMA EVOLUTION] INTO table [AS alias] USING source ON condition WHEN ... THEN ..."""
    common = CommonTables(statement.spark, statement.plan)
    parsed = row_changes.merge(common.plan)
    target = None if parsed is None else changes.find(statement.spark, parsed.target)
    if parsed is None or target is None:
        return None
    table, alias = target
    by_kind: dict[Kind, tuple[Action, ...]] = {
        "matched": parsed.matched,
        "not matched": parsed.not_matched,
        "not matched by source": parsed.not_matched_by_source,
    }
    source = statement.frame(common.query(parsed.source))
    clauses = [
        _clause(statement, common, kind, action, table, alias, source)
        for kind, actions in by_kind.items()
        for action in actions
    ]
    options = only_of_commit(parsed.target.options, "MERGE")
    condition = statement.column(common.expression(parsed.condition))
    try:
        return execute_merge(
            statement.spark,
            table.log,
            source,
            condition,
            clauses,
            alias=alias,
            evolves=parsed.evolves,
            options=options,
        )
    except SchemaMismatchError as error:
        positions.at(error, _position(by_kind, error.message_parameters.get("sqlExpr")))
        raise


def _position(actions: dict[Kind, tuple[Action, ...]], column: str | None) -> Position | None:
    """Where a clause assigns a column; None if none does."""
    assignments = [
        assigned for of_kind in actions.values() for action in of_kind for assigned in action.assignments or ()
    ]
    return next((position_of(a.key) for a in assignments if dotted(a.column) == column), None)


def _clause(
    statement: Statement,
    common: CommonTables,
    kind: Kind,
    action: Action,
    table: NamedTable,
    alias: Alias,
    source: DataFrame,
) -> Clause:
    condition = None if action.condition is None else statement.column(common.expression(action.condition))
    if action.assignments is None:
        if action.kind == "update" and kind == "not matched by source":
            raise InvalidArgumentError(
                "WHEN NOT MATCHED BY SOURCE THEN UPDATE * has no source row to take the values from: list the columns "
                "to set.",
                table=table.log.table,
            )
        return Clause(kind, action.kind, condition)
    text = f"WHEN {kind.upper()} THEN {action.kind.upper()}"

    def columns() -> list[str]:
        of_table = [] if kind == "not matched" else list(table.log.snapshot().schema.names)
        return of_table if kind == "not matched by source" else [*of_table, *source.columns]

    values = changes.values_of(statement, common, action.assignments, table, alias, text, columns)
    return Clause(kind, action.kind, condition, values)


HANDLERS = {"MergeIntoTable": run_merge}
