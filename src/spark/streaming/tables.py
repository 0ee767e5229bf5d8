"""The tables that streaming queries read and write, as Spark's streaming engine uses them."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructType

from ...core.deltalog import DeltaLog
from ...core.protocol import schema as schemas
from ...core.protocol.change_data import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION
from ...core.streaming import offset
from ...core.streaming.limits import DEFAULT_FILES
from ...core.streaming.source import StreamOptions, TableStream
from ...core.table.snapshot import Snapshot
from ...dml.change.write import StreamBatch, write
from ...dml.command.command import CommitOptions
from ...engine.jvm.streams import StreamSink, StreamSource
from ...engine.jvm.types import frame_schema
from ...engine.read import stream_batch
from ...errors import InvalidArgumentError, SchemaChangedError, SchemaMismatchError
from ..conf import delta_log, session_conf
from ..options import Options, write_request
from .options import stream_options
from .tracking import tracking as schema_log

logger = logging.getLogger(__name__)

_OF_CHANGES = (
    schemas.StructField(CHANGE_TYPE, schemas.STRING),
    schemas.StructField(COMMIT_VERSION, schemas.LONG),
    schemas.StructField(COMMIT_TIMESTAMP, schemas.TIMESTAMP),
)
_MODES = {"append": "Append", "complete": "Overwrite"}


def read_schema(snapshot: Snapshot, options: StreamOptions) -> str:
    """The schema of the rows of a stream, as JSON for Spark."""
    fields = frame_schema(snapshot.schema).fields
    return schemas.to_json(schemas.StructType((*fields, *(_OF_CHANGES if options.rules.changes else ()))))


class TableSource:
    """Implements `engine.jvm.streams.StreamSource`."""

    def __init__(
        self, spark: SparkSession, log: DeltaLog, options: Options, schema_json: str, metadata_path: str
    ) -> None:
        wanted = stream_options(spark, options)
        self._spark = spark
        self._log = log
        self._changes = wanted.rules.changes
        newest = log.snapshot()
        tracking = schema_log(spark, newest, options, metadata_path)
        read = newest if tracking is None else tracking.read
        if schemas.parse_schema(read_schema(read, wanted)) != schemas.parse_schema(schema_json):
            raise SchemaChangedError(
                f"The schema of {log.table} changed since the streaming DataFrame was created. Create it again, and "
                "start the query.",
                condition="DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART",
                table=log.table,
                version=read.version,
            )
        stream_batch.check_readable(spark, log)
        self._stream = TableStream(log, newest, wanted, tracking)
        self.max_files = wanted.limits.files or DEFAULT_FILES
        self.notes_commits = tracking is not None
        self.name = f"DeltaSource[{log.table}]"

    def stop_at_newest(self) -> None:
        self._stream.stop_at_newest()

    def latest(self, start: str | None, *, unlimited: bool) -> str | None:
        end = self._stream.latest(self._offset(start), unlimited=unlimited)
        return None if end is None else end.to_json()

    def batch(self, start: str | None, end: str) -> DataFrame:
        begin, last = self._offset(start), self._stream.check(offset.parse(end))
        batch = self._stream.batch(begin, last)
        if not self._changes:
            return stream_batch.rows(self._spark, self._log, self._stream.read, batch)
        initial = batch.initial_version
        return stream_batch.changed_rows(self._spark, self._log, self._stream.read, batch, initial)

    def committed(self, end: str) -> None:
        position = self._offset(end)
        if position is not None:
            self._stream.committed(position)

    def metrics(self, end: str | None) -> Mapping[str, str]:
        outstanding = self._stream.outstanding(self._offset(end))
        return {
            "numFilesOutstanding": str(outstanding.files),
            "numBytesOutstanding": str(outstanding.bytes),
            "numVersionsOutstanding": str(outstanding.versions),
        }

    def _offset(self, text: str | None) -> offset.SourceOffset | None:
        return None if text is None else self._stream.check(offset.parse(text))


class TableSink:
    """Implements `engine.jvm.streams.StreamSink`: one commit for each batch.

    The commit stores the number of the batch under the id of the query, so that a batch that Spark repeats after a
    failure is not written twice (PROTOCOL.md, "Transaction Identifiers"). delta-spark uses the same id.
    """

    def __init__(self, path: str, options: Mapping[str, str], partition_by: Sequence[str], mode: str) -> None:
        if mode.lower() not in _MODES:
            raise InvalidArgumentError(
                f"The output mode {mode} is not supported for Delta tables: use append or complete, or merge the rows "
                "of each batch by foreachBatch.",
                condition="DELTA_MODE_NOT_SUPPORTED",
                parameters={"mode": mode, "supportedModes": "Append, Complete"},
            )
        self._path = path
        self._options = Options(options)
        self._partition_by = tuple(partition_by)
        self._output_mode = mode
        self.name = f"DeltaSink[{path}]"

    def add(self, batch: int, rows: DataFrame, query_id: str) -> None:
        spark = rows.sparkSession
        _check_types(rows.schema, self._path)
        conf = session_conf(spark, self._path)
        mode = _MODES[self._output_mode.lower()]
        request = write_request(self._options, conf, mode=mode, partition_by=self._partition_by)
        log = delta_log(self._path, conf, self._options.starting_with("fs.", "dfs."))
        request = replace(
            request,
            commit=CommitOptions(request.commit.user_metadata, (query_id, batch)),
            stream=StreamBatch(query_id, batch, self._output_mode),
        )
        if write(spark, log, rows, request) is None:
            logger.info("%s: batch %d of the query %s was written before: skipped", log.table, batch, query_id)


class Streams:
    """Implements `engine.jvm.streams.StreamProvider`."""

    def source(
        self, spark: SparkSession, schema_json: str, options: Mapping[str, str], metadata_path: str
    ) -> StreamSource:
        texts = Options(options)
        path = _path(texts)
        log = delta_log(path, session_conf(spark, path), texts.starting_with("fs.", "dfs."))
        return TableSource(spark, log, texts, schema_json, metadata_path)

    def sink(
        self, spark: SparkSession, options: Mapping[str, str], partition_by: Sequence[str], mode: str
    ) -> StreamSink:
        return TableSink(_path(Options(options)), options, partition_by, mode)


def _path(options: Options) -> str:
    path = options.get("path")
    if not path:
        raise InvalidArgumentError("'path' is not specified.")
    return path


def _check_types(data_type: DataType, path: str) -> None:
    """Raise SchemaMismatchError for a column without a type."""
    if isinstance(data_type, NullType):
        raise SchemaMismatchError(
            f"The stream into {path} has a column of the type void: cast it to the type that it should have.",
            condition="DELTA_NULL_SCHEMA_IN_STREAMING_WRITE",
        )
    if isinstance(data_type, StructType):
        for field in data_type.fields:
            _check_types(field.dataType, path)
    elif isinstance(data_type, ArrayType):
        _check_types(data_type.elementType, path)
    elif isinstance(data_type, MapType):
        _check_types(data_type.keyType, path)
        _check_types(data_type.valueType, path)
