"""The optimistic transaction: read, stage, prepare, attempt the commit, check for conflicts, retry, follow up."""

import random
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...error_context import sets_table
from ...errors import (
    InvalidArgumentError,
    TableNotFoundError,
    UnsupportedEnvironmentError,
)
from ...settings.declarations import USER_METADATA
from ..iceberg import enabled as iceberg_enabled
from ..log.memory_limits import DEFAULT_LIMITS
from ..protocol import codec, column_mapping, features, iceberg_compat, properties, row_tracking
from ..protocol.actions import Action, CommitInfo, FileKey, Metadata, Protocol, RemoveFile
from ..protocol.rules import without_leftovers
from . import conflict
from .bulk_actions import BulkActions
from .commit import PATIENCE, Patience
from .commit_loop import CommitLoop
from .conflict import IsolationLevel, ReadPredicate, ReadSet, Staged, metadata_changes
from .earlier_commits import EarlierCommits
from .operation import Operation
from .post_commit import after_commit
from .prepare import Base, Prepared, check_removable, check_shape, implied_protocol, prepare, requested
from .record import CommitRecord, begin
from .versioned_fields import ParentVersion

if TYPE_CHECKING:
    import pyarrow as pa

    from ..log_maintenance.checkpoint_writer import SidecarWriter
    from ..skipping.predicates import Predicate
    from ..table.snapshot import Snapshot
    from .writable_log import WritableLog

ENGINE_INFO = f"tablelog/{__version__}"


@dataclass(frozen=True, slots=True)
class Committed:
    """A completed commit. `actions` are those at `version`, without `commit_info`."""

    version: int
    actions: tuple[Action, ...]
    commit_info: CommitInfo
    attempts: int
    milliseconds: int


