"""`spark.read.format("delta").load(path)`."""

import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession, functions

from ..core.deltalog import DeltaLog
from ..engine import builders, scan
from ..errors import InvalidArgumentError, TableNotFoundError
from .conf import delta_log, session_conf
from .options import Options, read_options
from .time_travel import split_at, timestamp_ms

logger = logging.getLogger(__name__)

_RESOLVE_AT = "spark.databricks.delta.timeTravel.resolveOnIdentifier.enabled"
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def load(reader: Any, path: Any) -> DataFrame:
    """The DataFrame of what was set on a `DataFrameReader` whose format is delta."""
    spark: SparkSession = reader._spark
    state = builders.reader_state(reader)
    if state.has_schema:
        raise InvalidArgumentError(
            "A Delta table has its own schema: leave out schema(...), and select or cast the columns after load()."
        )
    options = Options(state.options)
    return frame(spark, single_path(path, options), options)


def single_path(path: Any, options: Options) -> str:
    """The one path given to load() or save(), or by the option `path`."""
    option = options.get("path")
    if isinstance(path, list | tuple) and len(path) == 1:
        path = path[0]
    if path is not None and not isinstance(path, str):
        raise InvalidArgumentError(f"A Delta table has one path, a string; {path!r} was given.")
    if path is not None and option is not None:
        raise InvalidArgumentError(f"The path is given twice: {path!r} and, as the option 'path', {option!r}.")
    chosen = path if path is not None else option
    if not chosen:
        raise InvalidArgumentError("'path' is not specified.")
    return chosen


def frame(spark: SparkSession, path: str, options: Options) -> DataFrame:
    """The DataFrame of a table, of its newest version at each execution unless a version or timestamp is asked for."""
    wanted = read_options(options)
    conf = session_conf(spark)
    version, timestamp = wanted.version, wanted.timestamp
    table, fragment = find_table(path, conf, wanted.file_system)
    if table is None and conf.get(_RESOLVE_AT, "true").lower() != "false" and (at := split_at(path)) is not None:
        table, fragment = find_table(at.path, conf, wanted.file_system)
        if table is not None:
            if version is not None or timestamp is not None:
                raise InvalidArgumentError(f"Time travel is asked for twice: by {path!r} and by an option.")
            version, timestamp = at.version, at.timestamp
    if table is None:
        raise not_a_table(path)
    if version is not None:
        found = scan.frame(spark, table, snapshot=table.snapshot(version=version))
    elif timestamp is not None:
        found = scan.frame(spark, table, snapshot=table.snapshot(timestamp=timestamp_ms(spark, timestamp)))
    else:
        found = scan.frame(spark, table)
    return _of_partition(found, table, fragment, path) if fragment else found


def find_table(
    path: str, conf: Mapping[str, str], file_system: Mapping[str, str]
) -> tuple[DeltaLog | None, list[tuple[str, str]]]:
    """The table at `path`, or that of which `path` names a partition directory; (None, []): neither."""
    fragment: list[tuple[str, str]] = []
    while True:
        log = delta_log(path, conf, file_system)
        if log.exists():
            return log, fragment
        parent, _, name = path.rstrip("/").rpartition("/")
        column, equals, value = name.partition("=")
        if not (parent and column and equals):
            return None, []
        fragment.insert(0, (unquote(column), unquote(value)))
        path = parent


def not_a_table(path: str) -> TableNotFoundError:
    return TableNotFoundError(f"{path} is not a Delta table: there is no log of transactions in its _delta_log.")


def _of_partition(found: DataFrame, table: DeltaLog, fragment: list[tuple[str, str]], path: str) -> DataFrame:
    """Delta reads a path that ends in partition directories as a filter, and advises against it."""
    logger.warning('%s names a partition: write load("%s").where(...) instead', path, table.table)
    partition_columns = table.snapshot().partition_columns
    for column, value in fragment:
        if column not in partition_columns:
            raise InvalidArgumentError(f"{path}: {column} is no partition column of the table {table.table}.")
        name = functions.col(f"`{column}`")
        found = found.where(name.isNull() if value == _HIVE_NULL else name == functions.lit(value))
    return found
