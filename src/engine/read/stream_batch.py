"""The rows of one batch of a stream, as a DataFrame over the files of the batch."""

from typing import TYPE_CHECKING

import pyarrow as pa

from ...core.protocol.actions import AddFile
from ...core.protocol.change_data import INSERT
from ...core.table import changes
from ...core.table.changes import FileChange
from ...errors import UnsupportedFeatureError
from . import change_feed, routes, scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.streaming.source import Batch
    from ...core.table.snapshot import Snapshot


def check_readable(spark: "SparkSession", log: "DeltaLog") -> None:
    """Raise UnsupportedFeatureError if Spark can't read the files of the table itself."""
    route = routes.choose(spark, log.table, log.conf)
    if route != "native":
        raise UnsupportedFeatureError(
            f"A stream of {log.table} is not supported: Spark has no file system for its storage, so the rows would be "
            f"read by the route '{route}', which has no streams. Read the table in batches.",
            table=log.table,
        )


def rows(spark: "SparkSession", log: "DeltaLog", read: "Snapshot", batch: "Batch") -> "DataFrame":
    """The rows of the files that a batch adds, with the columns of `read`."""
    files = pa.Table.from_pylist([change_feed.file_row(file) for file in batch.added], schema=change_feed.FILES)
    return scan.frame(spark, log, snapshot=read, files=files)


def changed_rows(
    spark: "SparkSession", log: "DeltaLog", read: "Snapshot", batch: "Batch", initial: int | None
) -> "DataFrame":
    """The changed rows of a batch, with the columns of `read` and those of a change data feed.

    `initial`: the version whose files are those of the whole table, if the batch has one; all its rows are inserts.
    """
    files, vectors = [], []
    for commit in batch.commits:
        if commit.version == initial:
            files += [FileChange(commit, action, INSERT) for action in commit.actions if isinstance(action, AddFile)]
            continue
        of_files, of_vectors = changes.of_commit(commit, log.table)
        files += of_files
        vectors += of_vectors
    return change_feed.frame(spark, log, read, files, vectors)