class Transaction:
    """One optimistic transaction on a table.

    `snapshot` is the version that the transaction reads: the newest one, as `DeltaLog.transaction` returns it, or
    `None` where there is no table yet. A transaction is for one thread and for one commit. It records what it reads,
    so that the commit can decide whether a concurrent commit conflicts with it (see `conflict`).
    """

    def __init__(
        self,
        log: "WritableLog",
        snapshot: "Snapshot | None",
        *,
        dice: Callable[[], float] = random.random,
        new_token: Callable[[], str] = lambda: str(uuid.uuid4()),
        patience: Patience = PATIENCE,
    ) -> None:
        self.snapshot = snapshot
        self.sidecar_writer: SidecarWriter | None = None
        """Writes the sidecars of the checkpoint after this commit; None: the core writes them."""
        self._log = log
        self._dice = dice
        self._new_token = new_token
        self._patience = patience
        self._began = log.clock.monotonic()
        self._listed = None if snapshot is None else log.listed_commit(snapshot.version)
        self._metadata: Metadata | None = None
        self._protocol: Protocol | None = None
        self._predicates: list[ReadPredicate] = []
        self._files: list[pa.Table] = []
        self._paths: set[str] = set()
        self._whole_table = False
        self._app_ids: set[str] = set()
        self._record: CommitRecord | None = None
        self._earlier: EarlierCommits | None = None
        """What the command of this transaction has committed before, and then what is in the log after this commit."""

    def next(self) -> "Transaction":
        """A transaction for the next commit of the same command, which reads the same version.

        The commits of the command must change different files, and not the metadata: they aren't checked against each
        other. It may cost a listing, so that the files of all these commits don't stay in memory.
        """
        earlier = self._earlier
        if earlier is not None and earlier.snapshot.tail_actions > DEFAULT_LIMITS.tail_actions:
            newest = self._log.snapshot()  # from a newer checkpoint, if there is one
            if newest.version == earlier.snapshot.version:
                earlier = replace(earlier, snapshot=newest)
        following = Transaction(
            self._log, self.snapshot, dice=self._dice, new_token=self._new_token, patience=self._patience
        )
        following._earlier = earlier
        return following

    # --- state ----------------------------------------------------------------------------------------------------

    @property
    def table(self) -> str:
        """The canonical root URI of the table."""
        return self._log.table

    @property
    def read_version(self) -> int:
        """The version that the transaction reads; -1 where there is no table yet."""
        return -1 if self.snapshot is None else self.snapshot.version

    @property
    def metadata(self) -> Metadata:
        """The metadata that holds after the commit. Raises TableNotFoundError for a new table without metadata."""
        if self._metadata is not None:
            return self._metadata
        return self._read().metadata

    @property
    def protocol(self) -> Protocol:
        """The protocol that holds after the commit, as far as it is known before it."""
        if self._protocol is not None:
            return self._protocol
        base = self._base()
        implied = None if self._metadata is None else implied_protocol(base, self._metadata)
        return implied or base.protocol or self._read().protocol

    def _base(self) -> Base:
        if self.snapshot is None:
            return Base(self.table, None, None, self._log.conf)
        return Base(self.table, self.snapshot.metadata, self.snapshot.protocol, self._log.conf)

    def _read(self) -> "Snapshot":
        if self.snapshot is None:
            raise TableNotFoundError(f"there is no Delta table at {self.table}", table=self.table)
        return self.snapshot

    @property
    def may_be_committed(self) -> bool:
        """False only if it is certain that nothing was committed: only then may the data files be deleted.

        For callers that catch exceptions which `commit` can't turn into a CommitInterrupted (such as a SystemExit from
        a signal handler).
        """
        return self._record is not None and self._record.committed is not False

    # --- reads ----------------------------------------------------------------------------------------------------

    def read_files(self, predicate: "Predicate | None" = None, *, time_zone: str) -> "pa.Table":
        """Return the files that may hold rows which satisfy `predicate`, and record them as read.

        Args:
            predicate: `None` stands for the whole table.
            time_zone: The time zone of partition timestamps that name none.

        Returns:
            Rows of `Snapshot.files`.
        """
        snapshot = self._read()
        if predicate is None:
            self.read_whole_table()
            return snapshot.files
        files = snapshot.prune(predicate, time_zone=time_zone)
        self.read_predicate(predicate, time_zone=time_zone)
        self._files.append(files)
        return files

    def read_predicate(self, predicate: "Predicate", *, time_zone: str, every_file: bool = False) -> None:
        """Record that the caller selected files by `predicate`; record the files with `read_keys` or `read_table`.

        `time_zone` is the time zone of partition timestamps that name none. With `every_file`, each file counts as read
        whose partition may satisfy the predicate: for a caller that read too many to record them.
        """
        self._predicates.append(ReadPredicate(predicate, time_zone, every_file))

    def read_whole_table(self) -> None:
        """Record the whole table as read: any file that another commit adds or removes is then relevant."""
        self._whole_table = True

    def read_keys(self, keys: Iterable[FileKey]) -> None:
        """Record single files as read."""
        self._paths.update(path for path, _ in keys)

    def read_table(self, files: "pa.Table") -> None:
        """Record the files in a table with the column `path` (rows of `Snapshot.files`) as read."""
        self._files.append(files)

    def transaction_version(self, app_id: str) -> int | None:
        """The version that the application set last, recorded as read (PROTOCOL.md, "Transaction Identifiers")."""
        self._app_ids.add(app_id)
        transaction = None if self.snapshot is None else self.snapshot.transactions.get(app_id)
        return None if transaction is None else transaction.version

    # --- staging --------------------------------------------------------------------------------------------------

    @sets_table
    def set_metadata(self, metadata: Metadata, *, replaces_table: bool = False) -> None:
        """Stage the table's metadata.

        A new table also gets the session's default properties, where `metadata` doesn't set them. In a table with
        column mapping, columns without id and physical name get them here; read them from `metadata`. Changes that the
        operation must allow are checked at the commit.

        Args:
            metadata: The new metadata.
            replaces_table: The operation that is committed replaces the table.

        Raises:
            SchemaMismatchError: The schema isn't valid for a table.
            InvalidArgumentError: A property, the format or a partition column isn't valid.
        """
        old = None if self.snapshot is None else self.snapshot.metadata
        metadata = requested(metadata, old, self._log.conf)
        protocol = None if self.snapshot is None else self.snapshot.protocol
        if protocol is not None and not replaces_table:
            metadata = without_leftovers(metadata, protocol)
        metadata = iceberg_compat.with_ids(metadata, old, protocol, replaces_table=replaces_table)
        check_shape(metadata, self.table, old)
        self._metadata = metadata

    def set_protocol(self, protocol: Protocol) -> None:
        """Stage the table's protocol."""
        self._protocol = protocol

    # --- the commit -----------------------------------------------------------------------------------------------

    @sets_table
    def commit(
        self,
        actions: Iterable[Action],
        operation: Operation,
        *,
        user_metadata: str | None = None,
        tags: Mapping[str, str] | None = None,
        engine_info: str = ENGINE_INFO,
        bulk: BulkActions | None = None,
    ) -> Committed:
        """Commit `actions` at the next free version, rebased onto the commits that came first.

        Args:
            actions: Everything to commit except the `commitInfo`.
            operation: The description of the operation for the `commitInfo`, and what it is allowed to change.
            user_metadata: `commitInfo.userMetadata`; `None`: the session's setting.
            tags: `commitInfo.tags`.
            engine_info: `commitInfo.engineInfo`.
            bulk: Removes files of the version that was read (`actions` then remove none of these), or replaces all of
                them by those of another version (`actions` then have none); in pieces.

        Returns:
            The commit, which is then in the log.

        Raises:
            DeltaConcurrentModificationException: Nothing was committed; run the operation again.
            CommitStateUnknownError: It is unknown whether the commit is in the log.
            CommitInterrupted: A KeyboardInterrupt came after the first write; the error says what was committed. An
                earlier KeyboardInterrupt is raised unchanged.
            TablelogError: The errors of `prepare` and of the store; nothing was committed.
        """
        if self._record is not None:
            raise InvalidArgumentError(
                f"this transaction on {self.table} was committed before: begin a new transaction for the next commit"
            )
        self._record = begin(self.table, operation.name)
        loop = CommitLoop(
            self._log,
            self._record,
            self._parent(),
            read_at=self._began,
            listed=self._listed if self._earlier is None else None,
            dice=self._dice,
            patience=self._patience,
            bulk=bulk,
            others=() if self._earlier is None else self._earlier.others,
        )
        try:
            return self._commit(loop, actions, operation, user_metadata, tags, engine_info, bulk)
        except KeyboardInterrupt as interrupt:
            raise loop.interrupted() or interrupt from None

    def _commit(
        self,
        loop: CommitLoop,
        actions: Iterable[Action],
        operation: Operation,
        user_metadata: str | None,
        tags: Mapping[str, str] | None,
        engine_info: str,
        bulk: BulkActions | None,
    ) -> Committed:
        log = self._log
        began = log.clock.monotonic()
        if log.store.partial_writes_visible:
            raise UnsupportedEnvironmentError(
                f"readers of {type(log.store).__name__} may see a part of a file: a commit through it could damage the "
                f"log of {self.table}. Choose another LogStore"
            )
        staged, reads, level = self._prepare(actions, operation, bulk)
        info = CommitInfo(
            timestamp=log.clock.now_ms(),
            operation=operation.name,
            operation_parameters=codec.operation_parameters(operation.parameters),
            read_version=self.read_version if self.read_version >= 0 or operation.names_absent_version else None,
            isolation_level=level.value,
            is_blind_append=staged.blind_append,
            operation_metrics={name: str(value) for name, value in operation.metrics.items()} or None,
            user_metadata=user_metadata if user_metadata is not None else USER_METADATA.of(log.conf),
            tags=self._tags(staged, tags),
            engine_info=engine_info,
            txn_id=self._new_token(),
        )
        commit = loop.run(staged, info, reads, level)
        milliseconds = round((log.clock.monotonic() - began) * 1000)
        snapshot = after_commit(
            log,
            self._newest_known,
            winners=commit.winners,
            version=commit.version,
            info=commit.info,
            actions=commit.actions,
            sidecar_writer=self.sidecar_writer,
            bulk=commit.bulk,
        )
        others = () if self._earlier is None else self._earlier.others
        self._earlier = None if snapshot is None else EarlierCommits(snapshot, (*others, *commit.winners))
        return Committed(commit.version, commit.actions, commit.info, commit.attempts, milliseconds)

    @property
    def _newest_known(self) -> "Snapshot | None":
        """The version after which the commit looks for others: the one that was read, or the command's last commit."""
        return self.snapshot if self._earlier is None else self._earlier.snapshot

    def _parent(self) -> ParentVersion:
        snapshot = self._newest_known
        if snapshot is None:
            return ParentVersion()
        return ParentVersion(
            snapshot.version,
            snapshot.metadata,
            snapshot.protocol,
            lambda: snapshot.timestamp_ms,
            row_tracking.high_water_mark(snapshot.domain_metadata) if row_tracking.supported(snapshot.protocol) else -1,
        )

    def _tags(self, staged: Staged, tags: Mapping[str, str] | None) -> Mapping[str, str] | None:
        """The tags of the commit: the caller's, and those that describe a change of metadata to concurrent writers."""
        snapshot = self.snapshot
        if snapshot is None or not staged.writes_metadata:
            return tags
        if metadata_changes.identity_only(snapshot.metadata, staged.metadata):
            return {metadata_changes.IDENTITY_ONLY_TAG: "true", **(tags or {})}
        if metadata_changes.enables_tracking_only(snapshot.metadata, staged.metadata):
            return {metadata_changes.TRACKING_ONLY_TAG: "true", **(tags or {})}
        return tags

    def _prepare(
        self, actions: Iterable[Action], operation: Operation, bulk: BulkActions | None
    ) -> tuple[Staged, ReadSet, IsolationLevel]:
        base = self._base()
        if bulk is not None:
            self._whole_table = self._whole_table or bulk.every_file
            if bulk.num_removed and bulk.data_change:
                check_removable(base)
        prepared = prepare(base, actions, operation, metadata=self._metadata, protocol=self._protocol)
        snapshot = self.snapshot
        changed = snapshot is not None and prepared.metadata is not snapshot.metadata
        if snapshot is not None and changed and not column_mapping.same_layout(snapshot.mapping, prepared.metadata):
            # The commit must remove every file of the old layout, also those that concurrent commits add.
            self._whole_table = True
        if snapshot is not None and changed:
            _check_row_ids(snapshot, prepared, bulk)
        iceberg_enabled.check(
            prepared.metadata, base.metadata, prepared.actions, self.table, lambda: _tagged_files(snapshot)
        )
        reads = ReadSet(
            tuple(self._predicates),
            tuple(self._files),
            frozenset(self._paths),
            self._whole_table,
            frozenset(self._app_ids),
        )
        staged = Staged(
            table=self.table,
            actions=prepared.actions,
            metadata=prepared.metadata,
            protocol=prepared.protocol,
            read_metadata=base.metadata,
            read_version=self.read_version,
            blind_append=not (reads.depends_on_files or operation.restates_files)
            and conflict.only_adds(prepared.actions),
            drops_features=snapshot is not None
            and bool(features.supported(snapshot.protocol) - features.supported(prepared.protocol)),
            restates_files=operation.restates_files,
            readds_files=operation.readds_files,
            in_bulk=bulk is not None,
            adds_in_bulk=bulk is not None and bulk.num_added > 0,
            removes_in_bulk=bulk is not None and bulk.num_removed > 0,
        )
        level = isolation_level(prepared.metadata)
        if bulk is not None and bulk.data_change:
            return staged, reads, level
        return staged, reads, conflict.level_for(prepared.actions, level, changes_data=operation.changes_data)


