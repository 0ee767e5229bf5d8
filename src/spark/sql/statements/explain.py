"""EXPLAIN of a statement that tablelog runs itself: nothing of it is executed."""

from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from ....engine.jvm.statements import identifiers, row_changes, statements
from ....engine.jvm.statements.row_changes import CommonTables
from ....engine.write import view_inserts
from ...delta_table.describe import local_frame
from .. import tables
from ..statement import LogicalPlan, Statement
from ..tables import NamedTable
from . import changes

_ANSWER = StructType([StructField("plan", StringType())])
_OPERATIONS = {
    "DeleteFromTable": "DELETE",
    "UpdateTable": "UPDATE",
    "MergeIntoTable": "MERGE",
    "InsertIntoStatement": "INSERT",
    "OverwriteByExpression": "INSERT ... REPLACE WHERE",
}


def run_explain(statement: Statement) -> DataFrame | None:
    """EXPLAIN of INSERT, UPDATE, DELETE and MERGE: the statement as it was parsed, and the table's version."""
    explained = statement.plan.logicalPlan()
    if statements.kind_of(explained) in statements.UNKNOWN_NAMES:
        explained = identifiers.with_names(statement.spark, explained) or explained
    operation = _OPERATIONS.get(statements.kind_of(explained))
    table = None if operation is None else _table(statement, explained)
    if table is None:
        return None
    text = (
        f"== Parsed Logical Plan ==\n{explained.toString()}\n"
        f"== Physical Plan ==\ntablelog {operation} [table: {table.log.table}, version: {table.log.snapshot().version}]"
        "\n  The command selects its files and makes its Spark jobs when it runs. EXPLAIN changes nothing.\n"
    )
    return local_frame(statement.spark, [(text,)], _ANSWER)


def _table(statement: Statement, explained: LogicalPlan) -> NamedTable | None:
    """The Delta table that the statement changes; the first one of several INSERTs."""
    insert_plans = view_inserts.inserts_of(explained)
    if insert_plans:
        names = [statements.name_of(insert_plan.table()) for insert_plan in insert_plans]
        targets = [None if name is None else tables.find(statement.spark, name) for name in names]
        return next((table for table in targets if table is not None), None)
    plan = CommonTables(statement.spark, explained).plan
    relation = plan.targetTable() if statements.kind_of(plan) == "MergeIntoTable" else plan.table()
    changed = changes.find(statement.spark, row_changes.target(relation))
    return None if changed is None else changed[0]


HANDLERS = {"ExplainCommand": run_explain}
