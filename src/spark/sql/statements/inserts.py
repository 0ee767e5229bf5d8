"""INSERT, as a statement and by `DataFrameWriter.insertInto`."""

from pyspark.sql import DataFrame, SparkSession

from ....engine.jvm.statements import definitions, statements
from ....engine.write import view_inserts
from ....errors import UnsupportedFeatureError
from ....settings.declarations import AUTO_MERGE
from ...options import Options
from ...writer import insert
from .. import results, tables
from ..statement import LogicalPlan, Statement
from ..tables import NamedTable
from . import replacing_inserts


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
    names = [statements.name_of(insert_plan.table()) for insert_plan in insert_plans]
    targets = [None if name is None else tables.find_relation(spark, name) for name in names]
    delta_tables = [target for target in targets if target is not None]
    if not delta_tables:
        return False
    if len(delta_tables) < len(targets):
        raise UnsupportedFeatureError(
            "A statement with several INSERTs must not mix Delta tables and other tables: use separate statements."
        )
    into = [
        _into(insert_plan, table, options or {}) for insert_plan, table in zip(insert_plans, delta_tables, strict=True)
    ]
    if any(view_inserts.replaced_by(insert_plan) is not None for insert_plan in insert_plans):
        _run_replacing(spark, plan, into, delta_tables)
        return True
    resolved = view_inserts.resolved(spark, plan, [target for target, _ in into])
    for resolved_plan, (target, of_table) in zip(resolved, into, strict=True):
        insert(spark, target.log, resolved_plan, of_table)
    return True


def _into(insert_plan: LogicalPlan, table: NamedTable, options: dict[str, str]) -> tuple[view_inserts.Into, Options]:
    """An INSERT with its table, and its options: those of the table in the statement, else those of the writer."""
    table.check_newest()
    all_options = statements.options_of(insert_plan.table()) | options
    if "SchemaEvolution" in view_inserts.clauses_of(insert_plan):
        all_options = {key: value for key, value in all_options.items() if key.lower() != "mergeschema"} | {
            "mergeSchema": "true"
        }
    evolves = Options(all_options).boolean("mergeSchema")
    evolves = AUTO_MERGE.of(table.log.conf) if evolves is None else evolves
    return view_inserts.Into(insert_plan, table.log, table.log.snapshot(), evolves), Options(all_options)


def _run_replacing(
    spark: SparkSession,
    plan: LogicalPlan,
    into: list[tuple[view_inserts.Into, Options]],
    delta_tables: list[NamedTable],
) -> None:
    """INSERT ... REPLACE USING and REPLACE ON."""
    if len(into) > 1:
        raise UnsupportedFeatureError(
            "A statement with several INSERTs must not contain REPLACE USING or REPLACE ON: use separate statements."
        )
    (target, options), table = into[0], delta_tables[0]
    replaced = view_inserts.replaced_by(target.statement)
    assert replaced is not None
    name = definitions.strings(statements.name_of(target.statement.table()))
    alias = table.entry.name.split(".") if table.entry else list(name)
    replacing_inserts.run(spark, plan, target, replaced, alias, options)


HANDLERS = {"InsertIntoStatement": run_insert, "OverwriteByExpression": run_insert}
