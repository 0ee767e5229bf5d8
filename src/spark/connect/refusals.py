"""Errors for what tablelog doesn't do on Spark Connect: each names the operation and an alternative."""

import re

from pyspark.errors import ParseException, PySparkException

from ...engine.connect import server_errors
from ...errors import UnsupportedFeatureError
from .. import statement_words
from ..not_on_connect import refused

_DELTA = r"(?:\bdelta\b|`delta`)"
_OF_DELTA = re.compile(rf"{_DELTA}\s*\.\s*[`']|\busing\s*{_DELTA}|\btable_changes\s*\(", re.IGNORECASE)
_STATEMENT_IN_STRING = re.compile(r"\bidentifier\s*\(|\bexecute\s+immediate\b", re.IGNORECASE)
"""What makes a name or a statement of a string."""

_METHODS = {
    "VACUUM": "vacuum",
    "OPTIMIZE": "optimize",
    "RESTORE": "restoreToVersion",
    "GENERATE": "generate",
    "CONVERT": "convertToDelta",
    "REORG": "reorg",
    "HISTORY": "history",
    "DETAIL": "detail",
    "CLONE": "clone",
    "FEATURE": "dropFeatureSupport",
}
"""The method that does what a statement of Delta's own does, by a word of the statement."""

_OWN_CLAUSE = re.compile(r"\b(?:clone|feature)\b", re.IGNORECASE)
"""What makes a statement that begins like one of Spark's one of Delta's own."""

SAVE = 'df.write.format("delta").save(path)'
SAVE_AS_TABLE = 'df.write.format("delta").saveAsTable(name)'
LOAD = 'spark.read.format("delta").load(path)'

STREAM_IN_PIPELINE = "A stream that reads a Delta table in a declarative pipeline (spark-pipelines)"
INSTEAD_OF_STREAM = f"a materialized view in Python that reads it by {LOAD}, or a query outside of a pipeline"
SAVE_AFTERWARDS = (
    "another format for the table, such as parquet, and after the run spark.read.table(name)"
    '.write.format("delta").save(path)'
)


def of_statement(sql: str) -> UnsupportedFeatureError | None:
    """The error for an SQL statement that names a Delta table by its path or its format; `None` for others."""
    if not _names_delta(sql):
        return None
    return refused("An SQL statement on a Delta table", f"DeltaTable.forPath(spark, path), {LOAD} or {SAVE}")


def _names_delta(sql: str) -> bool:
    """Whether the code of a statement, without strings and comments, names a Delta table by its path or its format."""
    code = statement_words.code_of(sql)
    if _STATEMENT_IN_STRING.search(code):
        code = sql
    return _OF_DELTA.search(code) is not None


def of_failed_statement(sql: str, error: PySparkException) -> UnsupportedFeatureError | None:
    """The error for a statement of Delta's own, or with the name of a Delta table, that the server refused.

    `None` for others. A server with a Delta of its own, such as Databricks, may know the statement.
    """
    words = statement_words.leading_words(sql, 2)
    first = words[0] if words else ""
    if first in statement_words.OWN:
        name = word = first
    elif first in statement_words.DESCRIBE and words[-1] in statement_words.DESCRIBED:
        name, word = " ".join(words), words[-1]
    elif first in statement_words.SHARED and isinstance(error, ParseException) and (found := _OWN_CLAUSE.search(sql)):
        word = found[0].upper()
        name = f"{first} ... {word}"
    else:
        return of_name(error, "An SQL statement")
    return refused(f"The SQL statement {name}", f"DeltaTable.{_METHODS[word]}")


def of_name(error: PySparkException, operation: str) -> UnsupportedFeatureError | None:
    """The error for an operation that the server refused because a name is that of a Delta table; `None` for others."""
    if not server_errors.lacks_delta_source(error):
        return None
    instead = f"DeltaTable.forName(spark, name), spark.table(name) or {SAVE_AS_TABLE}"
    return refused(f"{operation} with the name of a Delta table in the catalog", instead)


def of_pipeline_sql(sql: str) -> UnsupportedFeatureError | None:
    """The error for SQL of a declarative pipeline that names a Delta table by its path or its format; else `None`."""
    if not _names_delta(sql):
        return None
    return refused(
        "SQL on a Delta table in a declarative pipeline (spark-pipelines)",
        f"a materialized view in Python that reads it by {LOAD}, and for the result {SAVE_AFTERWARDS}",
    )


def pipeline_target(name: str) -> UnsupportedFeatureError:
    """The error for a table or sink of a declarative pipeline that would be a Delta table."""
    return refused(f"The target {name} of a declarative pipeline (spark-pipelines) as a Delta table", SAVE_AFTERWARDS)
