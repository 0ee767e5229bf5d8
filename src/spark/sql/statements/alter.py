"""ALTER TABLE and COMMENT ON for Delta tables, by name and by path.

Statements that no Delta table supports (partitions of the catalog, SerDes, indexes) are refused by Spark's analyzer.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from ....core.protocol import schema as schemas
from ....core.schema_evolution.changes import ColumnChange, NewColumn, Position
from ....core.schema_evolution.columns import resolved
from ....core.table.snapshot import Snapshot
from ....dml.alter.constraints import add_constraint, drop_constraint
from ....dml.alter.create import compared
from ....dml.alter.properties import set_properties, unset_properties
from ....dml.alter.schema_changes import add_columns, alter_columns, drop_columns, rename_column, replace_columns
from ....dml.maintain.cluster_by import cluster_by
from ....engine.jvm.catalog import SessionCatalog
from ....engine.jvm.connection.gateway import Gateway
from ....engine.jvm.registry.classes import class_name
from ....engine.jvm.statements import definitions, statements
from ....engine.jvm.statements.definitions import AlteredColumn
from ....errors import InvalidArgumentError, SchemaMismatchError, TableNotFoundError, UnsupportedFeatureError
from ....settings.declarations import BYPASS_LOCATION_SCHEMA_CHECK
from ...conf import delta_log, session_conf
from ...writer import commit_of
from .. import spark_errors, tables
from ..results import nothing
from ..statement import Statement
from ..tables import NamedTable

_NAMED = ("UnresolvedTable", "UnresolvedTableOrView")


def _table_of(statement: Statement, relation: Any) -> NamedTable | None:
    """The Delta table that a statement changes; None for another table or a view, for which Spark has the errors."""
    if class_name(relation) not in _NAMED:
        return None
    table = tables.find(statement.spark, relation.multipartIdentifier())
    return None if table is None or table.by_view else table


def _changing(change: Callable[[Statement, NamedTable], None]) -> Callable[[Statement], DataFrame | None]:
    """A handler of statements that name their table in the field `table`."""

    def handler(statement: Statement) -> DataFrame | None:
        table = _table_of(statement, statement.plan.table())
        if table is None:
            return None
        change(statement, table)
        return nothing(statement.spark)

    return handler


def _changing_columns(change: Callable[[Statement, NamedTable], None]) -> Callable[[Statement], DataFrame | None]:
    """`_changing` with the errors of Spark's analyzer about columns."""

    def checked(statement: Statement, table: NamedTable) -> None:
        with spark_errors.preferred(statement.spark, lambda: statement.plan):
            change(statement, table)

    return _changing(checked)


def _set_properties(statement: Statement, table: NamedTable) -> None:
    wanted = definitions.texts(statement.plan.properties())
    set_properties(statement.spark, table.log, wanted, commit_of(statement.spark))


def _unset_properties(statement: Statement, table: NamedTable) -> None:
    # As with delta-spark, a property that isn't set is no error, with or without IF EXISTS.
    keys = definitions.strings(statement.plan.propertyKeys())
    unset_properties(statement.spark, table.log, keys, if_exists=True, options=commit_of(statement.spark))


def _comment_on_table(statement: Statement, table: NamedTable) -> None:
    comment = {"comment": str(statement.plan.comment())}
    set_properties(statement.spark, table.log, comment, commit_of(statement.spark))


def _set_location(statement: Statement, table: NamedTable) -> None:
    spark, plan = statement.spark, statement.plan
    if plan.partitionSpec().isDefined():
        raise UnsupportedFeatureError(
            f"ALTER TABLE {table.name} PARTITION ... SET LOCATION is not supported: the partitions of a Delta table "
            "are in its log, and have no locations of their own.",
            condition="DELTA_OPERATION_NOT_ALLOWED",
            parameters={"operation": "ALTER TABLE PARTITION SET LOCATION"},
        )
    if table.entry is None:
        raise InvalidArgumentError(
            f"{table.name} is a path, and has no location that could be changed: name a table of the catalog.",
            condition="DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER",
        )
    location = str(plan.location())
    conf = session_conf(spark, location)
    log = delta_log(location, conf)
    if not log.exists():
        raise TableNotFoundError(
            f"{location} is not a Delta table, so it can't be the location of {table.name}: nothing was changed.",
            condition="DELTA_MISSING_DELTA_TABLE",
            parameters={"tableName": location},
            table=log.table,
        )
    old, new = table.log.snapshot(), log.snapshot()
    if not BYPASS_LOCATION_SCHEMA_CHECK.of(conf) and not _same_columns(old, new):
        raise SchemaMismatchError(
            f"{location} has other columns than {table.name}: {schemas.type_text(new.schema)} instead of "
            f"{schemas.type_text(old.schema)}. Nothing was changed. Set {BYPASS_LOCATION_SCHEMA_CHECK.key} to true to "
            "use the location all the same.",
            condition="DELTA_SET_LOCATION_SCHEMA_MISMATCH",
            parameters={
                "original": schemas.type_text(old.schema),
                "destination": schemas.type_text(new.schema),
                "config": BYPASS_LOCATION_SCHEMA_CHECK.key,
            },
        )
    SessionCatalog(spark).relocate(table.entry, location)


