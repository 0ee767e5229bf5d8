"""Protocol versions and table features: what a table needs, what tablelog supports (PROTOCOL.md, "Table Features").

An unsupported feature matters only if it is in use: if the metadata shows that a listed feature isn't used, readers and
writers don't need to implement it. A feature whose use can't be determined counts as used.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from ...errors import CorruptLogError, InvalidArgumentError, UnsupportedFeatureError
from ...settings.declarations import PROPERTY_DEFAULTS
from . import properties, type_widening
from .actions import Metadata, Protocol
from .schema import (
    DEFAULT_KEY,
    GENERATION_KEY,
    IDENTITY_PREFIX,
    INVARIANTS_KEY,
    TIMESTAMP_NTZ,
    TYPE_CHANGES_KEY,
    VARIANT,
    DataType,
    all_fields,
    contains,
    parse_schema,
)

MAX_READER_VERSION: Final = 3
MAX_WRITER_VERSION: Final = 7


@dataclass(frozen=True, slots=True)
class Feature:
    """One table feature.

    Args:
        reader: Readers need it too.
        legacy: The (reader, writer) versions that imply it.
        requires: Features that it requires.
        active: Whether a table's metadata uses it (`None`: unknown, so it counts as used).
        read: Whether tablelog can read tables that use it.
        write: Whether tablelog can write tables that use it.
        by_metadata: Metadata that uses it requires the feature in the protocol.
        automatic: Such metadata adds it to an existing table.
    """

    name: str
    reader: bool = False
    legacy: tuple[int, int] | None = None
    requires: tuple[str, ...] = ()
    active: Callable[[Metadata], bool] | None = None
    read: bool = True
    write: bool = False
    by_metadata: bool = False
    automatic: bool = False


def _flag(name: str) -> Callable[[Metadata], bool]:
    return lambda metadata: bool(properties.get(metadata.configuration, name))


def _set(name: str) -> Callable[[Metadata], bool]:
    return lambda metadata: f"delta.{name}" in metadata.configuration


def _field_metadata(prefix: str) -> Callable[[Metadata], bool]:
    def active(metadata: Metadata) -> bool:
        schema = parse_schema(metadata.schema_string)
        return any(key.startswith(prefix) for _, f in all_fields(schema) for key in f.metadata)

    return active


def _type(wanted: DataType) -> Callable[[Metadata], bool]:
    return lambda metadata: contains(parse_schema(metadata.schema_string), lambda t: t == wanted)


def _constraints(metadata: Metadata) -> bool:
    return any(key.lower().startswith(properties.CONSTRAINT_PREFIX) for key in metadata.configuration)


def _mapped(metadata: Metadata) -> bool:
    return bool(properties.get(metadata.configuration, "columnMapping.mode") != "none")


def _v2_policy(metadata: Metadata) -> bool:
    return bool(properties.get(metadata.configuration, "checkpointPolicy") != "classic")


def _row_tracking(metadata: Metadata) -> bool:
    enabled = properties.get(metadata.configuration, "enableRowTracking")
    return bool(enabled or not properties.get(metadata.configuration, "rowTrackingSuspended"))


def _protected(metadata: Metadata) -> bool:
    return int(properties.get(metadata.configuration, "requireCheckpointProtectionBeforeVersion")) > 0


_ALL = (
    Feature("appendOnly", legacy=(1, 2), active=_flag("appendOnly"), write=True, by_metadata=True, automatic=True),
    Feature(
        "invariants", legacy=(1, 2), active=_field_metadata(INVARIANTS_KEY), write=True,
        by_metadata=True, automatic=True,
    ),
    Feature(
        "checkConstraints", legacy=(1, 3), active=_constraints, write=True, by_metadata=True, automatic=True
    ),
    Feature(
        "changeDataFeed", legacy=(1, 4), active=_flag("enableChangeDataFeed"), write=True,
        by_metadata=True, automatic=True,
    ),
    Feature(
        "generatedColumns", legacy=(1, 4), active=_field_metadata(GENERATION_KEY), write=True,
        by_metadata=True, automatic=True,
    ),
    Feature("columnMapping", True, legacy=(2, 5), active=_mapped, write=True, by_metadata=True, automatic=True),
    Feature(
        "identityColumns", legacy=(1, 6), active=_field_metadata(IDENTITY_PREFIX), write=True,
        by_metadata=True, automatic=True,
    ),
    Feature("allowColumnDefaults", active=_field_metadata(DEFAULT_KEY), write=True),
    Feature("timestampNtz", True, active=_type(TIMESTAMP_NTZ), write=True, by_metadata=True),
    # The actions, not the metadata, show whether files have deletion vectors: the property only allows new ones.
    Feature("deletionVectors", True, write=True, by_metadata=True, automatic=True),
    Feature(
        "typeWidening", True, active=_field_metadata(TYPE_CHANGES_KEY), write=True, by_metadata=True, automatic=True
    ),
    Feature("typeWidening-preview", True, active=_field_metadata(TYPE_CHANGES_KEY), write=True),
    Feature("variantType", True, active=_type(VARIANT), write=True, by_metadata=True, automatic=True),
    Feature("variantType-preview", True, active=_type(VARIANT), write=True),
    Feature(
        "variantShredding", True, requires=("variantType",), active=_type(VARIANT), write=True,
        by_metadata=True, automatic=True,
    ),
    Feature("variantShredding-preview", True, active=_type(VARIANT), write=True),
    Feature("geospatial", True, read=False),
    Feature("geospatial-dev", True, read=False),
    # Classic checkpoints stay valid on such a table; the policy requires V2 checkpoints.
    Feature("v2Checkpoint", True, active=_v2_policy, write=True, by_metadata=True, automatic=True),
    Feature("vacuumProtocolCheck", True, write=True),
    Feature("catalogManaged", True, read=False),
    Feature("coordinatedCommits-preview", active=_set("coordinatedCommits.commitCoordinator-preview")),
    Feature("redirectReaderWriter-preview", True, active=_set("redirectReaderWriter-preview"), read=False),
    Feature("redirectWriterOnly-preview", active=_set("redirectWriterOnly-preview")),
    Feature("adaptiveMetadata-preview", True, read=False),
    Feature("domainMetadata", write=True),
    Feature("clustering", requires=("domainMetadata",), write=True),
    Feature(
        "rowTracking", requires=("domainMetadata",), active=_row_tracking, write=True,
        by_metadata=True, automatic=True,
    ),
    Feature(
        "inCommitTimestamp", active=_flag("enableInCommitTimestamps"), write=True, by_metadata=True, automatic=True
    ),
    Feature(
        "icebergCompatV1", requires=("columnMapping",), active=_flag("enableIcebergCompatV1"), write=True,
        by_metadata=True, automatic=True,
    ),
    Feature(
        "icebergCompatV2", requires=("columnMapping",), active=_flag("enableIcebergCompatV2"), write=True,
        by_metadata=True, automatic=True,
    ),
    Feature(
        "icebergCompatV3", requires=("columnMapping", "rowTracking"), active=_flag("enableIcebergCompatV3"),
        by_metadata=True, automatic=True,
    ),
    Feature("checkpointProtection", active=_protected, write=True),
    Feature(
        "materializePartitionColumns", active=_flag("enableMaterializePartitionColumnsFeature"), write=True,
        by_metadata=True, automatic=True,
    ),
)  # fmt: skip

BINDS_FILES: Final = frozenset({"materializePartitionColumns"})
"""Features that decide how files are written as soon as the protocol lists them, whatever the metadata says."""

FEATURES: Final[Mapping[str, Feature]] = {feature.name: feature for feature in _ALL}
_BY_LOWER_NAME = {feature.name.lower(): feature for feature in _ALL}
_LEGACY = tuple(feature for feature in _ALL if feature.legacy)


# Features that a property enables for writers, although `Feature.active` is only about use by readers.
_ENABLED_BY: Mapping[str, Callable[[Metadata], bool]] = {
    "deletionVectors": _flag("enableDeletionVectors"),
    "typeWidening": _flag("enableTypeWidening"),
    "rowTracking": _flag("enableRowTracking"),
    "variantShredding": _flag("enableVariantShredding"),
}


def implied(reader_version: int, writer_version: int) -> frozenset[str]:
    """The features that protocol versions without feature lists imply (PROTOCOL.md, "Writer Version Requirements")."""
    if writer_version >= MAX_WRITER_VERSION:
        return frozenset()
    return frozenset(
        f.name for f in _LEGACY if f.legacy and f.legacy[0] <= reader_version and f.legacy[1] <= writer_version
    )


def supported(protocol: Protocol) -> frozenset[str]:
    """Every feature that the table supports, listed or implied."""
    listed = (protocol.reader_features or frozenset()) | (protocol.writer_features or frozenset())
    return listed | implied(protocol.min_reader_version, protocol.min_writer_version)


def check_valid(protocol: Protocol, table: str) -> None:
    """Raise `CorruptLogError` for a protocol that contradicts itself (PROTOCOL.md, "Table Features")."""
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    if reader > MAX_READER_VERSION or writer > MAX_WRITER_VERSION:
        return  # newer versions may have other rules; the version itself is refused elsewhere
    if reader >= 3 and writer < 7:
        raise CorruptLogError(f"the protocol of {table} is invalid: reader version {reader} needs writer version 7")
    for name, version, least, features in (
        ("reader", reader, 3, protocol.reader_features),
        ("writer", writer, 7, protocol.writer_features),
    ):
        if (version >= least) != (features is not None):
            wrong = "lacks" if features is None else "should not have"
            raise CorruptLogError(
                f"the protocol of {table} is invalid: {name} version {version} {wrong} {name}Features"
            )
    stray = (protocol.reader_features or frozenset()) - (protocol.writer_features or frozenset())
    if stray:
        raise CorruptLogError(
            f"the protocol of {table} is invalid: {_names(stray)} is listed in readerFeatures but not in writerFeatures"
        )


def _names(features: Iterable[str]) -> str:
    return ", ".join(sorted(features))


def _refuse(table: str, doing: str, features: Iterable[str]) -> NoReturn:
    names = tuple(sorted(features))
    raise UnsupportedFeatureError(
        f"{table} can't be {doing}: it uses {', '.join(names)}, which this version of tablelog doesn't support. "
        f"Upgrade tablelog, use an engine that supports it, or remove it from the table with such an engine "
        "(ALTER TABLE ... DROP FEATURE).",
        names,
        condition="DELTA_UNSUPPORTED_FEATURES_FOR_READ" if doing == "read" else "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
        parameters={"tableNameOrPath": table, "unsupported": ", ".join(names)},
    )


# The last pair that passed the check: every refresh and every commit checks the same two objects again.
_READABLE: Final[list[tuple[Protocol, Metadata | None]]] = []
_WRITABLE: Final[list[tuple[Protocol, Metadata | None]]] = []


def _passed(last: list[tuple[Protocol, Metadata | None]], protocol: Protocol, metadata: Metadata | None) -> bool:
    for known_protocol, known_metadata in last:
        return known_protocol is protocol and known_metadata is metadata
    return False


def check_readable(protocol: Protocol, metadata: Metadata | None, table: str) -> None:
    """Raise `UnsupportedFeatureError`, which names the features, if tablelog can't read the table.

    `metadata` shows which features are in use; without it all of them count. `CorruptLogError` for a protocol that
    contradicts itself.
    """
    if _passed(_READABLE, protocol, metadata):
        return
    if protocol.min_reader_version > MAX_READER_VERSION:
        _refuse(table, "read", [f"reader version {protocol.min_reader_version}"])
    check_valid(protocol, table)
    listed = (protocol.reader_features or frozenset()) | {
        # With the versions (2, 7), column mapping is listed only in writerFeatures; this is accepted for all features.
        name
        for name in supported(protocol)
        if name in FEATURES and FEATURES[name].reader
    }
    missing = [name for name in listed if not _can(name, metadata, writing=False)]
    if missing:
        _refuse(table, "read", missing)
    if metadata is not None and any(name.startswith("typeWidening") for name in listed):
        type_widening.check(parse_schema(metadata.schema_string), table)
    _READABLE[:] = [(protocol, metadata)]


def check_writable(protocol: Protocol, metadata: Metadata | None, table: str) -> None:
    """Raise `UnsupportedFeatureError`, which names the features, if tablelog can't read or write the table.

    `metadata` as in `check_readable`.
    """
    if _passed(_WRITABLE, protocol, metadata):
        return
    if protocol.min_writer_version > MAX_WRITER_VERSION:
        _refuse(table, "written", [f"writer version {protocol.min_writer_version}"])
    check_readable(protocol, metadata, table)
    missing = [name for name in supported(protocol) if not _can(name, metadata, writing=True)]
    if missing:
        _refuse(table, "written", missing)
    _WRITABLE[:] = [(protocol, metadata)]


def _can(name: str, metadata: Metadata | None, *, writing: bool) -> bool:
    feature = FEATURES.get(name)
    if feature is None:
        return False
    if feature.write if writing else feature.read:
        return True
    return feature.active is not None and metadata is not None and not feature.active(metadata)


# --- the protocol that metadata needs -----------------------------------------------------------------------------


def _closure(features: Iterable[str]) -> frozenset[str]:
    closure = set(features)
    pending = list(closure)
    while pending:
        for needed in FEATURES[pending.pop()].requires:
            if needed not in closure:
                closure.add(needed)
                pending.append(needed)
    return frozenset(closure)


def enabled_by(metadata: Metadata) -> frozenset[str]:
    """The features that a table with this metadata must have in its protocol."""
    return frozenset(
        f.name for f in _ALL if f.by_metadata and (_ENABLED_BY.get(f.name) or f.active or (lambda _: True))(metadata)
    )


def protocol_of(features: Iterable[str]) -> Protocol:
    """The lowest protocol that supports exactly these (known) features and those that they require.

    Without feature lists if versions imply exactly these features, else with lists, as Delta normalises a protocol.
    """
    closure = _closure(features)
    legacy = [FEATURES[name].legacy for name in closure]
    if all(legacy):
        reader = max((pair[0] for pair in legacy if pair), default=1)
        writer = max((pair[1] for pair in legacy if pair), default=1)
        if implied(reader, writer) == closure:
            return Protocol(reader, writer)
    reading = frozenset(name for name in closure if FEATURES[name].reader)
    if all(FEATURES[name].legacy for name in reading):
        return Protocol(2 if reading else 1, 7, None, closure)
    return Protocol(3, 7, reading, closure)


def requested(configuration: Mapping[str, str]) -> frozenset[str]:
    """The features in `delta.feature.<name> = supported`; `UnsupportedFeatureError` for an unknown name."""
    names: set[str] = set()
    for key, value in configuration.items():
        if not key.lower().startswith(properties.FEATURE_PREFIX):
            continue
        name = key[len(properties.FEATURE_PREFIX) :]
        feature = _BY_LOWER_NAME.get(name.lower())
        if feature is None:
            raise UnsupportedFeatureError(
                f"{key}: tablelog doesn't know a table feature {name!r}. Correct the name, or upgrade tablelog",
                (name,),
                condition="DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
                parameters={"configs": key},
            )
        if value.lower() not in ("supported", "enabled"):
            raise InvalidArgumentError(
                f"{key} is {value!r}: it must be 'supported'",
                condition="DELTA_UNSUPPORTED_FEATURE_STATUS",
                parameters={"feature": name, "status": value},
            )
        names.add(feature.name)
    return frozenset(names)


def protocol_for_new_table(metadata: Metadata, conf: Mapping[str, str] | None = None) -> Protocol:
    """The protocol of a new table with this metadata: (1, 2) unless it needs or requests more.

    `metadata.configuration` may request more with `delta.minReaderVersion`, `delta.minWriterVersion` and
    `delta.feature.*` (these aren't stored: `properties.without_protocol_properties`); so may the session's `conf`, with
    the prefix `spark.databricks.delta.properties.defaults.`.
    """
    conf = conf or {}
    configuration = metadata.configuration
    prefix = PROPERTY_DEFAULTS.prefix
    ignore = configuration.get("delta.ignoreProtocolDefaults", conf.get(f"{prefix}ignoreProtocolDefaults", "false"))
    requests: dict[str, str] = {"delta.minReaderVersion": "1", "delta.minWriterVersion": "2"}
    if properties.PROPERTIES["ignoreprotocoldefaults"].check(ignore):
        requests["delta.minWriterVersion"] = "1"
    else:
        for key, value in conf.items():
            name = f"delta.{key.removeprefix(prefix)}"
            if key.startswith(prefix) and properties.is_protocol_property(name):
                requests[name] = value
    requests |= {key: value for key, value in configuration.items() if properties.is_protocol_property(key)}
    reader, writer = properties.get(requests, "minReaderVersion"), properties.get(requests, "minWriterVersion")
    return protocol_of(
        requested(requests) | enabled_by(metadata) | implied(reader if writer >= 7 else min(reader, 2), writer)
    )


def required_upgrade(protocol: Protocol, metadata: Metadata, table: str) -> Protocol | None:
    """The protocol that an existing table needs for new metadata; `None` if the current one is enough.

    `UnsupportedFeatureError` if, as in Delta, the user must add the feature first (`delta.feature.<name>`).
    """
    current = supported(protocol)
    missing = _closure(enabled_by(metadata)) - current
    # A preview of the feature is enough.
    missing = frozenset(name for name in missing if f"{name}-preview" not in current)
    if not missing:
        return None
    manual = sorted(name for name in missing if FEATURES[name].by_metadata and not FEATURES[name].automatic)
    if manual:
        raise UnsupportedFeatureError(
            f"{table} doesn't support {', '.join(manual)}, which the new metadata needs. Add it first: "
            + ", ".join(f"set the table property delta.feature.{name} to 'supported'" for name in manual),
            tuple(manual),
            condition="DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT",
            parameters={"unsupportedFeatures": ", ".join(manual)},
        )
    unknown = current - FEATURES.keys()
    if unknown:
        _refuse(table, "written", unknown)
    return protocol_of(current | missing)
