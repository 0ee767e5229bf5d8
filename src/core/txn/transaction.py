"""The optimistic transaction: read, stage, then prepare -> attempt -> check and retry -> after the commit."""

import logging
import random
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ... import __version__
from ...errors import (
    CommitInterrupted,
    CommitStateUnknownError,
    ConcurrentWriteException,
    InvalidArgumentError,
    MissingCommitError,
    TableNotFoundError,
    UnsupportedEnvironmentError,
)
from ...settings.honoured import MAX_COMMIT_ATTEMPTS, USER_METADATA
from ..protocol import codec, column_mapping, features, paths, properties, row_tracking
from ..protocol.actions import Action, CommitInfo, FileKey, Metadata, Protocol, RemoveFile
from ..protocol.rules import without_leftovers
from . import conflict, metadata_changes
from .commit import PATIENCE, Lost, Outcome, Patience, Unknown, Won, attempt, look
from .conflict import IsolationLevel, ReadPredicate, ReadSet, Staged, Winner
from .operation import Operation
from .post_commit import after_commit
from .prepare import Base, Prepared, check_shape, implied_protocol, prepare, requested
from .record import CommitRecord, begin
from .versioned_fields import ParentVersion, stamped

if TYPE_CHECKING:
    import pyarrow as pa

    from ..skipping.predicates import Predicate
    from ..table.snapshot import Snapshot
    from ..upkeep.checkpoint_writer import SidecarWriter
    from .writable_log import WritableLog

logger = logging.getLogger(__name__)

ENGINE_INFO = f"tablelog/{__version__}"

