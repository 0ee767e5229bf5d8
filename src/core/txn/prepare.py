"""The checks of a commit that don't depend on concurrent writers (PROTOCOL.md, "Actions")."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace

from ...errors import AppendOnlyTableError, InvalidArgumentError
from ...settings.declarations import ALLOW_ARBITRARY_PROPERTIES
from ..protocol import (
    change_data,
    column_mapping,
    features,
    iceberg_compat,
    in_commit_timestamps,
    properties,
    row_tracking,
    schema,
)
from ..protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CheckpointMetadata,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    Sidecar,
)
from ..protocol.column_mapping import MAX_ID, ColumnMapping
from ..protocol.rules import without_leftovers
from ..table import manifest
from .operation import Operation

_STATS_COLUMNS = "delta.dataSkippingStatsColumns"


@dataclass(frozen=True)
class Base:
    """The state that the transaction starts from. `metadata` and `protocol` are `None` where there is no table yet."""

    table: str
    metadata: Metadata | None
    protocol: Protocol | None
    conf: Mapping[str, str]

    @property
    def new(self) -> bool:
        return self.metadata is None


@dataclass(frozen=True)
class Prepared:
    """The actions in the order in which they are written (no `commitInfo`), and the state that they lead to."""

    actions: tuple[Action, ...]
    metadata: Metadata
    protocol: Protocol


def requested(metadata: Metadata, old: Metadata | None, conf: Mapping[str, str]) -> Metadata:
    """The metadata that a caller requests, with the changed properties checked and in their canonical spelling.

    A new table (`old` is `None`) also gets the session's default properties, where the caller doesn't set them.
    Properties that an existing table already has aren't checked: another writer may have set them.
    """
    configuration = metadata.configuration
    if old is not None and configuration == old.configuration:
        return metadata
    kept = {} if old is None else {k: v for k, v in configuration.items() if old.configuration.get(k) == v}
    changed = {key: value for key, value in configuration.items() if key not in kept}
    # A user doesn't set these: they come with the columns, or with metadata that was copied from another table.
    mapped = () if column_mapping.unassigned(metadata) else (MAX_ID,)
    internal = (*row_tracking.COLUMN_KEYS, *in_commit_timestamps.PROVENANCE, *mapped)
    copied = {key: changed.pop(key) for key in internal if key in changed}
    arbitrary = ALLOW_ARBITRARY_PROPERTIES.of(conf)
    defaults = properties.defaults_from(conf) if old is None else {}
    changed = properties.validate(changed, allow_arbitrary=arbitrary, existing={**defaults, **kept})
    result: Mapping[str, str] = {**defaults, **kept, **changed, **copied}
    return replace(metadata, configuration=iceberg_compat.with_defaults(result) if old is None else result)


def prepare(
    base: Base,
    actions: Iterable[Action],
    operation: Operation,
    *,
    metadata: Metadata | None,
    protocol: Protocol | None,
) -> Prepared:
    """Check the actions and assemble one commit.

    A new table gets the session's default properties and, unless `protocol` is set, the protocol that its metadata
    needs.

    Args:
        base: The state that the transaction starts from.
        actions: The actions to commit.
        operation: Decides which changes are allowed.
        metadata: The metadata that was set on the transaction; it may be among the actions instead, but not in both.
        protocol: The protocol that was set on the transaction; it may be among the actions instead, but not in both.

    Returns:
        The checked actions in order.

    Raises:
        InvalidArgumentError: An action or a property isn't valid, or the operation doesn't allow it.
        SchemaMismatchError: The schema isn't valid for a table.
        AppendOnlyTableError: The table has `delta.appendOnly`, and data is changed or removed.
        UnsupportedFeatureError: The table has a feature that this version of tablelog can't write.
    """
    metadatas = [] if metadata is None else [metadata]
    protocols = [] if protocol is None else [protocol]
    others = _sort(base, actions, metadatas, protocols)
    new_metadata, new_protocol = metadatas[0] if metadatas else None, protocols[0] if protocols else None

    if base.new and new_metadata is None:
        raise InvalidArgumentError(f"the first commit to {base.table} needs the table's metadata (set_metadata)")
    if new_metadata is not None:
        new_metadata = requested(new_metadata, base.metadata, base.conf)
        if base.protocol is not None and not operation.replaces_table:
            new_metadata = without_leftovers(new_metadata, base.protocol)
        new_metadata = iceberg_compat.with_ids(
            new_metadata, base.metadata, base.protocol, replaces_table=operation.replaces_table
        )
        if new_protocol is None:
            new_protocol = implied_protocol(base, new_metadata)
        elif base.new:
            # The session's default properties may need more features than the caller set.
            new_protocol = features.protocol_of(features.supported(new_protocol) | features.enabled_by(new_metadata))
        stored = properties.without_protocol_properties(new_metadata.configuration)
        if len(stored) != len(new_metadata.configuration):
            new_metadata = replace(new_metadata, configuration=stored)
        new_metadata = row_tracking.with_column_names(new_metadata, base.metadata, new_protocol or _rules(base))
        row_tracking.check(new_metadata.configuration)
        if new_metadata != base.metadata:
            _check_metadata(base, new_metadata, operation)
    if base.protocol is not None:
        if new_protocol is not None and not operation.lowers_protocol:
            _check_not_lowered(base.table, base.protocol, new_protocol)
        features.check_writable(base.protocol, base.metadata, base.table)
    in_force, rules = new_metadata or base.metadata, new_protocol or base.protocol
    assert in_force is not None
    assert rules is not None
    if new_metadata is not None or new_protocol is not None:
        features.check_writable(rules, in_force, base.table)
    _check_domains(base, others, rules)
    iceberg_compat.check(rules, in_force, base.metadata, others, base.table)
    _check_files(base, others, ColumnMapping.of(rules, in_force))

    head: list[Action] = []
    if new_protocol is not None:
        head.append(new_protocol)
    if new_metadata is not None:
        head.append(new_metadata)
    return Prepared((*head, *others), in_force, rules)


def _sort(base: Base, actions: Iterable[Action], metadatas: list[Metadata], protocols: list[Protocol]) -> list[Action]:
    """The actions except metaData and protocol, which are added to the lists; no key may occur twice."""
    others: list[Action] = []
    txns: dict[str, SetTransaction] = {}
    domains: set[str] = set()
    for action in actions:
        if isinstance(action, Metadata):
            metadatas.append(action)
            continue
        if isinstance(action, Protocol):
            protocols.append(action)
            continue
        if isinstance(action, SetTransaction):
            first = txns.setdefault(action.app_id, action)
            if first is not action:
                if first.version != action.version:
                    raise InvalidArgumentError(
                        f"one commit to {base.table} can't set the transaction identifier of {action.app_id!r} to "
                        f"both {first.version} and {action.version}"
                    )
                continue
        elif isinstance(action, DomainMetadata):
            if action.domain in domains:
                raise InvalidArgumentError(
                    f"one commit to {base.table} can't set the metadata domain {action.domain!r} twice"
                )
            domains.add(action.domain)
        elif isinstance(action, CommitInfo | CheckpointMetadata | Sidecar):
            raise InvalidArgumentError(
                f"{type(action).__name__} can't be committed to {base.table} by a caller: the commit writes commitInfo "
                "from the Operation, and checkpoints write the others. Leave it out"
            )
        others.append(action)
    for kind, actions_of_kind in (("metaData", metadatas), ("protocol", protocols)):
        if len(actions_of_kind) > 1:
            raise InvalidArgumentError(f"one commit to {base.table} can't change {kind} twice")
    return others


def check_shape(metadata: Metadata, table: str, old: Metadata | None) -> None:
    """Check that a table can have this schema, these partition columns and this format, after `old`.

    Raises:
        SchemaMismatchError: A column isn't valid; the message names it.
        InvalidArgumentError: The format or a partition column isn't valid.
    """
    if metadata.format.provider.lower() != "parquet":
        raise InvalidArgumentError(
            f"the data of {table} can't have the format {metadata.format.provider!r}: the format must be parquet"
        )
    columns = schema.parse_schema(metadata.schema_string)
    schema.check_no_duplicates(columns)
    schema.check_partition_columns(columns, metadata.partition_columns)
    if properties.TableProperties.of(metadata).column_mapping_mode == "none":
        known = schema.StructType() if old is None else schema.parse_schema(old.schema_string)
        schema.check_parquet_names(columns, known)


def _check_metadata(base: Base, metadata: Metadata, operation: Operation) -> None:
    check_shape(metadata, base.table, base.metadata)
    change_data.check_names(metadata, base.table)
    column_mapping.check(metadata)
    manifest.check_metadata(metadata, base.table)
    old = base.metadata
    _check_stats_columns(metadata, old, base.table)
    if old is None or operation.replaces_table:
        return
    assert base.protocol is not None
    schema.check_lengths_inside(schema.parse_schema(metadata.schema_string), schema.parse_schema(old.schema_string))
    if not column_mapping.same_partitioning(ColumnMapping.of(base.protocol, old), metadata):
        raise InvalidArgumentError(
            f"{operation.name} can't change the partition columns of {base.table} from "
            f"{list(old.partition_columns)} to {list(metadata.partition_columns)}: overwrite the table with "
            "overwriteSchema instead"
        )
    if old.id != metadata.id:
        raise InvalidArgumentError(
            f"{operation.name} can't change the id of {base.table}: derive the new metadata from the table's metadata"
        )


def _check_stats_columns(metadata: Metadata, old: Metadata | None, table: str) -> None:
    """Raise InvalidArgumentError if `delta.dataSkippingStatsColumns` names a column that can't have statistics."""
    text = metadata.configuration.get(_STATS_COLUMNS)
    if text is None or (old is not None and old.configuration.get(_STATS_COLUMNS) == text):
        return
    columns = schema.parse_schema(metadata.schema_string)
    for column in properties.TableProperties.of(metadata).data_skipping_stats_columns or ():
        match = schema.find(columns, column)
        if match is None or match[0][0] in metadata.partition_columns:
            reason = "has no such column" if match is None else "is partitioned by it"
            raise InvalidArgumentError(
                f"{_STATS_COLUMNS} names the column {schema.dotted(column)}, but {table} {reason}: list only data "
                "columns of the table",
                condition="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
                parameters={"columnName": schema.dotted(column)},
            )


