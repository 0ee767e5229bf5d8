"""INSERT, as a statement and by `DataFrameWriter.insertInto`."""

from pyspark.sql import DataFrame, SparkSession

from ...engine.jvm import definitions, statements
from ...engine.write import view_inserts
from ...errors import UnsupportedFeatureError
from ...settings.declarations import AUTO_MERGE
from ..options import Options
from ..writer import insert
from . import replacing_inserts, results, tables
from .statement import LogicalPlan, Statement
from .tables import NamedTable


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
    targets = [None if name is None else tables.find_relation(spark, name) for name in names]
    found = [one for one in targets if one is not None]
    if not found:
        return False
    if len(found) < len(targets):
        raise UnsupportedFeatureError(
            "A statement with several INSERTs must not mix Delta tables and other tables: use separate statements."
        )
    into = [_into(one, table, options or {}) for one, table in zip(insert_plans, found, strict=True)]
    if any(view_inserts.replaced_by(one) is not None for one in insert_plans):
        _run_replacing(spark, plan, into, found)
        return True
    resolved = view_inserts.resolved(spark, plan, [one for one, _ in into])
    for one, (target, of_table) in zip(resolved, into, strict=True):
        insert(spark, target.log, one, of_table)
    return True


def _into(one: LogicalPlan, table: NamedTable, options: dict[str, str]) -> tuple[view_inserts.Into, Options]:
    """An INSERT with its table, and its options: those of the table in the statement, else those of the writer."""
    table.check_newest()
    given = statements.options_of(one.table()) | options
    if "SchemaEvolution" in view_inserts.clauses_of(one):
        given = {key: value for key, value in given.items() if key.lower() != "mergeschema"} | {"mergeSchema": "true"}
    evolves = Options(given).boolean("mergeSchema")
    evolves = AUTO_MERGE.of(table.log.conf) if evolves is None else evolves
    return view_inserts.Into(one, table.log, table.log.snapshot(), evolves), Options(given)


def _run_replacing(
    spark: SparkSession, plan: LogicalPlan, into: list[tuple[view_inserts.Into, Options]], found: list[NamedTable]
) -> None:
    """INSERT ... REPLACE USING and REPLACE ON."""
    if len(into) > 1:
        raise UnsupportedFeatureError(
            "A statement with several INSERTs must not contain REPLACE USING or REPLACE ON: use separate statements."
        )
    (target, options), table = into[0], found[0]
    replaced = view_inserts.replaced_by(target.statement)
    assert replaced is not None
    name = definitions.strings(statements.name_of(target.statement.table()))
    alias = table.entry.name.split(".") if table.entry else list(name)
    replacing_inserts.run(spark, plan, target, replaced, alias, options)


HANDLERS = {"InsertIntoStatement": run_insert, "OverwriteByExpression": run_insert}
