"""The handle on a table's log: from a path and a store to snapshots, history and transactions."""

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ..clock import Clock, SystemClock
from ..errors import CorruptLogError, InvalidArgumentError, MissingCommitError, TableNotFoundError, VersionNotFoundError
from ..logstore.base import FileStatus, LogStore
from ..logstore.registry import store_for
from ..settings import honoured
from ..settings.honoured import COMPACTED_LOG_READS, CORRUPTION_IS_FATAL, WRITE_CHECKSUM
from .log.checkpoint import CheckpointState
from .log.checkpoint_file import DamagedCheckpointError, ReplacedError
from .log.reader import LogReader
from .log.replay import CommitOverlay, Header, in_commit_timestamp
from .log.segment import Listing, LogEntry, Segment, choose, hole_message, ranges_text, readable
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
    honoured.WRITE_CHECKSUM,
    honoured.CHECKSUM_LISTS_FILES,
    honoured.CHECKSUM_MAX_FILES,
    honoured.CHECKPOINT_PART_SIZE,
    honoured.CHECKPOINT_V2_FORMAT,
    honoured.COMPACTED_LOG_WRITES,
)
"""A commit can't fail any more when these are read: the handle checks them when it is made."""
_TRIES = 4
"""How often a version is put together anew when its files vanish while they are read (cleanup, or a new table)."""
_OLD_BASE_S = 86_400.0
"""After so many seconds a handle opens anew: the checkpoint below may be removed, and what wasn't read of it lost.

No listing from a known commit on tells, for the newer checkpoint is before it, and commits of one's own need none.
"""
_MOST_COMPACTED = 64 << 20
"""Commits of more bytes than this aren't compacted together after a commit: they would all be in memory."""
_LONG_TAIL = 2_000
"""From this many actions after the base on, a newer checkpoint is worth reading: it takes their place in memory."""


@dataclass(frozen=True, slots=True)
class _Known:
    """The newest snapshot, and the newest commit file that a listing showed: proof that the table is the same."""

    snapshot: Snapshot
    seen_version: int
    seen: FileStatus | None


