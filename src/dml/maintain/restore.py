"""RESTORE: restores an older version of the table by a new commit."""

from collections.abc import Mapping
from functools import partial

from pyspark.sql import SparkSession

from ...core.deltalog import DeltaLog
from ...core.table.snapshot import Snapshot
from ...core.table_maintenance.restore import check_there, restoration, restored_in_pieces
from ...engine.jvm.connection import settings
from ...engine.read import selection
from ...engine.storage import external_files, table_files
from ...errors import InvalidArgumentError, TimestampOutOfRangeError, VersionNotFoundError
from ...progress import stage
from ...settings.declarations import RESTORE_DOWNGRADES
from ...settings.spark_own import IGNORE_MISSING_FILES
from ..command.command import PLAIN, Command, CommitOptions, command_scope, reports_table


@reports_table
def restore(
    spark: SparkSession,
    log: DeltaLog,
    *,
    version: int | None = None,
    timestamp: tuple[int, str] | None = None,
    options: CommitOptions = PLAIN,
) -> Mapping[str, int]:
    """Restore the rows, the schema and the properties of a version or a timestamp.

    `timestamp` is (milliseconds since the epoch, the user's text). Returns the metrics, by Delta's names. Restoring the
    newest version makes no commit. Supported features are kept, unless the session allows a protocol downgrade. Raises
    InvalidArgumentError, VersionNotFoundError, TimestampOutOfRangeError, MissingDataFileError if files of that version
    were deleted (`spark.sql.files.ignoreMissingFiles` restores the others), AppendOnlyTableError and the conflict
    errors.
    """
    if (version is None) == (timestamp is None):
        raise InvalidArgumentError("RESTORE takes either a version or a timestamp")
    with command_scope(spark, "RESTORE", log.table):
        command = Command.on(spark, log, options)
        now = command.snapshot
        if timestamp is not None:
            version = _version_at(log, timestamp)
        assert version is not None
        stage(f"comparing version {version:,} with version {now.version:,}")
        then = now if version == now.version else _snapshot(log, version)
        command.txn.read_whole_table()
        downgrade = bool(settings.of(spark, RESTORE_DOWNGRADES))
        differing = selection.differing(spark, log, then, now)
        old, new, totals = (then, now, None) if differing is None else differing
        at_ms = log.clock.now_ms()
        bulk = None if differing or then is now else restored_in_pieces(then, now, at_ms, downgrade=downgrade)
        change = restoration(old, new, downgrade=downgrade, totals=totals, bulk=bulk)
        if change.removes_files:
            command.check_removable()
        if not settings.of(spark, IGNORE_MISSING_FILES):
            advice = f"; or set {IGNORE_MISSING_FILES.key} to true to restore the remaining files"
            allowed = partial(external_files.check, spark, log.table, version)
            check_there(log.table, table_files.choose(spark, log), change, version, allowed, advice)
        change.stage(command.txn)
        if then is now:
            return change.metrics
        operation = change.operation(
            version if timestamp is None else None, timestamp and timestamp[1], downgrade=downgrade
        )
        command.commit(change.actions(at_ms), operation, bulk=change.bulk)
        return change.metrics


def _version_at(log: DeltaLog, timestamp: tuple[int, str]) -> int:
    """The version at a timestamp; a timestamp out of range gets RESTORE's error condition, as in Delta."""
    try:
        return log.version_at(timestamp[0])
    except TimestampOutOfRangeError as error:
        earliest, latest = (error.message_parameters.get(name) for name in ("commitTs", "lastCommitTimestamp"))
        if earliest is not None:
            error.condition = "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER"
            error.message_parameters = {"requestedTimestamp": timestamp[1], "earliestTimestamp": earliest}
        elif latest is not None:
            error.condition = "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER"
            error.message_parameters = {"requestedTimestamp": timestamp[1], "latestTimestamp": latest}
        raise


def _snapshot(log: DeltaLog, version: int) -> Snapshot:
    """The snapshot of a version; a missing version gets RESTORE's error condition, as in Delta."""
    try:
        return log.snapshot(version)
    except VersionNotFoundError as error:
        error.condition = "DELTA_CANNOT_RESTORE_TABLE_VERSION"
        error.message_parameters = {"version": str(version)}
        raise
