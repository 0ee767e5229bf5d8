"""Implements `spark.read.format("delta").load(path)`."""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, TypeVar

from pyspark.sql import DataFrame, SparkSession, functions

from ..core.deltalog import DeltaLog
from ..core.protocol.paths import above_partitions
from ..core.protocol.schema import quoted
from ..core.table.snapshot import Snapshot
from ..engine.jvm import builders
from ..engine.read import own_columns, row_ids, scan
from ..engine.write import view_inserts
from ..error_context import error_context
from ..errors import InvalidArgumentError, TableNotFoundError
from ..settings.declarations import TIME_TRAVEL_IN_PATHS
from . import change_feed, names
from .boundary import pyspark_errors
from .conf import delta_log, session_conf
from .options import Options, read_options
from .row_ids import ROW_IDS, check_enabled
from .time_travel import split_at, timestamp_ms

logger = logging.getLogger(__name__)

T = TypeVar("T")

_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@pyspark_errors
def load(reader: Any, path: Any) -> DataFrame:
    """Load a Delta table by the settings of a `DataFrameReader`."""
    state = builders.reader_state(reader)
    return load_by(builders.session_of(reader), state.options, path, has_schema=state.has_schema)


def load_by(spark: SparkSession, settings: Mapping[str, str], path: Any, *, has_schema: bool) -> DataFrame:
    """Load a Delta table by the options of a reader; `has_schema`: the reader has a schema."""
    if has_schema:
        raise InvalidArgumentError(
            "A Delta table has its own schema: leave out schema(...), and select or cast the columns after load().",
            condition="DELTA_UNSUPPORTED_SCHEMA_DURING_READ",
        )
    options = Options(settings)
    return frame(spark, single_path(path, options), options)


@pyspark_errors
def table(spark: SparkSession, name: str, options: Mapping[str, str]) -> DataFrame:
    """A table by its name in Spark's catalog, or by `` delta.`path` ``, as a DataFrame."""
    named_by_path = names.by_path(name)
    if named_by_path is not None:
        return frame(spark, named_by_path[1], Options(options))
    entry = names.delta_entry(spark, name)
    return frame(spark, entry.location, Options(options)).alias(entry.short_name)


def single_path(path: Any, options: Options) -> str:
    """The single path, from load() or save(), or from the option `path`."""
    option = options.get("path")
    if isinstance(path, list | tuple) and len(path) == 1:
        path = path[0]
    if path is not None and not isinstance(path, str):
        raise InvalidArgumentError(f"A Delta table has one path, a string, not {path!r}.")
    if path is not None and option is not None:
        raise InvalidArgumentError(f"The path is set twice: {path!r} and, as the option 'path', {option!r}.")
    chosen = path if path is not None else option
    if not chosen:
        raise InvalidArgumentError("'path' is not specified.")
    return chosen


def frame(spark: SparkSession, path: str, options: Options) -> DataFrame:
    """The DataFrame of a table: its newest version at each execution, unless a version or timestamp is set."""
    wanted = read_options(options)
    conf = session_conf(spark, path)

    def open_at(path: str, version: int | None, timestamp: str | None) -> OpenedTable[DataFrame] | None:
        def of(log: DeltaLog) -> DataFrame:
            if wanted.changes is not None:
                return change_feed.frame(spark, log, wanted.changes)
            seen = None
            if version is not None:
                seen = log.snapshot(version=version)
            elif timestamp is not None:
                seen = log.snapshot(timestamp=timestamp_ms(spark, timestamp))
            if wanted.row_ids:
                return _with_row_ids(spark, log, seen)
            rows = own_columns.note(scan.frame(spark, log, snapshot=seen), log.table)
            return view_inserts.mark(rows, log, None if seen is None else seen.version)

        return find(path, conf, wanted.file_system, of)

    opened_table = open_at(path, wanted.version, wanted.timestamp)
    if opened_table is None and TIME_TRAVEL_IN_PATHS.of(conf) and (at := split_at(path)) is not None:
        if wanted.changes is not None:
            raise InvalidArgumentError(f"{path!r} contains a version: set the range of a change data feed by options.")
        opened_table = open_at(at.path, at.version, at.timestamp)
        if opened_table is not None and (wanted.version is not None or wanted.timestamp is not None):
            raise InvalidArgumentError(
                f"Time travel is set twice: by {path!r} and by an option.",
                condition="DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS",
            )
    if opened_table is None:
        raise not_a_table(path).with_context(table=delta_log(path, conf, wanted.file_system).table)
    return _of_partition(opened_table, path) if opened_table.partition else opened_table.value


