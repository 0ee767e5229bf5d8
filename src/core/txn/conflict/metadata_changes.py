"""The changes of metadata that don't conflict with a concurrent transaction which was prepared before them.

A transaction that writes files under the old metadata may still be committed after these changes, because the files
are valid under the new metadata too. The list is Delta's. Every other change is a conflict: the files may break a new
constraint, lack a new column or miss a new default.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from ...protocol import column_mapping, in_commit_timestamps, properties, row_tracking
from ...protocol.actions import CommitInfo, Metadata, Protocol
from ...protocol.features import supported
from ...protocol.schema import DataType, StructField, parse_schema

IDENTITY_ONLY_TAG: Final = "delta.identity.schemaUpdate"
TRACKING_ONLY_TAG: Final = "rowTrackingEnablementOnly"
_HIGH_WATER_MARK = "delta.identity.highWaterMark"
_DELETION_VECTORS = "delta.enableDeletionVectors"
_CHECKPOINT_POLICY = "delta.checkpointPolicy"


def identity_only(old: Metadata, new: Metadata) -> bool:
    """Whether only the high-water marks of identity columns changed."""
    if old.schema_string == new.schema_string or replace(old, schema_string=new.schema_string) != new:
        return False
    return _without(old, _is_mark) == _without(new, _is_mark)


def enables_tracking_only(old: Metadata, new: Metadata) -> bool:
    """Whether the only change is that row tracking was enabled, with the columns that it needs."""
    if replace(old, configuration=new.configuration) != new:
        return False
    before, after = old.configuration, new.configuration
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    enabled = str(after.get(row_tracking.ENABLED)).lower() == "true"
    return enabled and row_tracking.ENABLED in changed <= {row_tracking.ENABLED, *row_tracking.COLUMN_KEYS}


def says_identity_only(info: CommitInfo | None) -> bool:
    """Whether the commit has the tag of an `identity_only` change."""
    return info is not None and str((info.tags or {}).get(IDENTITY_ONLY_TAG)).lower() == "true"


def may_pass(current: Metadata, winning: Metadata, protocol: Protocol) -> bool:
    """Whether a commit prepared under `current` may follow a commit of `winning`; `protocol` is the one in force."""
    same = replace(winning, configuration=current.configuration, schema_string=current.schema_string)
    if same != current:
        return False
    before, after = current.configuration, winning.configuration
    if before.keys() - after.keys():
        return False
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    features = supported(protocol)
    if not all(_allowed(key, value, before, after, features) for key, value in changed.items()):
        return False
    if current.schema_string == winning.schema_string:
        return True
    mapped = column_mapping.mode_of(current) == "none" and column_mapping.mode_of(winning) == "name"
    return mapped and _without(current, _is_mapping) == _without(winning, _is_mapping)


def _allowed(
    key: str, value: str, before: Mapping[str, str], after: Mapping[str, str], features: frozenset[str]
) -> bool:
    is_true = value.lower() == "true"
    tracked = bool(properties.get(after, "enableRowTracking")) and row_tracking.FEATURE in features
    rules: dict[str, Callable[[], bool]] = {
        row_tracking.ENABLED: lambda: tracked,
        row_tracking.ROW_ID_COLUMN: lambda: tracked,
        row_tracking.ROW_COMMIT_VERSION_COLUMN: lambda: tracked,
        column_mapping.MODE: lambda: (
            properties.get(before, "columnMapping.mode") == "none" and value == "name" and "columnMapping" in features
        ),
        column_mapping.MAX_ID: lambda: True,
        _DELETION_VECTORS: lambda: is_true and "deletionVectors" in features,
        _CHECKPOINT_POLICY: lambda: value == "v2" and "v2Checkpoint" in features,
        in_commit_timestamps.ENABLED: lambda: is_true and in_commit_timestamps.FEATURE in features,
        in_commit_timestamps.SINCE_VERSION: lambda: key not in before,
        in_commit_timestamps.SINCE_TIMESTAMP: lambda: key not in before,
    }
    return key in rules and rules[key]()


def _is_mark(key: str) -> bool:
    return key == _HIGH_WATER_MARK


def _is_mapping(key: str) -> bool:
    return key.startswith("delta.columnMapping.")


def _without(metadata: Metadata, drop: Callable[[str], bool]) -> DataType:
    def change(field: StructField, _: object) -> StructField:
        return replace(field, metadata={key: value for key, value in field.metadata.items() if not drop(key)})

    return column_mapping.transformed(parse_schema(metadata.schema_string), change)
