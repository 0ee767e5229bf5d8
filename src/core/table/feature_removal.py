"""Which features can be dropped from a table, and whether anything in the table still needs them.

Dropping a feature has two parts: a command removes its traces from the newest version, then the feature is removed from
the protocol. Older versions still need a reader feature: see `dml.alter.drop_feature`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ...errors import InvalidArgumentError, UnsupportedFeatureError
from ..protocol import column_mapping, features, in_commit_timestamps, properties, row_tracking
from ..protocol.actions import Action, AddFile, CheckpointMetadata, Metadata, Protocol, RemoveFile, Sidecar
from ..protocol.schema import TYPE_CHANGES_KEY, all_fields, parse_schema
from .snapshot import Snapshot

PROTECTION: Final = "checkpointProtection"
PROTECTED_BELOW: Final = "delta.requireCheckpointProtectionBeforeVersion"


@dataclass(frozen=True)
class Removal:
    """The rules for dropping a feature.

    Args:
        clean: Whether nothing in a version needs the feature.
        uses: Whether an action of an older version uses the feature; `None` if older versions don't matter.
        keys: Properties to remove together with the feature.
    """

    clean: Callable[[Snapshot], bool]
    uses: Callable[[Action], bool] | None = None
    keys: tuple[str, ...] = ()

    @property
    def needs_history(self) -> bool:
        """Whether readers of older versions need the feature, so that these must be protected or truncated."""
        return self.uses is not None


def _on(metadata: Metadata, name: str) -> bool:
    return bool(properties.get(metadata.configuration, name))


def _without_vectors(snapshot: Snapshot) -> bool:
    if _on(snapshot.metadata, "enableDeletionVectors"):
        return False
    column = snapshot.files.column("deletionVector")
    return bool(column.null_count == len(column))


def _vector(action: Action) -> bool:
    if isinstance(action, AddFile | RemoveFile):
        return action.deletion_vector is not None
    return isinstance(action, Metadata) and _on(action, "enableDeletionVectors")


def _unmapped(metadata: Metadata) -> bool:
    fields = [f for _, f in all_fields(parse_schema(metadata.schema_string))]
    marked = any(key.startswith("delta.columnMapping.") for f in fields for key in f.metadata)
    return column_mapping.mode_of(metadata) == "none" and not marked


def _v2(action: Action) -> bool:
    if isinstance(action, Metadata):
        return _v2_policy(action)
    return isinstance(action, CheckpointMetadata | Sidecar)


def _v2_policy(metadata: Metadata) -> bool:
    return bool(properties.get(metadata.configuration, "checkpointPolicy") != "classic")


def _untimed(snapshot: Snapshot) -> bool:
    configuration = snapshot.metadata.configuration
    return not _on(snapshot.metadata, "enableInCommitTimestamps") and not any(
        key in configuration for key in in_commit_timestamps.PROVENANCE
    )


def _untracked(snapshot: Snapshot) -> bool:
    if _on(snapshot.metadata, "enableRowTracking") or not _on(snapshot.metadata, "rowTrackingSuspended"):
        return False
    columns = [snapshot.files.column(name) for name in ("baseRowId", "defaultRowCommitVersion")]
    return all(column.null_count == len(column) for column in columns)


def type_changed(metadata: Metadata) -> bool:
    """Whether a column's type was widened: older files may have the narrower type."""
    return any(TYPE_CHANGES_KEY in f.metadata for _, f in all_fields(parse_schema(metadata.schema_string)))


def _unwidened(snapshot: Snapshot) -> bool:
    return not _on(snapshot.metadata, "enableTypeWidening") and not type_changed(snapshot.metadata)


def _widened(action: Action) -> bool:
    return isinstance(action, Metadata) and type_changed(action)


def constraints(metadata: Metadata) -> list[str]:
    """The names of the table's CHECK constraints."""
    prefix = properties.CONSTRAINT_PREFIX
    return sorted(key[len(prefix) :] for key in metadata.configuration if key.lower().startswith(prefix))


