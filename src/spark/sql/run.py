"""`spark.sql` in an enabled session: Spark runs the statement; if it fails for a Delta table, tablelog handles it."""

from collections.abc import Callable
from typing import Any

from pyspark.errors import ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from ...engine.jvm import statements
from ...engine.jvm.catalog import SessionCatalog
from . import inserts, other_formats
from .handlers import HANDLERS
from .refusals import is_missing_provider, of_statement, of_view
from .statement import Statement

_QUERIES = ("SELECT", "VALUES")

Sql = Callable[[SparkSession, str, Any], DataFrame]


def run(spark: SparkSession, original: Sql, text: Any, args: Any, named: dict[str, Any]) -> DataFrame:
    """Run `original`, or tablelog's replacement if Spark fails. `named`: values for `{name}` in the text."""
    if not named:
        return (_run_query if _is_query(text) else _run)(spark, original, text, args)
    with statements.formatted(spark, text, named) as whole:
        return _run(spark, original, whole, args)


def _is_query(text: Any) -> bool:
    """Whether the first word shows that a statement only reads. Then there is no need to parse it twice."""
    word = text.lstrip()[:7].upper() if isinstance(text, str) else ""
    return word[:6] in _QUERIES and not (word[6:].isalnum() or word[6:] == "_")


def _run_query(spark: SparkSession, original: Sql, text: str, args: Any) -> DataFrame:
    try:
        return original(spark, text, args)
    except Exception as error:
        refusal = of_statement(error, None)
        if refusal is None:
            raise
        raise refusal from error


def _run(spark: SparkSession, original: Sql, text: Any, args: Any) -> DataFrame:
    plan = _parsed(spark, text)
    if plan is not None:
        other_formats.check_statement(spark, plan)
        handler = HANDLERS.get(statements.kind_of(plan) or "")
        if handler is not None:
            answer = handler(Statement(spark, text, plan, args))
            if answer is not None:
                return answer
    try:
        return original(spark, text, args)
    except Exception as error:
        if plan is not None and _done(spark, plan, text, args, error):
            return spark.createDataFrame([], StructType())
        refusal = of_statement(error, plan)
        if refusal is None and plan is not None and inserts.changes_view(spark, plan):
            refusal = of_view(plan)
        if refusal is None:
            raise
        raise refusal from error


def _parsed(spark: SparkSession, text: Any) -> Any:
    try:
        return statements.parsed(spark, text) if isinstance(text, str) else None
    except ParseException:
        return None  # Spark raises the error itself


def _done(spark: SparkSession, plan: Any, text: str, args: Any, error: Exception) -> bool:
    """Whether tablelog executed the statement for which Spark failed with `error`."""
    if is_missing_provider(error):
        return args is None and SessionCatalog(spark).drop_by(text)
    return isinstance(error, PySparkException) and inserts.by_statement(spark, plan, args)
