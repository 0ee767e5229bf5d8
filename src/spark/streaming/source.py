"""The source of a streaming query: a Delta table, as Spark's streaming engine reads it."""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from ...core.deltalog import DeltaLog
from ...core.protocol import schema as schemas
from ...core.protocol.change_data import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION
from ...core.streaming import offset
from ...core.streaming.limits import DEFAULT_FILES
from ...core.streaming.schema_check import changed_at_start
from ...core.streaming.source import StreamOptions, TableStream
from ...core.table.snapshot import Snapshot
from ...engine.jvm.types import frame_schema, has_same_columns
from ...engine.read import stream_batch
from ..options import Options
from ..row_ids import ROW_IDS, check_enabled
from .event_time import event_time_order
from .options import stream_options
from .tracking import tracking as schema_log

_OF_CHANGES = (
    schemas.StructField(CHANGE_TYPE, schemas.STRING),
    schemas.StructField(COMMIT_VERSION, schemas.LONG),
    schemas.StructField(COMMIT_TIMESTAMP, schemas.TIMESTAMP),
)


def read_schema(snapshot: Snapshot, options: StreamOptions, row_ids: Sequence[str] = ()) -> str:
    """The schema of the rows of a stream, as JSON for Spark. `row_ids`: the names of the columns of row IDs, if any."""
    fields = frame_schema(snapshot.schema).fields
    of_rows = (schemas.StructField(name, schemas.LONG) for name in row_ids)
    return schemas.to_json(schemas.StructType((*fields, *added_columns(options), *of_rows)))


def added_columns(options: StreamOptions) -> tuple[schemas.StructField, ...]:
    """The columns that a stream of changes has after those of the table."""
    return _OF_CHANGES if options.rules.changes else ()


def row_id_columns(snapshot: Snapshot, options: Options) -> tuple[str, ...]:
    """The names of the columns of row IDs, which the option `readRowIds` adds.

    Raises InvalidArgumentError if the table has no row tracking.
    """
    if not options.boolean("readRowIds"):
        return ()
    check_enabled(snapshot)
    return ROW_IDS


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
        self._row_ids = row_id_columns(read, options)
        columns = schemas.parse_schema(read_schema(read, wanted, self._row_ids))
        if not has_same_columns(columns, schemas.parse_schema(schema_json)):
            raise changed_at_start(read)
        self._stream = TableStream(log, newest, wanted, tracking, event_time_order(spark, log, read, options))
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
            return stream_batch.rows(self._spark, self._log, self._stream.read, batch, self._row_ids)
        return stream_batch.changed_rows(self._spark, self._log, self._stream.read, batch)

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
