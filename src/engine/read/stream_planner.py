"""What a stream of Spark Connect reads next, planned in a Python process of the server, which has no session.

Spark asks it for offsets and for the tasks of a batch (`python_stream`). Offsets are Delta's, as in a classic session.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import pyarrow as pa

from ...core.deltalog import DeltaLog
from ...core.protocol import schema as schemas
from ...core.streaming import offset
from ...core.streaming.commits import CommitRules
from ...core.streaming.limits import DEFAULT_FILES, ReadLimits
from ...core.streaming.offset import SourceOffset
from ...core.streaming.schema_check import changed_at_start
from ...core.streaming.source import Batch, StreamOptions, TableStream
from ...core.table.changes import Bound
from ...errors import TablelogError
from ...logstore.data_files import file_system
from ..jvm.types import frame_schema, has_same_columns
from ..storage import external_files
from . import change_feed, stream_batch
from .deletion_vectors import Vectors, any_has_vector, plain_bitmap
from .extra_columns import NO_EXTRA_COLUMNS, ExtraColumns
from .routes.arrow_files import Systems
from .routes.arrow_plan import DELETED, grouped, place_of, plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Task: TypeAlias = tuple[Systems, list[dict[str, Any]]]
"""The file systems of the places of some files, and the files as `arrow_plan.plan` plans them."""


class _Settings:
    """The settings that a session had when it created the stream, for functions that ask a session for them."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.conf = self
        self._settings = settings

    def get(self, key: str, default: str | None = None) -> str | None:
        return self._settings.get(key, default)


@contextmanager
def _condition_in_text() -> Iterator[None]:
    """Around what Spark calls: the client gets nothing of an error but its text, so the condition is put there."""
    try:
        yield
    except TablelogError as error:
        error.args = (f"[{error.condition}] {error}",)
        raise


class StreamPlanner:
    """Plans one query's stream of one table.

    Args:
        spec: What the client says of the stream (`python_stream.frame`).
        conf: The configuration of the table's handle.

    Raises:
        SchemaChangedError: The table has other columns than the streaming DataFrame.
    """

    @_condition_in_text()
    def __init__(self, spec: Mapping[str, Any], conf: Mapping[str, str]) -> None:
        self._spec = spec
        self._log = DeltaLog.for_path(spec["table"], conf=conf)
        self._session = cast("SparkSession", _Settings(spec["settings"]))
        self._options = _options(spec["options"])
        newest = self._log.snapshot()
        if not has_same_columns(frame_schema(newest.schema), schemas.parse_schema(spec["columns"])):
            raise changed_at_start(newest)
        self._stream = TableStream(self._log, newest, self._options)
        self._initial: SourceOffset | None = None
        self._reached: SourceOffset | None = None
        self._planned: tuple[SourceOffset | None, SourceOffset] | None = None

    @property
    def max_files(self) -> int:
        """The most files of a batch, as Spark shows it."""
        return self._options.limits.files or DEFAULT_FILES

    def stop_at_newest(self) -> None:
        """Read no further than the newest version of now."""
        self._stream.stop_at_newest()

    @_condition_in_text()
    def first(self) -> dict[str, Any]:
        """The offset before the first batch of a new query."""
        return self._first()

    def _first(self) -> dict[str, Any]:
        self._initial = self._stream.first
        return _as_dict(self._initial)

    @_condition_in_text()
    def latest(self, start: Mapping[str, Any], *, unlimited: bool) -> dict[str, Any]:
        """The end of the batch after `start`; `start` itself if there is nothing new."""
        return self._latest(self._position(start), unlimited=unlimited)

    @_condition_in_text()
    def newest(self) -> dict[str, Any]:
        """The end of a batch with everything new, for Spark 4.1, which doesn't say where it starts."""
        return self._latest(self._reached, unlimited=True)

    def _latest(self, start: SourceOffset | None, *, unlimited: bool) -> dict[str, Any]:
        end = self._stream.latest(start, unlimited=unlimited)
        if end is None:
            return self._first()
        self._planned = start, end
        self._reached = end
        return _as_dict(end)

    @_condition_in_text()
    def tasks(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[Task]:
        """The files between two offsets, divided into tasks."""
        last = self._stream.check(_parsed(end))
        begin = self._position(start)
        self._reached = self._reached or last
        if start == end:
            return []
        if begin is None and self._planned == (None, last):
            # A query that starts again repeats its first batch with the offset that is the first one now, which may
            # be after the batch. Only a batch that this process planned begins there.
            begin = self._initial
        return self._tasks(self._stream.batch(begin, last))

    def _position(self, start: Mapping[str, Any]) -> SourceOffset | None:
        """An offset of Spark; None for the one before the first batch."""
        position = _parsed(start)
        return None if position == self._initial else self._stream.check(position)

    def _tasks(self, batch: Batch) -> list[Task]:
        reader = Vectors(self._session, self._log)
        if self._options.rules.changes:
            changes = stream_batch.changes_of(batch, batch.commits, self._log.table)
            tables = change_feed.tables(reader, self._log.table, changes)
        else:
            tables = [(stream_batch.table_of(batch.added), NO_EXTRA_COLUMNS)]
        planned = [file for table, extra in tables for file in self._planned_files(reader, table, extra)]
        return [(self._systems({file["place"] for file in group}), group) for group in grouped(planned)]

    def _planned_files(self, reader: Vectors, files: pa.Table, extra: ExtraColumns) -> list[dict[str, Any]]:
        read = self._stream.read
        external_files.check_files(self._session, read.table, read.version, files)
        if any_has_vector(files):
            maps = [None if rows is None else plain_bitmap(rows) for rows in reader.rows(files)]
            files = files.append_column(DELETED, pa.array(maps, pa.large_binary()))
        spec = {
            "table": read.table,
            "version": read.version,
            "schema": schemas.to_json(read.schema),
            "mode": read.mapping.mode,
            "partition_columns": list(read.partition_columns),
            "per_file": [(field.name, column) for field, column in extra.per_file],
            "number": None,
            "row_index": None,
            "zone": self._spec["zone"],
        }
        return plan(spec, files)

    def _systems(self, places: set[str]) -> Systems:
        found = {place: file_system(f"{place}/x", self._log.conf, {}) for place in places if place != _LOCAL}
        return {place: (system.implementation, dict(system.options)) for place, system in found.items()}


_LOCAL = place_of("file:///x")


def options_as_json(options: StreamOptions) -> dict[str, Any]:
    """The options of a stream, without `exclude`, as values of JSON."""
    start, rules = options.start, options.rules
    return {
        "start": {"version": start.version, "timestamp_ms": start.timestamp_ms} if isinstance(start, Bound) else start,
        "limits": {"files": options.limits.files, "bytes": options.limits.bytes},
        "rules": {
            "ignore_deletes": rules.ignore_deletes,
            "ignore_changes": rules.ignore_changes,
            "skip_change_commits": rules.skip_change_commits,
            "changes": rules.changes,
        },
        "fail_on_data_loss": options.fail_on_data_loss,
        "lenient": options.lenient,
    }


def _options(values: Mapping[str, Any]) -> StreamOptions:
    start = values["start"]
    return StreamOptions(
        start=Bound(**start) if isinstance(start, dict) else start,
        limits=ReadLimits(**values["limits"]),
        rules=CommitRules(**values["rules"]),
        fail_on_data_loss=values["fail_on_data_loss"],
        lenient=values["lenient"],
    )


def _parsed(value: Mapping[str, Any]) -> SourceOffset:
    return offset.parse(json.dumps(value))


def _as_dict(position: SourceOffset) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(position.to_json())
    return fields
