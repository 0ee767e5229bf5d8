"""The rows of one batch of a stream, as a DataFrame over the files of the batch."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from ...core.protocol.actions import AddFile
from ...core.protocol.change_data import INSERT
from ...core.protocol.schema import quoted
from ...core.table import changed_files
from ...core.table.changed_files import Changes, FileChange
from ..jvm import plans
from ..sql.hidden_names import free_names
from . import change_feed, row_ids, scan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.streaming.event_times import TimeRange
    from ...core.streaming.source import Batch
    from ...core.table.changed_files import Commit
    from ...core.table.snapshot import Snapshot


_FILES = pa.schema([*change_feed.FILES, ("baseRowId", pa.int64()), ("defaultRowCommitVersion", pa.int64())])


def rows(
    spark: "SparkSession", log: "DeltaLog", read: "Snapshot", batch: "Batch", row_id_names: "Sequence[str]" = ()
) -> "DataFrame":
    """The rows of the files that a batch adds, with the columns of `read`.

    `row_id_names`: the names of two more columns, of row IDs and row commit versions, or none.
    """

    def of_commits(commits: "Sequence[Commit]") -> "DataFrame":
        if not row_id_names:
            return _of_files(spark, log, read, _added(commits))
        row_id, version = row_id_names
        return row_ids.frame(spark, log, (row_id, version), snapshot=read, files=table_of(_added(commits)))

    return _united(batch, of_commits)


def changed_rows(spark: "SparkSession", log: "DeltaLog", read: "Snapshot", batch: "Batch") -> "DataFrame":
    """The changed rows of a batch, with the columns of `read` and those of a change data feed."""

    def of_commits(commits: "Sequence[Commit]") -> "DataFrame":
        return change_feed.frame(spark, log, read, changes_of(batch, commits, log.table))

    return _united(batch, of_commits)


def changes_of(batch: "Batch", commits: "Sequence[Commit]", table: str) -> "list[Changes]":
    """The changes in some commits of a batch. All rows of the first version of the stream are inserts."""
    return [
        Changes([FileChange(commit, file, INSERT) for file in _added([commit])])
        if commit.version == batch.initial_version
        else changed_files.of_commit(commit, table)
        for commit in commits
    ]


def measured(
    spark: "SparkSession", log: "DeltaLog", read: "Snapshot", column: str, files: "Sequence[AddFile]"
) -> "list[tuple[int, int] | None]":
    """The first and the last value of a column of dates or timestamps in each file; None: it has none.

    The values are those of `TimeRange`. It reads the column.
    """
    number, low, high = free_names(["file", "low", "high"], scan.columns_of(read))
    frame = _of_files(spark, log, read, files, file_number=number, options=scan.EVERY_ROW)
    value = F.col(quoted(column))
    bounds: list[tuple[int, int] | None] = [None] * len(files)
    grouped = frame.groupBy(number).agg(F.min(value).alias(low), F.max(value).alias(high))
    for found in plans.collected(grouped):
        whole = pa.int32() if pa.types.is_date(found.schema.field(low).type) else pa.int64()
        lows, highs = found.column(low).cast(whole).to_pylist(), found.column(high).cast(whole).to_pylist()
        for index, first, last in zip(found.column(number).to_pylist(), lows, highs, strict=True):
            bounds[index] = None if first is None else (first, last)
    return bounds


def _united(batch: "Batch", frame_of: "Callable[[Sequence[Commit]], DataFrame]") -> "DataFrame":
    """The rows of all commits; of the first version of the stream, only those in the batch's range of event times."""
    times = batch.times
    if times is None or not times.limited:
        return frame_of(batch.commits)
    initial = [commit for commit in batch.commits if commit.version == batch.initial_version]
    others = [commit for commit in batch.commits if commit.version != batch.initial_version]
    frame = frame_of(initial)
    frame = frame.where(_within(times, frame.schema[times.column].dataType.typeName()))
    return frame.union(frame_of(others)) if others else frame


def _within(times: "TimeRange", type_name: str) -> "Column":
    """Whether a row is in a range."""
    value = F.col(quoted(times.column))
    if times.first is None:
        assert times.end is not None
        return value.isNull() | (value < _time(times.end, type_name))
    after = value >= _time(times.first, type_name)
    return after if times.end is None else after & (value < _time(times.end, type_name))


def _time(number: int, type_name: str) -> "Column":
    """An event time as a constant, also of the years that Python doesn't have."""
    return (F.date_from_unix_date if type_name == "date" else F.timestamp_micros)(F.lit(number))


def _added(commits: "Sequence[Commit]") -> "list[AddFile]":
    return [action for commit in commits for action in commit.actions if isinstance(action, AddFile)]


def _of_files(
    spark: "SparkSession", log: "DeltaLog", read: "Snapshot", files: "Sequence[AddFile]", **arguments: Any
) -> "DataFrame":
    return scan.frame(spark, log, snapshot=read, files=table_of(files), **arguments)


def table_of(files: "Sequence[AddFile]") -> pa.Table:
    """The files as rows of a table for `scan.frame`."""
    return pa.Table.from_pylist(
        [
            {
                **change_feed.file_row(file),
                "baseRowId": file.base_row_id,
                "defaultRowCommitVersion": file.default_row_commit_version,
            }
            for file in files
        ],
        schema=_FILES,
    )
