"""Streams of Delta tables on Spark Connect: `readStream` by a Python data source, `writeStream` by foreachBatch."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ...dml.alter.create import Definition, create
from ...engine.connect import client, server_errors
from ...engine.connect.plain_paths import without_pattern
from ...engine.jvm.connection import settings
from ...engine.jvm.types import table_schema
from ...engine.read import python_stream
from ...errors import InvalidArgumentError, UnsupportedEnvironmentError, UnsupportedFeatureError
from ...settings.spark_own import CHECKPOINT_LOCATION
from .. import names
from ..boundary import pyspark_errors
from ..conf import delta_log, session_conf
from ..not_on_connect import refused
from ..options import Options
from ..reader import not_a_table, single_path
from ..streaming.event_time import is_ordered
from ..streaming.options import stream_options
from ..streaming.sink import TableSink
from ..streaming.source import added_columns
from . import catalog, refusals

_REFUSED = (
    "excludeRegex",
    "readRowIds",
    "schemaTrackingLocation",
    "schemaLocation",
    "streamingSourceTrackingId",
    "allowSourceColumnRename",
    "allowSourceColumnDrop",
    "allowSourceColumnTypeChange",
)
_LIMITS = ("maxFilesPerTrigger", "maxBytesPerTrigger")
_WITHOUT_LIMITS = "4.1."  # the versions of Spark whose Python data sources don't bound batches


def load(reader: Any, path: Any) -> DataFrame:
    """A Delta table as a stream, by the settings of a `DataStreamReader`."""
    state = client.reader_state(reader)
    if state.has_schema:
        raise InvalidArgumentError(
            "A Delta table has its own schema: leave out schema(...), and select or cast the columns after load().",
            condition="DELTA_UNSUPPORTED_SCHEMA_DURING_READ",
        )
    return _frame(client.session_of(reader), single_path(path, Options(state.options)), state.options)


def table(reader: Any, name: str) -> DataFrame | None:
    """A Delta table as a stream, by `` delta.`path` `` or its name in the catalog; None for another name."""
    spark = client.session_of(reader)
    path = catalog.path_of(spark, name)
    return None if path is None else _frame(spark, path, client.reader_state(reader).options)


def _frame(spark: SparkSession, path: str, options: Mapping[str, str]) -> DataFrame:
    if client.in_pipeline():
        raise refused(refusals.STREAM_IN_PIPELINE, refusals.INSTEAD_OF_STREAM)
    texts = Options(options)
    _check_options(spark, texts)
    wanted = stream_options(spark, texts)
    log = delta_log(path, session_conf(spark, path), texts.starting_with("fs.", "dfs."))
    if not log.exists():
        raise not_a_table(path).with_context(table=log.table)
    snapshot = log.snapshot()
    if not len(snapshot.schema):
        raise InvalidArgumentError(
            f"the table {log.table} has no columns yet: write to it before reading it",
            condition="DELTA_SCHEMA_NOT_SET",
            table=log.table,
        )
    return python_stream.frame(spark, log, snapshot, wanted, added_columns(wanted))


def _check_options(spark: SparkSession, options: Options) -> None:
    for name in _REFUSED:
        if options.get(name) is not None and options.get(name) != "false":
            raise refused(f"The option {name} of a stream", "a stream without it")
    if is_ordered(spark, options):
        raise refused("withEventTimeOrder of a stream", "a stream without it, and a watermark with a long delay")
    for name in _LIMITS:
        if options.get(name) is not None and spark.version.startswith(_WITHOUT_LIMITS):
            raise UnsupportedFeatureError(
                f"The option {name} of a stream needs Spark 4.2 or newer on Spark Connect, and the server has "
                f"{spark.version}: leave it out, and a batch has all rows that are new, or use a classic session.",
                (f"{name} on Spark Connect with Spark 4.1",),
            )


# --- the sink -----------------------------------------------------------------------------------------------------


def start(writer: Any, original: Callable[..., Any], path: Any) -> Any:
    """Start a query that writes to the table at `path`, or at the option `path`; `original` is PySpark's method."""
    options = Options(client.stream_writer_state(writer).options)
    return _start(writer, original, single_path(path, options))


