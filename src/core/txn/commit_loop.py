"""The attempts of a commit: one version after the other, checked against each commit that came first."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from ... import observe
from ...errors import (
    CommitInterrupted,
    CommitStateUnknownError,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    MissingCommitError,
)
from ...logstore.base import FileStatus
from ...settings.declarations import MAX_COMMIT_ATTEMPTS
from ..log.large_commits import is_large
from ..protocol import codec, features, paths
from ..protocol.actions import Action, AddCDCFile, AddFile, CommitInfo, RemoveFile
from . import conflict
from .bulk_actions import BulkActions
from .commit import Lost, Outcome, Patience, Unknown, Won, attempt, look
from .conflict import IsolationLevel, ReadSet, Staged, Winner
from .record import CommitRecord
from .versioned_fields import ParentVersion, stamped
from .writable_log import WritableLog

logger = logging.getLogger(__name__)

# Log cleanup keeps files that are younger than this: a version that is missing from such a new listing is free. And a
# table that was created again at the same path is noticed in a listing only.
_LISTING_IS_FRESH_S = 20.0
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 10.0
_PATIENT_LOSSES = 6
"""After more losses in a row a writer no longer waits for long: the others, which lost less often, let it go first."""


@dataclass(frozen=True, slots=True)
class LoggedCommit:
    """A commit that is in the log. `winners` are the commits between its parent in `CommitLoop` and this one.

    `bulk` is as in `CommitLoop`, for this version.
    """

    version: int
    info: CommitInfo
    actions: tuple[Action, ...]
    winners: tuple[Winner, ...]
    attempts: int
    bulk: BulkActions | None


class CommitLoop:
    """Attempts a commit and rebases it until it is in the log, or can't be.

    `record` describes the current attempt, for callers that are interrupted.
    """

    def __init__(
        self,
        log: WritableLog,
        record: CommitRecord,
        parent: ParentVersion,
        *,
        read_at: float,
        listed: FileStatus | None,
        dice: Callable[[], float],
        patience: Patience,
        bulk: BulkActions | None = None,
        others: Sequence[Winner] = (),
    ) -> None:
        """`parent` is the version that the transaction read, `read_at` when it did, by the monotonic clock.

        `listed` is the file of that version, if it is known: another file there means another table.
        `bulk` is what the commit does to files beside its actions. `others` are commits up to `parent` against which
        the commit is checked too (`EarlierCommits`).
        """
        self._bulk = bulk
        self._others = others
        self._log = log
        self._record = record
        self._parent = parent
        self._read_at = read_at
        self._listed = listed
        self._dice = dice
        self._patience = patience
        self._data = b""
        """The content of the attempt that the record describes."""

    def run(self, staged: Staged, info: CommitInfo, reads: ReadSet, level: IsolationLevel) -> LoggedCommit:
        """Attempt and rebase until the commit is in the log. Raises the errors of `Transaction.commit`."""
        clock = self._log.clock
        assert info.txn_id is not None
        token = info.txn_id
        max_attempts = MAX_COMMIT_ATTEMPTS.of(self._log.conf) + 1  # as in Delta, it doesn't count the first one
        winners: list[Winner] = []
        parent = self._parent
        serialised: tuple[Action, ...] | None = None
        body = b""
        staged = self._rebase(staged, reads, level, [], iter(self._others))
        if clock.monotonic() - self._read_at > _LISTING_IS_FRESH_S:
            staged = self._rebase(staged, reads, level, winners, self._newer(parent.version + 1, None))
        for number in range(1, max_attempts + 1):
            started = clock.monotonic()
            for winner in winners[parent.version - self._parent.version :]:
                parent = parent.after(winner)
            version = parent.version + 1
            stamped_info, actions = stamped(staged, info, parent, clock.now_ms())
            bulk = None if self._bulk is None else self._bulk.at(version, parent.row_ids)
            if bulk is not None:
                actions = (*actions, *bulk.more_actions)
            if actions is not serialised:
                serialised, body = actions, codec.serialise(actions)
            data = codec.serialise((stamped_info,)) + body
            outcome = self._attempt(version, data, token, None if bulk is None else bulk.lines)
            took = clock.monotonic() - started
            self._report(version, number, outcome, took)
            if isinstance(outcome, Won):
                self._record.committed = True
                return LoggedCommit(version, stamped_info, actions, tuple(winners), number, bulk)
            if isinstance(outcome, Unknown):
                raise CommitStateUnknownError(self._log.table, version, token, outcome.reason) from outcome.cause
            self._record.committed = False
            if number == max_attempts:
                break
            self._pause(number, took)
            staged = self._rebase(staged, reads, level, winners, self._newer(version, outcome.data))
        raise ConcurrentWriteException(
            f"nothing was committed to {self._log.table}: other writers took {max_attempts} versions in a row, and "
            f"{MAX_COMMIT_ATTEMPTS.key} allows no more attempts. Run the operation again",
            condition="DELTA_CONCURRENT_WRITE",
            table=self._log.table,
            version=staged.read_version,
            winner=parent.version + 1,
        )

    def _attempt(self, version: int, data: bytes, token: str, more: Callable[[], Iterable[bytes]] | None) -> Outcome:
        record = self._record
        self._data, record.version, record.token = data, version, token
        record.committed = None  # from here on a write may be on its way
        try:
            return attempt(
                self._log.store,
                self._commit_path(version),
                data,
                token,
                clock=self._log.clock,
                dice=self._dice,
                patience=self._patience,
                more=more,
            )
        except Exception:
            record.committed = False
            raise

    def _report(self, version: int, number: int, outcome: Outcome, took: float) -> None:
        word = type(outcome).__name__.lower()
        table = self._log.table
        fields = observe.fields(table, version=version, attempt=number, store=self._log.store, outcome=word)
        milliseconds = round(took * 1000)
        logger.info("%s: version %d, attempt %d: %s, %d ms", table, version, number, word, milliseconds, extra=fields)
        observe.timed("commit.attempt", took, fields)

    def _rebase(
        self,
        staged: Staged,
        reads: ReadSet,
        level: IsolationLevel,
        winners: list[Winner],
        newer: Iterator[Winner],
    ) -> Staged:
        for winner in newer:
            try:
                staged = conflict.check(reads, staged, winner, level)
            except DeltaConcurrentModificationException as error:
                fields = observe.fields(
                    self._log.table, version=winner.version, store=self._log.store, outcome=type(error).__name__
                )
                observe.counted("commit.conflicts", 1, fields)
                raise
            winners.append(winner)
            if winner.protocol is not None or winner.metadata is not None:
                features.check_readable(staged.protocol, staged.metadata, self._log.table)
                features.check_writable(staged.protocol, staged.metadata, self._log.table)
        return staged

    def _newer(self, version: int, first: bytes | None) -> Iterator[Winner]:
        """The commits from `version` on, in order.

        It costs one listing, and one read for each commit, in parallel where reads are slow: a writer that read them
        one after the other would not catch up with a writer that commits as fast as it reads. `first` is the content
        of `version` where it is known.
        """
        newest = version if first is not None else version - 1
        commits: dict[int, FileStatus] = {}
        compares = self._listed is not None and version == self._parent.version + 1
        start = version - 1 if compares else version
        try:
            listed = self._log.store.list_from(f"{self._log.log_path}/{paths.listing_name(start)}")
        except FileNotFoundError:
            if version > 0:
                raise
            listed = iter(())  # the table is new, and no writer has created its log yet
        for status in listed:
            file = paths.parse_log_name(status.path.rpartition("/")[2])
            if file is not None and file.kind in ("commit", "checkpoint"):
                newest = max(newest, file.version)
                if file.kind == "commit":
                    commits[file.version] = status
        if compares and commits.get(start) != self._listed:
            self._check_same_table()
        unread = range(version if first is None else version + 1, newest + 1)
        for newer in unread:
            if newer not in commits:
                raise self._missing(newer, newest)
        large = {newer for newer in unread if is_large(commits[newer])}
        small = self._log.reader.each([commits[newer] for newer in unread if newer not in large])
        contents = chain([] if first is None else [first], small)
        for newer in range(version, newest + 1):
            written = commits[newer].modification_time_ms if newer in commits else self._log.clock.now_ms()
            if newer in large:
                yield self._large(newer, written)
                continue
            data = next(contents)
            if data is None:
                raise self._missing(newer, newest)
            yield Winner.of(newer, self._log.reader.parsed(newer, data), written)

    def _check_same_table(self) -> None:
        """Raise MetadataChangedException if the log is that of another table, which was created at the same path."""
        read = self._parent
        self._log.forget()
        current = self._log.snapshot()
        if read.metadata is not None and current.metadata.id != read.metadata.id:
            raise MetadataChangedException(
                f"nothing was committed to {self._log.table}: the table was deleted and another one created in its "
                f"place (its id was {read.metadata.id}, and is {current.metadata.id} now), after this transaction read "
                f"version {read.version}. Run the operation again if it is meant for the new table",
                table=self._log.table,
                version=read.version,
                winner=current.version,
            )

    def _large(self, version: int, written: int) -> Winner:
        """A commit that is too large for memory: its file actions are read when they are checked."""

        def batches() -> Iterator[Sequence[Action]]:
            try:
                for batch in self._log.reader.lines(version, self._commit_path(version)):
                    yield [action for _, action in batch]
            except FileNotFoundError:
                raise self._missing(version, version) from None

        others = [a for actions in batches() for a in actions if not isinstance(a, AddFile | RemoveFile | AddCDCFile)]
        return Winner.of(version, others, written, more=batches)

    def _missing(self, version: int, newest: int) -> MissingCommitError:
        return MissingCommitError(
            f"version {version} of {self._log.table} is missing, but version {newest} exists: the missing "
            "version was removed since this transaction began, or the log is damaged. Nothing was committed. "
            "Run the operation again; if it fails in the same way, restore the missing file of the log",
            table=self._log.table,
            version=version,
            path=paths.commit_name(version),
        )

    def _pause(self, lost: int, took: float) -> None:
        """Wait before the next attempt, if it isn't the second one.

        The bound of the wait doubles with each loss, so that many writers soon make few attempts for each commit. After
        `_PATIENT_LOSSES` it is one attempt: a writer that waits long falls behind, has more commits to read, and would
        lose again. The unit is `took`, the duration of the last attempt in seconds: a fixed wait would be too long on a
        local disk and too short on a remote store, where each attempt that loses slows down the other writers.
        """
        if lost > 1:
            doublings = lost - 1 if lost <= _PATIENT_LOSSES else 0
            bound = min(_LONGEST_PAUSE_S, max(_SHORTEST_PAUSE_S, took) * 2.0**doublings)
            self._log.clock.sleep(bound * self._dice())

    def interrupted(self) -> CommitInterrupted | None:
        """The error for an interrupt during the commit; `None` if it is certain that nothing was written."""
        record = self._record
        if record.committed is None:
            outcome = look(self._log.store, self._commit_path(record.version), self._data, record.token)
            record.committed = {Won: True, Lost: False}.get(type(outcome))
        elif record.committed is False:
            return None
        return CommitInterrupted(self._log.table, record.version, record.token, record.committed)

    def _commit_path(self, version: int) -> str:
        return f"{self._log.log_path}/{paths.commit_name(version)}"
