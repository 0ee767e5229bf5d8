"""Keep Spark's writers of other formats out of the directory of a Delta table: an overwrite would delete the log.

Databricks checks this too, under the same key.
"""

from typing import Any

from pyspark.sql import SparkSession

from ..engine.jvm import settings, statements
from ..errors import InvalidArgumentError
from ..settings.honoured import FORMAT_CHECK


def check(spark: SparkSession, location: object) -> None:
    """InvalidArgumentError where a Delta table lies at the location, unless the session does without this check."""
    if not isinstance(location, str) or not location or not settings.of(spark, FORMAT_CHECK):
        return
    if statements.has_log(spark, location):
        raise InvalidArgumentError(
            f"A Delta table lies at {location}: files of another format would be no part of it, and an overwrite would "
            'delete it with its log. Nothing was written. Write to it by df.write.format("delta"), choose another '
            f"directory, or set {FORMAT_CHECK.key} to false."
        )


def check_statement(spark: SparkSession, plan: Any) -> None:
    """The same of the directory that a parsed statement names."""
    check(spark, statements.destination(spark, plan))
