"""`spark.sql` in an enabled session: the handler of a statement about a Delta table runs it, and Spark the others."""

from collections.abc import Callable
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ...engine.jvm import statements
from ...engine.jvm.catalog import SessionCatalog
from . import inserts, other_formats, own_statements, results
from .handlers import HANDLERS
from .refusals import is_missing_provider, of_statement, of_view
from .statement import Statement

_QUERIES = ("SELECT", "VALUES")

Sql = Callable[[SparkSession, str, Any], DataFrame]


def run(spark: SparkSession, original: Sql, text: Any, args: Any, named: dict[str, Any]) -> DataFrame:
    """Run a statement by its handler, or by `original`. `named`: values for `{name}` in the text."""
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
    own = own_statements.before_spark(spark, text)
    plan = _parsed(spark, text, args) if own is None else None
    if own is None and plan is None:
        own = own_statements.after_spark(spark, text)
    if own is not None:
        return own_statements.run(spark, own, args)
    if plan is not None:
        other_formats.check_statement(spark, plan)
        handler = HANDLERS.get(statements.kind_of(plan) or "")
        if handler is not None and (args is None or isinstance(args, dict | list)):
            whole = statements.parsed_with_values(spark, text, args) if args else plan
            answer = handler(Statement(spark, text, whole, args))
            if answer is not None:
                return answer
    try:
        return original(spark, text, args)
    except Exception as error:
        if args is None and is_missing_provider(error) and SessionCatalog(spark).drop_by(text):
            return results.nothing(spark)
        refusal = of_statement(error, plan)
        if refusal is None and plan is not None and inserts.changes_view(spark, plan):
            refusal = of_view(plan)
        if refusal is None:
            raise
        raise refusal from error


def _parsed(spark: SparkSession, text: Any, args: Any) -> Any:
    """The plan of the statement, with its parameter markers; None if Spark can't parse it."""
    if not isinstance(text, str):
        return None
    plan = None
    try:
        plan = statements.parsed(spark, text)
        if not args or not statements.has_unknown_name(plan):
            return plan
    except PySparkException:
        pass  # Spark raises the error itself
    try:
        # Spark's grammar wants the values themselves in PARTITION (p = :p) and IDENTIFIER(:t).
        return statements.parsed_with_values(spark, text, args) if args else None
    except PySparkException:
        return plan
