"""Translates Spark's errors during writes to the errors of tablelog."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ...core.protocol.schema import StructType, all_fields, dotted
from ...core.protocol.schema.field_metadata import CHAR_VARCHAR_KEY
from ...errors import ConstraintViolationError, SchemaMismatchError, TablelogError
from ..connect.assignment import OVERFLOW
from ..connect.server_errors import said_by_server
from ..jvm.connection.messages import chain, said

_MARK = "tablelog:constraint:"
_LONGEST_ROW = 500


def marked(message: str, condition: str | None = None, parameters: Mapping[str, str] | None = None) -> str:
    """Encode a message so that `raise_error` with it results in `ConstraintViolationError(message)`.

    The error gets the given condition and parameters. A row's values may follow the message, as one JSON object.
    """
    return _MARK + json.dumps([message, condition, dict(parameters or {})])


@contextmanager
def translated(table: str, schema: StructType | None = None) -> Iterator[None]:
    """Convert Spark's errors inside by `translate`; other errors are not changed. `schema` is the table's."""
    try:
        yield
    except TablelogError:
        raise
    except Exception as error:
        known = translate(error, table, schema)
        if known is None:
            raise
        raise known from error


def translate(error: BaseException, table: str, schema: StructType | None = None) -> TablelogError | None:
    """The error for a row that violates the table's rules, or for a frame that doesn't fit; `None` for other errors."""
    from pyspark.errors import PySparkException

    for cause in chain(error):
        if not isinstance(cause, PySparkException):
            continue
        condition = cause.getCondition() or ""
        parameters = cause.getMessageParameters() or {}
        text = said(cause)
        marked_text = said_by_server(cause) or (text if condition == "USER_RAISED_EXCEPTION" else "")
        if _MARK in marked_text:
            start = marked_text.index(_MARK) + len(_MARK)
            (message, rule, of_rule), end = json.JSONDecoder().raw_decode(marked_text, start)
            values = _values(marked_text, end)
            shown = of_rule | ({"values": values} if values else {})
            kind = SchemaMismatchError if rule == OVERFLOW else ConstraintViolationError
            return kind(
                f"{table}: {message}" + (f"; the row has {values}" if values else ""), condition=rule, parameters=shown
            )
        if condition == "NOT_NULL_ASSERT_VIOLATION":
            column = ".".join(parameters.get("walkedTypePath", "").split())
            return ConstraintViolationError(
                f"{table}: the column {column} is NOT NULL, and the data has a null there; nothing was written",
                condition="DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
                parameters={"columnName": column},
            )
        if condition in ("EXCEED_LIMIT_LENGTH", "EXCEEDS_LIMIT_LENGTH"):
            limit = parameters.get("limit", "")
            columns = ", ".join(_limited(schema, limit)) or "a char or varchar column"
            return ConstraintViolationError(
                f"{table}: a value is longer than the {limit} characters that {columns} can hold; nothing was written",
                condition="DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
                parameters={"value": "?", "expr": columns},
            )
        if condition == "CAST_OVERFLOW_IN_TABLE_INSERT":
            return SchemaMismatchError(
                f"{table}: a value of the column {parameters.get('columnName', '?')} is out of the range of the "
                f"column's type, {parameters.get('targetType', '?')} (the data has "
                f"{parameters.get('sourceType', '?')}); nothing was written",
                condition=OVERFLOW,
                parameters=parameters,
            )
        if condition.startswith(("INCOMPATIBLE_DATA_FOR_TABLE", "INSERT_COLUMN_ARITY_MISMATCH", "DATATYPE_MISMATCH")):
            fields = condition if condition.startswith("DATATYPE") else "DELTA_FAILED_TO_MERGE_FIELDS"
            return SchemaMismatchError(f"{table}: {text}", condition=fields, parameters=parameters)
    return None


def _values(text: str, start: int) -> str:
    """The values of the violating row, if they follow the message as JSON."""
    try:
        values, _ = json.JSONDecoder().raw_decode(text, start)
    except ValueError:
        return ""
    shown = ", ".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())
    return shown if len(shown) <= _LONGEST_ROW else shown[:_LONGEST_ROW] + "..."


def _limited(schema: StructType | None, limit: str) -> Iterator[str]:
    """The columns of this length, with their types; those of a struct, an array or a map are in its own type."""
    for name, field in all_fields(schema) if schema is not None else ():
        declared = str(field.metadata.get(CHAR_VARCHAR_KEY, ""))
        if re.search(rf"char\({re.escape(limit)}\)", declared):
            yield f"{dotted(name)} ({declared})"