def implied_protocol(base: Base, metadata: Metadata) -> Protocol | None:
    """The protocol that the metadata of a new table, or its change, needs; `None`: the table's protocol is enough.

    `metadata` still has the properties that request protocol versions and features.
    """
    if base.protocol is None:
        return features.protocol_for_new_table(metadata, base.conf)
    requested_features = features.requested(metadata.configuration)
    if "delta.minWriterVersion" in metadata.configuration or "delta.minReaderVersion" in metadata.configuration:
        versions = {
            "delta.minReaderVersion": str(base.protocol.min_reader_version),
            "delta.minWriterVersion": str(base.protocol.min_writer_version),
            **metadata.configuration,
        }
        requested_features |= features.implied(
            properties.get(versions, "minReaderVersion"), properties.get(versions, "minWriterVersion")
        )
    requested_features -= features.supported(base.protocol)
    raised = (
        features.protocol_of(features.supported(base.protocol) | requested_features) if requested_features else None
    )
    return features.required_upgrade(raised or base.protocol, metadata, base.table) or raised


def _rules(base: Base) -> Protocol:
    assert base.protocol is not None
    return base.protocol


def _check_domains(base: Base, actions: list[Action], rules: Protocol) -> None:
    for action in actions:
        if not isinstance(action, DomainMetadata):
            continue
        if action.domain == row_tracking.DOMAIN and row_tracking.supported(rules):
            raise InvalidArgumentError(
                f"the commit itself writes the metadata domain {action.domain} of {base.table}: leave it out"
            )
        if not action.removed and "domainMetadata" not in features.supported(rules):
            raise InvalidArgumentError(
                f"{base.table} can't have the metadata domain {action.domain!r}: it doesn't support the feature "
                "domainMetadata (set delta.feature.domainMetadata to 'supported')"
            )