def to_table(writer: Any, original: Callable[..., Any], name: str) -> Any:
    """Start a query that writes to a table of the catalog, which is created if there is none.

    `name` may also be `` delta.`path` ``. `original` is PySpark's `start`.
    """
    spark = client.session_of(writer)
    state = client.stream_writer_state(writer)
    options = Options(state.options)
    wanted = options.get("path")
    _sink(spark, wanted or name, state)  # raises before anything is created
    has_path = names.by_path(name) is not None
    entry = None if has_path else catalog.find(spark, name)
    is_new = entry is None
    if has_path:
        location = names.place(spark, name, wanted).path
    else:
        entry = entry or catalog.add(spark, name, wanted)  # without a path the server chooses the directory
        location = catalog.location_of(spark, entry, wanted)
    log = delta_log(location, session_conf(spark, location), options.starting_with("fs.", "dfs."))
    if is_new and not log.exists():
        columns = table_schema(client.streaming_frame(writer).schema)
        managed = entry is not None and entry.managed
        definition = Definition(columns, state.partition_columns, cluster_by=state.clustering_columns, managed=managed)
        create(spark, log, definition, "createIfNotExists")
    return _start(writer, original, location)


def _sink(spark: SparkSession, location: str, state: client.StreamWriterState) -> tuple[TableSink, str]:
    """The sink of a query, and the location of its checkpoint."""
    sink = TableSink(
        location,
        state.options,
        state.output_mode,
        partition_by=state.partition_columns,
        cluster_by=state.clustering_columns,
    )
    checkpoint = Options(state.options).get("checkpointLocation") or _default_checkpoint(spark, state.query_name)
    return sink, checkpoint


def _start(writer: Any, original: Callable[..., Any], location: str) -> Any:
    state = client.stream_writer_state(writer)
    spark = client.session_of(writer)
    options = Options(state.options)
    sink, checkpoint = _sink(spark, location, state)
    log = delta_log(location, session_conf(spark, location), options.starting_with("fs.", "dfs."))
    function = partial(_write, sink, checkpoint)
    with client.by_batch_function(writer, function, checkpoint):
        try:
            return original(writer)
        except PySparkException as error:
            if "No module named 'tablelog'" not in server_errors.text_of(error):
                raise
            raise UnsupportedEnvironmentError(
                f"tablelog is not installed in the Python of the server: a stream into {log.table} needs it there, "
                "because it writes the batches. Install it on the driver of the server",
                table=log.table,
            ) from None


def _default_checkpoint(spark: SparkSession, query_name: str | None) -> str:
    """The location that Spark would choose, by the session's setting."""
    root = settings.of(spark, CHECKPOINT_LOCATION)
    if not root:
        raise InvalidArgumentError(
            "A stream into a Delta table needs a checkpoint location: set the option checkpointLocation, or "
            f"{CHECKPOINT_LOCATION.key} in the session.",
        )
    return f"{root.rstrip('/')}/{query_name or uuid4()}"


@pyspark_errors
def _write(sink: TableSink, checkpoint: str, batch: DataFrame, number: int) -> None:
    """Write a batch, in a Python process of the server."""
    sink.add(number, batch, _query_id(batch.sparkSession, checkpoint))


@cache
def _query_id(spark: SparkSession, checkpoint: str) -> str:
    """The id of the query, which Spark stores in the checkpoint; a function for batches isn't told it."""
    place = without_pattern(checkpoint.rstrip("/"))
    row = spark.read.text(f"{place}/metadata", wholetext=True).selectExpr("get_json_object(value, '$.id') id").first()
    if row is None or not row.id:
        raise InvalidArgumentError(f"The checkpoint {checkpoint} of the stream has no id of its query.")
    return str(row.id)
