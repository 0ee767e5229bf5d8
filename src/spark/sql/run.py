"""`spark.sql` in an enabled session: the handler of a statement about a Delta table runs it, and Spark the others."""

import re
from collections.abc import Callable
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ...engine.jvm import plans
from ...engine.jvm.catalog import SessionCatalog
from ...engine.jvm.connection.compiled import gives_options_to_catalogs
from ...engine.jvm.connection.gateway import Gateway
from ...engine.jvm.connection.sessions import active
from ...engine.jvm.statements import identifiers, scripts, statements
from ...errors import UnsupportedFeatureError
from ..error_log import errors_not_logged
from . import other_formats, own_statements, results
from .handlers import HANDLERS
from .refusals import is_missing_provider, of_statement, of_view
from .scripts import run_immediate, run_script
from .statement import Statement
from .statements import inserts, stream_queries

_QUERIES = ("SELECT", "VALUES")
_OURS = frozenset(
    {*HANDLERS, *statements.UNKNOWN_NAMES, *statements.CHANGING_FILES, statements.SCRIPT, statements.EXECUTE_IMMEDIATE}
)
"""The kinds of statements that tablelog runs or checks. All others are Spark's."""

Sql = Callable[[SparkSession, str, Any], DataFrame]

_READ_OPTION = re.compile(r"\bWITH\s*\([^()]*\b(readChangeFeed|readChangeData|readRowIds)\b", re.IGNORECASE)


def run(spark: SparkSession, original: Sql, text: Any, args: Any, named: dict[str, Any]) -> DataFrame:
    """Run a statement by its handler, or by `original`. `named`: values for `{name}` in the text."""
    if isinstance(text, str) and (option := _READ_OPTION.search(text)) is not None:
        _check_option(spark, option[1])
    if not named:
        return (_run_query if _is_query(text) else _run)(spark, original, text, args)
    with statements.formatted(spark, text, named) as whole:
        return _run(spark, original, whole, args)


def _check_option(spark: SparkSession, option: str) -> None:
    """Refuse an option of a table in a query, `FROM t WITH (...)`, which Spark gives to no catalog before 4.3."""
    if not gives_options_to_catalogs(Gateway.of(spark)):
        raise UnsupportedFeatureError(
            f"{option} in WITH (...) needs Spark 4.3, and this is {spark.version}, which would ignore it. Use "
            "table_changes('name', start) for a change data feed, or spark.read.option(...).table(name).",
            (option,),
        )


def _is_query(text: Any) -> bool:
    """Whether the first word shows that a statement only reads. Then there is no need to parse it twice."""
    word = text.lstrip()[:7].upper() if isinstance(text, str) else ""
    return word[:6] in _QUERIES and not (word[6:].isalnum() or word[6:] == "_")


def _run_query(spark: SparkSession, original: Sql, text: str, args: Any) -> DataFrame:
    try:
        return original(spark, text, args)
    except Exception as error:
        if is_missing_provider(error):
            stream = stream_queries.query(spark, text, args)
            if stream is not None:
                return stream
        refusal = of_statement(error, None)
        if refusal is None:
            raise
        raise refusal from error


def _run(spark: SparkSession, original: Sql, text: Any, args: Any) -> DataFrame:
    with errors_not_logged():
        answer, plan = _by_tablelog(spark, text, args)
    return _by_spark(spark, lambda: original(spark, text, args), text, args, plan) if answer is None else answer


def _by_tablelog(spark: SparkSession, text: Any, args: Any) -> tuple[DataFrame | None, Any]:
    """The answer of a statement, None if Spark has to run it; and its plan, None if nobody has parsed it."""
    own = own_statements.before_spark(spark, text)
    if own is None and isinstance(text, str):
        kinds = statements.kinds_of(spark, text)
        if kinds is not None and _OURS.isdisjoint(kinds):
            return None, None
    with active(spark):
        plan = _parsed(spark, text, args) if own is None else None
        if own is None and plan is None:
            own = own_statements.after_spark(spark, text)
        if own is not None:
            return own_statements.run(spark, own, args), None
        return (None if plan is None else _answer(spark, text, args, plan)), plan


def _answer(spark: SparkSession, text: str, args: Any, plan: Any) -> DataFrame | None:
    """The answer of a statement that Spark has parsed; None if Spark has to run it, and may."""
    parts = statements.parts_of(plan)
    answer = None
    if args is None or isinstance(args, dict | list):
        answer = _by_handler(spark, text, args, plan, parts[0].kind)
    if answer is None:
        other_formats.check_statement(spark, parts)
    return answer


