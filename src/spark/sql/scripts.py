"""SQL scripts (`BEGIN ... END`) and EXECUTE IMMEDIATE with statements on Delta tables."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ...engine.jvm import plans
from ...engine.jvm.statements import scripts, statements
from ...errors import InvalidArgumentError
from .. import statement_words
from .handlers import HANDLERS
from .statement import LogicalPlan

_AFTER_SPARK = frozenset({"DropTable", "InsertIntoDir", "LoadData", "AddCheckConstraint", "CreateTempViewUsing"})
"""Statements that `spark.sql` checks, or completes when Spark has refused them."""

RunText = Callable[[str, Any], DataFrame | None]
"""Runs the text of a statement with its parameters by tablelog; None if Spark has to run it."""


def run_script(spark: SparkSession, plan: LogicalPlan, run: scripts.Run) -> DataFrame | None:
    """Run a script. `run` runs the statements that may be about a Delta table.

    Returns:
        The rows of the last query; None if no statement may be about a Delta table: Spark runs the script then.
    """
    script = scripts.RewrittenScript(spark, _may_be_own, run)
    changed = script.of(plan)
    return plans.frame_of(spark, changed) if script.replaced else None


def run_immediate(spark: SparkSession, plan: LogicalPlan, run: RunText) -> DataFrame | None:
    """Run an EXECUTE IMMEDIATE; None if Spark has to run it.

    Raises InvalidArgumentError if variables should get the rows of a command.
    """
    statement = scripts.immediate(spark, plan)
    if statement is None:
        return None
    first = [word.upper() for word in statement_words.leading_words(statement.text, 1)]
    if first in (["BEGIN"], ["SELECT"], ["VALUES"]):
        return None  # a query, or a script, which Spark refuses
    if not statement.into:
        return run(statement.text, statement.args)
    if (first and first[0] in statement_words.OWN) or _is_command(spark, statement.text):
        raise InvalidArgumentError(
            f"EXECUTE IMMEDIATE ... INTO takes a query, not a command, and nothing was run: {statement.text}",
            condition="INVALID_STATEMENT_FOR_EXECUTE_INTO",
            parameters={"sqlString": statement.text},
        )
    return None


def _may_be_own(plan: LogicalPlan) -> bool:
    kind = statements.kind_of(plan)
    return kind in HANDLERS or kind in _AFTER_SPARK or kind in statements.UNKNOWN_NAMES


def _is_command(spark: SparkSession, text: str) -> bool:
    plan = statements.parsed_or_none(spark, text)
    return plan is not None and statements.kind_of(plan) in HANDLERS
