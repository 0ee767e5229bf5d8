"""RESTORE: restores an older version of the table by a new commit."""

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import SparkSession

from ...core.deltalog import DeltaLog
from ...core.log.replay import vector_id
from ...core.protocol import deletion_vectors, features, paths, schema
from ...core.protocol.actions import Action, AddFile, DomainMetadata, Metadata, Protocol
from ...core.protocol.schema import IDENTITY_PREFIX, StructType
from ...core.table import clustering
from ...core.table.snapshot import Snapshot
from ...core.txn.operation import Operation
from ...engine.jvm import settings
from ...engine.storage import external_files, table_files
from ...errors import InvalidArgumentError, MissingDataFileError, TimestampOutOfRangeError, VersionNotFoundError
from ...settings.declarations import RESTORE_DOWNGRADES
from ...settings.spark_own import IGNORE_MISSING_FILES
from ..command.command import PLAIN, Command, CommitOptions, command_scope, reports_table

_MOST_SHOWN = 100
_HIGH_WATER_MARK = f"{IDENTITY_PREFIX}highWaterMark"
_STEP = f"{IDENTITY_PREFIX}step"


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
        then = now if version == now.version else _snapshot(log, version)
        command.txn.read_whole_table()
        back, superfluous = _difference(then, now)
        added = [replace(add, data_change=True) for add in then.add_files(back)]
        removed = now.add_files(superfluous)
        if removed:
            command.check_removable()
        if not settings.of(spark, IGNORE_MISSING_FILES):
            _check_there(spark, log, added, version)
        metadata = restored_metadata(then.metadata, now.metadata)
        if metadata != now.metadata:
            command.txn.set_metadata(metadata, replaces_table=True)
        downgrade = settings.of(spark, RESTORE_DOWNGRADES)
        protocol = restored_protocol(then.protocol, now.protocol, downgrade=downgrade)
        if protocol != now.protocol:
            command.txn.set_protocol(protocol)
        metrics = {
            "numRestoredFiles": len(added),
            "restoredFilesSize": sum(add.size for add in added),
            "numRemovedFiles": len(removed),
            "removedFilesSize": sum(add.size for add in removed),
            "numOfFilesAfterRestore": then.num_files,
            "tableSizeAfterRestore": then.size_in_bytes,
        }
        if then is now:
            return metrics
        at = log.clock.now_ms()
        actions: list[Action] = [*added, *(add.remove(at) for add in removed), *_domains(then, now)]
        parameters = {"version": version if timestamp is None else None, "timestamp": timestamp and timestamp[1]}
        operation = Operation("RESTORE", parameters, metrics, replaces_table=True, lowers_protocol=bool(downgrade))
        command.commit(actions, operation)
        return metrics


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


def _difference(then: Snapshot, now: Snapshot) -> tuple[list[int], list[int]]:
    """Indexes of the files that only `then` has, and of the files that only `now` has."""
    of_then, of_now = _keys(then), _keys(now)
    return (
        [row for key, row in of_then.items() if key not in of_now],
        [row for key, row in of_now.items() if key not in of_then],
    )


def _keys(snapshot: Snapshot) -> dict[tuple[str, str | None], int]:
    files: pa.Table = snapshot.files
    names = paths.canonical_column(files.column("path"), snapshot.table).to_pylist()
    vectors = files.column("deletionVector")
    ids: list[str | None] = [None] * len(names)
    if vectors.null_count < len(vectors):
        ids = [vector_id(value) for value in vectors.to_pylist()]
    return {key: row for row, key in enumerate(zip(names, ids, strict=True))}


def _check_there(spark: SparkSession, log: DeltaLog, files: list[AddFile], version: int) -> None:
    needed = [add.path for add in files]
    vectors = (add.deletion_vector for add in files)
    needed += sorted(
        {deletion_vectors.path_of(vector) for vector in vectors if vector is not None and vector.storage_type != "i"}
    )
    external_files.check(spark, log.table, version, needed)
    missing = table_files.choose(spark, log).absent(needed)
    if missing:
        more = f" and {len(missing) - _MOST_SHOWN} more" if len(missing) > _MOST_SHOWN else ""
        raise MissingDataFileError(
            f"{log.table} can't be restored to version {version}: {len(missing)} of its files no longer exist, removed "
            f"by VACUUM or by hand: {', '.join(missing[:_MOST_SHOWN])}{more}. Restore a later version; or set "
            f"{IGNORE_MISSING_FILES.key} to true to restore the remaining files",
            version=version,
            path=missing[0],
        )


def restored_metadata(then: Metadata, now: Metadata) -> Metadata:
    """The metadata of the older version, but with the newer high-water marks of identity columns."""
    marks = _later_marks(schema.parse_schema(then.schema_string), schema.parse_schema(now.schema_string))
    return then if marks is None else replace(then, schema_string=schema.to_json(marks))


def _later_marks(then: StructType, now: StructType) -> StructType | None:
    """The schema `then` with the high-water marks of `now` where these are further on; `None` if none is."""
    changed = False
    fields = []
    for field in then.fields:
        newer = now.get(field.name, case_sensitive=True)
        mark = None if newer is None else newer.metadata.get(_HIGH_WATER_MARK)
        if mark is not None and _STEP in field.metadata:
            known = field.metadata.get(_HIGH_WATER_MARK)
            further = max if int(field.metadata[_STEP]) > 0 else min
            if known is None or further(int(known), int(mark)) != int(known):
                field = replace(field, metadata={**field.metadata, _HIGH_WATER_MARK: mark})
                changed = True
        fields.append(field)
    return StructType(tuple(fields)) if changed else None


def restored_protocol(then: Protocol, now: Protocol, *, downgrade: bool) -> Protocol:
    """The features of both versions, unless a downgrade is allowed: then the protocol of the older version."""
    if downgrade:
        return then
    wanted = features.supported(then) | features.supported(now)
    return now if wanted == features.supported(now) else features.protocol_of(wanted)


def _domains(then: Snapshot, now: Snapshot) -> list[DomainMetadata]:
    """The clustering columns of the older version; other domain metadata is kept."""
    old, new = then.domain_metadata.get(clustering.DOMAIN), now.domain_metadata.get(clustering.DOMAIN)
    if new is None and old is None:
        return []
    wanted = old or clustering.domain(())
    return [] if wanted == new else [wanted]
