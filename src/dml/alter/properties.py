"""ALTER TABLE SET and UNSET TBLPROPERTIES: validates properties and commits the changes that they imply."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from ...core.deltalog import DeltaLog
from ...core.protocol import column_mapping, properties, row_tracking
from ...core.protocol.actions import Metadata
from ...core.txn.operation import Operation
from ...core.txn.transaction import Committed
from ...errors import InvalidArgumentError
from ...settings.declarations import ALLOW_ARBITRARY_PROPERTIES
from ..command.command import PLAIN, Command, CommitOptions, command_scope
from .feature_traces import remove_mapping
from .row_tracking import backfill

_COMMENT = "comment"
_ELSEWHERE = {
    "location": "the location of a table can't be changed",
    "provider": "a Delta table can't be converted to another format",
    "delta.feature.clustering": "a clustered table needs clustering columns: use clusterBy",
    "clusteringcolumns": "use clusterBy",
}


def set_properties(
    spark: SparkSession,
    log: DeltaLog,
    requested: Mapping[str, str],
    options: CommitOptions = PLAIN,
    *,
    logged: Mapping[str, str] | None = None,
) -> Committed | None:
    """Set table properties and commit. Returns None if the transaction of `options` was already committed.

    `comment` is the table's description. `delta.feature.*` and the protocol versions upgrade the protocol, as do
    properties that require a feature. Row tracking is enabled after all files got row IDs, and column mapping is set
    to `none` after all files were rewritten, in separate commits. `logged` are the properties in `commitInfo` (default:
    the properties with canonical keys). Raises InvalidArgumentError or UnsupportedFeatureError naming the key, the
    conflict errors and CommitStateUnknownError.
    """
    name = "SET TBLPROPERTIES"
    with command_scope(spark, name, log.table):
        command = Command.on(spark, log, options)
        if command.applied_already:
            return None
        arbitrary = ALLOW_ARBITRARY_PROPERTIES.of(log.conf)
        valid = checked(requested, command.snapshot.metadata, allow_arbitrary=arbitrary)
        if properties.get(valid, "enableRowTracking") and backfill(command):
            command = Command.on(spark, log, options)
        if column_mapping.MODE in valid and _unmaps(valid[column_mapping.MODE], command):
            remove_mapping(spark, log, options)
            command = Command.on(spark, log, options)
        command.txn.set_metadata(with_properties(command.snapshot.metadata, valid))
        return command.commit([], Operation(name, {"properties": valid if logged is None else logged}))


def unset_properties(
    spark: SparkSession, log: DeltaLog, keys: Sequence[str], *, if_exists: bool = False, options: CommitOptions = PLAIN
) -> Committed | None:
    """Unset table properties and commit. Returns None if the transaction of `options` was already committed.

    Raises InvalidArgumentError for a key that isn't set, unless `if_exists`, and for one that can't be unset.
    """
    name = "UNSET TBLPROPERTIES"
    with command_scope(spark, name, log.table):
        command = Command.on(spark, log, options)
        if command.applied_already:
            return None
        proper = [properties.proper_key(key) for key in keys]
        if column_mapping.MODE in proper and _unmaps("none", command):
            remove_mapping(spark, log, options)
            command, if_exists = Command.on(spark, log, options), True
        command.txn.set_metadata(without_properties(command.snapshot.metadata, proper, log.table, if_exists=if_exists))
        return command.commit([], Operation(name, {"properties": proper, "ifExists": if_exists}))


def _unmaps(mode: str, command: Command) -> bool:
    """Whether this disables column mapping on a table that has it enabled."""
    return mode.lower() == "none" and command.snapshot.mapping.active


def checked(requested: Mapping[str, str], metadata: Metadata, *, allow_arbitrary: bool) -> dict[str, str]:
    """The properties with canonical keys. Raises InvalidArgumentError for keys that have their own command."""
    if not requested:
        raise InvalidArgumentError("no table property was given")
    for key, value in requested.items():
        if not isinstance(value, str):
            raise InvalidArgumentError(f"the value of the table property {key} needs to be a string, not {value!r}")
        low = key.lower()
        if low.startswith(properties.CONSTRAINT_PREFIX):
            raise InvalidArgumentError(
                f"{key} can't be set as a property: use DeltaTable.addConstraint", condition="DELTA_ADD_CONSTRAINTS"
            )
        if low in _ELSEWHERE:
            raise InvalidArgumentError(f"{key} can't be set as a property: {_ELSEWHERE[low]}")
    existing = metadata.configuration
    valid = properties.validate(requested, allow_arbitrary=allow_arbitrary, existing=existing)
    row_tracking.check({**existing, **valid})
    return valid


def with_properties(metadata: Metadata, valid: Mapping[str, str]) -> Metadata:
    """The metadata with the properties set."""
    configuration = {**metadata.configuration, **{key: value for key, value in valid.items() if key != _COMMENT}}
    return replace(metadata, configuration=configuration, description=valid.get(_COMMENT, metadata.description))


def without_properties(metadata: Metadata, keys: Sequence[str], table: str, *, if_exists: bool) -> Metadata:
    """The metadata with the properties unset; `keys` are canonical."""
    if not keys:
        raise InvalidArgumentError("no table property was given")
    for key in keys:
        if key.lower().startswith(properties.CONSTRAINT_PREFIX) and key in metadata.configuration:
            raise InvalidArgumentError(f"{key} can't be unset as a property: use DeltaTable.dropConstraint")
        if not properties.editable(key):
            raise InvalidArgumentError(
                f"the table property {key} can't be unset: tablelog maintains it",
                condition="DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
                parameters={"prop": key},
            )
        if key not in metadata.configuration and key != _COMMENT and not if_exists:
            raise InvalidArgumentError(
                f"the table property {key} isn't set on {table}; use ifExists=True to ignore missing keys",
                condition="DELTA_UNSET_NON_EXISTENT_PROPERTY",
                parameters={"property": key, "tableName": table},
            )
    kept = {key: value for key, value in metadata.configuration.items() if key not in keys}
    return replace(metadata, configuration=kept, description=None if _COMMENT in keys else metadata.description)
