"""The requests that reading a log makes: listing it, and the files that it names."""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from ...clock import Clock
from ...errors import CorruptLogError, TableNotFoundError, VersionNotFoundError
from ...logstore.base import FileStatus, LogStore
from ..protocol.actions import Action, CommitInfo
from ..protocol.codec import parse_commit
from ..protocol.paths import LAST_CHECKPOINT, LOG_DIRECTORY, commit_name, listing_name
from . import checksum, last_checkpoint
from .checkpoint_file import DamagedCheckpointError, ReplacedError
from .replay import in_commit_timestamp, unreconciled
from .segment import Listing, LogEntry, name_of, parse_listing

_log = logging.getLogger(__name__)

_THREADS = 8
_LARGEST_HINT = 16 << 20
_LARGEST_CHECKSUM = 256 << 20
"""Beyond these sizes the two files are left alone: nothing depends on them."""
_SLOW_READ_S = 0.002
"""A read that takes longer than this is worth a thread."""
_MOST_WARNINGS = 100
"""Of how many engines a handle warns: what they are called is up to whoever commits."""
_AT_ONCE = 64
_AT_ONCE_BYTES = 16 << 20
"""How many files, and bytes of them, `each` has in memory at a time; at least one file."""


def whole(data: bytes) -> Sequence[Action]:
    """The actions of a commit or a compaction; CorruptLogError for one that isn't whole.

    One with nothing in it was torn: to take it for a commit that does nothing would lose what it did.
    """
    if not data.strip():
        raise CorruptLogError("the file is empty: it was torn when it was written, or emptied since")
    return parse_commit(data)


