"""Errors for what tablelog doesn't do on Spark Connect: each names the operation and an alternative."""

import re

from ...errors import UnsupportedFeatureError
from ..not_on_connect import refused

_TABLE = r"(?:\bdelta\s*\.\s*`|\busing\s+delta\b|\bdelta\s*\.\s*'|\btable_changes\s*\()"
_OF_DELTA = re.compile(_TABLE, re.IGNORECASE)

SAVE = 'df.write.format("delta").save(path)'
LOAD = 'spark.read.format("delta").load(path)'

STREAM_IN_PIPELINE = "A stream that reads a Delta table in a declarative pipeline (spark-pipelines)"
INSTEAD_OF_STREAM = f"a materialized view in Python that reads it by {LOAD}, or a query outside of a pipeline"
SAVE_AFTERWARDS = (
    "another format for the table, such as parquet, and after the run spark.read.table(name)"
    '.write.format("delta").save(path)'
)


def of_statement(sql: str) -> UnsupportedFeatureError | None:
    """The error for an SQL statement that names a Delta table by its path or its format; `None` for others."""
    if _OF_DELTA.search(sql) is None:
        return None
    return refused("An SQL statement on a Delta table", f"DeltaTable.forPath(spark, path), {LOAD} or {SAVE}")


def of_pipeline_sql(sql: str) -> UnsupportedFeatureError | None:
    """The error for SQL of a declarative pipeline that names a Delta table by its path or its format; else `None`."""
    if _OF_DELTA.search(sql) is None:
        return None
    return refused(
        "SQL on a Delta table in a declarative pipeline (spark-pipelines)",
        f"a materialized view in Python that reads it by {LOAD}, and for the result {SAVE_AFTERWARDS}",
    )


def pipeline_target(name: str) -> UnsupportedFeatureError:
    """The error for a table or sink of a declarative pipeline that would be a Delta table."""
    return refused(f"The target {name} of a declarative pipeline (spark-pipelines) as a Delta table", SAVE_AFTERWARDS)
