"""In-commit timestamps: the time of a commit, in the commit itself (PROTOCOL.md, "In-Commit Timestamps")."""

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
    """Whether each commit of the table must have an in-commit timestamp."""
    return FEATURE in features.supported(protocol) and bool(
        properties.get(metadata.configuration, "enableInCommitTimestamps")
    )


def later(now_ms: int, before_ms: int | None) -> int:
    """The timestamp of a commit made now, after one with `before_ms`: always later than that."""
    return now_ms if before_ms is None else max(now_ms, before_ms + 1)


def with_provenance(
    metadata: Metadata, before: Metadata | None, *, began: bool, version: int, timestamp_ms: int
) -> Metadata:
    """New metadata with the version and time since when the table has in-commit timestamps; unchanged if always.

    `before` is the current metadata; `began`: this commit, `version`, enables them. The values of the current metadata
    are kept; those that a command copies from elsewhere (a replace, a clone) are ignored.
    """
    configuration = {key: value for key, value in metadata.configuration.items() if key not in PROVENANCE}
    if not began:
        current = {} if before is None else before.configuration
        configuration |= {key: current[key] for key in PROVENANCE if key in current}
    elif version > 0:
        configuration |= {SINCE_VERSION: str(version), SINCE_TIMESTAMP: str(timestamp_ms)}
    return metadata if configuration == metadata.configuration else replace(metadata, configuration=configuration)
