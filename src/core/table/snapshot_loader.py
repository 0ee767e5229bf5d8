"""Reads one version of a table from its log, without a cache."""

import logging
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from ... import observe
from ...error_context import sets_table
from ...errors import CorruptLogError, MissingCommitError, TableNotFoundError, VersionNotFoundError
from ...logstore.base import LogStore
from ...settings.declarations import COMPACTED_LOG_READS, CORRUPTION_IS_FATAL
from ..log.checkpoint import CheckpointState
from ..log.checkpoint_file import DamagedCheckpointError, ReplacedError
from ..log.large_commits import LARGE_COMMIT, up_to_large
from ..log.memory_limits import MemoryLimits
from ..log.reader import LogReader
from ..log.replay import CommitOverlay, Header, in_commit_timestamp
from ..log.segment import Checkpoint, Listing, LogEntry, Segment, choose, missing_commit, ranges_text, readable
from ..log.version_state import LiveFiles
from ..protocol.paths import LOG_DIRECTORY
from .second_reading import doubt
from .snapshot import Snapshot

_log = logging.getLogger(__name__)

SortCommits: TypeAlias = Callable[
    [
        str,
        LogReader,
        CheckpointState | None,
        Sequence[LogEntry],
        Callable[[tuple[str, ...]], LiveFiles],
        MemoryLimits,
    ],
    CheckpointState,
]
"""See `log_maintenance.sorted_commits`."""

_TRIES = 4
"""How often a version is read again when its files disappear meanwhile (cleanup, or a replaced table)."""