def _check_not_lowered(table: str, old: Protocol, new: Protocol) -> None:
    if missing := features.supported(old) - features.supported(new):
        raise InvalidArgumentError(
            f"the protocol of {table} can't be lowered: {', '.join(sorted(missing))} would no longer be supported",
            condition="DELTA_INVALID_PROTOCOL_DOWNGRADE",
        )


def _check_files(base: Base, actions: list[Action], mapping: ColumnMapping) -> None:
    added: dict[str, str | None] = {}
    removed: dict[str, str | None] = {}
    columns = set(mapping.physical_partition_columns)
    for action in actions:
        if isinstance(action, AddFile):
            check_partition_values(action, columns, base.table)
            _once("added", action, added, base)
        elif isinstance(action, RemoveFile):
            if action.data_change:
                check_removable(base)
            _once("removed", action, removed, base)
        elif isinstance(action, AddCDCFile) and action.partition_values.keys() != columns:
            raise InvalidArgumentError(
                f"the change data file {action.path} has values for the partition columns "
                f"{sorted(action.partition_values)}, but {base.table} is partitioned by {sorted(columns)}"
            )
    if removed:
        for path, vector in added.items():
            if path in removed and removed[path] == vector:
                raise InvalidArgumentError(f"one commit to {base.table} can't both add and remove the file {path}")


def check_partition_values(add: AddFile, columns: Set[str], table: str) -> None:
    """Raise InvalidArgumentError if a file has no values, or more values, for partition columns (physical names)."""
    if add.partition_values.keys() != columns:
        raise InvalidArgumentError(
            f"the file {add.path} has values for the partition columns {sorted(add.partition_values)}, but {table} is "
            f"partitioned by {sorted(columns)}"
        )


def check_removable(base: Base) -> None:
    """Raise AppendOnlyTableError if data can't be removed from the table."""
    if base.metadata is not None and _append_only(base.metadata):
        raise AppendOnlyTableError(
            f"{base.table} has delta.appendOnly=true: data can be added, but not changed or removed. To change "
            "data, unset the property first",
            condition="DELTA_CANNOT_MODIFY_APPEND_ONLY",
            parameters={"table_name": base.table, "config": "delta.appendOnly"},
        )


def _once(verb: str, action: AddFile | RemoveFile, seen: dict[str, str | None], base: Base) -> None:
    path, vector = action.key
    if path in seen:
        raise InvalidArgumentError(f"the file {path} is {verb} twice in one commit to {base.table}")
    seen[path] = vector


def _append_only(metadata: Metadata) -> bool:
    return metadata.configuration.get("delta.appendOnly", "false").strip().lower() == "true"
