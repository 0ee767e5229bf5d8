"""INSERT into a temporary view of a Delta table inserts into the table, as in Delta."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession, functions

from ...core.deltalog import DeltaLog
from ...engine.jvm import statements
from ...engine.jvm.inserts import Parameters
from ...engine.write import view_inserts
from ...errors import InvalidArgumentError, UnsupportedFeatureError
from ..conf import delta_log, session_conf
from ..writer import insert


def by_statement(spark: SparkSession, plan: Any, args: Any) -> bool:
    """Run the INSERTs of a parsed statement with parameters `args`. Returns False if none inserts into a Delta table.

    Raises Spark's AnalysisException if the statement doesn't fit the table.
    """
    insert_plans = view_inserts.inserts_of(plan)
    names = [statements.name_of(one.table()) for one in insert_plans]
    targets = [None if name is None else view_inserts.target(spark, name) for name in names]
    if not any(targets):
        return False
    if not all(targets):
        raise UnsupportedFeatureError(
            "A statement with several INSERTs must not mix Delta tables and other tables: use separate statements."
        )
    logs = [_log(spark, one) for one in targets if one is not None]
    tables = [(one, log, log.snapshot()) for one, log in zip(insert_plans, logs, strict=True)]
    for one, log in zip(view_inserts.resolved(spark, plan, tables, parameters(args)), logs, strict=True):
        insert(spark, log, one)
    return True


def changes_view(spark: SparkSession, plan: Any) -> bool:
    """Whether a parsed statement changes a temporary view of a Delta table, by its rows or a constraint."""
    name = statements.subject(plan)
    return name is not None and view_inserts.target(spark, name) is not None


def by_writer(frame: DataFrame, name: str, *, overwrite: bool) -> bool:
    """Run `DataFrameWriter.insertInto`. Returns False if the name is not a view of a Delta table."""
    spark = frame.sparkSession
    return by_statement(spark, view_inserts.of_frame(frame, name, overwrite=overwrite), None)


def _log(spark: SparkSession, target: view_inserts.Target) -> DeltaLog:
    if target.version is not None:
        raise InvalidArgumentError(
            f"The view shows version {target.version} of {target.table}, and older versions can't be changed: "
            "nothing was inserted. Insert into a view of the table without time travel."
        )
    return target.log or delta_log(target.table, session_conf(spark, target.table))


def parameters(args: Any) -> Parameters:
    """The values of a statement's parameters as Columns."""
    if isinstance(args, dict):
        return {name: functions.lit(value) for name, value in args.items()}
    return None if args is None else [functions.lit(value) for value in args]
