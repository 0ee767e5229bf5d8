"""A stream over one table: the offset to read to, and the files between two offsets. It needs no Spark."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Literal

from ...errors import (
    MissingCommitError,
    TablelogError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from ..protocol.actions import AddFile, FileAction
from ..protocol.features import check_readable
from ..protocol.paths import commit_name
from ..protocol.properties import TableProperties
from ..table import changes
from ..table.changed_files import Commit
from ..table.changes import Bound
from ..table.readable_log import ReadableLog
from ..table.snapshot import Snapshot
from .commit_tail import CommitTail, lost_end
from .commits import NO_RULES, CommitFiles, CommitRules, changes_missing, of_commit
from .event_times import EventTimeOrder, TimeRange
from .initial_files import InitialFiles, other_order
from .limits import NO_LIMITS, Admission, ReadLimits
from .offset import AFTER_SCHEMA_CHANGE, BEFORE_FILES, SCHEMA_CHANGE, Position, SourceOffset, after
from .planning import Span, VersionFiles, last_position, spans
from .schema_check import StreamSchema, other_table
from .schema_tracking import SchemaTracking, common
from .start import chosen_version

_KEPT_FILES = 200_000
_READ_AHEAD = 100
"""The most commits that are read only to count the files that a stream has still to read."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The options of a stream. Without `start` it begins with all rows of the newest version.

    `lenient`: a start after the newest version isn't an error.
    """

    start: Bound | Literal["latest"] | None = None
    limits: ReadLimits = NO_LIMITS
    rules: CommitRules = NO_RULES
    fail_on_data_loss: bool = True
    lenient: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """The files of a batch: the commits that it reads from, each with only the file actions that belong to the batch.

    The files of the first version of the table that a stream reads are those of the whole table. The times of `commits`
    are 0 for a stream of new rows. `initial_version` is that first version, if the batch begins in it. If there is a
    range `times`, the batch has only its rows of these files.
    """

    commits: Sequence[Commit] = ()
    initial_version: int | None = None
    times: TimeRange | None = None

    @property
    def added(self) -> list[AddFile]:
        return [action for commit in self.commits for action in commit.actions if isinstance(action, AddFile)]


@dataclass(frozen=True, slots=True)
class Outstanding:
    """What a stream has still to read, as far as it knows: files and their bytes, in `versions` versions."""

    files: int
    bytes: int
    versions: int


class TableStream:
    """Reads a table as a stream. One thread at a time uses it.

    Args:
        log: The log of the table.
        newest: The newest version of the table when the stream starts.
        options: The options of the stream.
        tracking: The schema log of the stream, if it has one.
        order: How the first version is read in the order of event time, if it is.

    `read` is the newest version with the columns to read with: its own, or those of the schema log.
    """

    def __init__(
        self,
        log: ReadableLog,
        newest: Snapshot,
        options: StreamOptions,
        tracking: SchemaTracking | None = None,
        order: EventTimeOrder | None = None,
    ) -> None:
        read = newest if tracking is None else tracking.read
        self._log = log
        self._options = options
        self._schema = StreamSchema(read, has_start=options.start is not None)
        self._tail = CommitTail(log, read.metadata.id, fail_on_data_loss=options.fail_on_data_loss)
        self._tracking = tracking
        self._order = order
        self._newest = newest
        self._properties = (newest.version, newest.properties)
        self._initial: InitialFiles | None = None
        self._checked_start = False
        self._stops = False
        self._bound: Position | None = None
        self._kept: OrderedDict[int, CommitFiles] = OrderedDict()
        self._kept_files = 0
        self.read = read

    def stop_at_newest(self) -> None:
        """Read no further than the version that is the newest at the first call of `latest`."""
        self._stops = True

    def check(self, offset: SourceOffset) -> SourceOffset:
        """Return the offset.

        Raises:
            CorruptLogError: It belongs to another table.
            InvalidArgumentError: The stream read the first version in another order.
        """
        if offset.table_id != self.read.metadata.id:
            raise other_table(self._log.table, table_id=self.read.metadata.id, expected=offset.table_id)
        column = None if self._order is None else self._order.column
        stored = None if offset.times is None else offset.times.column
        within_initial = offset.initial and (offset.times is not None or offset.index != BEFORE_FILES)
        if within_initial and column != stored:
            raise other_order(self._log.table, column, stored)
        return offset

    def latest(self, start: SourceOffset | None, *, unlimited: bool = False) -> SourceOffset | None:
        """The offset at the end of the batch after `start`; it equals `start` if there is nothing new.

        Args:
            start: The end of the last batch; None before the first one.
            unlimited: Whether the batch has no limits.

        Raises:
            UnsupportedFeatureError: A commit deletes, changes or renames what the options don't allow.
            SchemaChangedError: The rows of a commit can't be read with the schema of the stream.
            MissingCommitError: The log no longer has a commit that the stream needs.
            CorruptLogError: The table was replaced by another one.
        """
        if self._stops:
            self._stops = False
            newest = self._latest(start, unlimited=True, several=True)
            self._bound = None if newest is None else newest.position
        return self._latest(start, unlimited=unlimited, several=start is not None or self._options.start != "latest")

    def _latest(self, start: SourceOffset | None, *, unlimited: bool, several: bool) -> SourceOffset | None:
        """`latest`; `several`: whether the batch may have more than one version.

        The first batch of startingVersion=latest has one: if its query dies before the batch is committed, only the
        end of the batch is in the checkpoint, and the newest version is another one when the query starts again.
        """
        if not self._checked_start and start is not None and start.version > self.read.version + 1:
            raise lost_end(self._log.table, start.version - 1, self.read.version)
        pending = None if start is None else self._at_schema_change(start)
        if pending is not None:
            return pending
        begin = start or self.first
        if start is None:
            self._begin_tracking(min(begin.version, self._newest.version))
        self._forget_before(begin)
        if self._order is not None and begin.initial and not unlimited:
            self._check_start(begin.version)
            return self._initial_files(begin.version).end_of_range(begin)
        admission = None if unlimited else Admission(self._options.limits)
        versions = self._versions(begin)
        last = last_position(
            begin.position,
            versions if several else islice(versions, 1),
            admission,
            self._bound,
            stops_at_limit=self._options.rules.changes,
        )
        if last is None:
            return start
        # An offset before the first file of a version: the rows that were read last are those of the version before.
        was_read = start is not None and start.index == BEFORE_FILES and not start.initial
        self._check_start(max(begin.version - 1, 0) if was_read else begin.version)
        return after(last, begin)

    def batch(self, start: SourceOffset | None, end: SourceOffset) -> Batch:
        """The files after `start` up to and including `end`. Raises the same errors as `latest`."""
        if start == end:
            return Batch()
        begin = start or self._first_before(end)
        self._begin_tracking(begin.version, end)
        self._check_start(begin.version)
        commits = []
        times = self._times(begin, end)
        if times is not None:
            files = self._initial_files(begin.version)
            commits.append(Commit(begin.version, self._initial_time(begin), files.add_files_in(times)))
        for span in spans(begin.position, end.position, lambda version: self._count(begin, version)):
            initial = begin.initial and span.version == begin.version
            if initial and times is not None:
                continue
            kept = [action for action in self._actions(begin, span) if not self._options.rules.excludes(action.path)]
            if kept:
                commits.append(Commit(span.version, self._initial_time(begin) if initial else 0, kept))
        return Batch(self._with_times(commits, begin), begin.version if begin.initial else None, times)

    def _times(self, begin: SourceOffset, end: SourceOffset) -> TimeRange | None:
        """The event times of a batch's rows of the first version, if that is read in their order."""
        if self._order is None or not begin.initial:
            return None
        first = None if begin.times is None else begin.times.end
        return TimeRange(self._order.column, first, None if end.times is None else end.times.end)

    def _initial_time(self, begin: SourceOffset) -> int:
        return self._initial_files(begin.version).snapshot.timestamp_ms if self._options.rules.changes else 0

    def _actions(self, begin: SourceOffset, span: Span) -> Sequence[FileAction]:
        if begin.initial and span.version == begin.version:
            return self._initial_files(begin.version).add_files(span.first, span.end)
        files = self._files_of(span.version)
        return () if files is None or files.skipped else files.files[span.first : span.end]

    def outstanding(self, offset: SourceOffset | None) -> Outstanding:
        """What the stream has still to read after `offset`, in the versions that it has seen in the log.

        It makes no listing. Commits that aren't read yet are read now, at most 100: files and bytes of further commits
        aren't counted, nor those from the first commit on that the stream can't read. The batch that reaches it fails.
        """
        begin = offset or self.first
        files = size = 0
        versions, ahead, readable = 0, 0, True
        if begin.initial:
            left = self._initial_files(begin.version).sizes_after(begin)
            files, size, versions = len(left), sum(left), 1
        first = begin.version + 1 if begin.initial else begin.version
        for version in self._tail.known(first):
            versions += 1
            if version not in self._kept:
                ahead += 1
                if ahead > _READ_AHEAD or not readable:
                    continue
            try:
                commit = self._files_of(version)
            except TablelogError:
                readable = False
                continue
            if commit is not None and not commit.skipped:
                rest = commit.files[max(begin.index + 1, 0) if version == begin.version else 0 :]
                files += len(rest)
                size += sum(file.size or 0 for file in rest)
        return Outstanding(files, size, versions)

    # --- changes of the schema that a schema log tracks ------------------------------------------------------------

    @property
    def _begun_tracking(self) -> SchemaTracking | None:
        """The schema log, once it has an entry."""
        return self._tracking if self._tracking is not None and self._tracking.active else None

    def committed(self, end: SourceOffset) -> None:
        """Note that the batch up to `end` is written. Raises SchemaChangedError if it ended at a schema change."""
        tracking = self._begun_tracking
        if tracking is not None and end.at_schema_change:
            files = self._files_of(end.version)
            if files is not None:
                tracking.evolve(files.metadata, files.protocol, end.version)

    def _at_schema_change(self, start: SourceOffset) -> SourceOffset | None:
        """The next offset, if the last batch ended at a change of the schema that the stream hasn't followed yet."""
        if self._begun_tracking is None:
            return None
        if start.index == SCHEMA_CHANGE:
            return replace(start, index=AFTER_SCHEMA_CHANGE)
        return start if start.index == AFTER_SCHEMA_CHANGE and self._changes_schema(start.version) else None

    def _changes_schema(self, version: int) -> bool:
        tracking = self._begun_tracking
        if tracking is None:
            return False
        files = self._files_of(version)
        return files is not None and tracking.differs(files.metadata, files.protocol, version)

    def _begin_tracking(self, version: int, end: SourceOffset | None = None) -> None:
        """Add the first entry to an empty schema log; `end` is the end of a batch that was planned without it."""
        if self._tracking is None or self._tracking.active:
            return
        first = self._snapshot(version)
        versions, last = [(first.metadata, first.protocol)], first.version
        if end is not None:
            last = max(end.version - 1 if end.index == BEFORE_FILES else end.version, version)
            for number in range(version + 1, last + 1):
                files = self._files_of(number)
                metadata, protocol = versions[-1]
                if files is not None:
                    versions.append((files.metadata or metadata, files.protocol or protocol))
        self._tracking.begin(*common(versions, version, last, self._log.table), last)

    # --- the start ------------------------------------------------------------------------------------------------

    @cached_property
    def first(self) -> SourceOffset:
        """The offset before the first file of the stream."""
        version = self._start_version
        if version is None:
            return SourceOffset(self.read.metadata.id, self.read.version, BEFORE_FILES, True)
        return SourceOffset(self.read.metadata.id, version, BEFORE_FILES, False)

    @cached_property
    def _start_version(self) -> int | None:
        """The version that the user chose to start with; None for all rows of the newest version."""
        start = self._options.start
        if start is None:
            return None
        if start == "latest":
            return self._log.snapshot().version + 1
        assert isinstance(start, Bound)
        return chosen_version(self._log, start, lenient=self._options.lenient)

    def _first_before(self, end: SourceOffset) -> SourceOffset:
        """The start of the first batch, whose end was stored by a query that did not finish it."""
        if self._options.start == "latest":
            version = end.version - 1 if end.index == BEFORE_FILES else end.version
            return SourceOffset(end.table_id, version, BEFORE_FILES, False)
        if self._start_version is not None:
            return self.first
        version = end.version if end.initial else end.version - 1
        return SourceOffset(end.table_id, max(version, 0), BEFORE_FILES, True)

    def _check_start(self, version: int) -> None:
        """Check, once, that the rows of the first version can be read with the schema of the stream."""
        if self._checked_start or self._begun_tracking is not None:
            return
        snapshot: Snapshot | None = self.read
        if version != self.read.version:
            try:
                snapshot = self._log.snapshot(version=version)
            except UnsupportedFeatureError:
                raise
            except TablelogError as error:
                snapshot = None
                if self.read.mapping.active:
                    raise MissingCommitError(
                        f"The columns of version {version} of {self._log.table}, with which the stream begins, aren't "
                        "known, because the log can't be read at that version. As columns may have been renamed since, "
                        "start the query with a new checkpoint location and a later version.",
                        condition="DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT",
                        table=self._log.table,
                        version=version,
                    ) from error
        if snapshot is not None:
            self._schema.check(snapshot.metadata, snapshot.version)
            if self._options.rules.changes and not snapshot.properties.enable_change_data_feed:
                raise changes_missing(self._log.table, version)
        self._checked_start = True

    # --- versions -------------------------------------------------------------------------------------------------

    def _versions(self, begin: SourceOffset) -> Iterator[VersionFiles]:
        first = begin.version
        if begin.initial:
            yield self._initial_files(begin.version).planned()
            first += 1
        for version in self._tail.versions(first):
            files = self._files_of(version)
            if files is not None:
                planned = files.planned(self._options.rules)
                yield replace(planned, changes_schema=True) if self._changes_schema(version) else planned

    def _count(self, begin: SourceOffset, version: int) -> int | None:
        if begin.initial and version == begin.version:
            return len(self._initial_files(version).sizes)
        files = self._files_of(version)
        return None if files is None else len(files.files)

    def _initial_files(self, version: int) -> InitialFiles:
        if self._initial is None or self._initial.snapshot.version != version:
            snapshot = self._newest if version == self._newest.version else self._snapshot(version)
            tracking = self._begun_tracking
            if tracking is not None and tracking.covers(version):
                tracking.evolve(snapshot.metadata, snapshot.protocol, version, replaces=True)
            self._initial = InitialFiles(snapshot, self._options.rules, self._options.limits, self._order)
        return self._initial

    def _snapshot(self, version: int) -> Snapshot:
        try:
            return self._log.snapshot(version=version)
        except VersionNotFoundError as error:
            raise MissingCommitError(
                f"The stream began with all rows of version {version} of {self._log.table}, which can't be read any "
                "more: the query is too far behind. Start it with a new checkpoint location, and set a longer "
                "delta.logRetentionDuration.",
                condition="DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE",
                table=self._log.table,
                version=version,
                path=commit_name(version),
            ) from error

    def _files_of(self, version: int) -> CommitFiles | None:
        """The files of a commit; None if the log no longer has it and the stream tolerates that."""
        kept = self._kept.get(version)
        if kept is not None:
            return kept
        actions = self._tail.read(version, self._options.rules.needed)
        if actions is None:
            return None
        files = of_commit(version, actions, self._options.rules, self._log.table)
        if files.metadata is not None:
            if self._begun_tracking is None:
                self._schema.check(files.metadata, version)
            properties = TableProperties.of(files.metadata)
            if self._options.rules.changes and not properties.enable_change_data_feed:
                raise changes_missing(self._log.table, version)
            if version > self._properties[0]:
                self._properties = version, properties
        if files.protocol is not None:
            check_readable(files.protocol, files.metadata, self._log.table)
        if self._kept_files + len(files.files) <= _KEPT_FILES:
            self._kept[version] = files
            self._kept_files += len(files.files)
        return files

    def _forget_before(self, begin: SourceOffset) -> None:
        for version in [version for version in self._kept if version < begin.version]:
            self._kept_files -= len(self._kept.pop(version).files)
        if not begin.initial:
            self._initial = None

    def _with_times(self, commits: Sequence[Commit], begin: SourceOffset) -> Sequence[Commit]:
        """The commits with their times, for a stream of changes."""
        if not self._options.rules.changes:
            return commits
        versions = [commit.version for commit in commits if not (begin.initial and commit.version == begin.version)]
        if not versions:
            return commits
        in_commit = {version: self._in_commit_timestamp(version) for version in versions}
        times = changes.times(self._log, self._properties[1], in_commit)
        return [
            Commit(commit.version, times.get(commit.version, commit.timestamp_ms), commit.actions) for commit in commits
        ]

    def _in_commit_timestamp(self, version: int) -> int | None:
        files = self._files_of(version)
        return None if files is None else files.in_commit_timestamp
