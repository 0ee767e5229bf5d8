"""What is wrong with a log: every file of it is read, and compared with what else tells the same.

Nothing is changed. What a checkpoint, a compaction or a checksum says is held against the commits, as far as these are
there: the commits are the truth.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from ...errors import CorruptLogError, MissingCommitError, TableNotFoundError
from ...logstore.base import FileStatus, LogStore
from ..log import checksum
from ..log.checkpoint_file import ReplacedError
from ..log.reader import LogReader
from ..log.replay import CommitOverlay, Header
from ..log.segment import Checkpoint, Listing, choose, name_of, parse_listing, ranges_text, readable
from ..protocol.actions import Action
from ..protocol.paths import LAST_CHECKPOINT, SIDECAR_DIRECTORY, decode, listing_name, parse_log_name
from ..table.snapshot import Snapshot
from . import compaction
from .cleanup import opened, unreferenced
from .second_reading import differences, doubt

if TYPE_CHECKING:
    from ..log.checkpoint import CheckpointState

_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Problem:
    """`error`: versions can't be read, or would be read wrong. `warning`: reading costs more than it has to."""

    severity: Literal["error", "warning"]
    files: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True)
class LogHealth:
    """The state of a log. `readable` are ranges of versions, `checkpoints` the versions that have a sound one."""

    table: str
    newest: int
    commits: int
    size_in_bytes: int
    readable: tuple[tuple[int, int], ...]
    checkpoints: tuple[int, ...]
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether every version that the log should hold can be read."""
        return not any(problem.severity == "error" for problem in self.problems)

    def __str__(self) -> str:
        lines = [
            f"{self.table}: version {self.newest}, {self.commits} commits, {self.size_in_bytes} bytes of log",
            f"versions that can be read: {ranges_text(self.readable)}",
            f"sound checkpoints: {', '.join(map(str, self.checkpoints)) or 'none'}",
        ]
        return "\n".join(
            [*lines, *(f"{p.severity}: {p.message}" for p in self.problems)] + ["ok"] * (not self.problems)
        )


def examine(store: LogStore, log_path: str, table: str, reader: LogReader, now_ms: int) -> LogHealth:
    """Read the whole log of a table and say what is wrong with it.

    A read for each commit, and each checkpoint in memory, one at a time. TableNotFoundError where there is no log.
    """
    try:
        statuses = list(store.list_from(f"{log_path}/{listing_name(0)}"))
    except FileNotFoundError:
        statuses = []
    listing = parse_listing(statuses)
    if listing.newest is None:
        raise TableNotFoundError(f"there is no Delta table at {table}: its log holds no commit and no checkpoint")
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
        self._problems: list[Problem] = []
        self._damaged: set[int] = set()
        self._unusable: set[str] = set()
        self._sidecars: set[str] | None = set()

    def report(self, now_ms: int) -> LogHealth:
        for _ in self._commits(0, self._newest):
            pass
        sound = sorted({c.version for c in self._listing.checkpoints if self._is_sound(c)})
        found = readable(self._listing, unusable=self._unusable, damaged=self._damaged)
        self._find_holes(found)
        self._check_compactions()
        self._check_newest(found)
        self._check_parts()
        self._check_hint(sound)
        self._check_sidecars(now_ms)
        return LogHealth(
            self._table,
            self._newest,
            len(self._listing.commits),
            sum(status.size for status in self._statuses),
            found,
            tuple(sound),
            tuple(sorted(self._problems, key=lambda problem: problem.severity)),
        )

    def _error(self, files: Sequence[str], message: str) -> None:
        self._problems.append(Problem("error", tuple(files), message))

    def _warn(self, files: Sequence[str], message: str) -> None:
        self._problems.append(Problem("warning", tuple(files), message))

    def _commits(self, first: int, last: int) -> Iterator[tuple[int, Sequence[Action]]]:
        """The commits that can be read; of those that can't it is told, once."""
        listed = [version for version in sorted(self._listing.commits) if first <= version <= last]
        for start in range(0, len(listed), _AT_ONCE):
            versions = listed[start : start + _AT_ONCE]
            found = self._reader.many([self._listing.commits[version] for version in versions])
            for version, data in zip(versions, found, strict=True):
                try:
                    if data is None:
                        raise CorruptLogError(f"the commit of version {version} is gone since it was listed")
                    yield version, self._reader.parsed(version, data)
                except CorruptLogError as error:
                    if version not in self._damaged:
                        self._damaged.add(version)
                        self._error([name_of(self._listing.commits[version])], str(error))

    def _find_holes(self, found: Sequence[tuple[int, int]]) -> None:
        first = found[0][0] if found else 0
        ends = [last for _, last in found] or [first - 1]
        begins = [start for start, _ in found[1:]] + [self._newest + 1]
        for start, last in ((end + 1, begin - 1) for end, begin in zip(ends, begins, strict=True)):
            if start > last:
                continue
            missing = _missing(self._listing.commits, start, last)
            what = f"the commits {ranges_text(missing)} are missing" if missing else "of what is told above"
            self._error((), f"the versions {ranges_text([(start, last)])} can't be read: {what}. Restore them.")
        stray = [v for v in self._listing.commits if v < first]
        if stray:
            self._warn(
                [name_of(self._listing.commits[v]) for v in sorted(stray)],
                f"{len(stray)} commits before version {first}, the first one that can be read, serve no version: a "
                "cleanup was interrupted, or a checkpoint was lost. The next cleanup removes them.",
            )

    # --- what stands beside the commits -------------------------------------------------------------------------------

    def _is_sound(self, checkpoint: Checkpoint) -> bool:
        """Whether it can be read whole; told of is what it holds otherwise than the commits before it say."""
        name = checkpoint.names[0]
        try:
            state = opened(self._store, self._log_path, self._table, checkpoint)
            if self._sidecars is not None:
                self._sidecars.update(decode(sidecar.path).rpartition("/")[2] for sidecar in state.sidecars)
            held = self._snapshot(state.version, state.header, CommitOverlay(self._table), state)
            _ = held.files, held.tombstones
        except (CorruptLogError, ReplacedError) as error:
            self._unusable.update(checkpoint.names)
            self._sidecars = None
            self._warn(
                checkpoint.names,
                f"{error}. Readers fall back to what else makes up version {checkpoint.version}: make a checkpoint "
                "anew (DeltaLog.for_path(...).checkpoint()), then remove this one.",
            )
            return False
        if checkpoint.version > max(self._listing.commits, default=checkpoint.version):
            self._error(
                checkpoint.names,
                f"the checkpoint {name} is ahead of the newest commit, {max(self._listing.commits)}: the commits up to "
                f"{checkpoint.version} were lost, or it belongs to another table. It is taken for the newest version; "
                "restore the commits, or remove it.",
            )
        different = self._against_commits(checkpoint, held)
        for difference in different or ():
            self._error(
                checkpoint.names,
                f"the checkpoint {name} isn't what the commits say: {difference}. Remove it, and make one anew.",
            )
        if checkpoint.version != self._newest:
            self._check_checksum(held, confirmed=different == [])
        return True

    def _check_checksum(self, held: Snapshot, *, confirmed: bool) -> None:
        """Tell of a checksum that contradicts the state; `confirmed`: the commits say what the state is."""
        status = self._listing.checksums.get(held.version)
        read = self._reader.checksum(status)
        if status is None or read is None:
            return
        told = read()
        if told is None:
            self._warn([name_of(status)], f"the checksum {name_of(status)} can't be read: nothing is held against it.")
            return
        if held.version not in self._listing.commits:
            told = replace(told, in_commit_timestamp=None)
        totals = held.totals()
        assert totals is not None  # its files were read
        found = checksum.differences(told, held, totals)
        if not found:
            return
        message = f"version {held.version} of {self._table} isn't what its checksum says: {'; '.join(found)}."
        if confirmed and doubt(self._store, self._log_path, self._reader, held, told) is None:
            self._warn(
                [name_of(status)],
                f"{message} The commits say otherwise than {name_of(status)}: the checksum is wrong. Remove it.",
            )
        else:
            self._error(
                [name_of(status)],
                f"{message} The log was changed after the commit, or a writer got the checksum wrong: compare with a "
                "copy.",
            )

    def _against_commits(self, checkpoint: Checkpoint, held: Snapshot) -> list[str] | None:
        """What a checkpoint holds otherwise than the commits; `None` where these don't tell."""
        version = checkpoint.version
        older = [
            c for c in self._listing.checkpoints if c.version < version and not self._unusable.intersection(c.names)
        ]
        listing = Listing(self._listing.commits, tuple(older))
        try:
            segment = choose(listing, self._table, version=version)
        except MissingCommitError:
            return None
        if segment is None or self._damaged.intersection(entry.version for entry in segment.entries):
            return None
        base: CheckpointState | None = None
        if segment.checkpoint is not None:
            base = opened(self._store, self._log_path, self._table, segment.checkpoint)
        header, tail = base.header if base else Header(), CommitOverlay(self._table)
        first = segment.entries[0].version if segment.entries else version + 1
        for _, actions in self._commits(first, version):
            header, tail = header.after(actions), tail.extend(actions)
        replayed = self._snapshot(version, header, tail, base)
        return list(differences(held, replayed))

    def _snapshot(self, version: int, header: Header, tail: CommitOverlay, base: "CheckpointState | None") -> Snapshot:
        return Snapshot(self._table, version, header, tail, base, timestamp=self._timestamp(version))

    def _timestamp(self, version: int) -> Callable[[bool], int]:
        return self._reader.timestamp_of(version, self._listing.commits.get(version), None)

    def _check_compactions(self) -> None:
        for entry in (entry for entries in self._listing.compacted.values() for entry in entries):
            name = name_of(entry.status)
            try:
                told = self._reader.compacted(self._reader.read(entry.status) or b"")
            except CorruptLogError as error:
                self._warn([name], f"the log compaction {name} isn't used: {error}. Remove it.")
                continue
            commits = dict(self._commits(entry.first, entry.version))
            if len(commits) == entry.version - entry.first + 1 and not _same(told, commits, self._table):
                self._error(
                    [name],
                    f"the log compaction {name} isn't what its commits say. Remove it: readers take it for them.",
                )

    def _check_newest(self, found: Sequence[tuple[int, int]]) -> None:
        if not found or found[-1][1] != self._newest:
            return
        segment = choose(self._listing, self._table, unusable=self._unusable, use_compacted=False)
        if segment is None or segment.checksum is None:
            return
        base = None
        if segment.checkpoint is not None:
            base = opened(self._store, self._log_path, self._table, segment.checkpoint)
        header, tail = base.header if base else Header(), CommitOverlay(self._table)
        first = segment.entries[0].version if segment.entries else self._newest + 1
        for _, actions in self._commits(first, self._newest):
            header, tail = header.after(actions), tail.extend(actions)
        newest = self._snapshot(self._newest, header, tail, base)
        _ = newest.files
        self._check_checksum(newest, confirmed=True)

    def _check_parts(self) -> None:
        complete = {name for checkpoint in self._listing.checkpoints for name in checkpoint.names}
        for status in self._statuses:
            file = parse_log_name(name_of(status))
            if file is not None and file.kind == "checkpoint" and file.name not in complete:
                self._warn([file.name], f"{file.name} is a part of a checkpoint that lacks others: no reader uses it.")

    def _check_hint(self, sound: Sequence[int]) -> None:
        hint = self._reader.last_checkpoint()
        newest = sound[-1] if sound else None
        anew = "DeltaLog.for_path(...).checkpoint() writes it anew."
        if hint is None and newest is not None:
            self._warn([LAST_CHECKPOINT], f"_last_checkpoint is missing or damaged: the whole log is listed. {anew}")
        elif hint is not None and hint.version not in sound:
            self._warn(
                [LAST_CHECKPOINT],
                f"_last_checkpoint names version {hint.version}, which has no sound checkpoint: the whole log is "
                f"listed. {anew}",
            )
        elif hint is not None and newest is not None and hint.version < newest:
            self._warn(
                [LAST_CHECKPOINT],
                f"_last_checkpoint names version {hint.version}, and there is one of {newest}. {anew}",
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
            self._warn(
                [f"{SIDECAR_DIRECTORY}/{name_of(status)}" for status in lost],
                f"{len(lost)} sidecars belong to no checkpoint: what a checkpoint left that wasn't finished. A cleanup "
                "that removes a checkpoint removes them.",
            )


def _missing(commits: Collection[int], first: int, last: int) -> list[tuple[int, int]]:
    """The versions from `first` to `last` that have no commit, as ranges."""
    there = [first - 1, *sorted(version for version in commits if first <= version <= last), last + 1]
    return [(before + 1, after - 1) for before, after in pairwise(there) if after - before > 1]


def _same(told: Sequence[Action], commits: Mapping[int, Sequence[Action]], table: str) -> bool:
    """Whether a compaction and the reconciled commits do the same to any state."""
    ours = compaction.reconciled([commits[version] for version in sorted(commits)], table)
    return bool(compaction.effect(told, table) == compaction.effect(ours, table))
