"""Implements `readStream` and `writeStream` for Delta tables."""

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ...dml.alter.create import Definition, create
from ...engine.jvm import builders, streams
from ...engine.jvm.types import table_schema
from ...errors import InvalidArgumentError
from .. import names
from ..boundary import pyspark_errors
from ..conf import delta_log, session_conf
from ..options import Options
from ..reader import not_a_table, single_path
from .event_time import source_option
from .options import stream_options
from .provider import Streams
from .source import read_schema, row_id_columns
from .tracking import analyzed


@pyspark_errors
def load(reader: Any, path: Any) -> DataFrame:
    """A Delta table as a stream, by the settings of a `DataStreamReader`."""
    state = builders.stream_reader_state(reader)
    if state.has_schema:
        raise InvalidArgumentError(
            "A Delta table has its own schema: leave out schema(...), and select or cast the columns after load().",
            condition="DELTA_UNSUPPORTED_SCHEMA_DURING_READ",
        )
    return frame(builders.session_of(reader), single_path(path, Options(state.options)), state.options)


@pyspark_errors
def table(reader: Any, name: str) -> DataFrame:
    """A table of the catalog, or `` delta.`path` ``, as a stream."""
    spark: SparkSession = builders.session_of(reader)
    options = builders.stream_reader_state(reader).options
    named = names.by_path(name)
    if named is not None:
        return frame(spark, named[1], options)
    entry = names.delta_entry(spark, name)
    return frame(spark, entry.location, options).alias(entry.short_name)


def frame(spark: SparkSession, path: str, options: Mapping[str, str]) -> DataFrame:
    """The streaming DataFrame of the table at `path`, with the columns of its newest version."""
    texts = Options(options)
    wanted = stream_options(spark, texts)
    log = delta_log(path, session_conf(spark, path), texts.starting_with("fs.", "dfs."))
    if not log.exists():
        raise not_a_table(path).with_context(table=log.table)
    snapshot = analyzed(spark, log, texts)
    if not len(snapshot.schema):
        raise InvalidArgumentError(
            f"the table {log.table} has no columns yet: write to it before reading it",
            condition="DELTA_SCHEMA_NOT_SET",
            table=log.table,
        )
    streams.serve(spark, Streams())
    kept = {key: value for key, value in options.items() if key.lower() != "path"}
    return streams.frame(
        spark,
        read_schema(snapshot, wanted, row_id_columns(snapshot, texts)),
        {**kept, **source_option(spark, texts), "path": path},
    )


@pyspark_errors
def start(writer: Any, original: Callable[..., Any], path: Any) -> Any:
    """Start a query that writes to the table at `path`, or at the option `path`; `original` is PySpark's method."""
    location = single_path(path, Options(builders.stream_writer_state(writer).options))
    streams.serve(builders.session_of(writer), Streams())
    with builders.stream_format(writer, streams.CLASS):
        return original(writer, location if path is not None else None)


@pyspark_errors
def to_table(writer: Any, original: Callable[..., Any], name: str) -> Any:
    """Start a query that writes to a table of the catalog, which is created if there is none; `original` is `start`."""
    spark: SparkSession = builders.session_of(writer)
    state = builders.stream_writer_state(writer)
    option = Options(state.options).get("path")
    place = names.place(spark, name, option)
    log = delta_log(place.path, session_conf(spark, place.path))
    if place.entry is None and not log.exists():
        columns = table_schema(builders.streaming_frame(writer).schema)
        definition = Definition(
            columns, state.partition_columns, cluster_by=state.clustering_columns, managed=place.managed
        )
        create(spark, log, definition, "createIfNotExists")
    place.enter(spark)
    return start(writer, original, None if option is not None else place.path)
