"""Checks for each written row, added to the plan of the write, so that they need no extra pass over the data.

A row that violates a check fails the job; `violations.translated` converts the error to a `ConstraintViolationError`
with the row's values.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...core.protocol.rules import Check
from ...core.protocol.schema import BOOLEAN, quoted
from ...errors import SchemaMismatchError
from . import expressions
from .replaced_columns import replaced
from .violations import marked

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def checked(
    df: "DataFrame",
    condition: "Column",
    message: str,
    *,
    on: str | None = None,
    broken: tuple[str | None, Mapping[str, str]] = (None, {}),
) -> "DataFrame":
    """`df` with a check: the job fails with `ConstraintViolationError(message)` if `condition` isn't TRUE for a row.

    The check is attached to the column `on` (default: the first), which must be a written column. `broken` is the
    error's condition and its parameters.
    """
    from pyspark.sql import functions as F

    return _guarded(df, [(condition, F.lit(marked(message, *broken)))], on or df.columns[0])


def enforced(df: "DataFrame", checks: Sequence[Check], table: str) -> "DataFrame":
    """`df` with checks: the job fails if one of them isn't TRUE for a row.

    Raises `SchemaMismatchError` for a check that can't be evaluated on the columns of `df`, `UntrustedTableError` for
    one that the session doesn't evaluate.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    if not checks:
        return df
    conditions = [F.expr(check.sql) for check in checks]
    names = []
    for check in checks:
        try:
            resolved = expressions.evaluated(df, check.sql, check.what, table)
        except AnalysisException as error:
            raise SchemaMismatchError(
                f"{table}: {check.what}, {check.sql}, can't be evaluated on the columns {', '.join(df.columns)}: drop "
                "it, or keep its columns"
            ) from error
        if resolved is None or resolved.data_type != BOOLEAN:
            raise SchemaMismatchError(
                f"{table}: {check.what}, {check.sql}, is not a condition on a single row: drop it, or correct it"
            )
        names.append(resolved.columns)
    return _guarded(
        df,
        [
            (condition, _with_values(df, check, columns))
            for check, condition, columns in zip(checks, conditions, names, strict=True)
        ],
        df.columns[0],
    )


def _with_values(df: "DataFrame", check: Check, columns: Sequence[str]) -> "Column":
    """The error message for a row that violates the check, with the row's values appended as JSON."""
    from pyspark.sql import functions as F

    message = F.lit(
        marked(
            f"a row breaks {check.what}, {check.sql}; nothing was written",
            parameters={"constraintName": check.what, "expression": check.sql},
        )
    )
    if not columns:
        return message
    row = F.struct(*(df[quoted(name)] for name in columns))
    return F.concat(message, F.to_json(row, {"ignoreNullFields": "false"}))


def _guarded(df: "DataFrame", checks: "Sequence[tuple[Column, Column]]", column: str) -> "DataFrame":
    from pyspark.sql import functions as F

    value = df[quoted(column)]
    for condition, message in reversed(checks):
        value = F.when(condition, value).otherwise(F.raise_error(message))
    return replaced(df, {column: value})
