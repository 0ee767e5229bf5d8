"""Errors for operations that Spark can't do with Delta tables yet: each has the operation and an alternative.

Delta tables are recognized by the condition of Spark's error, never by the text of its message.
"""

from typing import Any

from ...engine.jvm.connection.java_errors import conditions
from ...engine.jvm.statements import statements
from ...errors import UnsupportedFeatureError

_APPEND = (
    'df.write.format("delta").mode("append").save(path) or saveAsTable(name); in SQL, INSERT INTO with the name of the '
    "table or delta.`path`"
)
_OVERWRITE = 'df.write.format("delta").mode("overwrite").save(path) or saveAsTable(name)'
_AS_SELECT = 'df.write.format("delta").saveAsTable(name)'
_STREAM = "spark.readStream.table(source).writeStream.option('checkpointLocation', path).toTable(target)"
_TABLE = "DeltaTable.forName(spark, name) or DeltaTable.forPath(spark, path)"

# By the class of the parsed statement: its name, and the alternative.
_STATEMENTS = {
    "CreateTempViewUsing": (
        "CREATE TEMPORARY VIEW ... USING delta",
        'spark.read.format("delta").load(path).createOrReplaceTempView(view)',
    ),
    "CreateStreamingTableAsSelect": ("CREATE STREAMING TABLE", _STREAM),
    "CreateMaterializedViewAsSelect": ("CREATE MATERIALIZED VIEW", "CREATE VIEW, or CREATE TABLE ... AS SELECT"),
    "InsertIntoDir": ("INSERT OVERWRITE DIRECTORY ... USING delta", _OVERWRITE),
    "AddCheckConstraint": ("ALTER TABLE ... ADD CONSTRAINT", f"{_TABLE}.addConstraint(...)"),
}
_INSIDE = "A statement inside EXECUTE IMMEDIATE or a script", "spark.sql(text), with the statement itself"
_OWN_SQL = {
    "VACUUM": f"{_TABLE}.vacuum()",
    "OPTIMIZE": f"{_TABLE}.optimize()",
    "RESTORE": f"{_TABLE}.restoreToVersion(version)",
    "GENERATE": f"{_TABLE}.generate(mode)",
    "CONVERT": "DeltaTable.convertToDelta(spark, identifier)",
    "REORG": f"{_TABLE}.reorg()",
}
_CATALOG = {"dropTable": "DROP TABLE by spark.sql"}
_WRITES = {
    "create": _AS_SELECT,
    "replace": f'{_AS_SELECT} with mode("overwrite") and overwriteSchema',
    "createOrReplace": f'{_AS_SELECT} with mode("overwrite") and overwriteSchema',
}


def later(operation: str, instead: str) -> UnsupportedFeatureError:
    """The error for an operation that is not supported yet."""
    return UnsupportedFeatureError(f"{operation} is not supported for Delta tables yet. Use {instead}.")


def is_missing_provider(error: BaseException) -> bool:
    """Whether Spark recognized a Delta table and failed because it has no Delta source."""
    return any(
        condition == "DATA_SOURCE_NOT_FOUND" and parameters.get("provider", "").lower() == "delta"
        for condition, parameters in conditions(error)
    )


def of_catalog(error: BaseException, method: str) -> UnsupportedFeatureError | None:
    """The error for a method of `spark.catalog`; None if Spark's error isn't about a Delta table."""
    if not is_missing_provider(error):
        return None
    return later(f"spark.catalog.{method}", _CATALOG.get(method, _TABLE))


def of_writer(error: BaseException, writer_name: str, method: str) -> UnsupportedFeatureError | None:
    """The error for a method of a writer (`writer_name`); None if Spark's error isn't about a Delta table."""
    if not is_missing_provider(error):
        return None
    return later(f"{writer_name}.{method}", _WRITES.get(method, _APPEND))


def of_statement(error: BaseException, plan: Any) -> UnsupportedFeatureError | None:
    """The error for `spark.sql`; None if Spark's error isn't about a Delta table. `plan`: the statement, if parsed."""
    for condition, parameters in conditions(error):
        if condition == "PARSE_SYNTAX_ERROR":
            word = parameters.get("error", "").strip("'").upper()
            if word in _OWN_SQL:
                return later(f"{word} inside another statement", _OWN_SQL[word])
        if condition == "UNSUPPORTED_INSERT.MULTI_PATH" and _is_twice_one(parameters.get("paths", "")):
            return UnsupportedFeatureError(
                "An INSERT into a temporary view of a Delta table needs a view of the whole table without time travel, "
                'created by spark.read.format("delta").load(path).createOrReplaceTempView(view). Nothing was inserted. '
                f"Otherwise, use {_APPEND}."
            )
    if plan is None or not is_missing_provider(error):
        return None
    operation, instead = _operation(plan)
    return later(operation, instead)


def of_view(plan: Any) -> UnsupportedFeatureError:
    """The error for a statement that changes a temporary view of a table."""
    operation, instead = _operation(plan)
    return later(f"{operation} by a temporary view", instead)


def _is_twice_one(paths: str) -> bool:
    """Whether the root paths in Spark's error are those of a tablelog table (`FileIndex.rootPaths`)."""
    inside = paths.removeprefix("[").removesuffix("]")
    middle = len(inside) // 2
    return inside[:middle] == inside[middle + 1 :] and inside[middle : middle + 1] == ","


def _operation(plan: Any) -> tuple[str, str]:
    if statements.is_query(plan):
        return _INSIDE
    kind = statements.kind_of(plan)
    return _STATEMENTS.get(kind, (f"The statement {kind}", _TABLE))