class LogReader:
    """The log of one table on one store; holds no state of the table."""

    def __init__(self, table: str, log_path: str, store: LogStore, clock: Clock) -> None:
        self._table = table
        self._log_path = log_path
        self._store = store
        self._clock = clock
        self._warned_of: set[str] = set()

    def list(self, version: int) -> Listing:
        """The files of `version` and later; TableNotFoundError where there is no log directory. One list."""
        try:
            return parse_listing(self._store.list_from(f"{self._log_path}/{listing_name(version)}"))
        except FileNotFoundError:
            raise TableNotFoundError(
                f"there is no Delta table at {self._table}: it has no {LOG_DIRECTORY} directory"
            ) from None

    def last_checkpoint(self) -> last_checkpoint.LastCheckpoint | None:
        """The hint where to list from; `None` when there is none, or it is damaged."""
        try:
            data = self._store.read_at_most(f"{self._log_path}/{LAST_CHECKPOINT}", _LARGEST_HINT)
        except FileNotFoundError:
            return None
        except CorruptLogError as error:
            _log.info("%s can't be used (%s): the whole log is listed instead", LAST_CHECKPOINT, error)
            return None
        return last_checkpoint.parse(data)

    def read(self, status: FileStatus) -> bytes | None:
        """The content of a listed file; `None` when it is gone."""
        try:
            return self._store.read(status.path)
        except FileNotFoundError:
            return None

    def each(self, statuses: Sequence[FileStatus]) -> "Iterator[bytes | None]":
        """`read` of each, in order, of which some are in memory at a time."""
        some: list[FileStatus] = []
        size = 0
        for status in statuses:
            if some and (len(some) == _AT_ONCE or size + status.size > _AT_ONCE_BYTES):
                yield from self.many(some)
                some, size = [], 0
            some.append(status)
            size += status.size
        yield from self.many(some)

    def many(self, statuses: Sequence[FileStatus]) -> "Sequence[bytes | None]":
        """`read` of each, in order; in parallel once a read turns out to be slow."""
        found: list[bytes | None] = []
        for index, status in enumerate(statuses):
            started = self._clock.monotonic()
            found.append(self.read(status))
            if len(statuses) - index > 2 and self._clock.monotonic() - started > _SLOW_READ_S:
                with ThreadPoolExecutor(_THREADS) as pool:
                    found.extend(pool.map(self.read, statuses[index + 1 :]))
                break
        return found

    def commit(self, version: int) -> Sequence[Action]:
        """The actions of a commit, in order; VersionNotFoundError when its file isn't there."""
        return self.parsed(version, self.commit_bytes(version))

    def commit_bytes(self, version: int) -> bytes:
        """The bytes of a commit; VersionNotFoundError when its file isn't there."""
        try:
            return self._store.read(f"{self._log_path}/{commit_name(version)}")
        except FileNotFoundError:
            raise self._gone(version) from None

    def _gone(self, version: int) -> VersionNotFoundError:
        return VersionNotFoundError(f"the commit of version {version} of {self._table} is gone")

    def in_commit_timestamp(self, version: int) -> int:
        """The in-commit timestamp of a version, from its file."""
        found = in_commit_timestamp(self.commit(version))
        if found is None:
            raise self.without_timestamp(version)
        return found

    def without_timestamp(self, version: int) -> CorruptLogError:
        """The error of a commit that lacks the in-commit timestamp that the table has enabled."""
        return CorruptLogError(
            f"version {version} of {self._table} has no in-commit timestamp, although the table has them enabled"
        )

    def timestamp_of(self, version: int, status: FileStatus | None, told: int | None) -> Callable[[bool], int]:
        """When a version was committed, once it is asked for; `told` is its in-commit timestamp if that was seen."""

        def timestamp(in_commit: bool) -> int:
            if in_commit:
                return self.in_commit_timestamp(version) if told is None else told
            if status is not None:
                return status.modification_time_ms
            listed = self.list(version).commits.get(version)
            if listed is None:
                raise self._gone(version)
            return listed.modification_time_ms

        return timestamp

    def parsed(self, version: int, data: bytes) -> Sequence[Action]:
        """The actions in the bytes of a commit; CorruptLogError names table, version and line."""
        try:
            actions = whole(data)
        except CorruptLogError as error:
            raise CorruptLogError(
                f"version {version} of {self._table}: {error}. Restore {commit_name(version)} from a copy; "
                "DeltaLog.for_path(...).health() tells which versions can be read without it."
            ) from error
        if self._store.endangered_by:
            self._warn_of_writer(version, actions)
        return actions

    def _warn_of_writer(self, version: int, actions: Sequence[Action]) -> None:
        """Say, once for each handle and engine, that a commit's writer doesn't keep to this store's exclusion."""
        for action in actions:
            engine = action.engine_info if isinstance(action, CommitInfo) else None
            if not engine or engine in self._warned_of or len(self._warned_of) >= _MOST_WARNINGS:
                continue
            for part, why in self._store.endangered_by.items():
                if part in engine:
                    self._warned_of.add(engine)
                    _log.warning(
                        "version %d of %s was committed by %s: %s. Such a writer and this one may not share a log: see "
                        "'Who may share a log' in docs/stores.md",
                        version, self._table, engine, why,
                    )  # fmt: skip

    def entries(self, entries: Sequence[LogEntry]) -> Sequence[Sequence[Action]]:
        """The actions of each entry, in order.

        `ReplacedError` when one isn't as it was listed, `DamagedCheckpointError` for a log compaction that can't be
        read: the commits that it stands for will do.
        """
        found: list[Sequence[Action]] = []
        for entry, data in zip(entries, self.each([entry.status for entry in entries]), strict=True):
            name = name_of(entry.status)
            if data is None or len(data) != entry.status.size:
                raise ReplacedError(f"{name} is gone or of another size than listed")
            if not entry.compacted:
                found.append(self.parsed(entry.version, data))
                continue
            try:
                found.append(self.compacted(data))
            except CorruptLogError as error:
                raise DamagedCheckpointError(f"the log compaction {name}: {error}", (name,)) from error
        return found

    def compacted(self, data: bytes) -> Sequence[Action]:
        """The actions of a log compaction; CorruptLogError for one that isn't whole, or isn't reconciled."""
        actions = whole(data)
        reason = unreconciled(actions, self._table)
        if reason is not None:
            raise CorruptLogError(f"it isn't reconciled: {reason}")
        return actions

    def checksum(self, status: FileStatus | None) -> Callable[[], checksum.VersionChecksum | None] | None:
        """How to get the version checksum that was listed, in one read; one that can't be used is none."""
        if status is None:
            return None

        def read() -> checksum.VersionChecksum | None:
            try:
                if status.size > _LARGEST_CHECKSUM:
                    raise CorruptLogError(f"it has {status.size} bytes")
                data = self.read(status)
                if data is None or len(data) != status.size:
                    return None
                return checksum.parse(data)
            except CorruptLogError as error:
                _log.warning("%s: %s can't be used: %s", self._table, name_of(status), error)
                return None

        return read
