"""What a commit says that depends on the version it gets: its timestamp, row ids, and what is noted of a beginning.

None of it is known before an attempt, and all of it changes when another commit came first; so what is staged holds
none of it, and each attempt at a new version begins with `stamped`, a pure function of the ground it stands on.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..protocol import in_commit_timestamps, row_tracking
from ..protocol.actions import Action, CommitInfo, DomainMetadata, Metadata, Protocol
from .conflict import Staged, Winner


@dataclass(frozen=True)
class ParentVersion:
    """The version below a commit, as far as the commit depends on it; version -1 where there is no table yet.

    `timestamp` gives the time of the version in milliseconds and may cost a request.
    """

    version: int = -1
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    timestamp: Callable[[], int] | None = None
    row_ids: int = -1

    def after(self, winner: Winner) -> "ParentVersion":
        """The ground once another commit stands on it."""
        row_ids = self.row_ids
        for action in winner.actions:
            if isinstance(action, DomainMetadata) and action.domain == row_tracking.DOMAIN:
                row_ids = row_tracking.mark_of(action)
        return ParentVersion(
            winner.version, winner.metadata or self.metadata, winner.protocol or self.protocol, winner.time, row_ids
        )

    @property
    def has_timestamps(self) -> bool:
        """Whether the version below bears its own time."""
        return (
            self.metadata is not None
            and self.protocol is not None
            and in_commit_timestamps.enabled(self.protocol, self.metadata)
        )


def stamped(
    staged: Staged, info: CommitInfo, ground: ParentVersion, now_ms: int
) -> tuple[CommitInfo, tuple[Action, ...]]:
    """The commitInfo and the actions of an attempt at the version above `ground`. `now_ms` is when it is made."""
    version = ground.version + 1
    actions = staged.actions
    if in_commit_timestamps.enabled(staged.protocol, staged.metadata):
        before = None if ground.timestamp is None else ground.timestamp()
        timestamp = in_commit_timestamps.later(now_ms, before)
        info = replace(info, in_commit_timestamp=timestamp)
        if staged.writes_metadata:
            told = in_commit_timestamps.with_provenance(
                staged.metadata,
                ground.metadata,
                began=not ground.has_timestamps,
                version=version,
                timestamp_ms=timestamp,
            )
            if told is not staged.metadata:
                actions = tuple(told if isinstance(action, Metadata) else action for action in actions)
    if row_tracking.supported(staged.protocol):
        actions = row_tracking.assigned(
            actions,
            staged.protocol,
            staged.metadata,
            version=version,
            highest=ground.row_ids,
        )
        if (kept := _keeps_row_ids(staged)) is not None:
            info = replace(info, tags={row_tracking.PRESERVED_TAG: str(kept).lower(), **(info.tags or {})})
    return info, actions


def _keeps_row_ids(staged: Staged) -> bool | None:
    """Whether rows that are written again keep their ids; None: there are none, or the table doesn't promise it."""
    if staged.read_metadata is None or not row_tracking.enabled(staged.protocol, staged.metadata):
        return None
    if not staged.removed:
        return None  # no row is written again
    if row_tracking.enabled(staged.protocol, staged.read_metadata):
        return True
    # What was prepared before another commit enabled it can't have kept them.
    return None if staged.writes_metadata else False
