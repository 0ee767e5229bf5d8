"""`spark.read.format("delta").option("readChangeFeed", "true")`: the rows that a range of versions changed."""

from pyspark.sql import DataFrame, SparkSession

from ..core.deltalog import DeltaLog
from ..core.table import changes as core
from ..core.table.snapshot import Snapshot
from ..engine.read import change_feed as changes
from ..settings.honoured import CHANGE_FEED_OUT_OF_RANGE, CHANGE_FEED_SCHEMA_MODE
from .options import ChangeRange
from .time_travel import timestamp_ms


def frame(spark: SparkSession, log: DeltaLog, wanted: ChangeRange) -> DataFrame:
    """The changed rows from the start to the end of a range, both included, as of when the frame is made.

    They have the columns of the newest version; where a version concerned maps its columns, those of the range's last.
    Raises what `core.version_range`, `core.check_recorded` and `core.check_schemas` raise.
    """
    newest = log.snapshot()
    lenient = CHANGE_FEED_OUT_OF_RANGE.of(log.conf)
    end = None if wanted.end is None else _bound(spark, wanted.end)
    found = core.version_range(log, newest.version, _bound(spark, wanted.start), end, lenient=lenient)
    if found is None:
        return changes.frame(spark, log, newest, [])
    first, last = found
    at_start = log.snapshot(version=first)
    read = _read_by(log, newest, at_start, last, bounded=wanted.end is not None)
    commits = core.read_commits(log, first, last)
    core.check_recorded(commits, at_start.metadata, log.table)
    core.check_schemas(commits, at_start.mapping, read.mapping, read.version, log.table)
    files, vectors = [], []
    for commit in commits:
        of_files, of_vectors = core.of_commit(commit, log.table)
        files += of_files
        vectors += of_vectors
    return changes.frame(spark, log, read, files, vectors)


def _bound(spark: SparkSession, given: int | str) -> core.Bound:
    return core.Bound(version=given) if isinstance(given, int) else core.Bound(timestamp_ms=timestamp_ms(spark, given))


def _read_by(log: DeltaLog, newest: Snapshot, at_start: Snapshot, last: int, *, bounded: bool) -> Snapshot:
    """The version whose columns the changes are read with."""
    if CHANGE_FEED_SCHEMA_MODE.of(log.conf) != "endVersion" or last == newest.version:
        return newest
    at_end = log.snapshot(version=last)
    maps = newest.mapping.active or at_start.mapping.active or (bounded and at_end.mapping.active)
    return at_end if maps else newest
