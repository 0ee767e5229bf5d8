"""The handle on a table's log: snapshots, history, transactions and maintenance."""

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ..clock import Clock, SystemClock
from ..error_context import sets_table
from ..errors import CorruptLogError, InvalidArgumentError, MissingCommitError, TableNotFoundError, VersionNotFoundError
from ..logstore.base import FileStatus, LogStore
from ..logstore.registry import store_for
from ..settings import declarations
from ..settings.declarations import COMPACTED_LOG_READS, CORRUPTION_IS_FATAL, WRITE_CHECKSUM
from .log.checkpoint import CheckpointState
from .log.checkpoint_file import DamagedCheckpointError, ReplacedError
from .log.memory_limits import DEFAULT_LIMITS, MemoryLimits
from .log.reader import LogReader
from .log.replay import CommitOverlay, Header, in_commit_timestamp
from .log.segment import Listing, LogEntry, Segment, choose, missing_commit, ranges_text, readable
from .protocol.actions import Action, CommitInfo
from .protocol.features import check_readable, check_writable
from .protocol.paths import LOG_DIRECTORY
from .table import history
from .table.history import HistoryEntry, in_commit_from
from .table.snapshot import Snapshot
from .upkeep import compaction
from .upkeep.cleanup import DAY_MS, CleanUp, clean_up, cut_off
from .upkeep.second_reading import doubt

if TYPE_CHECKING:
    from .log.last_checkpoint import LastCheckpoint
    from .txn.transaction import Transaction
    from .upkeep.checkpoint_writer import SidecarWriter
    from .upkeep.health import LogHealth

_log = logging.getLogger(__name__)

_READ_AFTER_COMMITS = (
    declarations.WRITE_CHECKSUM,
    declarations.CHECKSUM_LISTS_FILES,
    declarations.CHECKSUM_MAX_FILES,
    declarations.CHECKPOINT_PART_SIZE,
    declarations.CHECKPOINT_V2_FORMAT,
    declarations.COMPACTED_LOG_WRITES,
)
"""These are read after a commit, which can't fail then: the constructor of the handle checks their values."""
_TRIES = 4
"""How often a version is read again when its files disappear meanwhile (cleanup, or a replaced table)."""
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