# Log cleanup never removes what is this young, so a version that is absent after it was listed is free.
_LISTING_IS_FRESH_S = 60.0
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 1.0


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit that was made. `actions` are those at `version`, without `commit_info`."""

    version: int
    actions: tuple[Action, ...]
    commit_info: CommitInfo
    attempts: int
    milliseconds: int


class Transaction:
    """One optimistic transaction on a table.

    `snapshot` is what it reads: the newest one, as `DeltaLog.transaction` gives it, or `None` where there is no table
    yet. It is for one thread, and for one commit. What it reads is recorded, so that the commit can tell whether a
    concurrent one matters: see `conflict`.
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
        """Who may write the sidecars of the checkpoint after this commit; None: nobody but the core."""
        self._log = log
        self._dice = dice
        self._new_token = new_token
        self._patience = patience
        self._began = log.clock.monotonic()
        self._metadata: Metadata | None = None
        self._protocol: Protocol | None = None
        self._predicates: list[ReadPredicate] = []
        self._files: list[pa.Table] = []
        self._paths: set[str] = set()
        self._whole_table = False
        self._app_ids: set[str] = set()
        self._record: CommitRecord | None = None
        self._data = b""
        """The bytes of the attempt that the record is about."""

    # --- what it sees ---------------------------------------------------------------------------------------------

    @property
    def table(self) -> str:
        """The canonical root URI of the table."""
        return self._log.table

    @property
    def read_version(self) -> int:
        """The version that it reads; -1 where there is no table yet."""
        return -1 if self.snapshot is None else self.snapshot.version

    @property
    def metadata(self) -> Metadata:
        """The metadata that will be in force after the commit; TableNotFoundError for a new table with none set."""
        if self._metadata is not None:
            return self._metadata
        return self._read().metadata

    @property
    def protocol(self) -> Protocol:
        """The protocol that will be in force after the commit, as far as it is known before it."""
        if self._protocol is not None:
            return self._protocol
        base = self._base()
        known = None if self._metadata is None else implied_protocol(base, self._metadata)
        return known or base.protocol or self._read().protocol

    def _base(self) -> Base:
        if self.snapshot is None:
            return Base(self.table, None, None, self._log.conf)
        return Base(self.table, self.snapshot.metadata, self.snapshot.protocol, self._log.conf)

    def _read(self) -> "Snapshot":
        if self.snapshot is None:
            raise TableNotFoundError(f"there is no Delta table at {self.table}")
        return self.snapshot

    @property
    def may_be_committed(self) -> bool:
        """False only while it is certain that nothing was committed: then, and only then, its data files may go.

        For whoever catches what `commit` can't turn into a CommitInterrupted (SystemExit from a signal handler).
        """
        return self._record is not None and self._record.committed is not False

    # --- what it reads --------------------------------------------------------------------------------------------

    def read_files(self, predicate: "Predicate | None" = None, *, time_zone: str) -> "pa.Table":
        """The files that may hold a row of `predicate` (`None`: all of the table), recorded as read.

        The rows are those of `Snapshot.files`. `time_zone` is that of partition timestamps that name none.
        """
        snapshot = self._read()
        if predicate is None:
            self.read_whole_table()
            return snapshot.files
        files = snapshot.prune(predicate, time_zone=time_zone)
        self.read_predicate(predicate, time_zone=time_zone)
        self._files.append(files)
        return files

    def read_predicate(self, predicate: "Predicate", *, time_zone: str) -> None:
        """Record that files were chosen by `predicate` elsewhere; say which with `read_keys` or `read_table`.

        `time_zone` is that in which partition timestamps that name none were read.
        """
        self._predicates.append(ReadPredicate(predicate, time_zone))

    def read_whole_table(self) -> None:
        """Record the whole table as read: any file that another commit adds or removes then matters."""
        self._whole_table = True

    def read_keys(self, keys: Iterable[FileKey]) -> None:
        """Record single files as read."""
        self._paths.update(path for path, _ in keys)

    def read_table(self, files: "pa.Table") -> None:
        """Record the files in a table with the column `path` (rows of `Snapshot.files`) as read."""
        self._files.append(files)

    def transaction_version(self, app_id: str) -> int | None:
        """The version that the application has set last, recorded as read (PROTOCOL.md, "Transaction Identifiers")."""
        self._app_ids.add(app_id)
        found = None if self.snapshot is None else self.snapshot.transactions.get(app_id)
        return None if found is None else found.version

    # --- what it stages -------------------------------------------------------------------------------------------

    def set_metadata(self, metadata: Metadata, *, replaces_table: bool = False) -> None:
        """Stage the table's metadata; of a new table, the session's default properties are put under its own.

        Where the table maps its columns, those that have no id and physical name get them here: `metadata` says which.
        `replaces_table`: the operation that is committed replaces the table. Raises SchemaMismatchError or
        InvalidArgumentError. Changes that the operation must allow are checked at the commit.
        """
        old = None if self.snapshot is None else self.snapshot.metadata
        metadata = requested(metadata, old, self._log.conf)
        protocol = None if self.snapshot is None else self.snapshot.protocol
        if protocol is not None and not replaces_table:
            metadata = without_leftovers(metadata, protocol)
        metadata = column_mapping.assigned(metadata, old, protocol, replaces_table=replaces_table)
        check_shape(metadata, self.table)
        self._metadata = metadata

    def set_protocol(self, protocol: Protocol) -> None:
        """Stage the table's protocol."""
        self._protocol = protocol

    # --- the commit -----------------------------------------------------------------------------------------------

    def commit(
        self,
        actions: Iterable[Action],
        operation: Operation,
        *,
        user_metadata: str | None = None,
        tags: Mapping[str, str] | None = None,
        engine_info: str = ENGINE_INFO,
    ) -> Committed:
        """Commit `actions` at the next free version, rebased onto what others committed since.

        Returns once the commit is in the log. Raises a `DeltaConcurrentModificationException` (nothing was committed:
        run the operation again), the errors of `prepare` or of the store (nothing was committed), or
        CommitStateUnknownError. A KeyboardInterrupt before anything was written comes through as it is, a later one
        as CommitInterrupted, which says what became of the commit.
        """
        if self._record is not None:
            raise InvalidArgumentError(f"this transaction on {self.table} was committed before: begin another one")
        self._record = begin(self.table, operation.name)
        try:
            return self._commit(actions, operation, user_metadata, tags, engine_info)
        except KeyboardInterrupt as interrupt:
            raise self._interrupted() or interrupt from None

    def _commit(
        self,
        actions: Iterable[Action],
        operation: Operation,
        user_metadata: str | None,
        tags: Mapping[str, str] | None,
        engine_info: str,
    ) -> Committed:
        log = self._log
        began = log.clock.monotonic()
        if log.store.partial_writes_visible:
            raise UnsupportedEnvironmentError(
                f"{type(log.store).__name__} may show a part of a file: a commit through it could tear the log of "
                f"{self.table}. Choose another LogStore"
            )
        staged, reads, level = self._prepare(actions, operation)
        info = CommitInfo(
            timestamp=log.clock.now_ms(),
            operation=operation.name,
            operation_parameters=codec.operation_parameters(operation.parameters),
            read_version=self.read_version if self.read_version >= 0 else None,
            isolation_level=level.value,
            is_blind_append=staged.blind_append,
            operation_metrics={name: str(value) for name, value in operation.metrics.items()} or None,
            user_metadata=user_metadata if user_metadata is not None else USER_METADATA.of(log.conf),
            tags=self._tags(staged, tags),
            engine_info=engine_info,
            txn_id=self._new_token(),
        )
        version, info, written, winners, attempts = self._win(staged, info, reads, level)
        milliseconds = round((log.clock.monotonic() - began) * 1000)
        after_commit(
            log,
            self.snapshot,
            winners=winners,
            version=version,
            info=info,
            actions=written,
            sidecar_writer=self.sidecar_writer,
        )
        return Committed(version, written, info, attempts, milliseconds)

    def _tags(self, staged: Staged, tags: Mapping[str, str] | None) -> Mapping[str, str] | None:
        """What the commit says of itself for those who come after it, beside what the caller has it say."""
        seen = self.snapshot
        if seen is None or not staged.writes_metadata:
            return tags
        if metadata_changes.identity_only(seen.metadata, staged.metadata):
            return {metadata_changes.IDENTITY_ONLY_TAG: "true", **(tags or {})}
        if metadata_changes.enables_tracking_only(seen.metadata, staged.metadata):
            return {metadata_changes.TRACKING_ONLY_TAG: "true", **(tags or {})}
        return tags

    def _prepare(self, actions: Iterable[Action], operation: Operation) -> tuple[Staged, ReadSet, IsolationLevel]:
        base = self._base()
        prepared = prepare(base, actions, operation, metadata=self._metadata, protocol=self._protocol)
        seen = self.snapshot
        changed = seen is not None and prepared.metadata is not seen.metadata
        if seen is not None and changed and not column_mapping.same_layout(seen.mapping, prepared.metadata):
            # Every file of the old layout has to go, those of concurrent commits as well.
            self._whole_table = True
        if seen is not None and changed:
            _check_row_ids(seen, prepared)
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
            drops_features=seen is not None
            and bool(features.supported(seen.protocol) - features.supported(prepared.protocol)),
            restates_files=operation.restates_files,
        )
        level = isolation_level(prepared.metadata)
        return staged, reads, conflict.level_for(prepared.actions, level, changes_data=operation.changes_data)

    def _win(
        self, staged: Staged, info: CommitInfo, reads: ReadSet, level: IsolationLevel
    ) -> tuple[int, CommitInfo, tuple[Action, ...], list[Winner], int]:
        """The loop: (version won, commitInfo and actions that are there, the winners before it, number of attempts)."""
        clock = self._log.clock
        assert info.txn_id is not None
        token = info.txn_id
        most = self._most_attempts()
        winners: list[Winner] = []
        ground = self._ground()
        serialised: tuple[Action, ...] | None = None
        body = b""
        if clock.monotonic() - self._began > _LISTING_IS_FRESH_S:
            staged = self._rebase(staged, reads, level, winners, self._newer(ground.version + 1, None))
        for number in range(1, most + 1):
            started = clock.monotonic()
            for winner in winners[ground.version - staged.read_version :]:
                ground = ground.after(winner)
            version = ground.version + 1
            said, actions = stamped(staged, info, ground, clock.now_ms())
            if actions is not serialised:
                serialised, body = actions, codec.serialise(actions)
            data = codec.serialise((said,)) + body
            outcome = self._attempt(version, data, token)
            if logger.isEnabledFor(logging.INFO):
                logger.info(
                    "%s: version %d, attempt %d: %s, %d ms",
                    self.table, version, number, type(outcome).__name__.lower(),
                    round((clock.monotonic() - started) * 1000),
                )  # fmt: skip
            if isinstance(outcome, Won):
                self._noted.committed = True
                return version, said, actions, winners, number
            if isinstance(outcome, Unknown):
                raise CommitStateUnknownError(self.table, version, token, outcome.reason) from outcome.cause
            self._noted.committed = False
            if number == most:
                break
            self._pause(number, clock.monotonic() - started)
            staged = self._rebase(staged, reads, level, winners, self._newer(version, outcome.data))
        raise ConcurrentWriteException(
            f"nothing was committed to {self.table}: other writers took {most} versions in a row, and "
            f"{MAX_COMMIT_ATTEMPTS.key} allows no more attempts. Run the operation again",
            condition="DELTA_CONCURRENT_WRITE",
        )

    @property
    def _noted(self) -> CommitRecord:
        assert self._record is not None
        return self._record

    def _ground(self) -> ParentVersion:
        seen = self.snapshot
        if seen is None:
            return ParentVersion()
        return ParentVersion(
            seen.version,
            seen.metadata,
            seen.protocol,
            lambda: seen.timestamp_ms,
            row_tracking.high_water_mark(seen.domain_metadata) if row_tracking.supported(seen.protocol) else -1,
        )

    def _most_attempts(self) -> int:
        """As Delta counts: the first attempt, and as many again as the setting says."""
        return MAX_COMMIT_ATTEMPTS.of(self._log.conf) + 1

    def _attempt(self, version: int, data: bytes, token: str) -> Outcome:
        record = self._noted
        self._data, record.version, record.token = data, version, token
        record.committed = None  # from here on a write of it may be under way
        try:
            return attempt(
                self._log.store,
                self._commit_path(version),
                data,
                token,
                clock=self._log.clock,
                dice=self._dice,
                patience=self._patience,
            )
        except Exception:
            record.committed = False
            raise

    def _rebase(
        self,
        staged: Staged,
        reads: ReadSet,
        level: IsolationLevel,
        winners: list[Winner],
        newer: Iterator[Winner],
    ) -> Staged:
        for winner in newer:
            staged = conflict.check(reads, staged, winner, level)
            winners.append(winner)
            if winner.protocol is not None or winner.metadata is not None:
                features.check_readable(staged.protocol, staged.metadata, self.table)
                features.check_writable(staged.protocol, staged.metadata, self.table)
        return staged

    def _newer(self, version: int, first: bytes | None) -> Iterator[Winner]:
        """The commits from `version` on, in order.

        One list, and one read for each; `first` is what stands at `version` where that is known already.
        """
        store = self._log.store
        expected = version
        found = {expected} if first is not None else set()
        times: dict[int, int] = {}
        try:
            listed = store.list_from(f"{self._log.log_path}/{paths.listing_name(version)}")
        except FileNotFoundError:
            if version > 0:
                raise
            listed = iter(())  # the table is new, and nobody has made its log yet
        for status in listed:
            file = paths.parse_log_name(status.path.rpartition("/")[2])
            if file is not None and file.kind in ("commit", "checkpoint"):
                found.add(file.version)
                if file.kind == "commit":
                    times[file.version] = status.modification_time_ms
        for newer in sorted(found):
            if newer != expected:
                raise MissingCommitError(
                    f"version {expected} of {self.table} is missing, and version {newer} is there: it was removed "
                    "since this transaction began, or the log is damaged. Nothing was committed"
                )
            expected += 1
            data = first if newer == version and first is not None else store.read(self._commit_path(newer))
            written = times.get(newer, self._log.clock.now_ms())
            yield Winner.of(newer, self._log.reader.parsed(newer, data), written)

    def _pause(self, lost: int, took: float) -> None:
        """Wait before the next attempt: not after the first loss, then ever longer and never in step with others.

        It is measured in attempts, each as long as the last one `took`: what is nothing on a disk is an age for one,
        and too short on a remote store, where each attempt that loses is work for the store that others wait for.
        """
        if lost > 1:
            bound = min(_LONGEST_PAUSE_S, max(_SHORTEST_PAUSE_S, took) * lost)
            self._log.clock.sleep(bound * self._dice())

    def _interrupted(self) -> CommitInterrupted | None:
        """What an interrupt in the middle of the commit has to say; `None` if nothing can have been written."""
        record = self._noted
        if record.committed is None:
            outcome = look(self._log.store, self._commit_path(record.version), self._data, record.token)
            record.committed = {Won: True, Lost: False}.get(type(outcome))
        elif record.committed is False:
            return None
        return CommitInterrupted(self.table, record.version, record.token, record.committed)

    def _commit_path(self, version: int) -> str:
        return f"{self._log.log_path}/{paths.commit_name(version)}"


def _check_row_ids(seen: "Snapshot", prepared: Prepared) -> None:
    """InvalidArgumentError where row tracking is enabled on files without row ids (PROTOCOL.md, "Row Tracking")."""
    if not row_tracking.enabled(prepared.protocol, prepared.metadata) or row_tracking.enabled(
        seen.protocol, seen.metadata
    ):
        return
    removed = {action.path for action in prepared.actions if isinstance(action, RemoveFile)}
    files = seen.files
    without = files.filter(files.column("baseRowId").is_null()).column("path").to_pylist()
    if any(path not in removed for path in without):
        raise InvalidArgumentError(
            f"{row_tracking.ENABLED} can't be set on {seen.table}: {len(without)} files have no row ids yet. "
            "DeltaTable.setProperties gives them some first"
        )


def isolation_level(metadata: Metadata) -> IsolationLevel:
    """The table's `delta.isolationLevel`: Serializable unless it says WriteSerializable."""
    return IsolationLevel(properties.TableProperties.of(metadata).isolation_level)
