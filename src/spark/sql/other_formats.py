"""Prevents Spark from writing other formats into the directory of a Delta table: an overwrite would delete the log.

Databricks has the same check, with the same configuration key.
"""

from typing import Any

from pyspark.sql import SparkSession

from ...engine.jvm.connection import settings
from ...engine.jvm.statements import statements
from ...errors import InvalidArgumentError
from ...settings.declarations import FORMAT_CHECK


def check(spark: SparkSession, location: object) -> None:
    """Raise InvalidArgumentError if a Delta table is at the location, unless the session disables this check."""
    if not isinstance(location, str) or not location or not settings.of(spark, FORMAT_CHECK):
        return
    if statements.has_log(spark, location):
        raise InvalidArgumentError(
            f"There is a Delta table at {location}: files of another format would not be part of it, and an overwrite "
            'would delete it with its log. Nothing was written. Use df.write.format("delta") to write to the table, '
            f"choose another directory, or set {FORMAT_CHECK.key} to false."
        )


def check_statement(spark: SparkSession, plan: Any) -> None:
    """The same check for the directory in a parsed statement."""
    check(spark, statements.destination(spark, plan))
