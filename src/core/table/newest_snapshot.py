"""The newest snapshot of a table, kept between calls and updated with the commits since."""

import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ... import observe
from ...clock import Clock
from ...errors import InvalidArgumentError, TableNotFoundError
from ...logstore.base import FileStatus
from ..log.checkpoint_file import ReplacedError
from ..log.large_commits import up_to_large
from ..log.replay import CommitOverlay, Header, in_commit_timestamp
from ..log.segment import Listing, LogEntry
from ..protocol.actions import Action
from .snapshot import Snapshot
from .snapshot_loader import SnapshotLoader

_log = logging.getLogger(__name__)

_OLD_BASE_S = 86_400.0
"""After this many seconds a handle opens the table again: the checkpoint that it uses may be removed, and the part that
wasn't read yet would be lost.

The listings of a handle start at a known commit, so they don't show this; own commits need no listing at all.
"""


@dataclass(frozen=True, slots=True)
class _Known:
    """The newest snapshot, and the newest commit file in a listing, which proves that the table is still the same."""

    snapshot: Snapshot
    seen_version: int
    seen: FileStatus | None


class NewestSnapshot:
    """The newest snapshot of one table. Threads may share it."""

    def __init__(self, loader: SnapshotLoader, clock: Clock) -> None:
        self._loader = loader
        self._clock = clock
        self.table = loader.table
        self.reader = loader.reader
        self._lock = threading.RLock()
        self._known: _Known | None = None
        self._opened_at = 0.0
        self._opened_version = -1

    def is_cached(self, version: int) -> bool:
        """Whether this version was the newest one at the last call."""
        known = self._known
        return known is not None and known.snapshot.version == version

    def listed_commit(self, version: int) -> FileStatus | None:
        """The file of the commit as the last listing had it; None if this isn't the newest version of that listing."""
        known = self._known
        return known.seen if known is not None and known.seen_version == version else None

    def forget(self) -> None:
        """Open the table again at the next call."""
        with self._lock:
            self._known = None

    def refresh(self) -> Snapshot:
        """Return the newest snapshot. If nothing changed since the last call, it costs one listing."""
        fields = observe.fields(self.table, store=self._loader.store)
        with observe.Stopwatch("refresh", self._clock, fields), self._lock:
            snapshot, fields["outcome"] = self._refreshed(self._known)
            fields["version"] = snapshot.version
            return snapshot

    def _refreshed(self, known: _Known | None) -> tuple[Snapshot, str]:
        """The newest snapshot, and whether it is `unchanged`, `updated` or `loaded`."""
        if known is not None and not known.snapshot.base_lost:
            try:
                updated = self._updated(known)
            except ReplacedError:
                updated = None
            if updated is not None:
                self._known = updated
                return updated.snapshot, "unchanged" if updated.snapshot is known.snapshot else "updated"
            self._known = None
        self._opened_at = self._clock.monotonic()
        snapshot, segment = self._loader.load(None)
        self._opened_version = snapshot.version
        self._known = _Known(snapshot, segment.version, segment.last_commit)
        return snapshot, "loaded"

    def _updated(self, known: _Known) -> _Known | None:
        """`known`, updated with one listing and one read for each new commit; `None`: open the table again.

        The listing starts at a commit that was listed before. If that file differs, the table was deleted, replaced or
        cleaned up, and the cached state must not be combined with the new files.
        """
        try:
            listing = self.reader.list(known.seen_version)
        except TableNotFoundError:
            return None
        seen_now = listing.commits.get(known.seen_version)
        if seen_now is None or (known.seen is not None and seen_now != known.seen):
            return None
        snapshot = known.snapshot
        newest = max(listing.commits)
        if newest < snapshot.version or self._needs_new_base(snapshot, listing):
            return None
        if newest == snapshot.version:
            if snapshot.version != known.seen_version or known.seen is None:
                return _Known(snapshot, newest, listing.commits[newest])
            return known
        entries = []
        for version in range(snapshot.version + 1, newest + 1):
            if version not in listing.commits:
                return None  # opening the table again finds out whether a commit is missing
            entries.append(LogEntry(version, version, listing.commits[version]))
        if up_to_large(entries):
            return None  # there may be a checkpoint of it, and else it isn't replayed in memory
        commits = self.reader.entries(entries)
        updated = snapshot.after(
            newest,
            commits,
            timestamp=self.reader.timestamp_of(newest, entries[-1].status, in_commit_timestamp(commits[-1])),
            checksum=self.reader.checksum(listing.checksums.get(newest)),
        )
        if updated.metadata.id != snapshot.metadata.id:
            _log.warning(
                "%s: the table's id changed between version %d and %d",
                self.table,
                snapshot.version,
                updated.version,
                extra=observe.fields(self.table, version=updated.version, store=self._loader.store, outcome="replaced"),
            )
        return _Known(updated, newest, entries[-1].status)

    def _needs_new_base(self, snapshot: Snapshot, listing: Listing) -> bool:
        """Whether the table should be read from a newer checkpoint: the base is old, or the commits since are many."""
        if snapshot.base_version >= 0 and self._clock.monotonic() - self._opened_at > _OLD_BASE_S:
            return True
        if snapshot.tail_actions <= self._loader.limits.tail_actions:
            return False
        # A checkpoint that existed when the table was opened was either used then, or couldn't be read.
        known_base = max(snapshot.base_version, self._opened_version)
        return any(checkpoint.version > known_base for checkpoint in listing.checkpoints)

    def add_commits(self, read: Snapshot | None, commits: Iterable[tuple[int, Sequence[Action]]]) -> Snapshot:
        """See `DeltaLog.committed`."""
        snapshot = read
        for version, actions in commits:
            timestamp = self.reader.timestamp_of(version, None, in_commit_timestamp(actions))
            if snapshot is None:
                header, tail = Header().after(actions), CommitOverlay(self.table).extend(actions)
                if version != 0:
                    raise InvalidArgumentError(f"version {version} can't be the first of {self.table}")
                fatal = self._loader.checksum_mismatch_is_fatal
                snapshot = Snapshot(self.table, 0, header, tail, None, timestamp=timestamp, fatal=fatal)
            else:
                if version != snapshot.version + 1:
                    raise InvalidArgumentError(f"version {version} doesn't follow {snapshot.version} of {self.table}")
                snapshot = snapshot.after(version, [actions], timestamp=timestamp)
        if snapshot is None:
            raise InvalidArgumentError(f"no commit was passed for {self.table}: pass at least one")
        # A replacement of the table gives it another id.
        ids = {state.metadata.id for state in (read, snapshot) if state is not None}
        with self._lock:
            known = self._known
            if known is None:
                if read is None:
                    self._opened_version = -1
                    # One listing, only for a new table: a later refresh must detect if another table replaced it.
                    self._known = _Known(snapshot, 0, self.reader.list(0).commits.get(0))
            elif known.snapshot.version < snapshot.version and known.snapshot.metadata.id in ids:
                self._known = _Known(snapshot, known.seen_version, known.seen)
        return snapshot