def _with_row_ids(spark: SparkSession, log: DeltaLog, snapshot: Snapshot | None) -> DataFrame:
    check_enabled(snapshot or log.snapshot())
    return own_columns.note(row_ids.frame(spark, log, ROW_IDS, snapshot=snapshot), log.table)


@dataclass(frozen=True)
class OpenedTable(Generic[T]):
    """A table, the result of `use`, and the partition in the path: (column, value) pairs, URL-decoded."""

    log: DeltaLog
    value: T
    partition: tuple[tuple[str, str], ...]


def find(
    path: str, conf: Mapping[str, str], file_system: Mapping[str, str], use: Callable[[DeltaLog], T]
) -> OpenedTable[T] | None:
    """Apply `use` to the table at `path`, or to the one that has `path` as a partition directory; None: no table."""
    for directory, partition in chain([(path, ())], above_partitions(path)):
        log = delta_log(directory, conf, file_system)
        with suppress(TableNotFoundError), error_context(table=log.table):
            return OpenedTable(log, use(log), partition)
    return None


def find_table(path: str, conf: Mapping[str, str], file_system: Mapping[str, str]) -> DeltaLog | None:
    """The table at `path`; None if there is none.

    Raises InvalidArgumentError for a partition directory of a table: a read of it is limited to the partition, but a
    command would change the whole table.
    """
    found = _find_existing(path, conf, file_system)
    if found is not None and found.partition:
        raise InvalidArgumentError(
            f"{path} is a partition directory of the table {found.log.table}, and nothing was changed. A partition "
            "directory can only be read: name the table, and use a condition for the partition.",
            condition="DELTA_UNEXPECTED_PARTIAL_SCAN",
            parameters={"path": path},
            table=found.log.table,
        )
    return None if found is None else found.log


def is_partition_directory(path: str, conf: Mapping[str, str]) -> bool:
    """Whether `path` isn't a table, but the name of a partition directory below one. Most paths need no request."""
    if next(above_partitions(path), None) is None:
        return False
    found = _find_existing(path, conf, {})
    return found is not None and bool(found.partition)


def can_be_read(path: str, conf: Mapping[str, str]) -> bool:
    """Whether `path` is a table or a partition directory of one."""
    return _find_existing(path, conf, {}) is not None


def _find_existing(path: str, conf: Mapping[str, str], file_system: Mapping[str, str]) -> OpenedTable[None] | None:
    def check_exists(log: DeltaLog) -> None:
        if not log.exists():
            raise not_a_table(log.table)

    return find(path, conf, file_system, check_exists)


def existing_table(spark: SparkSession, path: str) -> DeltaLog:
    """The table at `path`. Raises TableNotFoundError, and InvalidArgumentError for a partition directory."""
    conf = session_conf(spark, path)
    log = find_table(path, conf, {})
    if log is None:
        raise missing_table(path, conf)
    return log


def missing_table(
    path: str, conf: Mapping[str, str], file_system: Mapping[str, str] | None = None
) -> TableNotFoundError:
    """The error for a path without a table."""
    error = not_a_table(path, condition="DELTA_MISSING_DELTA_TABLE", parameters={"tableName": path})
    return error.with_context(table=delta_log(path, conf, file_system).table)


def not_a_table(
    path: str, *, condition: str = "DELTA_PATH_DOES_NOT_EXIST", parameters: Mapping[str, str] | None = None
) -> TableNotFoundError:
    return TableNotFoundError(
        f"{path} is not a Delta table: there is no transaction log in its _delta_log.",
        condition=condition,
        parameters=parameters or {"path": path},
    )


def _of_partition(opened: OpenedTable[DataFrame], path: str) -> DataFrame:
    """Filter by the partition in the path: Delta supports such paths, but advises against them."""
    logger.warning('%s is a partition directory: use load("%s").where(...) instead', path, opened.log.table)
    partition_columns = opened.log.snapshot().partition_columns
    frame = opened.value
    for column, value in opened.partition:
        if column not in partition_columns:
            raise InvalidArgumentError(f"{path}: {column} is not a partition column of the table {opened.log.table}.")
        name = functions.col(quoted(column))
        frame = frame.where(name.isNull() if value == _HIVE_NULL else name == functions.lit(value))
    return frame
