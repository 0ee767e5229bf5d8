"""What went wrong in Spark, said in tablelog's errors."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..core.protocol.schema import StructType, all_fields, char_varchar, dotted
from ..errors import ConstraintViolationError, SchemaMismatchError, TablelogError

_MARK = "tablelog:constraint:"
_LONGEST_ROW = 500


def marked(message: str) -> str:
    """`message` so spelt that `raise_error` of it in a plan comes back as `ConstraintViolationError(message)`.

    A row's values may follow it, as one JSON object.
    """
    return _MARK + json.dumps(message)


@contextmanager
def translated(table: str, schema: StructType | None = None) -> Iterator[None]:
    """Errors of Spark inside come out as `translate` says, others as they are. `schema` is the table's."""
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
    """The typed error for a row that a table can't hold, or for a frame that doesn't fit it; `None` for any other."""
    from pyspark.errors import PySparkException

    for one in _causes(error):
        if not isinstance(one, PySparkException):
            continue
        condition = one.getCondition() or ""
        parameters = one.getMessageParameters() or {}
        text = str(one)
        if condition == "USER_RAISED_EXCEPTION" and _MARK in text:
            start = text.index(_MARK) + len(_MARK)
            message, end = json.JSONDecoder().raw_decode(text, start)
            return ConstraintViolationError(f"{table}: {message}{_row(text, end)}")
        if condition == "NOT_NULL_ASSERT_VIOLATION":
            column = ".".join(parameters.get("walkedTypePath", "").split())
            return ConstraintViolationError(
                f"{table}: the column {column} is NOT NULL, and the data has a null there; nothing was written"
            )
        if condition in ("EXCEED_LIMIT_LENGTH", "EXCEEDS_LIMIT_LENGTH"):
            limit = parameters.get("limit", "")
            columns = ", ".join(_limited(schema, limit)) or "a char or varchar column"
            return ConstraintViolationError(
                f"{table}: a value is longer than the {limit} characters that {columns} can hold; nothing was written"
            )
        if condition == "CAST_OVERFLOW_IN_TABLE_INSERT":
            return SchemaMismatchError(
                f"{table}: a value of the column {parameters.get('columnName', '?')} is out of the range of the "
                f"column's type, {parameters.get('targetType', '?')} (the data has "
                f"{parameters.get('sourceType', '?')}); nothing was written"
            )
        if condition.startswith(("INCOMPATIBLE_DATA_FOR_TABLE", "INSERT_COLUMN_ARITY_MISMATCH", "DATATYPE_MISMATCH")):
            return SchemaMismatchError(f"{table}: {text}")
    return None


def _row(text: str, start: int) -> str:
    """The values of the row that broke a rule, where they follow the message as JSON."""
    try:
        values, _ = json.JSONDecoder().raw_decode(text, start)
    except ValueError:
        return ""
    shown = ", ".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())
    return f"; the row has {shown if len(shown) <= _LONGEST_ROW else shown[:_LONGEST_ROW] + '...'}"


def _causes(error: BaseException) -> Iterable[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _limited(schema: StructType | None, limit: str) -> Iterator[str]:
    for name, field in all_fields(schema) if schema is not None else ():
        declared = char_varchar(field)
        if declared is not None and str(declared[1]) == limit:
            yield f"{dotted(name)} ({declared[0]}({declared[1]}))"
