"""Implements `df.write.format("delta").save(path)` and `saveAsTable`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ..core.deltalog import DeltaLog
from ..dml.change.write import WriteRequest, write
from ..dml.command.command import CommitOptions
from ..engine.jvm import builders
from ..engine.write.view_inserts import Insert
from ..errors import InvalidArgumentError
from ..settings.declarations import TXN_VERSION, TXN_VERSION_RESET, USER_METADATA
from ..settings.spark_own import PARTITION_OVERWRITE_MODE
from . import names
from .boundary import pyspark_errors
from .conf import delta_log, session_conf
from .options import Options, commit_options, write_request
from .reader import single_path


@pyspark_errors
def save(writer: Any, path: Any) -> None:
    """Write to a Delta table by the settings of a `DataFrameWriter`."""
    save_by(builders.session_of(writer), builders.frame_of(writer), builders.writer_state(writer), path)


def save_by(spark: SparkSession, frame: DataFrame, state: builders.WriterState, path: Any) -> None:
    """Write `frame` by the settings of a writer."""
    options = Options(state.options)
    target = single_path(path, options)
    conf = session_conf(spark, target)
    request = request_of(state, conf)
    log = delta_log(target, conf, options.starting_with("fs.", "dfs."))
    with resetting_transaction(spark, conf):
        write(spark, log, frame, request)


def request_of(state: builders.WriterState, conf: Mapping[str, str]) -> WriteRequest:
    """The write that the settings of a writer ask for. Raises InvalidArgumentError for settings that aren't valid."""
    if state.bucketed or state.sorted:
        raise InvalidArgumentError(
            "Delta tables don't support buckets: leave out bucketBy and sortBy. To store rows with similar values in "
            "the same files, use clusterBy, or DeltaTable.optimize().executeZOrderBy(...).",
            condition="DELTA_OPERATION_NOT_ALLOWED",
            parameters={"operation": "Bucketing"},
        )
    return write_request(
        Options(state.options),
        conf,
        mode=state.mode,
        partition_by=state.partition_columns,
        cluster_by=state.clustering_columns,
    )


@pyspark_errors
def save_as_table(writer: Any, name: str) -> None:
    """Write to a table by its name in Spark's catalog; the name of a new table is registered there."""
    spark: SparkSession = builders.session_of(writer)
    location = Options(builders.writer_state(writer).options).get("path")
    place = names.place(spark, name, location)
    save(writer, place.path if location is None else None)
    place.enter(spark)


def insert(spark: SparkSession, log: DeltaLog, statement: Insert, options: Options) -> None:
    """Write the rows of an INSERT that Spark resolved; `options` are those of `df.write`."""
    conf = session_conf(spark, log.table)
    if options.boolean("overwriteSchema"):
        options.refuse("overwriteSchema", "an INSERT keeps the table's columns and partitions. Use df.write")
    if statement.replaces:
        options.refuse("replaceWhere", "the INSERT has a condition of its own")
    if statement.by_partition and (options.get("partitionOverwriteMode") or "").lower() == "static":
        key = PARTITION_OVERWRITE_MODE.key
        options.refuse("partitionOverwriteMode", f"{key} of the session is dynamic: set it there")
    request = write_request(options, conf, mode="Append" if statement.replaces is None else "Overwrite")
    by_option = options.get("partitionOverwriteMode") is not None and request.dynamic_partitions
    request = replace(
        request,
        replace_where=statement.replaces or request.replace_where,
        replace_condition=statement.condition,
        dynamic_partitions=statement.by_partition or (by_option and statement.replaces == ""),
    )
    with resetting_transaction(spark, conf):
        write(spark, log, statement.frame, request)


@contextmanager
def session_commit(spark: SparkSession, options: Options | None = None) -> Iterator[CommitOptions]:
    """The commit options of `options`, else of the session, for a command that writes rows, run inside the context."""
    conf = session_conf(spark)
    with resetting_transaction(spark, conf):
        yield commit_options(options or Options({}), conf)


def commit_of(spark: SparkSession) -> CommitOptions:
    """The session's commit options for a command that has no txnAppId and txnVersion."""
    return CommitOptions(USER_METADATA.of(session_conf(spark)))


@contextmanager
def resetting_transaction(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Unset the session's txnVersion after the context if it is for one operation only, so that the next one isn't
    skipped."""
    try:
        yield
    finally:
        if TXN_VERSION.of(conf) is not None and TXN_VERSION_RESET.of(conf):
            spark.conf.unset(TXN_VERSION.key)
