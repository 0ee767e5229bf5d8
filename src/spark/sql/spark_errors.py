"""Errors of Spark's analyzer in place of ours: they have the position in the text, and delta-spark raises them too."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from ...engine.jvm.statements import inserts
from ...errors import InvalidArgumentError, SchemaMismatchError
from .statement import LogicalPlan

_OF_COLUMNS = frozenset(
    {
        "AMBIGUOUS_REFERENCE",
        "FIELD_ALREADY_EXISTS",
        "FIELD_NOT_FOUND",
        "INVALID_FIELD_NAME",
        "NOT_SUPPORTED_CHANGE_COLUMN",
        "UNRESOLVED_COLUMN",
    }
)
"""The conditions of errors about the columns that a statement names."""


@contextmanager
def preferred(spark: SparkSession, plan: Callable[[], LogicalPlan]) -> Iterator[None]:
    """Where a command refuses a statement, raise the error of Spark's analyzer about its columns, if it has one.

    The analyzer runs only after a refusal, so it can refuse nothing by itself. `plan` gives what it resolves.
    """
    try:
        yield
    except (InvalidArgumentError, SchemaMismatchError) as error:
        refusal = inserts.refusal(spark, plan())
        if refusal is None or (refusal.getCondition() or "").partition(".")[0] not in _OF_COLUMNS:
            raise
        raise refusal from error
