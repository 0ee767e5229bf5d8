"""The table functions `table_changes` and `table_changes_by_path`: the change data feed in queries."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ...engine.jvm.catalog import SessionCatalog
from ...engine.jvm.connection import frames
from ...engine.jvm.connection.gateway import Gateway
from ...engine.jvm.registry.classes import class_name
from ...engine.jvm.statements import statements, table_functions
from ...engine.jvm.statements.inserts import parsed_name
from ...errors import InvalidArgumentError
from .. import change_feed, reader
from ..options import ChangeRange
from . import tables, targets
from .statement import Expression, LogicalPlan

BY_NAME = "table_changes"
BY_PATH = "table_changes_by_path"

_VERSIONS = ("int", "bigint")
_USAGE = "_FUNC_({}, start[, end]) - the changes of a Delta table; start and end are versions or timestamps, inclusive."


def install(spark: SparkSession) -> table_functions.InstalledFunctions:
    """Register both functions in the session."""
    functions = {
        BY_NAME: (_USAGE.format("name"), partial(_plan, spark, BY_NAME)),
        BY_PATH: (_USAGE.format("path"), partial(_plan, spark, BY_PATH)),
    }
    return table_functions.InstalledFunctions(spark, functions)


def _plan(spark: SparkSession, function: str, arguments: Sequence[Expression]) -> LogicalPlan:
    """The plan of a call. Raises the conditions of Delta."""
    _check_arguments(function, arguments)
    table = _text(spark, function, arguments[0])
    start = _bound(spark, function, "starting", 2, arguments[1])
    end = None if len(arguments) == 2 else _bound(spark, function, "ending", 3, arguments[2])
    changes = ChangeRange(start, end)
    read = _at_path if function == BY_PATH else _of_name
    return frames.analyzed(read(spark, table, changes))


def _at_path(spark: SparkSession, path: str, changes: ChangeRange) -> DataFrame:
    return change_feed.frame(spark, reader.existing_table(spark, path), changes)


def _of_name(spark: SparkSession, name: str, changes: ChangeRange) -> DataFrame:
    table_name = targets.TableName.parsed(_in_view(spark, parsed_name(spark, name)))
    table = None
    if not statements.is_temporary_view(spark, table_name.seq):
        table = tables.find(spark, table_name.seq)
        if table is None and SessionCatalog(spark).find_parts(table_name.seq) is None:
            raise targets.missing(table_name)
    if table is None:
        raise InvalidArgumentError(
            f"{BY_NAME} is only supported for Delta tables, and {table_name.quoted} is none: name a Delta table "
            "itself.",
            condition="DELTA_TABLE_ONLY_OPERATION",
            parameters={"tableName": table_name.quoted, "operation": BY_NAME},
        )
    return change_feed.frame(spark, table.log, changes)


def _in_view(spark: SparkSession, parts: Any) -> Any:
    """The name as the text of a view means it: with the catalog and the database in which the view was created."""
    namespace = table_functions.namespace_of_view(Gateway.of(spark))
    if not namespace or parts.size() > 1:
        return parts
    return Gateway.of(spark).seq([*namespace, parts.apply(0)])


def _check_arguments(function: str, arguments: Sequence[Expression]) -> None:
    if any(class_name(argument) == "NamedArgumentExpression" for argument in arguments):
        raise InvalidArgumentError(
            f"{function} takes its arguments by position, not by name: a table, the start and, if you like, the end."
        )
    if 2 <= len(arguments) <= 3:
        return
    failure = "not enough args" if len(arguments) < 2 else "too many args"
    raise InvalidArgumentError(
        f"{failure}, {function} requires at least 2 arguments and at most 3 arguments: a table, the start and the end.",
        condition="INCORRECT_NUMBER_OF_ARGUMENTS",
        parameters={"failure": failure, "functionName": function, "minArgs": "2", "maxArgs": "3"},
    )


def _text(spark: SparkSession, function: str, argument: Expression) -> str:
    what = "table path" if function == BY_PATH else "table name"
    literal = table_functions.constant(spark, argument)
    if literal is None or literal[0] != "string":
        raise _wrong_type(what, argument, "StringType literal")
    return literal[1]


def _bound(spark: SparkSession, function: str, which: str, position: int, argument: Expression) -> int | str:
    """An end of the range: a version, or a timestamp as text."""
    literal = table_functions.constant(spark, argument)
    if literal is None:
        text = str(argument.sql())
        raise InvalidArgumentError(
            f"The {which} argument (position {position}) of the {function} function requires a constant value, but got "
            f"a non-constant expression: {text}.",
            condition="DELTA_CDC_NON_CONSTANT_ARGUMENT",
            parameters={
                "argumentName": f"`{which}`",
                "pos": str(position),
                "functionName": f"`{function}`",
                "sqlExpr": text,
            },
        )
    kind, value = literal
    if kind == "void":
        raise InvalidArgumentError(
            f"{function}: the start and the end can't be null. Give a version or a timestamp.",
            condition="DELTA_CDC_READ_NULL_RANGE_BOUNDARY",
        )
    if kind in _VERSIONS:
        return int(value)
    if kind == "timestamp":
        return (datetime.fromtimestamp(0, UTC) + timedelta(microseconds=int(value))).isoformat()
    if kind == "string":
        return value
    raise _wrong_type(f"{which} option", argument, "IntegerType, LongType, StringType, TimestampType")


def _wrong_type(what: str, argument: Expression, supported: str) -> InvalidArgumentError:
    kind = str(argument.dataType().toString())
    return InvalidArgumentError(
        f"Unsupported expression type({kind}) for {what}. The supported types are [{supported}].",
        condition="DELTA_UNSUPPORTED_EXPRESSION",
        parameters={"expType": kind, "causedBy": what, "supportedTypes": supported},
    )
