"""The parts of a commit that depend on its version: in-commit timestamps and their provenance, and row ids.

They are unknown before an attempt, and they all change when another commit came first. So what is staged doesn't
contain them; each attempt at a new version begins with `stamped`, a pure function of the parent version.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..protocol import in_commit_timestamps, row_tracking
from ..protocol.actions import Action, CommitInfo, DomainMetadata, Metadata, Protocol
from .conflict import Staged, Winner


@dataclass(frozen=True)
class ParentVersion:
    """The version before a commit, as far as the commit depends on it; version -1 where there is no table yet.

    `timestamp` returns the time of the version in milliseconds and may cost a request. `row_ids` is the high-water
    mark of the row ids; -1 where there are none.
    """

    version: int = -1
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    timestamp: Callable[[], int] | None = None
    row_ids: int = -1

    def after(self, winner: Winner) -> "ParentVersion":
        """The parent version once `winner` was committed."""
        row_ids = self.row_ids
        for action in winner.actions:
            if isinstance(action, DomainMetadata) and action.domain == row_tracking.DOMAIN:
                row_ids = row_tracking.mark_of(action)
        return ParentVersion(
            winner.version, winner.metadata or self.metadata, winner.protocol or self.protocol, winner.time, row_ids
        )

    @property
    def has_timestamps(self) -> bool:
        """Whether in-commit timestamps are enabled in the parent version."""
        return (
            self.metadata is not None
            and self.protocol is not None
            and in_commit_timestamps.enabled(self.protocol, self.metadata)
        )


def stamped(
    staged: Staged, info: CommitInfo, parent: ParentVersion, now_ms: int
) -> tuple[CommitInfo, tuple[Action, ...]]:
    """The commitInfo and the actions of an attempt at the version after `parent`.

    Args:
        staged: The actions to commit.
        info: The commitInfo without the parts that depend on the version.
        parent: The version before the commit.
        now_ms: The time of the attempt, in milliseconds since the epoch.
    """
    version = parent.version + 1
    actions = staged.actions
    if in_commit_timestamps.enabled(staged.protocol, staged.metadata):
        parent_time = None if parent.timestamp is None else parent.timestamp()
        timestamp = in_commit_timestamps.later(now_ms, parent_time)
        info = replace(info, in_commit_timestamp=timestamp)
        if staged.writes_metadata:
            with_provenance = in_commit_timestamps.with_provenance(
                staged.metadata,
                parent.metadata,
                began=not parent.has_timestamps,
                version=version,
                timestamp_ms=timestamp,
            )
            if with_provenance is not staged.metadata:
                actions = tuple(with_provenance if isinstance(action, Metadata) else action for action in actions)
    if row_tracking.supported(staged.protocol):
        actions = row_tracking.assigned(
            actions,
            staged.protocol,
            staged.metadata,
            version=version,
            highest=parent.row_ids,
        )
        if (preserved := _keeps_row_ids(staged)) is not None:
            info = replace(info, tags={row_tracking.PRESERVED_TAG: str(preserved).lower(), **(info.tags or {})})
    return info, actions


def _keeps_row_ids(staged: Staged) -> bool | None:
    """Whether rewritten rows keep their ids; None: no row is rewritten, or the table has no row tracking."""
    if staged.read_metadata is None or not row_tracking.enabled(staged.protocol, staged.metadata):
        return None
    if not staged.removes_files:
        return None  # no row is rewritten
    if row_tracking.enabled(staged.protocol, staged.read_metadata):
        return True
    # Another commit enabled row tracking after this one was prepared, so this one hasn't kept the ids.
    return None if staged.writes_metadata else False