class SnapshotLoader:
    """Loads versions of one table: lists the log, chooses a checkpoint and the commits after it, and replays them."""

    def __init__(
        self,
        table: str,
        log_path: str,
        store: LogStore,
        reader: LogReader,
        conf: Mapping[str, str],
        limits: MemoryLimits,
        sort: "SortCommits",
    ) -> None:
        """`sort` replays commits that are too large for memory."""
        self.table = table
        self.reader = reader
        self.limits = limits
        self.checksum_mismatch_is_fatal = CORRUPTION_IS_FATAL.of(conf)
        self._log_path = log_path
        self.store = store
        self._conf = conf
        self._sort = sort
        self._sorting = threading.RLock()
        self._sorted: tuple[tuple[Checkpoint | None, Sequence[LogEntry]], weakref.ref[CheckpointState]] | None = None
        """The newest result of `sort`, while a snapshot uses it, and the files that it is of."""

    @sets_table
    def load(self, version: int | None, unusable: frozenset[str] = frozenset()) -> tuple[Snapshot, Segment]:
        """Read a version from the store.

        Args:
            version: A version number; `None` stands for the newest version.
            unusable: The names of files that are damaged and not read.

        Returns:
            The snapshot, and the files that it was read from.

        Raises:
            TableNotFoundError: There is no table.
            VersionNotFoundError: The version can't be read; the message names the versions that can.
            CorruptLogError: The log is damaged.
        """
        damaged = set(unusable)
        for attempt in range(_TRIES + 1):
            try:
                return self._load_once(version, damaged)
            except ReplacedError as error:
                fields = observe.fields(
                    self.table, version=version, attempt=attempt + 1, store=self.store, outcome="changed"
                )
                _log.info("%s: the log changed while it was read (%s)", self.table, error, extra=fields)
                if attempt == _TRIES:
                    raise CorruptLogError(
                        f"the log of {self.table} has files that can't be read as they are listed: {error}. Try again; "
                        "DeltaLog.for_path(...).health() lists all damage of the log",
                        table=self.table,
                        version=version,
                    ) from error
        raise AssertionError

    def _load_once(self, version: int | None, damaged: set[str]) -> tuple[Snapshot, Segment]:
        hint = self.reader.last_checkpoint() if version is None and not damaged else None
        listing = self.reader.list(hint.version if hint else 0)
        full = hint is None or hint.version == 0
        while True:
            if not full and not any(c.version >= (hint.version if hint else 0) for c in listing.checkpoints):
                listing, full = self.reader.list(0), True
            segment = self._segment(listing, version, damaged)
            try:
                return self._replayed(segment), segment
            except DamagedCheckpointError as error:
                error.with_context(table=self.table, version=segment.version)
                if not error.names or damaged.issuperset(error.names):
                    raise
                _log.warning(
                    "%s: %s; reading the version from other files of the log instead",
                    self.table,
                    error,
                    extra=observe.fields(self.table, version=segment.version, store=self.store, outcome="damaged"),
                )
                damaged.update(error.names)
                try:
                    if not full:
                        listing, full = self.reader.list(0), True
                    self._segment(listing, version, damaged)
                except (MissingCommitError, VersionNotFoundError):
                    # No other files have the version, so the caller must get the error for the damage.
                    readable_versions = ranges_text(readable(listing, unusable=damaged))
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
        return self.load(version, frozenset(unusable))[0]

    def _segment(self, listing: Listing, version: int | None, damaged: set[str]) -> Segment:
        newest = listing.newest
        if newest is None:
            raise TableNotFoundError(
                f"there is no Delta table at {self.table}: its {LOG_DIRECTORY} has no commit and no checkpoint"
            )
        if version is not None and not 0 <= version <= newest:
            raise self._no_version(listing, version)
        segment = choose(
            listing, self.table, version=version, unusable=damaged, use_compacted=COMPACTED_LOG_READS.of(self._conf)
        )
        if segment is not None and up_to_large(segment.entries):
            # Only commits are read in pieces.
            segment = choose(listing, self.table, version=version, unusable=damaged, use_compacted=False)
        if segment is None:
            if version is not None and listing.earliest is not None:
                raise self._no_version(listing, version)
            raise missing_commit(self.table, listing, 0, newest if version is None else version)
        return segment

    def _no_version(self, listing: Listing, version: int) -> VersionNotFoundError:
        first = listing.earliest
        available = f"{first} to {listing.newest}" if first is not None else "none"
        return VersionNotFoundError(
            f"version {version} of {self.table} can't be read; the versions that can: {available}",
            condition="DELTA_VERSION_NOT_FOUND",
            parameters={"userVersion": version, "earliest": first, "latest": listing.newest},
            table=self.table,
            version=version,
        )

    def _replayed(self, segment: Segment) -> Snapshot:
        base = None
        if segment.checkpoint is not None:
            base = CheckpointState(
                self.store,
                self._log_path,
                self.table,
                segment.checkpoint,
                partial(self._recovered, segment.checkpoint.version),
                self.limits,
            )
        entries = segment.entries
        num_sorted = up_to_large(entries)
        if num_sorted:
            base = self._without_large(segment.checkpoint, base, entries[:num_sorted])
            entries = entries[num_sorted:]
        commits = self.reader.entries(entries)
        header = base.header if base else Header()
        tail = CommitOverlay(self.table)
        for actions in commits:
            header, tail = header.after(actions), tail.extend(actions)
        last = entries[-1] if entries else None
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
            fatal=self.checksum_mismatch_is_fatal,
            doubt=None if num_sorted else partial(doubt, self.store, self._log_path, self.reader),
        )

    def _without_large(
        self, checkpoint: Checkpoint | None, base: CheckpointState | None, commits: Sequence[LogEntry]
    ) -> CheckpointState:
        """The checkpoint of the last of `commits`, which the log lacks, although it or one before it is large."""
        of, version = (checkpoint, commits), commits[-1].version

        def again(names: tuple[str, ...]) -> Snapshot:
            with self._sorting:
                self._sorted = None
            return self._recovered(version, names)

        with self._sorting:  # a second thread waits for the result of the first
            known = self._sorted[1]() if self._sorted is not None and self._sorted[0] == of else None
            if known is not None:
                return known
            _log.warning(
                "%s: version %d has a commit of more than %d MiB and no checkpoint: it is sorted on the local disk, "
                "which takes long. The next commit writes a checkpoint, and DeltaLog.for_path(...).checkpoint() too",
                self.table,
                version,
                LARGE_COMMIT >> 20,
                extra=observe.fields(self.table, version=version, store=self.store, outcome="sorted"),
            )
            state = self._sort(self.table, self.reader, base, commits, again, self.limits)
            self._sorted = of, weakref.ref(state)
            return state
