"""What a table's protocol asks for: refused by name where it isn't built, and no further than it matters."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tablelog.core.protocol import features, schema
from tablelog.core.protocol.actions import Metadata, Protocol
from tablelog.core.protocol.codec import parse_commit
from tablelog.core.protocol.features import FEATURES, check_readable, check_writable
from tablelog.core.protocol.schema import LONG, TIMESTAMP_NTZ, VARIANT, ArrayType, StructField, StructType
from tablelog.core.table.feature_removal import REMOVALS
from tablelog.errors import CorruptLogError, InvalidArgumentError, UnsupportedFeatureError


def metadata(data_type: schema.DataType = LONG, field: dict[str, Any] | None = None, **configuration: str) -> Metadata:
    text = schema.to_json(StructType((StructField("a", data_type, True, field or {}),)))
    return Metadata("i", text, (), {f"delta.{key.replace('__', '.')}": value for key, value in configuration.items()})


def listed(*names: str) -> Protocol:
    readers = frozenset(name for name in names if name not in FEATURES or FEATURES[name].reader)
    return Protocol(3, 7, readers, frozenset(names))


def refused(
    check: Callable[[Protocol, Metadata | None, str], None], protocol: Protocol, m: Metadata | None
) -> set[str]:
    """The features that are named in the refusal; none: not refused."""
    caught: UnsupportedFeatureError | None = None
    try:
        check(protocol, m, "file:///t")
    except UnsupportedFeatureError as error:
        caught = error
    assert caught is None or all(text in str(caught) for text in ("file:///t", *caught.features))
    return set(caught.features) if caught else set()


V2 = metadata(checkpointPolicy="v2")
USES = {
    "appendOnly": metadata(appendOnly="true"),
    "invariants": metadata(field={"delta.invariants": "{}"}),
    "checkConstraints": metadata(constraints__c="a > 0"),
    "changeDataFeed": metadata(enableChangeDataFeed="true"),
    "generatedColumns": metadata(field={"delta.generationExpression": "b"}),
    "columnMapping": metadata(columnMapping__mode="name"),
    "identityColumns": metadata(field={"delta.identity.start": 1}),
    "allowColumnDefaults": metadata(field={"CURRENT_DEFAULT": "1"}),
    "timestampNtz": metadata(ArrayType(TIMESTAMP_NTZ)),
    "deletionVectors": metadata(enableDeletionVectors="true"),
    "typeWidening": metadata(field={"delta.typeChanges": []}),
    "typeWidening-preview": metadata(field={"delta.typeChanges": []}),
    "variantType": metadata(VARIANT),
    "variantType-preview": metadata(VARIANT),
    "variantShredding": metadata(VARIANT),
    "variantShredding-preview": metadata(VARIANT),
    "v2Checkpoint": V2,
    "coordinatedCommits-preview": metadata(**{"coordinatedCommits__commitCoordinator-preview": "dynamo"}),
    "redirectReaderWriter-preview": metadata(**{"redirectReaderWriter-preview": "{}"}),
    "redirectWriterOnly-preview": metadata(**{"redirectWriterOnly-preview": "{}"}),
    "rowTracking": metadata(enableRowTracking="true"),
    "inCommitTimestamp": metadata(enableInCommitTimestamps="true"),
    "icebergCompatV1": metadata(enableIcebergCompatV1="true"),
    "icebergCompatV2": metadata(enableIcebergCompatV2="true"),
    "icebergCompatV3": metadata(enableIcebergCompatV3="true"),
    "checkpointProtection": metadata(requireCheckpointProtectionBeforeVersion="3"),
}
UNREADABLE = {name for name, feature in FEATURES.items() if not feature.read}
WRITABLE = {name for name, feature in FEATURES.items() if feature.write}
ALWAYS_USED = {
    "geospatial", "geospatial-dev", "catalogManaged", "adaptiveMetadata-preview", "domainMetadata", "clustering",
    "materializePartitionColumns", "rowTracking",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(FEATURES))
def test_a_feature_in_use_is_refused_by_name_unless_it_is_built(name: str) -> None:
    used = USES.get(name, metadata())
    assert refused(check_readable, listed(name), used) == ({name} & UNREADABLE)
    assert refused(check_writable, listed(name), used) == ({name} - WRITABLE)


@pytest.mark.parametrize("name", sorted(FEATURES))
def test_a_feature_that_is_supported_and_not_in_use_is_no_hindrance(name: str) -> None:
    assert refused(check_readable, listed(name), metadata()) == ({name} & UNREADABLE & ALWAYS_USED)
    assert refused(check_writable, listed(name), metadata()) == ({name} & ALWAYS_USED - WRITABLE)


@pytest.mark.parametrize("name", sorted(FEATURES))
def test_without_metadata_every_feature_counts(name: str) -> None:
    assert refused(check_readable, listed(name), None) == ({name} & UNREADABLE)


def test_row_tracking_that_is_suspended_asks_nothing() -> None:
    assert refused(check_writable, listed("rowTracking"), metadata(rowTrackingSuspended="true")) == set()


def test_features_that_nobody_knows_are_refused_where_they_are_needed() -> None:
    writer_only = Protocol(1, 7, None, frozenset({"futureWriter"}))
    assert refused(check_readable, writer_only, metadata()) == set()
    assert refused(check_writable, writer_only, metadata()) == {"futureWriter"}
    both = Protocol(3, 7, frozenset({"future"}), frozenset({"future", "geospatial"}))
    assert refused(check_readable, both, metadata()) == {"future", "geospatial"}


@pytest.mark.parametrize(
    ("versions", "names"),
    [
        ((1, 1), set()),
        ((1, 2), {"appendOnly", "invariants"}),
        ((1, 3), {"appendOnly", "invariants", "checkConstraints"}),
        ((1, 4), {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"}),
        (
            (2, 5),
            {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping"},
        ),
        (
            (2, 6),
            {
                "appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping",
                "identityColumns",
            },
        ),
        ((1, 7), set()),
        ((3, 7), set()),
    ],
)  # fmt: skip
def test_versions_imply_features(versions: tuple[int, int], names: set[str]) -> None:
    assert features.implied(*versions) == names


def test_features_of_versions_are_refused_only_in_use() -> None:
    legacy = Protocol(2, 6)
    assert refused(check_readable, legacy, metadata()) == set()
    assert refused(check_writable, legacy, metadata()) == set()
    assert refused(check_writable, legacy, USES["identityColumns"]) == set()


def test_versions_that_are_too_high_are_refused() -> None:
    assert refused(check_readable, Protocol(4, 7), None) == {"reader version 4"}
    assert refused(check_readable, Protocol(1, 8), metadata()) == set()
    assert refused(check_writable, Protocol(1, 8), metadata()) == {"writer version 8"}


def test_the_golden_table_of_an_invalid_protocol_version(golden: Callable[[str], Path]) -> None:
    commit = next((golden("deltalog-invalid-protocol-version") / "delta" / "_delta_log").glob("*.json"))
    protocol = next(action for action in parse_commit(commit.read_bytes()) if isinstance(action, Protocol))
    assert refused(check_readable, protocol, None) == {"reader version 99"}


@pytest.mark.parametrize(
    ("protocol", "says"),
    [
        (Protocol(3, 7, None, frozenset()), "lacks readerFeatures"),
        (Protocol(3, 7, frozenset(), None), "lacks writerFeatures"),
        (Protocol(1, 7), "lacks writerFeatures"),
        (Protocol(3, 6, frozenset()), "needs writer version 7"),
        (Protocol(1, 2, frozenset()), "should not have readerFeatures"),
        (Protocol(1, 2, None, frozenset()), "should not have writerFeatures"),
        (Protocol(3, 7, frozenset({"timestampNtz"}), frozenset()), "timestampNtz is listed in readerFeatures"),
    ],
)
def test_a_protocol_that_contradicts_itself_is_a_typed_error(protocol: Protocol, says: str) -> None:
    for check in (check_readable, check_writable):
        with pytest.raises(CorruptLogError, match=says):
            check(protocol, metadata(), "file:///t")


NTZ = frozenset({"appendOnly", "invariants", "timestampNtz"})


@pytest.mark.parametrize(
    ("m", "conf", "protocol"),
    [
        (metadata(), {}, Protocol(1, 2)),
        (metadata(appendOnly="true"), {}, Protocol(1, 2)),
        (metadata(TIMESTAMP_NTZ), {}, Protocol(3, 7, frozenset({"timestampNtz"}), NTZ)),
        (metadata(minReaderVersion="1", minWriterVersion="4"), {}, Protocol(1, 4)),
        (metadata(minReaderVersion="2", minWriterVersion="5"), {}, Protocol(2, 5)),
        (metadata(minWriterVersion="3", constraints__c="a > 0"), {}, Protocol(1, 3)),
        (
            metadata(enableChangeDataFeed="true"), {},
            Protocol(1, 7, None, frozenset({"appendOnly", "invariants", "changeDataFeed"})),
        ),
        (
            metadata(columnMapping__mode="name"), {},
            Protocol(2, 7, None, frozenset({"appendOnly", "invariants", "columnMapping"})),
        ),
        (
            metadata(feature__clustering="supported"), {},
            Protocol(1, 7, None, frozenset({"appendOnly", "invariants", "clustering", "domainMetadata"})),
        ),
        (
            metadata(), {"spark.databricks.delta.properties.defaults.feature.vacuumProtocolCheck": "supported"},
            Protocol(3, 7, frozenset({"vacuumProtocolCheck"}), NTZ - {"timestampNtz"} | {"vacuumProtocolCheck"}),
        ),
        (metadata(), {"spark.databricks.delta.properties.defaults.minWriterVersion": "4"}, Protocol(1, 4)),
        (metadata(ignoreProtocolDefaults="true"), {"spark.databricks.delta.properties.defaults.minWriterVersion": "4"},
         Protocol(1, 1)),
        (
            V2, {},
            Protocol(3, 7, frozenset({"v2Checkpoint"}), NTZ - {"timestampNtz"} | {"v2Checkpoint"}),
        ),
    ],
)  # fmt: skip
def test_the_protocol_of_a_new_table_is_the_lowest_that_will_do(
    m: Metadata, conf: dict[str, str], protocol: Protocol
) -> None:
    assert features.protocol_for_new_table(m, conf) == protocol
    features.check_valid(protocol, "t")


def test_requests_for_features_are_checked() -> None:
    with pytest.raises(UnsupportedFeatureError, match="future"):
        features.protocol_for_new_table(metadata(feature__future="supported"))
    with pytest.raises(InvalidArgumentError, match="timestampntz"):
        features.protocol_for_new_table(metadata(feature__timestampntz="perhaps"))
    with pytest.raises(InvalidArgumentError, match="minReaderVersion"):
        features.protocol_for_new_table(metadata(minReaderVersion="9"))
    assert "timestampNtz" in features.supported(
        features.protocol_for_new_table(metadata(feature__timestampntz="Supported"))
    )


def test_new_metadata_raises_the_protocol_of_an_existing_table() -> None:
    def upgraded(protocol: Protocol, m: Metadata) -> Protocol | None:
        return features.required_upgrade(protocol, m, "t")

    assert upgraded(Protocol(1, 2), metadata(appendOnly="true")) is None
    assert upgraded(Protocol(1, 2), V2) == Protocol(
        3, 7, frozenset({"v2Checkpoint"}), frozenset({"appendOnly", "invariants", "v2Checkpoint"})
    )
    assert upgraded(Protocol(1, 1), metadata(appendOnly="true")) == Protocol(1, 7, None, frozenset({"appendOnly"}))
    with pytest.raises(UnsupportedFeatureError, match=r"delta\.feature\.timestampNtz"):
        upgraded(Protocol(1, 2), metadata(TIMESTAMP_NTZ))
    assert upgraded(listed("timestampNtz"), metadata(TIMESTAMP_NTZ)) is None
    assert upgraded(listed("variantType-preview"), metadata(VARIANT)) is None
    with pytest.raises(UnsupportedFeatureError, match="future"):
        upgraded(Protocol(1, 7, None, frozenset({"future"})), metadata(appendOnly="true"))


def test_protocols_of_the_corpora(golden: Callable[[str], Path], dat: Callable[[str], Path]) -> None:
    """Which tables can't be read or written is known, by name and feature."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for root in (golden(""), dat("")):
        for log in sorted(root.rglob("_delta_log")):
            protocol: Protocol | None = None
            m: Metadata | None = None
            for commit in sorted(log.glob("*.json")):
                for action in parse_commit(commit.read_bytes()):
                    protocol = action if isinstance(action, Protocol) else protocol
                    m = action if isinstance(action, Metadata) else m
            if protocol is None or m is None:
                continue
            pair = refused(check_readable, protocol, m), refused(check_writable, protocol, m)
            if any(pair):
                found[log.parent.parent.name] = pair
    assert found == {
        "deltalog-invalid-protocol-version": ({"reader version 99"}, {"reader version 99"}),
    }


def test_the_guide_tells_of_every_feature() -> None:
    guide = Path(__file__).resolve().parents[3] / "docs" / "guide" / "features.md"
    told: dict[str, tuple[bool, bool, bool]] = {}
    for line in guide.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[1] in ("yes", "no"):
            told[cells[0]] = cells[1] == "yes", cells[2] == "yes", bool(cells[3])
    assert told == {f.name: (f.read, f.write, f.name in REMOVALS) for f in FEATURES.values()}


def test_what_is_refused_for_good() -> None:
    assert {name for name, feature in FEATURES.items() if not feature.write} == {
        "adaptiveMetadata-preview", "catalogManaged", "coordinatedCommits-preview", "geospatial", "geospatial-dev",
        "icebergCompatV3", "redirectReaderWriter-preview", "redirectWriterOnly-preview",
    }  # fmt: skip
    assert {name for name, feature in FEATURES.items() if not feature.write} >= UNREADABLE
