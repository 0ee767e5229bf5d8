"""In-commit timestamps: when a commit was made, as it says itself (PROTOCOL.md, "In-Commit Timestamps")."""

from dataclasses import replace
from typing import Final

from . import features, properties
from .actions import Metadata, Protocol

FEATURE: Final = "inCommitTimestamp"
ENABLED: Final = "delta.enableInCommitTimestamps"
SINCE_VERSION: Final = "delta.inCommitTimestampEnablementVersion"
SINCE_TIMESTAMP: Final = "delta.inCommitTimestampEnablementTimestamp"
PROVENANCE: Final = (SINCE_TIMESTAMP, SINCE_VERSION)


def enabled(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether each commit of the table has to bear its time."""
    return FEATURE in features.supported(protocol) and bool(
        properties.get(metadata.configuration, "enableInCommitTimestamps")
    )


def later(now_ms: int, before_ms: int | None) -> int:
    """The time of a commit that is tried now, on top of one of `before_ms`: always later, whatever the clocks say."""
    return now_ms if before_ms is None else max(now_ms, before_ms + 1)


def with_provenance(
    metadata: Metadata, before: Metadata | None, *, began: bool, version: int, timestamp_ms: int
) -> Metadata:
    """New metadata that says since when the table has in-commit timestamps; nothing where it always had.

    `before` is the metadata that it replaces, `began` says that the commit, `version`, enables them. A command that
    brings metadata from elsewhere (a replace, a clone) neither loses nor brings in what is said of this table.
    """
    configuration = {key: value for key, value in metadata.configuration.items() if key not in PROVENANCE}
    if not began:
        known = {} if before is None else before.configuration
        configuration |= {key: known[key] for key in PROVENANCE if key in known}
    elif version > 0:
        configuration |= {SINCE_VERSION: str(version), SINCE_TIMESTAMP: str(timestamp_ms)}
    return metadata if configuration == metadata.configuration else replace(metadata, configuration=configuration)
