"""The schema log of a stream, by the option `schemaTrackingLocation`."""

from pyspark.sql import SparkSession

from ...core.deltalog import DeltaLog
from ...core.streaming.schema_changes import Permissions
from ...core.streaming.schema_log import SchemaLog
from ...core.streaming.schema_tracking import SchemaTracking, as_tracked, merge_changes
from ...core.table.snapshot import Snapshot
from ...engine.jvm.connection import settings
from ...errors import InvalidArgumentError
from ...logstore import registry
from ...settings.declarations import STREAMING_LOG_ANYWHERE, STREAMING_MERGES_CHANGES
from ..conf import session_conf
from ..options import Options


def analyzed(spark: SparkSession, log: DeltaLog, options: Options) -> Snapshot:
    """The newest version with the columns that a streaming DataFrame has: its own, or those of the schema log."""
    newest = log.snapshot()
    schema_log = _schema_log(spark, newest, options)
    if schema_log is None:
        return newest
    if settings.of(spark, STREAMING_MERGES_CHANGES):
        merge_changes(log, schema_log)
    return as_tracked(newest, schema_log.current)


def tracking(spark: SparkSession, newest: Snapshot, options: Options, metadata_path: str) -> SchemaTracking | None:
    """The schema log of a query that starts; None without one. `metadata_path`: the source's in the checkpoint.

    Raises:
        InvalidArgumentError: The location isn't below the checkpoint location, or another source uses it.
        SchemaChangedError: The columns changed in a way that the user hasn't allowed.
    """
    schema_log = _schema_log(spark, newest, options)
    if schema_log is None:
        return None
    checkpoint = metadata_path.rsplit("/sources/", 1)[0]
    root = registry.store_for(checkpoint, conf=session_conf(spark, checkpoint)).resolve(checkpoint)
    if not settings.of(spark, STREAMING_LOG_ANYWHERE) and not schema_log.location.startswith(f"{root.rstrip('/')}/"):
        raise InvalidArgumentError(
            f"The schema log {schema_log.location} isn't below the checkpoint location {root}: set "
            "schemaTrackingLocation to a directory there.",
            condition="DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT",
            parameters={"schemaTrackingLocation": schema_log.location, "checkpointLocation": root},
            table=newest.table,
        )
    allowed = Permissions(options.get, lambda key: spark.conf.get(key, None), metadata_path)
    return SchemaTracking(schema_log, newest, allowed)


def _schema_log(spark: SparkSession, newest: Snapshot, options: Options) -> SchemaLog | None:
    location = options.get("schemaTrackingLocation") or options.get("schemaLocation")
    if not location:
        return None
    if options.boolean("failOnDataLoss") is False:
        raise InvalidArgumentError(
            "failOnDataLoss=false and schemaTrackingLocation exclude each other: a missing commit may have changed the "
            "columns.",
            condition="DELTA_ILLEGAL_OPTION",
            parameters={"input": "false", "name": "failOnDataLoss", "explain": "schemaTrackingLocation is set"},
        )
    source = options.get("streamingSourceTrackingId")
    directory = f"_schema_log_{newest.metadata.id}{'' if source is None else f'_{source}'}"
    store = registry.store_for(location, conf=session_conf(spark, location))
    path = f"{store.resolve(location).rstrip('/')}/{directory}"
    return SchemaLog(store, path, table=newest.table, table_id=newest.metadata.id)