class DeltaLog:
    """The transaction log of one table. Threads may share it; it caches the newest snapshot that it has read.

    `table` is the canonical URI of the root, `log_path` the URI of the log directory.
    """

    def __init__(
        self,
        table: str,
        store: LogStore,
        *,
        conf: Mapping[str, str] | None = None,
        storage_options: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
        limits: MemoryLimits = DEFAULT_LIMITS,
    ) -> None:
        self.table = table
        self.log_path = f"{table.rstrip('/')}/{LOG_DIRECTORY}"
        self.store = store
        self.clock: Clock = clock or SystemClock()
        self._limits = limits
        self.conf: Mapping[str, str] = conf or {}
        self.storage_options: Mapping[str, Any] = storage_options or {}
        self.reader = LogReader(table, self.log_path, store, self.clock)
        self._fatal = CORRUPTION_IS_FATAL.of(self.conf)
        for setting in _READ_AFTER_COMMITS:
            setting.of(self.conf)
        self._lock = threading.RLock()
        self._known: _Known | None = None
        self._opened_at = 0.0
        self._opened_version = -1
        self._cleaned_until: int | None = None

    @classmethod
    def for_path(
        cls,
        path: str,
        *,
        storage_options: Mapping[str, Any] | None = None,
        conf: Mapping[str, str] | None = None,
        store: LogStore | None = None,
        clock: Clock | None = None,
        limits: MemoryLimits = DEFAULT_LIMITS,
    ) -> "DeltaLog":
        """The log of the table at `path`; whether there is a table isn't checked.

        Args:
            path: A URI or a local path.
            storage_options: Options of the storage, with fsspec's names.
            conf: Settings with Spark's names (`spark.delta.logStore.*`, `spark.databricks.delta.*`).
            store: Used instead of the store that `conf` selects.
            clock: Used instead of the system's clock.
            limits: Used instead of the default limits of memory.

        Raises:
            InvalidArgumentError: The path isn't valid.
            LogStoreConfigurationError: The configuration names no store for the path, or one that can't be used.
        """
        path = str(path)
        if store is None:
            store = store_for(path, conf=conf, storage_options=storage_options)
        return cls(store.resolve(path), store, conf=conf, storage_options=storage_options, clock=clock, limits=limits)

    def __repr__(self) -> str:
        return f"DeltaLog({self.table!r})"

    # --- snapshots ------------------------------------------------------------------------------------------------

    @sets_table
    def exists(self) -> bool:
        """Whether there is a table: a log with at least one commit or checkpoint. It costs one listing."""
        try:
            return self.reader.list(0).newest is not None
        except TableNotFoundError:
            return False

    @sets_table
    def snapshot(self, version: int | None = None, timestamp: int | None = None) -> Snapshot:
        """Return the table's newest version, or the requested one.

        If nothing changed since the last call, it costs one listing.

        Args:
            version: A version number.
            timestamp: A time in milliseconds since the epoch: the version that was the newest then.

        Returns:
            The snapshot.

        Raises:
            TableNotFoundError: There is no table.
            VersionNotFoundError: The version can't be read; the message names the versions that can.
            TimestampOutOfRangeError: The time is before the first or after the last version; the message names them.
            UnsupportedFeatureError: Reading the table needs a feature that tablelog doesn't have.
            CorruptLogError: The log is damaged.
        """
        if version is not None and timestamp is not None:
            raise InvalidArgumentError(
                f"to read {self.table}, give a version or a timestamp, not both",
                condition="DELTA_ONEOF_IN_TIMETRAVEL",
            )
        if timestamp is not None:
            version = self.version_at(timestamp)
        snapshot = self._newest() if version is None else self._at(version)
        check_readable(snapshot.protocol, snapshot.metadata, self.table)
        return snapshot

    def transaction(self) -> "Transaction":
        """A transaction on the newest version; where there is no table, its commit can create one."""
        from .txn.transaction import Transaction

        try:
            snapshot = self.snapshot()
        except TableNotFoundError:
            snapshot = None
        return Transaction(self, snapshot)

    @sets_table
    def committed(self, read: Snapshot | None, commits: Iterable[tuple[int, Sequence[Action]]]) -> Snapshot:
        """Add consecutive commits that followed `read` to the handle, without a request.

        Args:
            read: The snapshot before the commits; `None` for a new table, whose first commit is version 0.
            commits: (version, actions) in order; the last one was made by this process.

        Returns:
            The snapshot of the last commit.
        """
        snapshot = read
        if read is not None and WRITE_CHECKSUM.of(self.conf) and read.totals() is None:
            # One request, only on the first commit after a large checkpoint: later totals are computed from these.
            read.seed_totals_from_checksum()
        for version, actions in commits:
            make_timestamp = self.reader.timestamp_of(version, None, in_commit_timestamp(actions))
            if snapshot is None:
                header, tail = Header().after(actions), CommitOverlay(self.table).extend(actions)
                if version != 0:
                    raise InvalidArgumentError(f"version {version} can't be the first of {self.table}")
                snapshot = Snapshot(self.table, 0, header, tail, None, timestamp=make_timestamp, fatal=self._fatal)
            else:
                if version != snapshot.version + 1:
                    raise InvalidArgumentError(f"version {version} doesn't follow {snapshot.version} of {self.table}")
                snapshot = snapshot.after(version, [actions], timestamp=make_timestamp)
        if snapshot is None:
            raise InvalidArgumentError(f"no commit was passed for {self.table}: pass at least one")
        # A replacement of the table gives it another id.
        ids = {one.metadata.id for one in (read, snapshot) if one is not None}
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

    @sets_table
    def checkpoint(
        self, snapshot: Snapshot | None = None, *, sidecar_writer: "SidecarWriter | None" = None
    ) -> "LastCheckpoint":
        """Write the checkpoint of a version, and update `_last_checkpoint`.

        The table's properties and the session decide the format. An existing checkpoint is kept; one that can't be read
        is replaced. `_last_checkpoint` isn't changed if it names a newer checkpoint that exists.

        Args:
            snapshot: The version; the newest by default.
            sidecar_writer: May write the sidecars of a large checkpoint (`tablelog.engine.write.large_checkpoint`).

        Returns:
            The content of `_last_checkpoint` for this checkpoint.

        Raises:
            UnsupportedFeatureError: The version needs a feature that tablelog can't write.
            StorageError: The store failed. The table can be read without the checkpoint.
        """
        snapshot = snapshot or self.snapshot()
        # Also for an old version: its checkpoint would lose features that aren't supported (`checkpointProtection`).
        check_writable(snapshot.protocol, snapshot.metadata, self.table)
        return self.write_checkpoint(snapshot, sidecar_writer)

    @sets_table
    def write_checkpoint(self, snapshot: Snapshot, sidecar_writer: "SidecarWriter | None" = None) -> "LastCheckpoint":
        """`checkpoint` of a version whose protocol was checked before."""
        # These modules import all of Arrow, so they are imported only when a checkpoint is written.
        from .upkeep.checkpoint_writer import point_at, write

        hint = write(self.store, self.log_path, snapshot, self.clock.now_ms(), self.conf, sidecar_writer)
        last = self.reader.last_checkpoint()
        if last is None or last.version <= hint.version or not self._has_checkpoint(last.version):
            point_at(self.store, self.log_path, hint)
        return hint

    @sets_table
    def clean_up(
        self, newest: Snapshot | None = None, *, retention_ms: int | None = None, truncate_to_ms: int = DAY_MS
    ) -> CleanUp:
        """Remove the expired files of the log: those that no version within the retention needs.

        It does the same as the cleanup after a checkpoint, but ignores `delta.enableExpiredLogCleanup`.

        Args:
            newest: The newest version, if it is known.
            retention_ms: Replaces `delta.logRetentionDuration`, in milliseconds.
            truncate_to_ms: The cut-off time is rounded down to a multiple of this; one day by default.
        """
        newest = newest or self.snapshot()
        enabled_from = in_commit_from(newest)

        def in_commit(version: int) -> int | None:
            return None if enabled_from is None or version < enabled_from else self.reader.in_commit_timestamp(version)

        return clean_up(
            self.store,
            self.log_path,
            newest,
            self.reader,
            self.clock.now_ms(),
            in_commit_timestamp=in_commit,
            retention_ms=retention_ms,
            truncate_to_ms=truncate_to_ms,
        )

    def clean_up_after(self, newest: Snapshot) -> None:
        """`clean_up`, at most once a day: the cut-off time is rounded down to the day, so it changes once a day."""
        until = cut_off(self.clock.now_ms(), newest.properties.log_retention_ms)
        if until != self._cleaned_until:
            self.clean_up(newest)
            self._cleaned_until = until

    @sets_table
    def compact(self, first: int, last: int) -> str:
        """Write the log compaction of the versions `first` to `last`, which readers use instead of the commits.

        Returns its file name. Raises VersionNotFoundError if a commit is missing.
        """
        name = compaction.compact(self.store, self.log_path, self.table, self.reader, first, last)
        assert name is not None
        return name

    @sets_table
    def compact_after(self, newest: Snapshot) -> None:
        """`compact` the commits up to the newest version if `delta.logCompactionInterval` requires it."""
        interval, version = newest.properties.checkpoint_interval, newest.version
        checkpoint = max(newest.base_version, version // interval * interval or -1)
        window = compaction.window(version, newest.properties.log_compaction_interval, checkpoint)
        if window is not None:
            most = self._limits.compacted_bytes
            compaction.compact(self.store, self.log_path, self.table, self.reader, *window, most_bytes=most)

    @sets_table
    def health(self) -> "LogHealth":
        """Diagnose the log: reads each of its files and changes nothing. It is too slow for daily use."""
        from .upkeep.health import examine

        return examine(self.store, self.log_path, self.table, self.reader, self.clock.now_ms())

    def _has_checkpoint(self, version: int) -> bool:
        return any(checkpoint.version == version for checkpoint in self.reader.list(version).checkpoints)

    # --- the newest version ---------------------------------------------------------------------------------------

    def _newest(self) -> Snapshot:
        with self._lock:
            known = self._known
            if known is not None and not known.snapshot.base_lost:
                try:
                    updated = self._updated(known)
                except ReplacedError:
                    updated = None
                if updated is not None:
                    self._known = updated
                    return updated.snapshot
                self._known = None
            self._opened_at = self.clock.monotonic()
            snapshot, segment = self._opened(None)
            self._opened_version = snapshot.version
            self._known = _Known(snapshot, segment.version, segment.last_commit)
            return snapshot

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
        old = snapshot.base_version >= 0 and self.clock.monotonic() - self._opened_at > _OLD_BASE_S
        if newest < snapshot.version or old:
            return None
        if snapshot.tail_actions > self._limits.tail_actions:
            # A checkpoint that existed when the handle opened was either used then, or couldn't be read.
            known_base = max(snapshot.base_version, self._opened_version)
            if any(checkpoint.version > known_base for checkpoint in listing.checkpoints):
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
        commits = self.reader.entries(entries)
        updated = snapshot.after(
            newest,
            commits,
            timestamp=self.reader.timestamp_of(newest, entries[-1].status, in_commit_timestamp(commits[-1])),
            checksum=self.reader.checksum(listing.checksums.get(newest)),
        )
        if updated.metadata.id != snapshot.metadata.id:
            _log.warning(
                "%s: the table's id changed between version %d and %d", self.table, snapshot.version, updated.version
            )
        return _Known(updated, newest, entries[-1].status)

    # --- opening --------------------------------------------------------------------------------------------------

    @sets_table
    def _opened(self, version: int | None, unusable: frozenset[str] = frozenset()) -> tuple[Snapshot, Segment]:
        """Read a version from the store, without the cache."""
        bad = set(unusable)
        for attempt in range(_TRIES + 1):
            try:
                return self._open_once(version, bad)
            except ReplacedError as error:
                _log.info("%s: the log changed while it was read (%s)", self.table, error)
                if attempt == _TRIES:
                    raise CorruptLogError(
                        f"the log of {self.table} has files that can't be read as they are listed: {error}. Try again; "
                        "DeltaLog.for_path(...).health() lists all damage of the log",
                        table=self.table,
                        version=version,
                    ) from error
        raise AssertionError

    def _open_once(self, version: int | None, bad: set[str]) -> tuple[Snapshot, Segment]:
        hint = self.reader.last_checkpoint() if version is None and not bad else None
        listing = self.reader.list(hint.version if hint else 0)
        full = hint is None or hint.version == 0
        while True:
            if not full and not any(c.version >= (hint.version if hint else 0) for c in listing.checkpoints):
                listing, full = self.reader.list(0), True
            segment = self._segment(listing, version, bad)
            try:
                return self._built(segment), segment
            except DamagedCheckpointError as error:
                error.with_context(table=self.table, version=segment.version)
                if not error.names or bad.issuperset(error.names):
                    raise
                _log.warning("%s: %s; reading the version from other files of the log instead", self.table, error)
                bad.update(error.names)
                try:
                    if not full:
                        listing, full = self.reader.list(0), True
                    self._segment(listing, version, bad)
                except (MissingCommitError, VersionNotFoundError):
                    # No other files have the version, so the caller must get the error for the damage.
                    readable_versions = ranges_text(readable(listing, unusable=bad))
                    raise DamagedCheckpointError(
                        f"{error}, and version {segment.version} of {self.table} can't be read from other files of the "
                        f"log. The versions that can be read: {readable_versions}. Restore the file or the commits "
                        "from a copy; DeltaLog.for_path(...).health() lists all damage of the log.",
                        error.names,
                        table=self.table,
                        version=segment.version,
                        path=error.path,
                    ) from error

    def _recovered(self, version: int, unusable: tuple[str, ...]) -> Snapshot:
        return self._opened(version, frozenset(unusable))[0]

    def _segment(self, listing: Listing, version: int | None, bad: set[str]) -> Segment:
        newest = listing.newest
        if newest is None:
            raise TableNotFoundError(
                f"there is no Delta table at {self.table}: its {LOG_DIRECTORY} has no commit and no checkpoint"
            )
        if version is not None and not 0 <= version <= newest:
            raise self._no_version(listing, version)
        segment = choose(
            listing, self.table, version=version, unusable=bad, use_compacted=COMPACTED_LOG_READS.of(self.conf)
        )
        if segment is None:
            if version is not None and earliest(listing, self.table) is not None:
                raise self._no_version(listing, version)
            raise missing_commit(self.table, listing, 0, newest if version is None else version)
        return segment

    def _no_version(self, listing: Listing, version: int) -> VersionNotFoundError:
        first = earliest(listing, self.table)
        available = f"{first} to {listing.newest}" if first is not None else "none"
        return VersionNotFoundError(
            f"version {version} of {self.table} can't be read; the versions that can: {available}",
            condition="DELTA_VERSION_NOT_FOUND",
            parameters={"userVersion": version, "earliest": first, "latest": listing.newest},
            table=self.table,
            version=version,
        )

    def _built(self, segment: Segment) -> Snapshot:
        base = None
        if segment.checkpoint is not None:
            base = CheckpointState(
                self.store,
                self.log_path,
                self.table,
                segment.checkpoint,
                partial(self._recovered, segment.checkpoint.version),
                self._limits,
            )
        commits = self.reader.entries(segment.entries)
        header = base.header if base else Header()
        tail = CommitOverlay(self.table)
        for actions in commits:
            header, tail = header.after(actions), tail.extend(actions)
        last = segment.entries[-1] if segment.entries else None
        timestamp_ms = in_commit_timestamp(commits[-1]) if last and not last.compacted else None
        status = segment.last_commit or (segment.checkpoint.files[-1] if segment.checkpoint else None)
        return Snapshot(
            self.table,
            segment.version,
            header,
            tail,
            base,
            timestamp=self.reader.timestamp_of(segment.version, status, timestamp_ms),
            checksum=self.reader.checksum(segment.checksum),
            fatal=self._fatal,
            doubt=partial(doubt, self.store, self.log_path, self.reader),
        )

    def _at(self, version: int) -> Snapshot:
        """An old version; the newest one is taken from the cache, after a check that it is still the newest."""
        if self._known is not None and self._known.snapshot.version == version:
            newest = self._newest()
            if newest.version == version:
                return newest
        return self._opened(version)[0]

    # --- history --------------------------------------------------------------------------------------------------

    @sets_table
    def version_at(self, timestamp_ms: int, *, can_return_last: bool = False, can_return_first: bool = False) -> int:
        """The version that was the newest at a time in milliseconds since the epoch.

        A time that equals the last version's is valid.

        Raises:
            TimestampOutOfRangeError: The time is before the first version that can be read, or after the last, and the
                flag doesn't allow the nearest version. The message names the range.
        """
        listing = self.reader.list(0)
        if listing.newest is None:
            raise TableNotFoundError(f"there is no Delta table at {self.table}")
        first = earliest(listing, self.table)
        times = history.file_times(listing, first or 0, listing.newest) if first is not None else []
        if not times:
            raise VersionNotFoundError(
                f"no version of {self.table} can be read: its log has neither version 0 nor a checkpoint. Restore the "
                "log from a copy"
            )
        times = history.travel_times(
            times, in_commit_from(self._newest()), timestamp_ms, self.reader.in_commit_timestamp
        )
        return history.choose_version(
            self.table, times, timestamp_ms, can_return_last=can_return_last, can_return_first=can_return_first
        )

    @sets_table
    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """The commits in the log, newest first, at most `limit`. It costs one read for each commit."""
        if limit is not None and limit <= 0:
            raise InvalidArgumentError(f"the limit of the history of {self.table} must be positive, but it is {limit}")
        newest = self._newest()
        listing = self.reader.list(0 if limit is None else max(newest.version - limit + 1, 0))
        times = history.file_times(listing, 0, newest.version)
        infos_by_version: dict[int, CommitInfo | None] = {}
        versions = [version for version, _ in times]
        for version, data in zip(versions, self.reader.each([listing.commits[v] for v in versions]), strict=True):
            if data is not None:
                infos = (action for action in self.reader.parsed(version, data) if isinstance(action, CommitInfo))
                infos_by_version[version] = next(infos, None)
        # A file that cleanup removed meanwhile is no longer part of the history.
        times = [item for item in times if item[0] in infos_by_version]

        def in_commit(version: int) -> int:
            info = infos_by_version[version]
            if info is None or info.in_commit_timestamp is None:
                raise self.reader.without_timestamp(version)
            return info.in_commit_timestamp

        by_version = history.with_in_commit_timestamps(times, in_commit_from(newest), in_commit)
        return [
            HistoryEntry(version, by_version[version], infos_by_version[version])
            for version in sorted(infos_by_version, reverse=True)
        ]

    @sets_table
    def find_commit(self, token: str) -> int | None:
        """The version whose `commitInfo.txnId` is the token, searched from the newest one; `None`: there is none."""
        listing = self.reader.list(0)
        needle = token.encode()
        for version in sorted(listing.commits, reverse=True):
            data = self.reader.read(listing.commits[version])
            if (
                data is not None
                and needle in data
                and any(
                    isinstance(action, CommitInfo) and action.txn_id == token
                    for action in self.reader.parsed(version, data)
                )
            ):
                return version
        return None


def earliest(listing: Listing, table: str) -> int | None:
    """The oldest version that can be read: 0, or that of the first checkpoint."""
    if 0 in listing.commits:
        return 0
    for checkpoint in listing.checkpoints:
        return checkpoint.version
    return None