def _same_columns(old: Snapshot, new: Snapshot) -> bool:
    partitions = tuple(old.partition_columns), tuple(new.partition_columns)
    return compared(old.schema) == compared(new.schema) and partitions[0] == partitions[1]


def _rename(statement: Statement) -> DataFrame | None:
    plan = statement.plan
    table = None if plan.isView() else _table_of(statement, plan.child())
    if table is None:
        return None
    if table.entry is None:
        raise InvalidArgumentError(
            f"{table.name} is a path, which can't be renamed: name a table of the catalog.",
            condition="DELTA_OPERATION_NOT_ALLOWED",
            parameters={"operation": "ALTER TABLE RENAME TO of a path"},
        )
    SessionCatalog(statement.spark).rename(table.entry, plan.newName())
    return nothing(statement.spark)


# --- columns ------------------------------------------------------------------------------------------------------


def _position(preceding: schemas.Column | None) -> Position | None:
    return None if preceding is None else Position(preceding[0] if preceding else None)


def _add_columns(statement: Statement, table: NamedTable) -> None:
    wanted = [
        NewColumn(added.field, added.parent, _position(added.position))
        for added in definitions.added_columns(statement.plan.columnsToAdd())
    ]
    add_columns(statement.spark, table.log, wanted, options=commit_of(statement.spark))


def _drop_columns(statement: Statement, table: NamedTable) -> None:
    plan = statement.plan
    columns = [definitions.strings(column.name()) for column in Gateway.elements(plan.columnsToDrop())]
    if plan.ifExists():
        schema = table.log.snapshot().schema
        columns = [column for column in columns if _has(schema, column)]
        if not columns:
            return
    drop_columns(statement.spark, table.log, columns, options=commit_of(statement.spark))


def _has(schema: schemas.StructType, column: schemas.Column) -> bool:
    try:
        resolved(schema, column)
    except InvalidArgumentError:
        return False
    return True


def _rename_column(statement: Statement, table: NamedTable) -> None:
    plan = statement.plan
    column = definitions.strings(plan.column().name())
    rename_column(statement.spark, table.log, column, str(plan.newName()), options=commit_of(statement.spark))


def _replace_columns(statement: Statement, table: NamedTable) -> None:
    wanted = schemas.StructType(
        tuple(added.field for added in definitions.added_columns(statement.plan.columnsToAdd()))
    )
    replace_columns(statement.spark, table.log, wanted, options=commit_of(statement.spark))


def _alter_columns(statement: Statement) -> DataFrame | None:
    """ALTER, CHANGE and COMMENT ON COLUMN. In COMMENT ON, the first parts of a column's name may be its structs."""
    spark, plan = statement.spark, statement.plan
    wanted = definitions.altered_columns(plan.specs())
    comments = statements.is_comment_on(plan)
    table = _table_of(statement, plan.table())
    if table is None and comments and class_name(plan.table()) in _NAMED:
        parts = definitions.strings(plan.table().multipartIdentifier())
        for count in range(len(parts) - 1, 0, -1):
            table = tables.find(spark, Gateway.of(spark).seq(parts[:count]))
            if table is not None:
                wanted = [_below(parts[count:], altered) for altered in wanted]
                break
        if table is not None and table.by_view:
            return None
    if table is None:
        return None
    with spark_errors.preferred(spark, lambda: plan):
        schema = table.log.snapshot().schema
        column_changes = [_change(schema, altered) for altered in wanted]
        if comments:  # IS NULL
            column_changes = [replace(change, drops_comment=change.comment is None) for change in column_changes]
        _check_separate(table, column_changes)
        effective = [change for change in column_changes if change != ColumnChange(change.column)]
        if effective:
            alter_columns(spark, table.log, effective, options=commit_of(spark))
    return nothing(spark)


