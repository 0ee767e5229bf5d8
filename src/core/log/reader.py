"""The store requests of reading a log: listings, and reads of the listed files."""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from ...clock import Clock
from ...errors import CorruptLogError, TableNotFoundError, VersionNotFoundError
from ...logstore.base import FileStatus, LogStore
from ..protocol.actions import Action, CommitInfo
from ..protocol.codec import parse_commit
from ..protocol.paths import LAST_CHECKPOINT, LOG_DIRECTORY, commit_name, listing_name
from . import checksum, large_commits, last_checkpoint
from .checkpoint_file import DamagedCheckpointError, ReplacedError
from .replay import unreconciled
from .segment import Listing, LogEntry, name_of, parse_listing

_log = logging.getLogger(__name__)

_THREADS = 8
_LARGEST_HINT = 16 << 20
_LARGEST_CHECKSUM = 256 << 20
"""Larger files aren't read: the table can be read without them."""
_SLOW_READ_S = 0.002
"""If a read takes longer than this, the others are done in parallel threads."""
_MOST_WARNINGS = 100
"""The most engines that a handle warns about: engine names come from the writers and are unlimited."""
_AT_ONCE = 64
_AT_ONCE_BYTES = 16 << 20
"""The most files, and bytes of files, that `each` has in memory at a time; at least one file."""


def whole(data: bytes) -> Sequence[Action]:
    """Parse a commit or a compaction; CorruptLogError if it is incomplete.

    An empty file is an incomplete write: treating it as a commit without actions would lose the actions.
    """
    if not data.strip():
        raise CorruptLogError("the file is empty: its write was incomplete, or it was emptied later")
    return parse_commit(data)


