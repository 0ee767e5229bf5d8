"""Runs a sequence of SQL statements in a session and records what each did. Both engines' processes run this module.

It reads the logs of the tables as JSON files, without either engine.
"""

import json
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession


def run(spark: SparkSession, statements: list[str], root: str, tables: dict[str, str]) -> list[dict[str, Any]]:
    """What each statement answered, and the tables that it changed.

    Args:
        spark: The session of the engine.
        statements: SQL texts, with `{root}` for the directory.
        root: A directory of this engine alone.
        tables: How SQL names each table, with `{root}` too, and its directory below `root`.
    """
    versions = dict.fromkeys(tables, -1)
    outcomes = []
    for text in statements:
        outcome = _answer(spark, text.replace("{root}", root))
        outcome["tables"] = {}
        for name, directory in tables.items():
            known, newest = versions[name], newest_version(Path(root, directory))
            if known == newest:
                continue
            versions[name] = newest
            sql_name = name.replace("{root}", root)
            since = known + 1 if known < newest else 0
            outcome["tables"][name] = None if newest < 0 else _state(spark, sql_name, Path(root, directory), since)
        outcomes.append(outcome)
    return outcomes


def newest_version(table: Path) -> int:
    """-1: there is no table."""
    return max((int(file.stem) for file in _commits(table)), default=-1)


def _commits(table: Path) -> list[Path]:
    return [file for file in (table / "_delta_log").glob("*.json") if file.stem.isdigit()]


def _answer(spark: SparkSession, text: str) -> dict[str, Any]:
    try:
        return _rows(spark.sql(text))
    except Exception as error:
        name, condition = _condition(error)
        return {"error": condition, "class": name, "message": str(error)[:600]}


def _rows(frame: DataFrame) -> dict[str, Any]:
    rows = [[_cell(value) for value in row] for row in frame.collect()]
    return {"columns": [list(column) for column in frame.dtypes], "rows": sorted(rows, key=json.dumps)}


def _cell(value: Any) -> Any:
    """A value as JSON has it: what JSON doesn't know as its text."""
    if isinstance(value, Row):
        return {name: _cell(one) for name, one in value.asDict().items()}
    if isinstance(value, dict):
        return {str(key): _cell(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_cell(one) for one in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _condition(error: Exception) -> tuple[str, str | None]:
    """The name of the error's class in PySpark, and its condition or that of its cause."""
    at = getattr(error, "java_exception", None)
    while at is not None:
        try:
            return "Py4JJavaError", str(at.getCondition())
        except Exception:  # a class of the JVM without conditions
            at = at.getCause()
    bases = [one.__name__ for one in type(error).__mro__ if one.__module__ == "pyspark.errors.exceptions.base"]
    condition = error.getCondition() if bases else None  # type: ignore[attr-defined]
    return (bases or [type(error).__name__])[0], condition


def _state(spark: SparkSession, name: str, table: Path, since: int) -> dict[str, Any]:
    """Rows and schema as the engine reads them, and what the log says."""
    read = _answer(spark, f"SELECT * FROM {name}")
    if "error" not in read:
        read["schema"] = spark.sql(f"SELECT * FROM {name}").schema.jsonValue()
    return {"read": read, **_logged(table, since)}


def _logged(table: Path, since: int) -> dict[str, Any]:
    found: dict[str, Any] = {"commits": [], "domains": {}}
    for file in sorted(_commits(table)):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        for action in actions:
            if "metaData" in action:
                found["metadata"] = action["metaData"]
            elif "protocol" in action:
                found["protocol"] = action["protocol"]
            elif "domainMetadata" in action:
                domain = action["domainMetadata"]
                found["domains"][domain["domain"]] = None if domain["removed"] else domain["configuration"]
            elif "commitInfo" in action and int(file.stem) >= since:
                info = action["commitInfo"]
                kept = ("operation", "operationParameters", "operationMetrics", "isBlindAppend", "isolationLevel")
                found["commits"].append({key: info.get(key) for key in kept})
    return found


def cross_read(spark: SparkSession, path: str) -> dict[str, Any]:
    """What an engine reads of a table that the other has written: rows, schema and detail."""
    name = f"delta.`{path}`"
    spark.catalog.clearCache()  # delta-spark answers from CACHE TABLE with the rows from before a RESTORE
    detail = json.loads(spark.sql(f"DESCRIBE DETAIL {name}").toJSON().first())
    return {"read": _state(spark, name, Path(path), 0)["read"], "detail": detail}
