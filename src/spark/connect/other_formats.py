"""Prevents Spark from writing other formats into the directory of a Delta table, in sessions of Spark Connect.

`tablelog.spark.sql.other_formats` is the check of classic sessions, where Spark's parser says what a statement names.
"""

import os
from collections import deque
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from ...core.protocol.change_data import DIRECTORY as CHANGE_DATA
from ...core.protocol.paths import LOG_DIRECTORY
from ...engine.connect import client, server_errors, sql_directories
from ...engine.jvm.connection import settings
from ...errors import InvalidArgumentError, StorageError, UnsupportedFeatureError
from ...logstore.common.uri import escaped
from ...logstore.data_files import DataFiles
from ...settings.declarations import FORMAT_CHECK
from ..conf import delta_log, session_conf
from ..format_check import (
    MOST_DIRECTORIES,
    locations,
    overwrite_refusal,
    refusal,
    saved_refusal,
    schema_refusal,
    stream_refusal,
)
from ..reader import can_be_read
from . import catalog


def check(spark: SparkSession, path: object, options: Mapping[str, object], *, overwrites: bool = False) -> None:
    """Raise InvalidArgumentError if a writer names a Delta table, a directory inside one, or its log.

    `overwrites`: everything in the directory will be deleted, also a table in one of its directories.
    """
    for location in locations(path, options):
        conf = session_conf(spark, location)
        if not FORMAT_CHECK.of(conf):
            continue
        if _is_in_table(_outside_log(location), conf):
            raise refusal(location)
        if overwrites and (table := _table_in(location, conf)) is not None:
            raise overwrite_refusal(location, table)


def check_table(spark: SparkSession, name: str, *, replaces: bool = False) -> None:
    """The same check for the directory of a catalog table, which an earlier conversion may have made a Delta table.

    It makes one request, for a temporary view two. A name that the catalog doesn't have passes. That of a Delta table
    passes too, because Spark can't write to one, unless the writer `replaces` the table of this name (saveAsTable).
    """
    try:
        rows = client.sql(spark, f"DESCRIBE TABLE EXTENDED {name}").collect()
        details = {row["col_name"]: row["data_type"] for row in rows[_start_of_details(rows) :]}
        location = details.get("Location")
        if not details:  # a temporary view, by which Spark writes to the directory that the view reads
            files = spark.read.table(name).inputFiles()
            location = unquote(files[0].rpartition("/")[0]) if files else None
        is_delta = details.get("Provider", "").lower() == "delta"  # the session has a source of this name
    except PySparkException as error:
        is_delta, location = server_errors.lacks_delta_source(error), None
    if is_delta and replaces:
        raise saved_refusal(name)
    if not is_delta:
        check(spark, location, {})


def check_stream_table(spark: SparkSession, name: str) -> None:
    """The same check for the table that a stream of another format writes to, which may not be a Delta table either.

    What the session catalog doesn't have passes: a new name, and one of another catalog.
    """
    try:
        entry = catalog.find(spark, name)
    except (PySparkException, InvalidArgumentError, UnsupportedFeatureError):
        return
    if entry is not None and entry.is_delta:
        raise stream_refusal(name)
    if entry is not None:
        check(spark, entry.location, {})


def check_statement(spark: SparkSession, sql: str, arguments: Any, *, formatted: bool) -> None:
    """The same check for an SQL statement: the directories and the tables that it may write to.

    `arguments` and `formatted` are those of `sql_directories.written`. A statement that writes to neither makes no
    request.
    """
    found = sql_directories.written(sql, arguments, formatted=formatted)
    if found == sql_directories.NOTHING or not settings.of(spark, FORMAT_CHECK):
        return
    if found.unknown:
        raise InvalidArgumentError(
            "INSERT OVERWRITE DIRECTORY deletes what is in the directory, and on Spark Connect tablelog doesn't know "
            "the directory of this statement, which may be that of a Delta table. Nothing was written. Write the "
            "directory as a text in the statement, or give it by a parameter with args; use "
            f"df.write.mode('overwrite').save(path); or set {FORMAT_CHECK.key} to false."
        )
    for directory in found.directories:
        check(spark, directory, {}, overwrites=directory in found.overwritten)
    for name in found.tables:
        check_table(spark, name)
    for name in found.dropped_schemas:
        check_schema(spark, name)


def check_schema(spark: SparkSession, name: str) -> None:
    """Raise InvalidArgumentError if a Delta table is in the directory of a schema that is dropped without CASCADE.

    Spark deletes that directory, as the catalog has no table in the schema.
    """
    try:
        rows = client.sql(spark, f"DESCRIBE NAMESPACE {name}").collect()
    except PySparkException:
        return
    location = next((row.info_value for row in rows if row.info_name == "Location"), None)
    if location is None:
        return
    conf = session_conf(spark, location)
    if FORMAT_CHECK.of(conf) and (table := _table_in(location, conf)) is not None:
        raise schema_refusal(name, location, table)


def _start_of_details(rows: list[Row]) -> int:
    """Where the columns of the table end, whose names may be those of details."""
    starts = [i for i, row in enumerate(rows) if row["col_name"] == "# Detailed Table Information"]
    return starts[-1] if starts else len(rows)


def _is_in_table(location: str, conf: Mapping[str, str]) -> bool:
    """Whether a location is a Delta table, a partition directory of one, or a directory directly in one."""
    if can_be_read(location, conf):
        return True
    directory = location.rstrip("/")
    while "=" in directory.rpartition("/")[2]:
        directory = directory.rpartition("/")[0]
    parent, _, name = directory.rpartition("/")
    return bool(parent.strip("/")) and _is_seen(name) and delta_log(parent, conf).exists()


def _is_seen(name: str) -> bool:
    """Whether a directory inside a table belongs to it: other hidden ones don't, such as checkpoints of streams."""
    return name == CHANGE_DATA or not name.startswith(("_", "."))


def _table_in(location: str, conf: Mapping[str, str]) -> str | None:
    """A Delta table in a directory. None if none is found, or the client can't list the directory."""
    waiting = deque([delta_log(location, conf).table])
    for _ in range(MOST_DIRECTORIES):
        if not waiting:
            break
        directory = waiting.popleft()
        try:
            _, inside = DataFiles.of(directory, conf, {}).entries()
        except (StorageError, FileNotFoundError):
            return None
        if LOG_DIRECTORY in inside:
            return directory
        waiting.extend(
            f"{directory}/{escaped(os.fsencode(name))}" for name in inside if _is_seen(name) and "=" not in name
        )
    return None


def _outside_log(location: str) -> str:
    """The directory of a table for a location in its log; other locations are unchanged."""
    parts = location.split("/")
    return "/".join(parts[: parts.index(LOG_DIRECTORY)]) if LOG_DIRECTORY in parts else location