def _below(parents: schemas.Column, altered: AlteredColumn) -> AlteredColumn:
    return replace(altered, column=(*parents, *altered.column))


def _change(schema: schemas.StructType, altered: AlteredColumn) -> ColumnChange:
    """The change of a column; a type that it has already is no change."""
    exact, field = resolved(schema, altered.column)
    top = schema.get(exact[0])
    same_type = (
        altered.type is not None
        and field is not None
        and not (top is not None and schemas.has_lengths_inside(top))
        and schemas.has_same_type(field, altered.type)
    )
    new_type = None if same_type else altered.type
    return ColumnChange(
        exact, new_type, altered.nullable, altered.comment, altered.default, _position(altered.position)
    )


def _check_separate(table: NamedTable, column_changes: list[ColumnChange]) -> None:
    """Raise InvalidArgumentError if a statement changes a column twice, or a struct and a field of it."""
    for number, change in enumerate(column_changes):
        for other in column_changes[:number]:
            length = min(len(change.column), len(other.column))
            if change.column[:length] == other.column[:length]:
                column = schemas.dotted(change.column[:length])
                raise InvalidArgumentError(
                    f"ALTER TABLE {table.name} changes the column {column} more than once: use one statement for each "
                    "change.",
                    condition="NOT_SUPPORTED_CHANGE_SAME_COLUMN",
                    parameters={"table": table.name, "fieldName": column},
                )


# --- constraints and clustering -----------------------------------------------------------------------------------


def _add_check(statement: Statement) -> DataFrame | None:
    plan = statement.plan
    name = statements.subject(plan)
    table = None if name is None else tables.find(statement.spark, name)
    if table is None or table.by_view:
        return None
    constraint = plan.checkConstraint()
    name, condition = constraint.userProvidedName(), str(constraint.condition())
    if name is None:
        raise InvalidArgumentError(
            f"A constraint of the Delta table {table.name} needs a name, and ADD CHECK ({condition}) has none: use "
            f"ADD CONSTRAINT name CHECK ({condition}).",
            condition="DELTA_OPERATION_NOT_ALLOWED",
            parameters={"operation": "ADD CHECK without a name"},
        )
    add_constraint(statement.spark, table.log, str(name), condition, options=commit_of(statement.spark))
    return nothing(statement.spark)


def _add_other_constraint(_: Statement, table: NamedTable) -> None:
    raise _no_constraint(table, "PRIMARY KEY, UNIQUE and FOREIGN KEY constraints", "Use CHECK constraints")


def _drop_constraint(statement: Statement, table: NamedTable) -> None:
    plan = statement.plan
    if plan.cascade():
        raise _no_constraint(table, "DROP CONSTRAINT ... CASCADE", "Leave out CASCADE")
    name, options = str(plan.name()), commit_of(statement.spark)
    drop_constraint(statement.spark, table.log, name, if_exists=bool(plan.ifExists()), options=options)


def _no_constraint(table: NamedTable, what: str, instead: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"Delta tables don't support {what} ({table.name}). {instead}.",
        condition="UNSUPPORTED_FEATURE.TABLE_OPERATION",
        parameters={"tableName": table.name, "operation": "table constraint"},
    )


def _cluster_by(statement: Statement, table: NamedTable) -> None:
    columns = [schemas.dotted(column) for column in definitions.clustering(statement.plan)]
    cluster_by(statement.spark, table.log, columns, options=commit_of(statement.spark))


def _default_collation(_: Statement, table: NamedTable) -> None:
    raise UnsupportedFeatureError(
        f"ALTER TABLE {table.name} DEFAULT COLLATION is not supported for Delta tables: use COLLATE in queries.",
        ("collations",),
    )


HANDLERS = {
    "SetTableProperties": _changing(_set_properties),
    "UnsetTableProperties": _changing(_unset_properties),
    "CommentOnTable": _changing(_comment_on_table),
    "SetTableLocation": _changing(_set_location),
    "RenameTable": _rename,
    "AddColumns": _changing_columns(_add_columns),
    "DropColumns": _changing_columns(_drop_columns),
    "RenameColumn": _changing_columns(_rename_column),
    "ReplaceColumns": _changing_columns(_replace_columns),
    "AlterColumns": _alter_columns,
    "AddCheckConstraint": _add_check,
    "AddConstraint": _changing(_add_other_constraint),
    "DropConstraint": _changing(_drop_constraint),
    "AlterTableClusterBy": _changing(_cluster_by),
    "AlterTableCollation": _changing(_default_collation),
}