def _always(_: object) -> bool:
    return True


def _never(_: object) -> bool:
    return False


_WIDENING = Removal(_unwidened, _widened)

REMOVALS: Final[Mapping[str, Removal]] = {
    "checkConstraints": Removal(lambda snapshot: not constraints(snapshot.metadata)),
    "columnMapping": Removal(
        lambda snapshot: _unmapped(snapshot.metadata),
        lambda action: isinstance(action, Metadata) and column_mapping.mode_of(action) != "none",
        (column_mapping.MAX_ID,),
    ),
    "deletionVectors": Removal(_without_vectors, _vector),
    "domainMetadata": Removal(lambda snapshot: not snapshot.domain_metadata),
    "inCommitTimestamp": Removal(_untimed),
    "materializePartitionColumns": Removal(_always, keys=("delta.enableMaterializePartitionColumnsFeature",)),
    "rowTracking": Removal(_untracked, keys=(row_tracking.ENABLED, row_tracking.SUSPENDED)),
    "typeWidening": _WIDENING,
    "typeWidening-preview": _WIDENING,
    "v2Checkpoint": Removal(lambda snapshot: not _v2_policy(snapshot.metadata), _v2),
    "vacuumProtocolCheck": Removal(_always, _never),
    PROTECTION: Removal(lambda snapshot: PROTECTED_BELOW not in snapshot.metadata.configuration),
}


@dataclass(frozen=True)
class Plan:
    """A checked request to drop a feature: its name in canonical case, and the rules for it."""

    name: str
    removal: Removal
    truncates: bool


def plan(snapshot: Snapshot, name: str, *, truncates: bool) -> Plan:
    """Check that the feature can be dropped, and return how.

    Raises:
        InvalidArgumentError: The table doesn't have the feature, another feature needs it, or the history must or
            can't be truncated.
        UnsupportedFeatureError: The feature can't be dropped.
    """
    table, supported = snapshot.table, features.supported(snapshot.protocol)
    known = {feature.lower(): feature for feature in features.FEATURES}.get(name.lower())
    if known not in supported:
        hint = (
            "; it is a property: unset it instead"
            if name.lower().removeprefix("delta.") in properties.PROPERTIES
            else ""
        )
        raise InvalidArgumentError(
            f"{table} doesn't have the feature {name}, so it can't be dropped{hint}",
            condition="DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY"
            if hint
            else "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"
            if known
            else "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
            parameters={"feature": name},
        )
    removal = REMOVALS.get(known)
    if removal is None:
        raise UnsupportedFeatureError(
            f"the feature {known} of {table} can't be dropped: no engine supports dropping it",
            (known,),
            condition="DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE",
            parameters={"feature": known},
        )
    dependents = sorted(f for f in supported if f in features.FEATURES and known in features.FEATURES[f].requires)
    if dependents:
        raise InvalidArgumentError(
            f"the feature {known} of {table} can't be dropped, {', '.join(dependents)} needs it: drop that first",
            condition="DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
            parameters={"feature": known, "dependentFeatures": ", ".join(dependents)},
        )
    if truncates and not removal.needs_history and known != PROTECTION:
        raise InvalidArgumentError(
            f"dropping {known} from {table} doesn't need a truncated history: leave out truncateHistory",
            condition="DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED",
        )
    if known == PROTECTION and not truncates:
        raise InvalidArgumentError(
            f"{PROTECTION} protects the history of {table} and can only be dropped together with it: set "
            "truncateHistory=True",
            condition="DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION",
        )
    return Plan(known, removal, truncates)


def lowered(protocol: Protocol, name: str, *, protects: bool) -> Protocol:
    """The lowest protocol without the feature; `protects`: with the feature that protects old checkpoints."""
    kept = features.supported(protocol) - {name}
    return features.protocol_of(kept | {PROTECTION} if protects else kept)
