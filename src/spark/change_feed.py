"""`spark.read.format("delta").option("readChangeFeed", "true")`: the rows that changed in a range of versions."""

from pyspark.sql import DataFrame, SparkSession

from ..core.deltalog import DeltaLog
from ..core.table import changed_files, changes
from ..core.table.snapshot import Snapshot
from ..engine.read import change_feed
from ..settings.declarations import CHANGE_FEED_OUT_OF_RANGE, CHANGE_FEED_SCHEMA_MODE
from .options import ChangeRange
from .time_travel import timestamp_ms


def frame(spark: SparkSession, log: DeltaLog, wanted: ChangeRange) -> DataFrame:
    """The changed rows of a range of versions, both ends included, determined when the frame is created.

    They have the schema of the newest version; with column mapping, that of the last version of the range.
    Raises what `changes.version_range`, `changes.check_recorded` and `changes.check_schemas` raise.
    """
    newest = log.snapshot()
    lenient = CHANGE_FEED_OUT_OF_RANGE.of(log.conf)
    end = None if wanted.end is None else _bound(spark, wanted.end)
    versions = changes.version_range(log, newest.version, _bound(spark, wanted.start), end, lenient=lenient)
    if versions is None:
        return change_feed.frame(spark, log, newest, [])
    first, last = versions
    at_start = newest if first == newest.version else log.snapshot(version=first)
    read = _read_by(log, newest, at_start, last, bounded=wanted.end is not None)
    commits = changes.read_commits(log, newest, first, last, in_columns=True)
    changes.check_recorded(commits, at_start.metadata, log.table)
    before = changes.mapping_before(log, commits[0])
    changes.check_schemas(commits, at_start.mapping, read.mapping, read.version, log.table, before)
    return change_feed.frame(spark, log, read, [changed_files.of_commit(commit, log.table) for commit in commits])


def _bound(spark: SparkSession, bound: int | str) -> changes.Bound:
    return (
        changes.Bound(version=bound)
        if isinstance(bound, int)
        else changes.Bound(timestamp_ms=timestamp_ms(spark, bound))
    )


def _read_by(log: DeltaLog, newest: Snapshot, at_start: Snapshot, last: int, *, bounded: bool) -> Snapshot:
    """The version with whose schema the changes are read."""
    if CHANGE_FEED_SCHEMA_MODE.of(log.conf) != "endVersion" or last == newest.version:
        return newest
    at_end = at_start if last == at_start.version else log.snapshot(version=last)
    maps = newest.mapping.active or at_start.mapping.active or (bounded and at_end.mapping.active)
    return at_end if maps else newest