class DeltaLog:
    """The transaction log of one table. Shared between threads; it holds the newest snapshot that it has seen.

    `table` is the canonical URI of the root, `log_path` of the log's directory.
    """

    def __init__(
        self,
        table: str,
        store: LogStore,
        *,
        conf: Mapping[str, str] | None = None,
        storage_options: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.table = table
        self.log_path = f"{table.rstrip('/')}/{LOG_DIRECTORY}"
        self.store = store
        self.clock: Clock = clock or SystemClock()
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
    ) -> "DeltaLog":
        """The log of the table at `path`, a URI or a local path; whether there is a table isn't asked yet.

        `conf` are settings as Spark has them (`spark.delta.logStore.*`, `spark.databricks.delta.*`),
        `storage_options` as fsspec takes them. `store` is used as it is, in place of the one that `conf` chooses.
        """
        path = str(path)
        if store is None:
            store = store_for(path, conf=conf, storage_options=storage_options)
        return cls(store.resolve(path), store, conf=conf, storage_options=storage_options, clock=clock)

    def __repr__(self) -> str:
        return f"DeltaLog({self.table!r})"

    # --- snapshots ------------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Whether there is a table: a log with at least one commit or checkpoint. One list."""
        try:
            return self.reader.list(0).newest is not None
        except TableNotFoundError:
            return False

    def snapshot(self, version: int | None = None, timestamp: int | None = None) -> Snapshot:
        """The table's newest version, or the one asked for: by number, or the newest at a time in milliseconds.

        Where nothing changed since the last call, finding that out is one list. Raises TableNotFoundError,
        VersionNotFoundError or TimestampOutOfRangeError (which name what is there), UnsupportedFeatureError for what
        reading the table needs and isn't built, and CorruptLogError.
        """
        if version is not None and timestamp is not None:
            raise InvalidArgumentError("give a version or a timestamp, not both", condition="DELTA_ONEOF_IN_TIMETRAVEL")
        if timestamp is not None:
            version = self.version_at(timestamp)
        snapshot = self._newest() if version is None else self._at(version)
        check_readable(snapshot.protocol, snapshot.metadata, self.table)
        return snapshot

    def transaction(self) -> "Transaction":
        """A transaction on the newest version; on a path with no table, one that may make it."""
        from .txn.transaction import Transaction

        try:
            snapshot = self.snapshot()
        except TableNotFoundError:
            snapshot = None
        return Transaction(self, snapshot)

    def committed(self, read: Snapshot | None, commits: Iterable[tuple[int, Sequence[Action]]]) -> Snapshot:
        """Take note, with no request, of commits that followed `read` in one row; the last one is this process's own.

        Gives the snapshot of the last one. `read` is `None` for a new table, whose first commit is version 0.
        """
        snapshot = read
        if read is not None and WRITE_CHECKSUM.of(self.conf) and read.totals() is None:
            # One read, on the first commit over a large checkpoint only: the totals go on from there.
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
            raise InvalidArgumentError("no commit was given")
        with self._lock:
            known = self._known
            if known is None:
                if read is None:
                    self._opened_version = -1
                    # One list, at the birth of a table only: a later refresh must be able to tell it from another.
                    self._known = _Known(snapshot, 0, self.reader.list(0).commits.get(0))
            elif known.snapshot.version < snapshot.version and known.snapshot.metadata.id == snapshot.metadata.id:
                self._known = _Known(snapshot, known.seen_version, known.seen)
        return snapshot

    def checkpoint(
        self, snapshot: Snapshot | None = None, *, sidecar_writer: "SidecarWriter | None" = None
    ) -> "LastCheckpoint":
        """Write the checkpoint of a version (the newest by default), then have `_last_checkpoint` name it.

        Of the kind that the table and the session ask for; a whole one that is there already stays, one that can't
        be read is replaced. Where `_last_checkpoint` names a newer one that is there, it stays as it is. A
        `sidecar_writer` may write the sidecars of one that is large (`tablelog.engine.write.large_checkpoint`). Raises
        UnsupportedFeatureError for a version whose protocol can't be written, and what the store raises: the table
        itself doesn't depend on it.
        """
        snapshot = snapshot or self.snapshot()
        # Of an old version too: a checkpoint of what isn't understood would lose it (`checkpointProtection`).
        check_writable(snapshot.protocol, snapshot.metadata, self.table)
        return self.write_checkpoint(snapshot, sidecar_writer)

    def write_checkpoint(self, snapshot: Snapshot, sidecar_writer: "SidecarWriter | None" = None) -> "LastCheckpoint":
        """`checkpoint` of a version that is known to be one that can be written."""
        # Parquet and all of Arrow: only where a checkpoint is due.
        from .upkeep.checkpoint_writer import point_at, write

        hint = write(self.store, self.log_path, snapshot, self.clock.now_ms(), self.conf, sidecar_writer)
        known = self.reader.last_checkpoint()
        if known is None or known.version <= hint.version or not self._has_checkpoint(known.version):
            point_at(self.store, self.log_path, hint)
        return hint

    def clean_up(
        self, newest: Snapshot | None = None, *, retention_ms: int | None = None, truncate_to_ms: int = DAY_MS
    ) -> CleanUp:
        """Remove the files of the log that have expired: what no version needs that is younger than the retention.

        As after each checkpoint, but whatever `delta.enableExpiredLogCleanup` says. `newest` is the newest version
        where that is known; `retention_ms` takes the place of `delta.logRetentionDuration`, `truncate_to_ms` that of
        the day to whose beginning the time is cut.
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
        """`clean_up` once a day (as the time that counts is cut to the day): in between nothing more can expire."""
        until = cut_off(self.clock.now_ms(), newest.properties.log_retention_ms)
        if until != self._cleaned_until:
            self.clean_up(newest)
            self._cleaned_until = until

    def compact(self, first: int, last: int) -> str:
        """Write the log compaction of the versions `first` to `last`, which readers take in place of their commits.

        Gives its name. Raises VersionNotFoundError for a commit that is missing.
        """
        name = compaction.compact(self.store, self.log_path, self.table, self.reader, first, last)
        assert name is not None
        return name

    def compact_after(self, newest: Snapshot) -> None:
        """`compact` the commits up to the newest version where `delta.logCompactionInterval` says so."""
        interval, version = newest.properties.checkpoint_interval, newest.version
        checkpoint = max(newest.base_version, version // interval * interval or -1)
        found = compaction.window(version, newest.properties.log_compaction_interval, checkpoint)
        if found is not None:
            compaction.compact(self.store, self.log_path, self.table, self.reader, *found, most_bytes=_MOST_COMPACTED)

    def health(self) -> "LogHealth":
        """What is wrong with the log: each of its files is read, nothing is changed. A diagnosis, not for each day."""
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
        """`known` brought up to date by one list and a read for each new commit; `None` to open anew.

        The listing begins at a commit that was listed before: where that file isn't the same any more, the table was
        deleted, replaced or cleaned up, and nothing of what is known may be mixed with what is there now.
        """
        try:
            listing = self.reader.list(known.seen_version)
        except TableNotFoundError:
            return None
        seen = listing.commits.get(known.seen_version)
        if seen is None or (known.seen is not None and seen != known.seen):
            return None
        snapshot = known.snapshot
        newest = max(listing.commits)
        old = snapshot.base_version >= 0 and self.clock.monotonic() - self._opened_at > _OLD_BASE_S
        if newest < snapshot.version or old:
            return None
        if snapshot.tail_actions > _LONG_TAIL:
            # One that was there when the handle opened was either taken then, or couldn't be read.
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
                return None  # opening anew tells whether it is a hole
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

    def _opened(self, version: int | None, unusable: frozenset[str] = frozenset()) -> tuple[Snapshot, Segment]:
        """A version put together from nothing but the store."""
        bad = set(unusable)
        for attempt in range(_TRIES + 1):
            try:
                return self._open_once(version, bad)
            except ReplacedError as error:
                _log.info("%s: the log changed while it was read (%s)", self.table, error)
                if attempt == _TRIES:
                    raise CorruptLogError(
                        f"the log of {self.table} names files that can't be read as listed: {error}"
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
                if not error.names or bad.issuperset(error.names):
                    raise
                _log.warning("%s: %s; falling back to what else makes up the version", self.table, error)
                bad.update(error.names)
                try:
                    if not full:
                        listing, full = self.reader.list(0), True
                    self._segment(listing, version, bad)
                except (MissingCommitError, VersionNotFoundError):
                    # Nothing else makes it up: the damage is what the caller has to know.
                    there = ranges_text(readable(listing, unusable=bad))
                    raise DamagedCheckpointError(
                        f"{error}, and nothing else makes up version {segment.version} of {self.table}. The versions "
                        f"that can be read: {there}. Restore the file or the commits from a copy; "
                        "DeltaLog.for_path(...).health() tells all that is wrong with the log.",
                        error.names,
                    ) from error

    def _recovered(self, version: int, unusable: tuple[str, ...]) -> Snapshot:
        return self._opened(version, frozenset(unusable))[0]

    def _segment(self, listing: Listing, version: int | None, bad: set[str]) -> Segment:
        newest = listing.newest
        if newest is None:
            raise TableNotFoundError(
                f"there is no Delta table at {self.table}: its {LOG_DIRECTORY} holds no commit and no checkpoint"
            )
        if version is not None and not 0 <= version <= newest:
            raise self._no_version(listing, version)
        segment = choose(
            listing, self.table, version=version, unusable=bad, use_compacted=COMPACTED_LOG_READS.of(self.conf)
        )
        if segment is None:
            if version is not None and earliest(listing, self.table) is not None:
                raise self._no_version(listing, version)
            raise MissingCommitError(hole_message(self.table, listing, 0, newest if version is None else version))
        return segment

    def _no_version(self, listing: Listing, version: int) -> VersionNotFoundError:
        first = earliest(listing, self.table)
        there = f"{first} to {listing.newest}" if first is not None else "none"
        return VersionNotFoundError(
            f"version {version} of {self.table} can't be read; the versions that can: {there}",
            condition="DELTA_VERSION_NOT_FOUND",
            parameters={"userVersion": version, "earliest": first, "latest": listing.newest},
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
            )
        commits = self.reader.entries(segment.entries)
        header = base.header if base else Header()
        tail = CommitOverlay(self.table)
        for actions in commits:
            header, tail = header.after(actions), tail.extend(actions)
        last = segment.entries[-1] if segment.entries else None
        told = in_commit_timestamp(commits[-1]) if last and not last.compacted else None
        status = segment.last_commit or (segment.checkpoint.files[-1] if segment.checkpoint else None)
        return Snapshot(
            self.table,
            segment.version,
            header,
            tail,
            base,
            timestamp=self.reader.timestamp_of(segment.version, status, told),
            checksum=self.reader.checksum(segment.checksum),
            fatal=self._fatal,
            doubt=partial(doubt, self.store, self.log_path, self.reader),
        )

    def _at(self, version: int) -> Snapshot:
        """An old version; the newest one is taken from what is known, once it is known to be still so."""
        if self._known is not None and self._known.snapshot.version == version:
            newest = self._newest()
            if newest.version == version:
                return newest
        return self._opened(version)[0]

    # --- history --------------------------------------------------------------------------------------------------

    def version_at(self, timestamp_ms: int, *, can_return_last: bool = False, can_return_first: bool = False) -> int:
        """The version that was the newest at a time in milliseconds since the epoch.

        A time before the first version that can be read, or after the last, is a TimestampOutOfRangeError that names
        the range, unless the flags allow the nearest version. A time that is exactly the last version's is fine.
        """
        listing = self.reader.list(0)
        if listing.newest is None:
            raise TableNotFoundError(f"there is no Delta table at {self.table}")
        first = earliest(listing, self.table)
        times = history.file_times(listing, first or 0, listing.newest) if first is not None else []
        if not times:
            raise VersionNotFoundError(f"no version of {self.table} can be read: its log holds no whole history")
        times = history.travel_times(
            times, in_commit_from(self._newest()), timestamp_ms, self.reader.in_commit_timestamp
        )
        return history.choose_version(
            self.table, times, timestamp_ms, can_return_last=can_return_last, can_return_first=can_return_first
        )

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """The commits that the log still holds, newest first; at most `limit`. A read for each."""
        if limit is not None and limit <= 0:
            raise InvalidArgumentError(f"the limit of a history must be positive, not {limit}")
        newest = self._newest()
        listing = self.reader.list(0 if limit is None else max(newest.version - limit + 1, 0))
        times = history.file_times(listing, 0, newest.version)
        found: dict[int, CommitInfo | None] = {}
        versions = [version for version, _ in times]
        for version, data in zip(versions, self.reader.each([listing.commits[v] for v in versions]), strict=True):
            if data is not None:
                infos = (action for action in self.reader.parsed(version, data) if isinstance(action, CommitInfo))
                found[version] = next(infos, None)
        # A file that cleanup removed while it was read is no longer history.
        times = [item for item in times if item[0] in found]

        def in_commit(version: int) -> int:
            info = found[version]
            if info is None or info.in_commit_timestamp is None:
                raise self.reader.without_timestamp(version)
            return info.in_commit_timestamp

        by_version = history.with_in_commit_timestamps(times, in_commit_from(newest), in_commit)
        return [HistoryEntry(version, by_version[version], found[version]) for version in sorted(found, reverse=True)]

    def find_commit(self, token: str) -> int | None:
        """The version whose commit bears the token in `commitInfo.txnId`, searched from the newest back."""
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
    """The oldest version that the files can make up: 0, or that of the first checkpoint from which on all is there."""
    if 0 in listing.commits:
        return 0
    for checkpoint in listing.checkpoints:
        return checkpoint.version
    return None