def _tagged_files(snapshot: "Snapshot | None") -> "Iterable[Mapping[str, Any]]":
    """The path and the tags of each file."""
    return [] if snapshot is None else snapshot.files.select(["path", "tags"]).to_pylist()


def _check_row_ids(snapshot: "Snapshot", prepared: Prepared, bulk: BulkActions | None) -> None:
    """Raise InvalidArgumentError where row tracking is enabled on files without row ids.

    PROTOCOL.md, "Row Tracking".
    """
    if not row_tracking.enabled(prepared.protocol, prepared.metadata) or row_tracking.enabled(
        snapshot.protocol, snapshot.metadata
    ):
        return
    if bulk is not None:
        number = bulk.unnumbered
    else:
        removed = {action.path for action in prepared.actions if isinstance(action, RemoveFile)}
        files = snapshot.files
        without = files.filter(files.column("baseRowId").is_null()).column("path").to_pylist()
        number = sum(path not in removed for path in without)
    if number:
        raise InvalidArgumentError(
            f"{row_tracking.ENABLED} can't be set on {snapshot.table}: {number} files have no row ids yet. "
            "Set it with DeltaTable.setProperties, which assigns them first"
        )


def isolation_level(metadata: Metadata) -> IsolationLevel:
    """The table's `delta.isolationLevel`; the default is Serializable."""
    return IsolationLevel(properties.TableProperties.of(metadata).isolation_level)
