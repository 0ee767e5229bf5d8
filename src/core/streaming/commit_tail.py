"""Finds and reads the commits of a log as they appear, for a stream."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from ...errors import MissingCommitError, TableNotFoundError
from ...logstore.base import FileStatus
from ..protocol.actions import Action
from ..protocol.paths import commit_name
from ..table.readable_log import ReadableLog
from .schema_check import other_table


class CommitTail:
    """The commits of a log after a version that moves on. A look for new commits costs one listing.

    A listing begins at the newest commit that was listed before. If that file differs, the table may be another one, so
    that its id is compared with `table_id`.
    """

    def __init__(self, log: ReadableLog, table_id: str, *, fail_on_data_loss: bool) -> None:
        self._log = log
        self._table_id = table_id
        self._fail = fail_on_data_loss
        self._known: dict[int, FileStatus] = {}
        self._newest: FileStatus | None = None
        self._newest_version = -1

    def versions(self, first: int) -> Iterator[int]:
        """The versions from `first` on that the log has. The log is listed when no known version is left.

        Raises MissingCommitError if a version between them is missing, unless the stream tolerates that.
        """
        self._known = {version: status for version, status in self._known.items() if version >= first}
        expected, listed = first, False
        while True:
            following = sorted(version for version in self._known if version >= expected)
            for version in following:
                if version != expected:
                    self._check_gap(expected, version)
                yield version
                expected = version + 1
            if listed:
                return
            self._list(expected)
            listed = True

    def read(self, version: int, needed: Callable[[Iterable[Action]], list[Action]]) -> Sequence[Action] | None:
        """The actions of a commit that `needed` selects; of a large commit, the others aren't all in memory.

        None if the commit no longer exists and the stream tolerates that.
        """
        # A commit that wasn't listed: the query was started again, and repeats its last batch.
        status = self._known.get(version) or self._log.reader.list(version).commits.get(version)
        batches = iter(()) if status is None else self._log.reader.batches(version, status)
        first = next(batches, None)
        if first is None:
            self._known.pop(version, None)
            self._check_gap(version, version + 1)
            return None
        return needed(chain(first, chain.from_iterable(batches)))

    def known(self, first: int) -> list[int]:
        """The versions from `first` on that were listed before."""
        return sorted(version for version in self._known if version >= first)

    def _list(self, first: int) -> None:
        start = max(first - 1, 0)
        commits = self._log.reader.list(start).commits
        if not _contiguous(commits, first):
            commits = self._log.reader.list(start).commits  # a listing may miss a file that was written meanwhile
        seen = commits.get(self._newest_version)
        if self._newest is not None and seen != self._newest:
            self._check_same_table(first)
        newest = max(commits, default=-1)
        if newest >= 0:
            self._newest, self._newest_version = commits[newest], newest
        self._known.update({version: status for version, status in commits.items() if version >= first})

    def _check_same_table(self, first: int) -> None:
        table = self._log.table
        try:
            snapshot = self._log.snapshot()
        except TableNotFoundError as error:
            error.add_note("The table was deleted while a stream read it.")
            raise
        if snapshot.metadata.id != self._table_id:
            raise other_table(table, table_id=snapshot.metadata.id, expected=self._table_id)
        if snapshot.version < first - 1:
            raise lost_end(table, first - 1, snapshot.version)

    def _check_gap(self, expected: int, first: int) -> None:
        if self._fail:
            raise missing_commit(self._log.table, expected, first)


def lost_end(table: str, read: int, newest: int) -> MissingCommitError:
    """The error for a log that ends before the last version that a stream has read."""
    return MissingCommitError(
        f"The stream has read {table} up to version {read}, but the newest version is {newest} now: the end of its log "
        "is lost. Restore the log, or start the query with a new checkpoint location.",
        condition="DELTA_STREAMING_TRAILING_COMMIT_MISSING",
        parameters={"expectedVersion": read, "seenVersion": newest},
        table=table,
        version=read,
        path=commit_name(read),
    )


def missing_commit(table: str, expected: int, first: int) -> MissingCommitError:
    """The error for commits that a stream needs and that the log no longer has."""
    return MissingCommitError(
        f"The stream needs version {expected} of {table}, but the log begins with version {first}: its older "
        "commits were removed after delta.logRetentionDuration, or by hand. Start the query with a new checkpoint "
        "location, and set a longer retention. To skip the lost versions, set failOnDataLoss to false.",
        condition="DELTA_MISSING_FILES_UNEXPECTED_VERSION",
        parameters={"startVersion": expected, "earliestVersion": first, "option": "failOnDataLoss"},
        table=table,
        version=expected,
        path=commit_name(expected),
    )


def _contiguous(commits: Mapping[int, FileStatus], first: int) -> bool:
    following = [version for version in commits if version >= first]
    return not following or max(following) - first + 1 == len(following)
