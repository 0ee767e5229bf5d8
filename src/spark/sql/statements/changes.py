"""DELETE, UPDATE and TRUNCATE TABLE."""

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame, SparkSession, functions
from pyspark.sql.types import LongType, StructField, StructType

from ....core.protocol.schema import DEFAULT_KEY, dotted
from ....dml.change.delete import delete
from ....dml.change.truncate import truncate
from ....dml.change.update import update
from ....dml.command import assignments
from ....dml.command.command import RowsChanged
from ....engine.jvm.catalog import SessionCatalog
from ....engine.jvm.connection import settings
from ....engine.jvm.connection.gateway import Gateway, changed_node
from ....engine.jvm.statements import definitions, inserts, row_changes, statements
from ....engine.jvm.statements.row_changes import Assigned, CommonTables
from ....engine.read.scan import Alias
from ....engine.sql import fill
from ....engine.write import view_inserts
from ....errors import InvalidArgumentError, UnsupportedFeatureError
from ...delta_table.describe import local_frame
from ...options import only_of_commit
from ...writer import commit_of, session_commit
from .. import results, spark_errors, tables
from ..statement import LogicalPlan, Statement

_AFFECTED = StructType([StructField("num_affected_rows", LongType())])
_UNKNOWN = -1
"""Delta's number of affected rows where files were removed whose rows nobody has counted."""


def find(spark: SparkSession, target: row_changes.Target | None) -> tuple[tables.NamedTable, Alias] | None:
    """The Delta table that a statement changes, with its name in expressions; None: it isn't about a Delta table.

    Raises InvalidArgumentError for a view of an older version, or of a part of a table.
    """
    if target is None:
        return None
    table = tables.find_relation(spark, target.name)
    if table is None:
        _refuse_part(spark, target)
        return None
    table.check_newest()
    if target.alias is not None:
        return table, target.alias
    return table, table.entry.name.split(".") if table.entry else list(definitions.strings(target.name))


def run_delete(statement: Statement) -> DataFrame | None:
    """DELETE FROM table [AS alias] [WHERE condition]."""
    clause = CommonTables(statement.spark, statement.plan)
    target = row_changes.target(clause.plan.table())
    found = find(statement.spark, target)
    if target is None or found is None:
        return None
    table, alias = found
    of_commit = only_of_commit(target.options, "DELETE")
    condition = clause.plan.condition()
    condition_column = None if row_changes.is_true(condition) else statement.column(clause.expression(condition))
    with session_commit(statement.spark, of_commit) as options:
        return _affected(
            statement.spark, delete(statement.spark, table.log, condition_column, alias=alias, options=options)
        )


def run_update(statement: Statement) -> DataFrame | None:
    """UPDATE table [AS alias] SET column = value, ... [WHERE condition]."""
    clause = CommonTables(statement.spark, statement.plan)
    target = row_changes.target(clause.plan.table())
    found = find(statement.spark, target)
    if target is None or found is None:
        return None
    table, alias = found
    of_commit = only_of_commit(target.options, "UPDATE")
    condition = definitions.option(clause.plan.condition())
    condition_column = None if condition is None else statement.column(clause.expression(condition))
    assigned = row_changes.assignments(clause.plan.assignments())
    with spark_errors.preferred(statement.spark, lambda: _over_columns(statement, clause, table, alias)):
        values = values_of(
            statement, clause, assigned, table, alias, "UPDATE", lambda: table.log.snapshot().schema.names
        )
        with session_commit(statement.spark, of_commit) as options:
            done = update(statement.spark, table.log, values, condition_column, alias=alias, options=options)
    return _affected(statement.spark, done)


def _over_columns(statement: Statement, clause: CommonTables, table: tables.NamedTable, alias: Alias) -> LogicalPlan:
    """An UPDATE for Spark's analyzer, over a table that has only columns."""
    columns = inserts.columns_only(Gateway.of(statement.spark), table.name, table.log.snapshot(), alias)
    return changed_node(Gateway.of(statement.spark), clause.plan, table=columns)


def run_truncate(statement: Statement) -> DataFrame | None:
    """TRUNCATE TABLE table."""
    table = _to_truncate(statement)
    if table is None:
        return None
    truncate(statement.spark, table.log, commit_of(statement.spark))
    return results.nothing(statement.spark)