class LogReader:
    """Reads the log of one table on one store. It has no state of the table."""

    def __init__(self, table: str, log_path: str, store: LogStore, clock: Clock) -> None:
        self._table = table
        self._log_path = log_path
        self._store = store
        self._clock = clock
        self._warned_of: set[str] = set()

    def list(self, version: int) -> Listing:
        """The files of `version` and later, in one listing; TableNotFoundError if there is no log directory."""
        try:
            return parse_listing(self._store.list_from(f"{self._log_path}/{listing_name(version)}"))
        except FileNotFoundError:
            raise TableNotFoundError(
                f"there is no Delta table at {self._table}: it has no {LOG_DIRECTORY} directory", table=self._table
            ) from None

    def last_checkpoint(self) -> last_checkpoint.LastCheckpoint | None:
        """The hint where to start the listing; `None` when there is none, or it is damaged."""
        try:
            data = self._store.read_at_most(f"{self._log_path}/{LAST_CHECKPOINT}", _LARGEST_HINT)
        except FileNotFoundError:
            return None
        except CorruptLogError as error:
            _log.info("%s can't be used (%s): the whole log is listed instead", LAST_CHECKPOINT, error)
            return None
        return last_checkpoint.parse(data)

    def read(self, status: FileStatus) -> bytes | None:
        """The content of a listed file; `None` when it no longer exists."""
        try:
            return self._store.read(status.path)
        except FileNotFoundError:
            return None

    def each(self, statuses: Sequence[FileStatus]) -> "Iterator[bytes | None]":
        """`read` of each file, in order; only some are in memory at a time."""
        batch: list[FileStatus] = []
        size = 0
        for status in statuses:
            if batch and (len(batch) == _AT_ONCE or size + status.size > _AT_ONCE_BYTES):
                yield from self.many(batch)
                batch, size = [], 0
            batch.append(status)
            size += status.size
        yield from self.many(batch)

    def many(self, statuses: Sequence[FileStatus]) -> "Sequence[bytes | None]":
        """`read` of each file, in order; in parallel if the reads are slow."""
        contents: list[bytes | None] = []
        for index, status in enumerate(statuses):
            started = self._clock.monotonic()
            contents.append(self.read(status))
            if len(statuses) - index > 2 and self._clock.monotonic() - started > _SLOW_READ_S:
                with ThreadPoolExecutor(_THREADS) as pool:
                    contents.extend(pool.map(self.read, statuses[index + 1 :]))
                break
        return contents

    def commit(self, version: int) -> Sequence[Action]:
        """The actions of a commit, in order; VersionNotFoundError when the file doesn't exist."""
        return self.parsed(version, self.commit_bytes(version))

    def commit_bytes(self, version: int) -> bytes:
        """The content of a commit file; VersionNotFoundError when it doesn't exist."""
        try:
            return self._store.read(f"{self._log_path}/{commit_name(version)}")
        except FileNotFoundError:
            raise self._missing_version(version) from None

    def _missing_version(self, version: int) -> VersionNotFoundError:
        return VersionNotFoundError(
            f"the commit of version {version} of {self._table} no longer exists: it was removed from the log",
            table=self._table,
            version=version,
            path=commit_name(version),
        )

    def batches(self, version: int, status: FileStatus) -> Iterator[Sequence[Action]]:
        """The actions of a listed commit, in order; only a part of a large one is in memory. Nothing, if it is gone.

        Raises the errors of `parsed`.
        """
        if not large_commits.is_large(status):
            data = self.read(status)
            if data is not None:
                yield self.parsed(version, data)
            return
        with suppress(FileNotFoundError):
            for batch in self.lines(version, status.path):
                yield [action for _, action in batch]

    def lines(self, version: int, path: str) -> Iterator[Sequence[tuple[bytes, Action]]]:
        """The lines of a commit and their actions, in order; only a part of them is in memory.

        Raises FileNotFoundError, and the errors of `parsed`.
        """
        with self._store.open_file(path) as file:
            try:
                for batch in large_commits.batches(file):
                    if self._store.endangered_by:
                        self._warn_of_writer(version, [action for _, action in batch])
                    yield batch
            except CorruptLogError as error:
                raise self._corrupt(version, error) from error

    def listed_lines(self, entry: LogEntry) -> Iterator[Sequence[tuple[bytes, Action]]]:
        """`lines` of a listed commit. Raises ReplacedError if it was removed since it was listed."""
        try:
            yield from self.lines(entry.version, entry.status.path)
        except FileNotFoundError:
            raise ReplacedError(f"{name_of(entry.status)} no longer exists") from None

    def each_action(self, version: int) -> Iterator[Action]:
        """`commit` with only a part of the actions in memory; the commit isn't read beyond what is asked for."""
        try:
            for batch in self.lines(version, f"{self._log_path}/{commit_name(version)}"):
                for _, action in batch:
                    yield action
        except FileNotFoundError:
            raise self._missing_version(version) from None

    def commit_info(self, version: int) -> CommitInfo | None:
        """The commitInfo of a commit, which isn't read beyond it: mostly the first line. None: there is none.

        Raises VersionNotFoundError when the commit doesn't exist.
        """
        return next((action for action in self.each_action(version) if isinstance(action, CommitInfo)), None)

    def in_commit_timestamp(self, version: int) -> int:
        """The in-commit timestamp of a version, read from its commit."""
        info = self.commit_info(version)
        if info is None or info.in_commit_timestamp is None:
            raise self.without_timestamp(version)
        return info.in_commit_timestamp

    def without_timestamp(self, version: int) -> CorruptLogError:
        """The error for a commit without the in-commit timestamp that the table requires."""
        return CorruptLogError(
            f"version {version} of {self._table} has no in-commit timestamp, although the table has them enabled. "
            "Restore the log from a copy",
            table=self._table,
            version=version,
            path=commit_name(version),
        )

    def timestamp_of(
        self, version: int, status: FileStatus | None, known_timestamp: int | None
    ) -> Callable[[bool], int]:
        """A function that returns the time of a version; `known_timestamp` is its in-commit timestamp, if known."""

        def timestamp(in_commit: bool) -> int:
            if in_commit:
                return self.in_commit_timestamp(version) if known_timestamp is None else known_timestamp
            if status is not None:
                return status.modification_time_ms
            listed = self.list(version).commits.get(version)
            if listed is None:
                raise self._missing_version(version)
            return listed.modification_time_ms

        return timestamp

    def parsed(self, version: int, data: bytes) -> Sequence[Action]:
        """Parse the content of a commit; CorruptLogError names table, version and line."""
        try:
            actions = whole(data)
        except CorruptLogError as error:
            raise self._corrupt(version, error) from error
        if self._store.endangered_by:
            self._warn_of_writer(version, actions)
        return actions

    def _corrupt(self, version: int, error: CorruptLogError) -> CorruptLogError:
        return CorruptLogError(
            f"version {version} of {self._table}: {error}. Restore {commit_name(version)} from a copy; "
            "DeltaLog.for_path(...).health() shows which versions can be read without it.",
            table=self._table,
            version=version,
            path=commit_name(version),
        )

    def _warn_of_writer(self, version: int, actions: Sequence[Action]) -> None:
        """Warn, once for each handle and engine, that a writer doesn't use this store's mutual exclusion."""
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

        Raises:
            ReplacedError: A file was removed or replaced since it was listed.
            DamagedCheckpointError: A log compaction can't be read; the caller can read the commits instead.
        """
        actions: list[Sequence[Action]] = []
        for entry, data in zip(entries, self.each([entry.status for entry in entries]), strict=True):
            name = name_of(entry.status)
            if data is None or len(data) != entry.status.size:
                raise ReplacedError(f"{name} no longer exists, or its size differs from the listed one")
            if not entry.compacted:
                actions.append(self.parsed(entry.version, data))
                continue
            try:
                actions.append(self.compacted(data))
            except CorruptLogError as error:
                raise DamagedCheckpointError(f"the log compaction {name}: {error}", (name,), path=name) from error
        return actions

    def compacted(self, data: bytes) -> Sequence[Action]:
        """Parse a log compaction; CorruptLogError if it is incomplete or isn't reconciled."""
        actions = whole(data)
        reason = unreconciled(actions, self._table)
        if reason is not None:
            raise CorruptLogError(f"it isn't reconciled: {reason}")
        return actions

    def checksum(self, status: FileStatus | None) -> Callable[[], checksum.VersionChecksum | None] | None:
        """A function that reads the listed version checksum, in one request; it returns `None` for an invalid one."""
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
