"""INSERT, as a statement and by `DataFrameWriter.insertInto`."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ...engine.jvm import statements
from ...engine.write import view_inserts
from ...errors import UnsupportedFeatureError
from ..options import Options
from ..writer import insert
from . import results, tables
from .statement import LogicalPlan, Statement
from .tables import NamedTable

_UNSUPPORTED = {
    "InsertReplaceUsing": "INSERT ... REPLACE USING",
    "InsertReplaceOn": "INSERT ... REPLACE ON",
}


def run_insert(statement: Statement) -> DataFrame | None:
    """INSERT in all its forms, also several of them in one statement (FROM ... INSERT ... INSERT ...)."""
    return results.nothing(statement.spark) if _run(statement.spark, statement.plan) else None


def changes_view(spark: SparkSession, plan: LogicalPlan) -> bool:
    """Whether a parsed statement gives a constraint to a temporary view of a Delta table."""
    name = statements.subject(plan)
    return name is not None and view_inserts.target(spark, name) is not None


def by_writer(frame: DataFrame, name: str, options: dict[str, str], *, overwrite: bool) -> bool:
    """Run `DataFrameWriter.insertInto`. Returns False if the name is not that of a Delta table or a view of one."""
    return _run(frame.sparkSession, view_inserts.of_frame(frame, name, overwrite=overwrite), options)


def _run(spark: SparkSession, plan: LogicalPlan, options: dict[str, str] | None = None) -> bool:
    """Run the INSERTs of a parsed statement. Returns False if none inserts into a Delta table.

    Raises Spark's AnalysisException if the statement doesn't fit the table.
    """
    insert_plans = view_inserts.inserts_of(plan)
    names = [statements.name_of(one.table()) for one in insert_plans]
    targets = [None if name is None else tables.find(spark, name) for name in names]
    found = [one for one in targets if one is not None]
    if not found:
        return False
    if len(found) < len(targets):
        raise UnsupportedFeatureError(
            "A statement with several INSERTs must not mix Delta tables and other tables: use separate statements."
        )
    for one, table in zip(insert_plans, found, strict=True):
        table.check_newest()
        _check_supported(one, table)
    snapshots = [(one, table.log, table.log.snapshot()) for one, table in zip(insert_plans, found, strict=True)]
    resolved = view_inserts.resolved(spark, plan, snapshots)
    for one, table, node in zip(resolved, found, insert_plans, strict=True):
        insert(spark, table.log, one, Options(statements.options_of(node.table()) | (options or {})))
    return True


def _check_supported(one: Any, table: NamedTable) -> None:
    """Raise UnsupportedFeatureError for the clauses of an INSERT that tablelog doesn't support."""
    clauses = view_inserts.clauses_of(one)
    unsupported = [_UNSUPPORTED[name] for name in clauses if name in _UNSUPPORTED]
    if "SchemaEvolution" in clauses:
        unsupported.append("INSERT WITH SCHEMA EVOLUTION")
    if unsupported:
        instead = (
            'df.write.format("delta") with the option mergeSchema'
            if "SchemaEvolution" in clauses
            else "INSERT ... REPLACE WHERE, or DELETE or MERGE, and INSERT"
        )
        raise UnsupportedFeatureError(
            f"{unsupported[0]} into {table.name} is not supported yet: nothing was written. Use {instead}.",
            (unsupported[0],),
            table=table.log.table,
        )


HANDLERS = {"InsertIntoStatement": run_insert, "OverwriteByExpression": run_insert}