def refuse_truncate_partition(statement: Statement) -> DataFrame | None:
    """TRUNCATE TABLE table PARTITION (...), which Delta refuses."""
    table = _to_truncate(statement)
    if table is None:
        return None
    raise UnsupportedFeatureError(
        f"TRUNCATE TABLE {table.name} can't name a partition, as in Delta: nothing was deleted. Use DELETE FROM "
        f"{table.name} WHERE with a condition on the partition columns.",
        condition="DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED",
        table=table.log.table,
    )


def values_of(
    statement: Statement,
    clause: CommonTables,
    assigned: Sequence[Assigned],
    table: tables.NamedTable,
    alias: Alias,
    command: str,
    columns: Callable[[], Sequence[str]],
) -> dict[str, str | Column]:
    """The assignments of an UPDATE or of a clause of MERGE, for the commands.

    `columns` returns the columns that values may name: as in Spark, a column named `default` wins over the keyword.
    Raises InvalidArgumentError for a column that is assigned twice.
    """
    paths = [tuple(part.lower() for part in assignment.column) for assignment in assigned]
    if len(set(paths)) < len(paths):
        assignments.check_distinct(paths, command=command)
    return {
        dotted(assignment.column): _default(statement.spark, table, assignment, alias, command)
        if assignment.default is not None and not _has(statement.spark, columns(), assignment.default)
        else statement.column(clause.expression(assignment.value))
        for assignment in assigned
    }


def _has(spark: SparkSession, columns: Sequence[str], name: str) -> bool:
    if settings.case_sensitive(spark):
        return name in columns
    return name.lower() in (column.lower() for column in columns)


def _default(spark: SparkSession, table: tables.NamedTable, assignment: Assigned, alias: Alias, command: str) -> Column:
    """The value of the keyword DEFAULT: the column's default, or null."""
    columns = table.log.snapshot().schema
    name = dotted(assignment.column)
    case_sensitive = settings.case_sensitive(spark)
    path = assignments.path_of(name, assignment.column, columns, alias, case_sensitive=case_sensitive, command=command)
    field = assignments.field_of(path, columns)
    fill.check_default(spark, columns, field, table.log.table)
    text = field.metadata.get(DEFAULT_KEY)
    return functions.lit(None) if text is None else functions.expr(str(text))


def _refuse_part(spark: SparkSession, target: row_changes.Target) -> None:
    """Raise InvalidArgumentError for a temporary view that reads Delta tables, but isn't a whole table.

    And for each stored view that reads Delta tables: Spark's own errors for it are internal ones.
    """
    temporary = statements.is_temporary_view(spark, target.name)
    if not temporary:
        entry = SessionCatalog(spark).find_parts(target.name)
        if entry is None or entry.location:
            return
    if not view_inserts.shows_part(spark, target.name):
        return
    name = ".".join(definitions.strings(target.name))
    if not temporary:
        raise InvalidArgumentError(
            f"{name} is a stored view of a Delta table, whose rows can't be changed by it; nothing was written. Name "
            "the table itself, such as delta.`/path`.",
            condition="EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
            parameters={"operation": "A change of rows", "viewName": name},
        )
    filtered = view_inserts.filters_rows(spark, target.name)
    raise InvalidArgumentError(
        f"The view {name} doesn't show all rows and columns of one Delta table, as they are: its rows can't be "
        "changed, and nothing was written. Name the table.",
        condition="DELTA_UNEXPECTED_PARTIAL_SCAN" if filtered else "DELTA_NOT_A_DELTA_TABLE",
        parameters={"path": name} if filtered else {"tableName": name},
    )


def _to_truncate(statement: Statement) -> tables.NamedTable | None:
    target = row_changes.target(statement.plan.table())
    if target is None or statements.is_temporary_view(statement.spark, target.name):
        return None  # Spark refuses a view
    return tables.find(statement.spark, target.name)


def _affected(spark: SparkSession, done: RowsChanged | None) -> DataFrame:
    rows = [] if done is None else [(_UNKNOWN if done.rows is None else done.rows,)]
    return local_frame(spark, rows, _AFFECTED)


HANDLERS = {
    "DeleteFromTable": run_delete,
    "UpdateTable": run_update,
    "TruncateTable": run_truncate,
    "TruncatePartition": refuse_truncate_partition,
}