def _by_handler(spark: SparkSession, text: str, args: Any, plan: Any, kind: str) -> DataFrame | None:
    if kind == statements.EXECUTE_IMMEDIATE:
        whole = _with_values(spark, text, args, plan)
        return run_immediate(spark, whole, lambda inner, values: _by_immediate(spark, inner, values))
    if kind == statements.SCRIPT:
        if isinstance(args, list):
            return None  # Spark refuses parameters by position
        whole = _with_values(spark, text, args, plan)
        return run_script(spark, whole, lambda plan, of_one: _in_script(spark, plan, of_one))
    if kind not in HANDLERS and kind not in statements.UNKNOWN_NAMES:
        return None
    whole = _with_values(spark, text, args, plan)
    answer = _handled(Statement(spark, text, whole, args))
    if answer is None and (named := identifiers.with_names(spark, whole)) is not None:
        answer = _handled(Statement(spark, text, named, args))
    return answer


def _with_values(spark: SparkSession, text: str, args: Any, plan: Any) -> Any:
    """The plan of the statement with the values of its parameters; `plan` is the one with their markers."""
    return statements.parsed_with_values(spark, text, args) if args else plan


def _handled(statement: Statement) -> DataFrame | None:
    handler = HANDLERS.get(statement.kind)
    return None if handler is None else handler(statement)


def _by_immediate(spark: SparkSession, text: str, args: Any) -> DataFrame | None:
    """Run the statement of an EXECUTE IMMEDIATE; None if Spark has to run it."""
    answer, _ = _by_tablelog(spark, text, args)
    plan = _parsed(spark, text, args) if answer is None else None
    if plan is not None and statements.kind_of(plan) == "DropTable":
        whole = _with_values(spark, text, args, plan)
        return _by_spark(spark, lambda: plans.frame_of(spark, whole), text, None, whole)
    return answer


def _in_script(spark: SparkSession, text: str, plan: Any) -> bool:
    """Run a statement of a script. Returns False for an EXECUTE IMMEDIATE that Spark has to run."""
    if scripts.is_execute_immediate(plan):
        return run_immediate(spark, plan, lambda inner, values: _outside(spark, inner, values)) is not None
    if _answer(spark, text, None, plan) is None:
        _by_spark(spark, lambda: plans.frame_of(spark, plan), text, None, plan)
    return True


def _outside(spark: SparkSession, text: str, args: Any) -> DataFrame | None:
    """`_by_immediate` without the variables of the script."""
    return scripts.outside_script(spark, lambda: _by_immediate(spark, text, args))


def _by_spark(spark: SparkSession, execute: Callable[[], DataFrame], text: Any, args: Any, plan: Any) -> DataFrame:
    """Run a statement by Spark. Raises UnsupportedFeatureError if Spark refuses it because of a Delta table."""
    try:
        return execute()
    except Exception as error:
        if plan is None and isinstance(text, str):
            plan = statements.parsed_or_none(spark, text)
        if plan is not None and is_missing_provider(error) and _dropped(spark, text, args, plan):
            return results.nothing(spark)
        refusal = of_statement(error, plan)
        if refusal is None and plan is not None and inserts.changes_view(spark, plan):
            refusal = of_view(plan)
        if refusal is None:
            raise
        raise refusal from error


def _dropped(spark: SparkSession, text: str, args: Any, plan: Any) -> bool:
    """Drop the Delta table of a DROP TABLE. Returns False for other statements and other tables."""
    whole = _with_values(spark, text, args, plan)
    named = identifiers.with_names(spark, whole)
    return SessionCatalog(spark).drop_by(whole if named is None else named)


def _parsed(spark: SparkSession, text: Any, args: Any) -> Any:
    """The plan of the statement, with its parameter markers; None if Spark can't parse it."""
    if not isinstance(text, str):
        return None
    plan = None
    try:
        plan = statements.parsed(spark, text)
        if not args or statements.kind_of(plan) not in statements.UNKNOWN_NAMES:
            return plan
    except PySparkException:
        pass  # Spark raises the error itself
    try:
        # Spark's grammar wants the values themselves in PARTITION (p = :p) and IDENTIFIER(:t).
        return statements.parsed_with_values(spark, text, args) if args else None
    except PySparkException:
        return plan
