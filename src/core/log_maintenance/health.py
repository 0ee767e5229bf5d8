"""Diagnosis of a log: reads every file and compares it with the other files that have the same information.

It changes nothing. Checkpoints, compactions and checksums are compared with the commits, if these still exist: the
commits are authoritative.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from ...errors import CorruptLogError, MissingCommitError, TableNotFoundError
from ...logstore.base import FileStatus, LogStore
from ...progress import stage
from ..log import large_commits
from ..log.checkpoint import checkpoint_alone, nothing_else
from ..log.checkpoint_file import ReplacedError
from ..log.memory_limits import DEFAULT_LIMITS
from ..log.reader import LogReader
from ..log.replay import CommitOverlay, Header
from ..log.segment import Checkpoint, Listing, LogEntry, Segment, choose, name_of, parse_listing, ranges_text, readable
from ..protocol.actions import Action
from ..protocol.paths import LAST_CHECKPOINT, SIDECAR_DIRECTORY, decode, listing_name, parse_log_name
from ..table.second_reading import differences
from ..table.snapshot import Snapshot
from . import compaction
from .cleanup import unreferenced
from .compared_checksums import ComparedChecksums
from .problems import LogHealth, Problems

if TYPE_CHECKING:
    from ..log.checkpoint import CheckpointState

_COMMITS_AT_ONCE = 64
"""The commits between two reports of the progress."""


def examine(store: LogStore, log_path: str, table: str, reader: LogReader, now_ms: int) -> LogHealth:
    """Read the whole log of a table and list its problems.

    It costs one read for each commit, and has one checkpoint in memory at a time. Raises TableNotFoundError if there
    is no log.
    """
    try:
        statuses = list(store.list_from(f"{log_path}/{listing_name(0)}"))
    except FileNotFoundError:
        statuses = []
    listing = parse_listing(statuses)
    if listing.newest is None:
        raise TableNotFoundError(f"there is no Delta table at {table}: its log has no commit and no checkpoint")
    return _Examination(store, log_path, table, reader, statuses, listing, listing.newest).report(now_ms)


class _Examination:
    def __init__(
        self,
        store: LogStore,
        log_path: str,
        table: str,
        reader: LogReader,
        statuses: Sequence[FileStatus],
        listing: Listing,
        newest: int,
    ) -> None:
        self._store = store
        self._log_path = log_path
        self._table = table
        self._reader = reader
        self._statuses = statuses
        self._listing = listing
        self._newest = newest
        self._problems = Problems()
        self._checksums = ComparedChecksums(store, log_path, reader, listing, self._problems)
        self._damaged: set[int] = set()
        self._unusable: set[str] = set()
        self._sidecars: set[str] | None = set()
        self._contradicted: set[int] = set()
        """The versions whose checkpoint and checksum agree, and contradict the commits."""

    def report(self, now_ms: int) -> LogHealth:
        self._read_commits()
        oldest_first = sorted(self._listing.checkpoints, key=lambda checkpoint: checkpoint.version)
        sound: set[int] = set()
        for done, checkpoint in enumerate(oldest_first):
            stage("comparing checkpoints with the commits", done, len(oldest_first))
            if self._is_sound(checkpoint):
                sound.add(checkpoint.version)
        readable_ranges = readable(self._listing, unusable=self._unusable, damaged=self._damaged)
        self._find_holes(readable_ranges)
        self._check_compactions()
        self._checksums.check_lost(self._newest)
        self._check_newest(readable_ranges)
        self._check_parts()
        self._check_hint(sorted(sound))
        self._check_sidecars(now_ms)
        return LogHealth(
            self._table,
            self._newest,
            len(self._listing.commits),
            sum(status.size for status in self._statuses),
            readable_ranges,
            tuple(sorted(sound)),
            tuple(sorted(self._problems, key=lambda problem: problem.severity)),
        )

    def _read_commits(self) -> None:
        """Read each commit; a large one line by line."""
        for done, _ in enumerate(self._commits(0, self._newest)):
            if done % _COMMITS_AT_ONCE == 0:
                stage("reading commits", done, len(self._listing.commits))
        for version, status in self._listing.commits.items():
            if large_commits.is_large(status):
                try:
                    for _ in self._reader.listed_lines(LogEntry(version, version, status)):
                        pass
                except (CorruptLogError, ReplacedError) as error:
                    self._damaged.add(version)
                    self._problems.error("commit-damaged", [name_of(status)], str(error))

    def _replayed(self, version: int, segment: Segment) -> Snapshot:
        """A version by the commits of a segment without compactions; those up to a large one aren't in memory."""
        base, entries = self._base(segment)
        header, tail = base.header if base else Header(), CommitOverlay(self._table)
        for _, actions in self._commits(entries[0].version, version) if entries else ():
            header, tail = header.after(actions), tail.extend(actions)
        return self._snapshot(version, header, tail, base)

    def _versions(self, segment: Segment) -> Iterator[Snapshot]:
        """The version of a segment's base, if there is one, and each later one, from the first that can be read on."""
        base, entries = self._base(segment)
        header, tail = Header(), CommitOverlay(self._table)
        state: Snapshot | None = None
        if base is not None:
            state = self._snapshot(base.version, base.header, tail, base)
            state.totals()  # later versions count from here
            yield state
        for version, actions in self._commits(entries[0].version, self._newest) if entries else ():
            if state is not None:
                state = state.after(version, [actions], timestamp=self._timestamp(version))
            else:
                header, tail = header.after(actions), tail.extend(actions)
                if version < self._newest and (header.protocol is None or header.metadata is None):
                    continue  # the first commits of a log of another writer may lack them
                state = self._snapshot(version, header, tail, None)
            yield state

    def _base(self, segment: Segment) -> "tuple[CheckpointState | None, Sequence[LogEntry]]":
        """What the replay of a segment begins with, and the commits after it."""
        base: CheckpointState | None = None
        if segment.checkpoint is not None:
            base = checkpoint_alone(self._store, self._log_path, self._table, segment.checkpoint)
        entries = segment.entries
        num_sorted = large_commits.up_to_large(entries)
        if num_sorted:
            from .sorted_commits import sorted_commits  # imports pyarrow.parquet

            base = sorted_commits(self._table, self._reader, base, entries[:num_sorted], nothing_else, DEFAULT_LIMITS)
            entries = entries[num_sorted:]
        return base, entries

    def _commits(self, first: int, last: int) -> Iterator[tuple[int, Sequence[Action]]]:
        """The commits that can be read and aren't large; each damaged one is reported once."""
        listed = [
            version
            for version, status in sorted(self._listing.commits.items())
            if first <= version <= last and not large_commits.is_large(status)
        ]
        contents = self._reader.each([self._listing.commits[version] for version in listed])
        for version, data in zip(listed, contents, strict=True):
            try:
                if data is None:
                    raise CorruptLogError(f"the commit of version {version} was removed since it was listed")
                yield version, self._reader.parsed(version, data)
            except CorruptLogError as error:
                if version not in self._damaged:
                    self._damaged.add(version)
                    self._problems.error("commit-damaged", [name_of(self._listing.commits[version])], str(error))

    def _find_holes(self, readable_ranges: Sequence[tuple[int, int]]) -> None:
        first = readable_ranges[0][0] if readable_ranges else 0
        ends = [last for _, last in readable_ranges] or [first - 1]
        begins = [start for start, _ in readable_ranges[1:]] + [self._newest + 1]
        for start, last in ((end + 1, begin - 1) for end, begin in zip(ends, begins, strict=True)):
            if start > last:
                continue
            missing = _missing(self._listing.commits, start, last)
            one = len(missing) == 1 and missing[0][0] == missing[0][1]
            lost = f"the commit {ranges_text(missing)} is" if one else f"the commits {ranges_text(missing)} are"
            reason = f"{lost} missing" if missing else "see the problems above"
            self._problems.error(
                "versions-missing",
                (),
                f"the versions {ranges_text([(start, last)])} can't be read: {reason}. Restore them.",
            )
        stray = [v for v in self._listing.commits if v < first]
        if stray:
            self._problems.warn(
                "commits-unused",
                [name_of(self._listing.commits[v]) for v in sorted(stray)],
                f"{len(stray)} commits before version {first}, the first one that can be read, aren't used by any "
                "version: a cleanup was interrupted, or a checkpoint was lost. The next cleanup removes them.",
            )

    # --- files other than commits -----------------------------------------------------------------------------------

    def _is_sound(self, checkpoint: Checkpoint) -> bool:
        """Whether the checkpoint can be read completely; reports differences from the commits before it."""
        name = checkpoint.names[0]
        try:
            state = checkpoint_alone(self._store, self._log_path, self._table, checkpoint)
            if self._sidecars is not None:
                self._sidecars.update(decode(sidecar.path).rpartition("/")[2] for sidecar in state.sidecars)
            held = self._snapshot(state.version, state.header, CommitOverlay(self._table), state)
            _ = held.files, held.tombstones
        except (CorruptLogError, ReplacedError) as error:
            self._unusable.update(checkpoint.names)
            self._sidecars = None
            self._problems.warn(
                "checkpoint-damaged",
                checkpoint.names,
                f"{error}. Readers read version {checkpoint.version} from other files of the log: write a new "
                "checkpoint (DeltaLog.for_path(...).checkpoint()), then remove this one.",
            )
            return False
        if checkpoint.version > max(self._listing.commits, default=checkpoint.version):
            self._problems.error(
                "checkpoint-too-new",
                checkpoint.names,
                f"the checkpoint {name} is newer than the newest commit, {max(self._listing.commits)}: the commits up "
                f"to {checkpoint.version} were lost, or it belongs to another table. Readers take it as the newest "
                "version; restore the commits, or remove it.",
            )
        different, older = self._against_commits(checkpoint, held)
        contradicted = bool(different) and older is None and self._checksums.confirms(held)
        if contradicted:
            self._contradicted.add(held.version)
        for difference in different or ():
            if contradicted:
                self._problems.error(
                    "checksum-contradicts",
                    (*checkpoint.names, name_of(self._listing.checksums[held.version])),
                    f"the checkpoint {name} doesn't match the commits: {difference}. The checksum of version "
                    f"{held.version} confirms the checkpoint. Either a commit was changed after it was made, or both "
                    "come from a wrong checkpoint: compare the log with a copy.",
                )
            elif older is None:
                self._problems.error(
                    "checkpoint-wrong",
                    checkpoint.names,
                    f"the checkpoint {name} doesn't match the commits: {difference}. Remove it, and write a new one.",
                )
            else:
                self._problems.error(
                    "checkpoints-differ",
                    (*older.names, *checkpoint.names),
                    f"the checkpoint {name} doesn't match the older one {older.names[0]} and the commits since: "
                    f"{difference}. Either may be wrong, because no checksum confirms the older one: compare the log "
                    "with a copy.",
                )
        if checkpoint.version != self._newest:
            self._checksums.check(held, by_commits=different == [])
        return True

    def _against_commits(self, checkpoint: Checkpoint, held: Snapshot) -> tuple[list[str] | None, Checkpoint | None]:
        """The differences between a checkpoint and the commits; `None` if the commits aren't complete.

        The second value is the older checkpoint that the commits follow, if they differ and no checksum confirms it.
        """
        older = tuple(
            c
            for c in self._listing.checkpoints
            if c.version < checkpoint.version and not self._unusable.intersection(c.names)
        )
        segment = self._segment(checkpoint.version, older)
        if segment is None:
            return None, None
        found = list(differences(held, self._replayed(checkpoint.version, segment)))
        base = segment.checkpoint
        if not found or base is None or base.version in self._checksums.confirmed:
            return found, None
        whole = self._segment(checkpoint.version, ())
        if whole is None:
            return found, base
        return list(differences(held, self._replayed(checkpoint.version, whole))), None

    def _segment(self, version: int, checkpoints: tuple[Checkpoint, ...]) -> Segment | None:
        """The files of a version, read from the newest of the checkpoints or the first commit; `None`: some lack."""
        try:
            segment = choose(Listing(self._listing.commits, checkpoints), self._table, version=version)
        except MissingCommitError:
            return None
        if segment is None or self._damaged.intersection(entry.version for entry in segment.entries):
            return None
        return segment

    def _snapshot(self, version: int, header: Header, tail: CommitOverlay, base: "CheckpointState | None") -> Snapshot:
        return Snapshot(self._table, version, header, tail, base, timestamp=self._timestamp(version))

    def _timestamp(self, version: int) -> Callable[[bool], int]:
        return self._reader.timestamp_of(version, self._listing.commits.get(version), None)

    def _check_compactions(self) -> None:
        for entry in (entry for entries in self._listing.compacted.values() for entry in entries):
            name = name_of(entry.status)
            if large_commits.is_large(entry.status):
                continue  # no reader uses it
            try:
                actions = self._reader.compacted(self._reader.read(entry.status) or b"")
            except CorruptLogError as error:
                self._problems.warn(
                    "compaction-damaged", [name], f"the log compaction {name} isn't used: {error}. Remove it."
                )
                continue
            commits = dict(self._commits(entry.first, entry.version))
            if len(commits) == entry.version - entry.first + 1 and not _same(actions, commits, self._table):
                self._problems.error(
                    "compaction-wrong",
                    [name],
                    f"the log compaction {name} doesn't match its commits. Remove it: readers use it instead of them.",
                )

    def _check_newest(self, readable_ranges: Sequence[tuple[int, int]]) -> None:
        if not readable_ranges or readable_ranges[-1][1] != self._newest or self._newest in self._contradicted:
            return
        segment = choose(self._listing, self._table, unusable=self._unusable, use_compacted=False)
        if segment is None:
            return
        first = segment.checkpoint.version + 1 if segment.checkpoint else 0
        if not any(min(first, self._newest) <= version <= self._newest for version in self._listing.checksums):
            return
        newest: Snapshot | None = None
        for state in self._versions(segment):
            if newest is not None and newest.version >= first:  # the checkpoint was compared before
                self._checksums.check_earlier(newest)
            newest = state
        assert newest is not None
        _ = newest.files
        self._checksums.check(newest, by_commits=True)

    def _check_parts(self) -> None:
        complete = {name for checkpoint in self._listing.checkpoints for name in checkpoint.names}
        for status in self._statuses:
            file = parse_log_name(name_of(status))
            if file is not None and file.kind == "checkpoint" and file.name not in complete:
                self._problems.warn(
                    "checkpoint-incomplete",
                    [file.name],
                    f"{file.name} is a part of an incomplete checkpoint: no reader uses it. Remove it.",
                )

    def _check_hint(self, sound: Sequence[int]) -> None:
        hint = self._reader.last_checkpoint()
        newest = sound[-1] if sound else None
        advice = "DeltaLog.for_path(...).checkpoint() writes it again."
        if hint is None and newest is not None:
            self._problems.warn(
                "hint-wrong",
                [LAST_CHECKPOINT],
                f"_last_checkpoint is missing or damaged: the whole log is listed. {advice}",
            )
        elif hint is not None and hint.version not in sound:
            self._problems.warn(
                "hint-wrong",
                [LAST_CHECKPOINT],
                f"_last_checkpoint names version {hint.version}, which has no valid checkpoint: the whole log is "
                f"listed. {advice}",
            )
        elif hint is not None and newest is not None and hint.version < newest:
            self._problems.warn(
                "hint-wrong",
                [LAST_CHECKPOINT],
                f"_last_checkpoint names version {hint.version}, but there is a checkpoint of {newest}. {advice}",
            )

    def _check_sidecars(self, now_ms: int) -> None:
        if self._sidecars is None:
            return
        try:
            files = list(self._store.list_from(f"{self._log_path}/{SIDECAR_DIRECTORY}/0"))
        except FileNotFoundError:
            return
        lost = unreferenced(files, self._sidecars, now_ms)
        if lost:
            self._problems.warn(
                "sidecars-unused",
                [f"{SIDECAR_DIRECTORY}/{name_of(status)}" for status in lost],
                f"{len(lost)} sidecars belong to no checkpoint: a checkpoint wasn't completed. A cleanup that removes "
                "a checkpoint removes them.",
            )


def _missing(commits: Collection[int], first: int, last: int) -> list[tuple[int, int]]:
    """The versions from `first` to `last` without a commit, as ranges."""
    bounds = [first - 1, *sorted(version for version in commits if first <= version <= last), last + 1]
    return [(before + 1, after - 1) for before, after in pairwise(bounds) if after - before > 1]


def _same(actions: Sequence[Action], commits: Mapping[int, Sequence[Action]], table: str) -> bool:
    """Whether a compaction and the reconciled commits have the same effect on every state."""
    ours = compaction.reconciled([commits[version] for version in sorted(commits)], table)
    return bool(compaction.effect(actions, table) == compaction.effect(ours, table))
