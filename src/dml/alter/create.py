"""CREATE TABLE and REPLACE TABLE, empty or AS SELECT, from a definition of columns, rules and properties."""

import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

from ...core.deltalog import DeltaLog
from ...core.protocol import features, properties, rules, schema
from ...core.protocol.actions import Action, Metadata
from ...core.protocol.column_mapping import transformed
from ...core.protocol.schema import StructField, StructType
from ...core.table import clustering
from ...core.table.snapshot import Snapshot
from ...core.txn.operation import Operation
from ...core.txn.transaction import Committed
from ...engine.read import pinning
from ...engine.sql import conform, expressions
from ...engine.sql.column_references import check_constant_default
from ...engine.write import writer
from ...errors import (
    ConcurrentWriteException,
    InvalidArgumentError,
    MetadataChangedException,
    ProtocolChangedException,
    SchemaMismatchError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from ..command import rows
from ..command.command import PLAIN, Command, CommitOptions, command_scope
from ..command.removal import Removal
from ..command.target_metadata import partition_names
from ..command.whole_files import remove_all
from ..maintain import cluster_by

logger = logging.getLogger(__name__)

CreateMode = Literal["create", "createIfNotExists", "replace", "createOrReplace"]

_EXISTS_DEFAULT = "EXISTS_DEFAULT"
_OWN_METADATA = ("delta.columnMapping.", schema.TYPE_CHANGES_KEY, rules.MARK, _EXISTS_DEFAULT)
_OWN_PROPERTIES = ("delta.columnMapping.maxColumnId", "delta.rowTracking.materialized")
_ATTEMPTS = 5


@dataclass(frozen=True)
class Definition:
    """The definition of a table. Rules of `columns` are in the fields' metadata, as in the Delta log."""

    columns: StructType = field(default_factory=StructType)
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    managed: bool = False
    """Whether the table is managed: dropping it from the catalog deletes its files."""


def create(
    spark: SparkSession,
    log: DeltaLog,
    definition: Definition,
    mode: CreateMode,
    *,
    frame: DataFrame | None = None,
    file_options: Mapping[str, str] | None = None,
    options: CommitOptions = PLAIN,
) -> Committed | None:
    """Create or replace the table by one commit. Returns None if `createIfNotExists` finds an existing table.

    `frame`: the rows of the new table, which also define its columns (AS SELECT); they may come from the table that is
    replaced. None: the table is empty. `file_options` configure the data files. If another writer creates the table
    first, it is treated as existing. Raises TableAlreadyExistsError or TableNotFoundError as the mode requires,
    InvalidArgumentError for an invalid definition, the conflict errors and CommitStateUnknownError.
    """
    with command_scope(spark, "CREATE TABLE", log.table):
        if frame is not None:
            definition = replace(definition, columns=conform.new_table_schema(frame))
        _check(spark, definition, log)
        for attempt in range(1, _ATTEMPTS + 1):
            command = Command(spark, log, log.transaction(), options)
            try:
                return _create(command, definition, mode, frame, file_options or {})
            except (MetadataChangedException, ProtocolChangedException, ConcurrentWriteException):
                if command.txn.read_version >= 0 or attempt == _ATTEMPTS:
                    raise
                logger.info("%s: another writer created the table concurrently; restarting the command", log.table)
    raise AssertionError("unreachable")


def _create(
    command: Command, definition: Definition, mode: CreateMode, frame: DataFrame | None, file_options: Mapping[str, str]
) -> Committed | None:
    log, txn, old = command.log, command.txn, command.txn.snapshot
    if old is not None and mode in ("create", "createIfNotExists"):
        if mode == "createIfNotExists":
            logger.info("%s already exists, so createIfNotExists keeps it", log.table)
            return None
        raise TableAlreadyExistsError(
            f"There is a Delta table at {log.table}. createIfNotExists keeps it, createOrReplace replaces it.",
            condition="TABLE_OR_VIEW_ALREADY_EXISTS",
            parameters={"relationName": log.table},
        )
    for struct_field in definition.columns:
        if schema.DEFAULT_KEY in struct_field.metadata:
            check_constant_default(command.spark, struct_field, str(struct_field.metadata[schema.DEFAULT_KEY]))
    if old is None and mode == "replace":
        raise TableNotFoundError(
            f"There is no Delta table at {log.table} to replace: createOrReplace would create it.",
            condition="TABLE_OR_VIEW_NOT_FOUND",
            parameters={"relationName": log.table},
        )
    if command.applied_already:
        return None
    metadata = _metadata(definition, log)
    protocol = features.protocol_for_new_table(metadata, log.conf)
    if old is not None:
        _check_replaceable(command, definition, old)
        supported = features.supported(old.protocol)
        more = features.supported(protocol) - supported
        protocol = features.protocol_of(supported | more) if more else old.protocol
    if old is None or protocol != old.protocol:
        txn.set_protocol(protocol)
    stored = properties.without_protocol_properties(metadata.configuration)
    txn.set_metadata(replace(metadata, configuration=stored), replaces_table=old is not None)
    actions: list[Action] = []
    removal, now = Removal(), log.clock.now_ms()
    if definition.cluster_by:
        actions.append(cluster_by.staged(txn, definition.cluster_by))
    if old is not None:
        txn.read_whole_table()
        old_clustering = old.domain_metadata.get(clustering.DOMAIN)
        if old_clustering is not None and not old_clustering.removed and not definition.cluster_by:
            actions.append(replace(old_clustering, removed=True))
        removal = remove_all(command)
        actions += removal.actions(now)
    operation = _operation(definition, txn.metadata, mode)
    if frame is None:
        return command.commit(actions, operation, bulk=removal.bulk(now))
    if old is not None:
        frame, _ = pinning.pinned(frame, log, old)
    with command.discarded_on_failure():
        written = rows.write_new(command, rows.fitted(command, frame), writer.WriteOptions.of(file_options))
        metrics: dict[str, int | str] = {
            "numFiles": len(written.adds),
            "numOutputRows": written.rows,
            "numOutputBytes": written.bytes,
        }
        if operation.replaces_table:
            metrics |= {"numRemovedFiles": removal.counts.removed, "numRemovedBytes": removal.counts.bytes}
        as_select = replace(operation, name=f"{operation.name} AS SELECT", metrics=metrics)
        return command.commit([*written.adds, *actions], as_select, bulk=removal.bulk(now))


def check_same(definition: Definition, existing: Snapshot) -> None:
    """Raise SchemaMismatchError if an existing table differs from a definition.

    Columns, partitioning, clustering and properties are compared if the definition has any; partitioning and clustering
    also if it has columns.
    """
    metadata = existing.metadata
    has_columns = bool(len(definition.columns))
    if has_columns and compared(definition.columns) != compared(existing.schema):
        raise _differs(
            existing,
            "DELTA_CREATE_TABLE_SCHEME_MISMATCH",
            f"its columns are {schema.type_text(existing.schema)} (names, types, NOT NULL, comments, defaults and "
            "generation expressions are compared)",
        )
    partitioned = has_columns or definition.partition_by
    if partitioned and tuple(definition.partition_by) != tuple(metadata.partition_columns):
        by = ", ".join(metadata.partition_columns) or "nothing"
        raise _differs(existing, "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING", f"it is partitioned by {by}")
    if has_columns or definition.cluster_by:
        clustered = [schema.dotted(column) for column in cluster_by.current(existing) or ()]
        if list(definition.cluster_by) != clustered:
            by = ", ".join(clustered) or "nothing"
            raise _differs(existing, "DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING", f"it is clustered by {by}")
    wanted = properties.without_protocol_properties(definition.properties)
    for key in [*wanted, *(metadata.configuration if wanted else ())]:
        if metadata.configuration.get(key) != wanted.get(key) and not key.startswith(_OWN_PROPERTIES):
            raise _differs(
                existing,
                "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY",
                f"its property {key} is {metadata.configuration.get(key)}",
            )


def compared(columns: StructType) -> StructType:
    """The columns without the metadata that a definition can't have: ids, type changes, values of identity columns."""

    def stripped(struct_field: StructField, _: schema.Column) -> StructField:
        kept = {key: value for key, value in struct_field.metadata.items() if not key.startswith(_OWN_METADATA)}
        return replace(struct_field, metadata=kept)

    result = transformed(columns, stripped)
    assert isinstance(result, StructType)
    return result


def _differs(existing: Snapshot, condition: str, difference: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"{existing.table} exists and differs from the definition: {difference}. Leave out the "
        "columns and properties to use the table as it is, or replace it",
        condition=condition,
        parameters={"path": existing.table},
    )


def _check_replaceable(command: Command, definition: Definition, old: Snapshot) -> None:
    command.check_removable()
    if not len(definition.columns):
        raise SchemaMismatchError(
            f"To replace {command.log.table}, define the columns of the new table.",
            condition="DELTA_SCHEMA_NOT_PROVIDED",
        )
    if definition.partition_by and "clustering" in features.supported(old.protocol):
        raise InvalidArgumentError(
            f"{command.log.table} is a clustered table, which can't be replaced by a partitioned one: cluster it by "
            "the columns, or drop the feature clustering first.",
            condition="DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE",
        )


def _metadata(definition: Definition, log: DeltaLog) -> Metadata:
    return Metadata(
        id=str(uuid.uuid4()),
        schema_string=schema.to_json(StructType(tuple(map(_stored, definition.columns)))),
        partition_columns=partition_names(definition.partition_by, definition.columns),
        configuration={**properties.defaults_from(log.conf), **definition.properties},
        description=definition.comment,
        created_time=log.clock.now_ms(),
    )


def _stored(struct_field: StructField) -> StructField:
    """The column without `EXISTS_DEFAULT`, Spark's default value for existing rows."""
    return replace(
        struct_field, metadata={key: value for key, value in struct_field.metadata.items() if key != _EXISTS_DEFAULT}
    )


def _check(spark: SparkSession, definition: Definition, log: DeltaLog) -> None:
    """Check a definition on its own, independent of any existing table."""
    columns = definition.columns
    schema.check_no_duplicates(columns)
    metadata = _metadata(definition, log)
    expressions.check_generated(spark, columns)
    for name, sql in rules.constraints(metadata).items():
        expressions.check_constraint(spark, columns, name, sql)
    for struct_field in columns:
        if rules.identity_of(struct_field) is None:
            continue
        column = f"the identity column {schema.dotted((struct_field.name,))}"
        if struct_field.data_type != schema.LONG:
            raise InvalidArgumentError(
                f"{column} is of the type {schema.type_text(struct_field.data_type)}: it has to be bigint",
                condition="DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE",
                parameters={"dataType": schema.type_text(struct_field.data_type)},
            )
        if schema.GENERATION_KEY in struct_field.metadata:
            raise InvalidArgumentError(
                f"{column} has a generation expression too: a column can't be both",
                condition="DELTA_IDENTITY_COLUMNS_WITH_GENERATED_EXPRESSION",
            )
        if struct_field.name in metadata.partition_columns:
            raise InvalidArgumentError(
                f"a table can't be partitioned by {column}",
                condition="DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED",
                parameters={"colName": struct_field.name},
            )
    with_defaults = [schema.dotted((f.name,)) for f in columns if schema.DEFAULT_KEY in f.metadata]
    if with_defaults and "allowColumnDefaults" not in features.supported(
        features.protocol_for_new_table(metadata, log.conf)
    ):
        raise InvalidArgumentError(
            f"the columns {', '.join(with_defaults)} have default values, for which the table needs a feature: set the "
            "property delta.feature.allowColumnDefaults to 'supported'",
            condition="WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
            parameters={"commandType": "CREATE TABLE"},
        )


def _operation(definition: Definition, metadata: Metadata, mode: CreateMode) -> Operation:
    names: dict[CreateMode, str] = {"replace": "REPLACE TABLE", "createOrReplace": "CREATE OR REPLACE TABLE"}
    parameters = {
        "isManaged": str(definition.managed).lower(),
        "description": metadata.description,
        "partitionBy": list(metadata.partition_columns),
        "clusterBy": list(definition.cluster_by),
        "properties": dict(metadata.configuration),
    }
    return Operation(names.get(mode, "CREATE TABLE"), parameters, replaces_table=mode in names)
