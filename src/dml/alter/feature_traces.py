"""Removes the traces of a feature from the newest version of a table, before the feature is dropped."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import pyarrow as pa
from pyspark.sql import SparkSession

from ...core.deltalog import DeltaLog
from ...core.log.columns import deletion_vector_of
from ...core.protocol import column_mapping, in_commit_timestamps, row_tracking
from ...core.protocol.actions import Action, DomainMetadata, Metadata, RemoveFile
from ...core.protocol.column_mapping import transformed, without_mapping
from ...core.protocol.deletion_vectors import path_of
from ...core.protocol.schema import (
    TYPE_CHANGES_KEY,
    StructField,
    StructType,
    check_parquet_names,
    parse_schema,
    to_json,
)
from ...core.table.feature_removal import Plan, constraints, type_changed
from ...core.table.snapshot import Snapshot
from ...core.txn.operation import Operation
from ...errors import InvalidArgumentError
from ..command import rows
from ..command.command import Command, CommitOptions
from ..maintain.optimize import optimize
from ..maintain.optimize_layout import OptimizeLayout
from .row_tracking import unbackfill


def remove(spark: SparkSession, log: DeltaLog, plan: Plan, options: CommitOptions) -> bool:
    """Make the newest version independent of the feature. Returns whether any trace of it was found.

    First the setting that lets writers use the feature is disabled, so that no new traces are written. Makes commits
    of its own. Raises InvalidArgumentError if only the user may remove the traces, such as constraints.
    """
    snapshot = log.snapshot()
    changed = not plan.removal.clean(snapshot)
    if changed:
        _remove(spark, log, plan.name, snapshot, options)
    if plan.name == "deletionVectors":
        _keep_vectors(log)
    return changed


def _remove(spark: SparkSession, log: DeltaLog, name: str, snapshot: Snapshot, options: CommitOptions) -> None:
    metadata = snapshot.metadata
    match name:
        case "checkConstraints":
            raise InvalidArgumentError(
                f"{log.table} has constraints, so the feature {name} can't be dropped: drop the constraints "
                f"first ({', '.join(constraints(metadata))})"
            )
        case "columnMapping":
            remove_mapping(spark, log, options)
        case "deletionVectors":
            change_properties(log, unset=["delta.enableDeletionVectors"])
            optimize(spark, log, OptimizeLayout(purge=True), options=options)
        case "domainMetadata":
            removals: list[DomainMetadata] = [
                replace(domain, removed=True) for domain in snapshot.domain_metadata.values()
            ]
            log.transaction().commit(
                removals, Operation("DOMAIN METADATA CLEANUP", {"domainMetadataRemovedCount": len(removals)})
            )
        case "inCommitTimestamp":
            disabled = {in_commit_timestamps.ENABLED: "false"}
            change_properties(log, disabled, unset=in_commit_timestamps.PROVENANCE)
        case "rowTracking":
            change_properties(log, {row_tracking.ENABLED: "false", row_tracking.SUSPENDED: "true"})
            unbackfill(Command.on(spark, log, options))
        case "typeWidening" | "typeWidening-preview":
            change_properties(log, unset=["delta.enableTypeWidening"])
            if type_changed(metadata):
                _rewrite(spark, log, _unwidened(log.snapshot().metadata), "REORG", options)
        case "v2Checkpoint":
            change_properties(log, {"delta.checkpointPolicy": "classic"})


def change_properties(log: DeltaLog, changes: Mapping[str, str] | None = None, *, unset: Sequence[str] = ()) -> None:
    """Set and unset properties in one commit, without the checks for properties that users may not set."""
    txn = log.transaction()
    old = txn.metadata
    kept = {key: value for key, value in old.configuration.items() if key not in unset}
    txn.set_metadata(replace(old, configuration={**kept, **(changes or {})}))
    if unset:
        operation = Operation("UNSET TBLPROPERTIES", {"properties": [*unset, *(changes or {})], "ifExists": True})
    else:
        operation = Operation("SET TBLPROPERTIES", {"properties": dict(changes or {})})
    txn.commit([], operation)


def remove_mapping(spark: SparkSession, log: DeltaLog, options: CommitOptions) -> None:
    """Rewrite all data files with the logical column names, and disable column mapping.

    Raises InvalidArgumentError for a name that needs column mapping: other commands would refuse the table.
    """
    metadata = log.snapshot().metadata
    check_parquet_names(parse_schema(metadata.schema_string), StructType())
    _rewrite(spark, log, _unmapped(metadata), "REMOVE COLUMN MAPPING", options)


def _unmapped(metadata: Metadata) -> Metadata:
    """The metadata of the table without column mapping."""
    schema = transformed(parse_schema(metadata.schema_string), lambda f, _: without_mapping(f))
    dropped_keys = (column_mapping.MODE, column_mapping.MAX_ID)
    kept = {key: value for key, value in metadata.configuration.items() if key not in dropped_keys}
    return replace(metadata, schema_string=to_json(cast(StructType, schema)), configuration=kept)


def _unwidened(metadata: Metadata) -> Metadata:
    """The metadata of the table without records of type changes."""

    def plain(field: StructField, _: object) -> StructField:
        return replace(field, metadata={key: value for key, value in field.metadata.items() if key != TYPE_CHANGES_KEY})

    schema = transformed(parse_schema(metadata.schema_string), plain)
    return replace(metadata, schema_string=to_json(cast(StructType, schema)))


def _rewrite(spark: SparkSession, log: DeltaLog, metadata: Metadata, name: str, options: CommitOptions) -> None:
    """Rewrite all data files with other metadata, in one commit."""
    command = Command.on(spark, log, options)
    with command.discarded_on_failure():
        command.txn.read_whole_table()
        command.txn.set_metadata(metadata, replaces_table=True)
        removed = command.snapshot.add_files()
        frame = command.rows(pa.array(range(len(removed)), pa.int64()))
        added = rows.write_kept(command, frame, data_change=False).adds if removed else []
        now = log.clock.now_ms()
        actions: list[Action] = [*added, *(add.remove(now, data_change=False) for add in removed)]
        command.commit(actions, Operation(name, changes_data=False, replaces_table=True))


def _keep_vectors(log: DeltaLog) -> None:
    """Add tombstones for deletion vector files that old versions need.

    A writer without support for deletion vectors then keeps these files until the tombstones expire.
    """
    snapshot = log.snapshot()
    since = log.clock.now_ms() - snapshot.properties.deleted_file_retention_ms
    tombstones = snapshot.tombstones
    known = set(tombstones.column("path").to_pylist())
    young = [time or 0 for time in tombstones.column("deletionTimestamp").to_pylist()]
    vectors = [deletion_vector_of(value) for value in tombstones.column("deletionVector").to_pylist()]
    paths = {
        path_of(vector)
        for vector, time in zip(vectors, young, strict=True)
        if vector is not None and vector.storage_type != "i" and time > since
    }
    new_tombstones = [RemoveFile(path, log.clock.now_ms(), data_change=False) for path in sorted(paths - known)]
    if new_tombstones:
        log.transaction().commit(new_tombstones, Operation("Deletion Vector Tombstones"))
