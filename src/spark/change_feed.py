"""`spark.read.format("delta").option("readChangeFeed", "true")`: the rows that a range of versions changed."""

from pyspark.sql import DataFrame, SparkSession

from ..core.deltalog import DeltaLog
from ..core.table import changes
from ..core.table.snapshot import Snapshot
from ..engine.read import change_feed
from ..errors import InvalidArgumentError
from .options import ChangeRange
from .time_travel import timestamp_ms

_OUT_OF_RANGE = "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled"
_SCHEMA_MODE = "spark.databricks.delta.changeDataFeed.defaultSchemaModeForColumnMappingTable"
_MODES = {"endversion": "endVersion", "latest": "latest", "legacy": "legacy"}


def frame(spark: SparkSession, log: DeltaLog, wanted: ChangeRange) -> DataFrame:
    """The changed rows from the start to the end of a range, both included, as of when the frame is made.

    They have the columns of the newest version; where a version concerned maps its columns, those of the range's last.
    Raises what `core.version_range`, `core.check_recorded` and `core.check_schemas` raise.
    """
    newest = log.snapshot()
    lenient = log.conf.get(_OUT_OF_RANGE, "false").lower() == "true"
    end = None if wanted.end is None else _bound(spark, wanted.end)
    found = changes.version_range(log, newest.version, _bound(spark, wanted.start), end, lenient=lenient)
    if found is None:
        return change_feed.frame(spark, log, newest, [])
    first, last = found
    at_start = log.snapshot(version=first)
    read = _read_by(log, newest, at_start, last, bounded=wanted.end is not None)
    commits = changes.read_commits(log, first, last)
    changes.check_recorded(commits, at_start.metadata, log.table)
    changes.check_schemas(commits, at_start.mapping, read.mapping, read.version, log.table)
    files, vectors = [], []
    for commit in commits:
        of_files, of_vectors = changes.of_commit(commit, log.table)
        files += of_files
        vectors += of_vectors
    return change_feed.frame(spark, log, read, files, vectors)


def _bound(spark: SparkSession, given: int | str) -> changes.Bound:
    return (
        changes.Bound(version=given)
        if isinstance(given, int)
        else changes.Bound(timestamp_ms=timestamp_ms(spark, given))
    )


def _read_by(log: DeltaLog, newest: Snapshot, at_start: Snapshot, last: int, *, bounded: bool) -> Snapshot:
    """The version whose columns the changes are read with."""
    asked = log.conf.get(_SCHEMA_MODE, "endVersion")
    mode = _MODES.get(asked.lower())
    if mode is None:
        raise InvalidArgumentError(f"{_SCHEMA_MODE} is {asked!r}: it can be {', '.join(_MODES.values())}")
    if mode != "endVersion" or last == newest.version:
        return newest
    at_end = log.snapshot(version=last)
    maps = newest.mapping.active or at_start.mapping.active or (bounded and at_end.mapping.active)
    return at_end if maps else newest
