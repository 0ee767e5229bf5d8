"""The handle on a table's log: snapshots, history, transactions and maintenance."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import observe
from ..clock import Clock, SystemClock
from ..error_context import sets_table
from ..errors import InvalidArgumentError, StorageAccessError, TableNotFoundError
from ..logstore.base import FileStatus, LogStore
from ..logstore.registry import store_for
from ..settings import declarations
from ..settings.declarations import CHECKPOINT_PART_SIZE, WRITE_CHECKSUM
from .log.memory_limits import DEFAULT_LIMITS, MemoryLimits
from .log.reader import LogReader
from .log_maintenance import compaction
from .log_maintenance.cleanup import DAY_MS, CleanUp, clean_up, cut_off
from .protocol.actions import Action
from .protocol.features import check_readable, check_writable
from .protocol.paths import LOG_DIRECTORY, above_partitions
from .table import history
from .table.history import HistoryEntry
from .table.newest_snapshot import NewestSnapshot
from .table.snapshot import Snapshot
from .table.snapshot_loader import SnapshotLoader
from .table.version_times import in_commit_from

if TYPE_CHECKING:
    from .log.checkpoint import CheckpointState
    from .log.last_checkpoint import LastCheckpoint
    from .log_maintenance.checkpoint_writer import SidecarWriter
    from .log_maintenance.problems import LogHealth
    from .txn.transaction import Transaction

_READ_AFTER_COMMITS = (
    declarations.WRITE_CHECKSUM,
    declarations.CHECKSUM_LISTS_FILES,
    declarations.CHECKSUM_MAX_FILES,
    declarations.CHECKPOINT_PART_SIZE,
    declarations.CHECKPOINT_V2_FORMAT,
    declarations.COMPACTED_LOG_WRITES,
)
"""These are read after a commit, which can't fail then: the constructor of the handle checks their values."""


def _sorted_commits(*arguments: Any) -> "CheckpointState":
    # This module imports all of Arrow, so it is imported only for a large commit.
    from .log_maintenance.sorted_commits import sorted_commits

    return sorted_commits(*arguments)


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
        for setting in _READ_AFTER_COMMITS:
            setting.of(self.conf)
        self._loader = SnapshotLoader(table, self.log_path, store, self.reader, self.conf, limits, _sorted_commits)
        self._newest = NewestSnapshot(self._loader, self.clock)
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
        snapshot = self._newest.refresh() if version is None else self._at(version)
        check_readable(snapshot.protocol, snapshot.metadata, self.table)
        return snapshot

    def _at(self, version: int) -> Snapshot:
        """An old version; the newest one is taken from the cache, after a check that it is still the newest."""
        if self._newest.is_cached(version):
            newest = self._newest.refresh()
            if newest.version == version:
                return newest
        return self._loader.load(version)[0]

    def transaction(self) -> "Transaction":
        """A transaction on the newest version; where there is no table, its commit can create one.

        Raises InvalidArgumentError where the new table would be in a partition directory of another one, whose VACUUM
        and whose readers of plain files would take the files for its own.
        """
        from .txn.transaction import Transaction

        try:
            snapshot = self.snapshot()
        except TableNotFoundError:
            snapshot = None
            self._check_in_no_partition()
        return Transaction(self, snapshot)

    def _check_in_no_partition(self) -> None:
        for directory, _ in above_partitions(self.table):
            above = DeltaLog(directory, self.store, conf=self.conf, storage_options=self.storage_options)
            try:
                inside = above.exists()
            except StorageAccessError:
                return  # credentials for this table alone: who may write here doesn't work on a table above
            if inside:
                raise InvalidArgumentError(
                    f"{self.table} is a partition directory of the table {directory}: nothing was written. Write to "
                    "the table itself, or choose another place for a new table.",
                    condition="DELTA_UNEXPECTED_PARTIAL_SCAN",
                    parameters={"path": self.table},
                    table=self.table,
                )

    @sets_table
    def committed(self, read: Snapshot | None, commits: Iterable[tuple[int, Sequence[Action]]]) -> Snapshot:
        """Add consecutive commits that followed `read` to the handle, without a request.

        Args:
            read: The snapshot before the commits; `None` for a new table, whose first commit is version 0.
            commits: (version, actions) in order; the last one was made by this process.

        Returns:
            The snapshot of the last commit.
        """
        if read is not None and WRITE_CHECKSUM.of(self.conf) and read.totals() is None:
            # One request, only on the first commit after a large checkpoint: later totals are computed from these.
            read.seed_totals_from_checksum()
        return self._newest.add_commits(read, commits)

    def listed_commit(self, version: int) -> FileStatus | None:
        """The file of the newest commit as it was listed, without a request; None if it isn't known or the newest."""
        return self._newest.listed_commit(version)

    def forget(self) -> None:
        """Read the log again at the next call of `snapshot`."""
        self._newest.forget()

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
    def write_checkpoint(
        self,
        snapshot: Snapshot,
        sidecar_writer: "SidecarWriter | None" = None,
        *,
        part_size: int | None = None,
    ) -> "LastCheckpoint":
        """`checkpoint` of a version whose protocol was checked before.

        `part_size` is the most actions in one file of the checkpoint, where the session sets none.
        """
        # These modules import all of Arrow, so they are imported only when a checkpoint is written.
        from .log_maintenance.checkpoint_writer import point_at, write

        fields = observe.fields(self.table, version=snapshot.version, store=self.store, outcome="written")
        with observe.Stopwatch("checkpoint", self.clock, fields):
            conf = self.conf
            if part_size is not None:
                conf = {CHECKPOINT_PART_SIZE.key: str(part_size), **conf}
            hint = write(self.store, self.log_path, snapshot, self.clock.now_ms(), conf, sidecar_writer)
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
        enabled_from = in_commit_from(newest.properties)

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
        """Diagnose the log: reads each of its files and changes nothing. That takes long for a large log."""
        from .log_maintenance.health import examine

        return examine(self.store, self.log_path, self.table, self.reader, self.clock.now_ms())

    def _has_checkpoint(self, version: int) -> bool:
        return any(checkpoint.version == version for checkpoint in self.reader.list(version).checkpoints)

    # --- history --------------------------------------------------------------------------------------------------

    @sets_table
    def version_at(self, timestamp_ms: int, *, can_return_last: bool = False, can_return_first: bool = False) -> int:
        """The version that was the newest at a time in milliseconds since the epoch.

        A time that equals the last version's is valid.

        Raises:
            TimestampOutOfRangeError: The time is before the first version that can be read, or after the last, and the
                flag doesn't allow the nearest version. The message names the range.
        """
        return history.version_at(
            self._newest, timestamp_ms, can_return_last=can_return_last, can_return_first=can_return_first
        )

    @sets_table
    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """The commits in the log, newest first, at most `limit`. It costs one read for each commit."""
        return history.entries(self._newest, limit)

    @sets_table
    def find_commit(self, token: str) -> int | None:
        """The version whose `commitInfo.txnId` is the token, searched from the newest one; `None`: there is none."""
        return history.find_commit(self.reader, token)
