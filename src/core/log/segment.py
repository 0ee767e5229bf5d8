"""Selecting the log files that make up a version: a pure function of a listing (PROTOCOL.md, "Checkpoints").

A version consists of the newest usable checkpoint at or below it, and every commit after that checkpoint. A log
compaction replaces the commits that it covers.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ...errors import MissingCommitError
from ...logstore.base import FileStatus
from ..protocol.paths import LogFile, commit_name, parse_log_name


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint: one file, or every part of a multi-part one, in order."""

    version: int
    files: tuple[FileStatus, ...]
    uuid: str | None = None
    format: str = "parquet"
    checksum: FileStatus | None = field(default=None, compare=False)
    """The `.crc` file of its version, if one was listed."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name_of(status) for status in self.files)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A file of JSON actions to replay: one commit, or the compaction of the versions `first` to `version`."""

    first: int
    version: int
    status: FileStatus

    @property
    def compacted(self) -> bool:
        return self.first != self.version


@dataclass(frozen=True, slots=True)
class Segment:
    """The files that make up `version`, in the order of replay.

    `last_commit` is the commit file of `version` (`None` if cleanup removed it and the checkpoint remains), `checksum`
    its `.crc` file if one was listed.
    """

    version: int
    checkpoint: Checkpoint | None
    entries: tuple[LogEntry, ...]
    last_commit: FileStatus | None
    checksum: FileStatus | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a listing of the log, sorted by kind."""

    commits: dict[int, FileStatus] = field(default_factory=dict)
    checkpoints: tuple[Checkpoint, ...] = ()
    """Complete checkpoints, in the order of preference, the best one last."""
    compacted: dict[int, list[LogEntry]] = field(default_factory=dict)
    """By first version."""
    checksums: dict[int, FileStatus] = field(default_factory=dict)

    @property
    def newest(self) -> int | None:
        """The newest version of the listed commits and checkpoints."""
        newest = max(self.commits, default=-1)
        if self.checkpoints:
            newest = max(newest, self.checkpoints[-1].version)
        return None if newest < 0 else newest

    @property
    def earliest(self) -> int | None:
        """The oldest version that can be read: 0, or that of the first checkpoint."""
        if 0 in self.commits:
            return 0
        return self.checkpoints[0].version if self.checkpoints else None


def name_of(status: FileStatus) -> str:
    """The last part of a file's path."""
    return status.path.rpartition("/")[2]


def parse_listing(statuses: Iterable[FileStatus]) -> Listing:
    """Sort a listing by kind; names that aren't in the protocol are left out."""
    commits: dict[int, FileStatus] = {}
    compacted: dict[int, list[LogEntry]] = {}
    checksums: dict[int, FileStatus] = {}
    single: list[tuple[LogFile, FileStatus]] = []
    parts: dict[tuple[int, int], dict[int, FileStatus]] = {}
    for status in statuses:
        file = parse_log_name(name_of(status))
        if file is None:
            continue
        if file.kind == "commit":
            commits[file.version] = status
        elif file.kind == "crc":
            checksums[file.version] = status
        elif file.kind == "compacted":
            assert file.first is not None
            compacted.setdefault(file.first, []).append(LogEntry(file.first, file.version, status))
        elif file.parts is not None and file.part is not None:
            parts.setdefault((file.version, file.parts), {})[file.part] = status
        else:
            single.append((file, status))
    return Listing(commits, _complete(single, parts, checksums), compacted, checksums)


def _complete(
    single: Sequence[tuple[LogFile, FileStatus]],
    parts: dict[tuple[int, int], dict[int, FileStatus]],
    checksums: Mapping[int, FileStatus],
) -> tuple[Checkpoint, ...]:
    ranked: list[tuple[tuple[int, int, str], Checkpoint]] = []
    for (version, count), part_files in parts.items():
        # A missing part may still be written: the protocol says to ignore an incomplete checkpoint.
        if len(part_files) == count:
            files = tuple(part_files[number] for number in range(1, count + 1))
            ranked.append(((version, 0, ""), Checkpoint(version, files, checksum=checksums.get(version))))
    for log_file, status in single:
        form, checksum = log_file.format or "parquet", checksums.get(log_file.version)
        checkpoint = Checkpoint(log_file.version, (status,), log_file.uuid, form, checksum)
        # Checkpoints of one version hold the same state. A classic one is preferred: it takes a single request.
        ranked.append(((log_file.version, 1 if log_file.uuid else 2, log_file.name), checkpoint))
    ranked.sort(key=lambda item: item[0])
    return tuple(checkpoint for _, checkpoint in ranked)


def choose(
    listing: Listing,
    table: str,
    *,
    version: int | None = None,
    unusable: Collection[str] = (),
    use_compacted: bool = True,
) -> Segment | None:
    """The segment of `version` (the newest by default).

    Args:
        listing: The files of the log.
        table: The table, for messages.
        version: The version to read.
        unusable: Names of checkpoint and compacted files that are damaged.
        use_compacted: Whether log compactions may replace commits.

    Returns:
        `None` if the listing doesn't have the version, or has neither a checkpoint nor version 0 (the caller may have
        listed too little).

    Raises:
        MissingCommitError: A commit is missing; the message names it.
    """
    newest = listing.newest
    if newest is None:
        return None
    target = newest if version is None else version
    if target > newest:
        return None
    checkpoint = next(
        (
            checkpoint
            for checkpoint in reversed(listing.checkpoints)
            if checkpoint.version <= target and not any(name in unusable for name in checkpoint.names)
        ),
        None,
    )
    first = checkpoint.version + 1 if checkpoint else 0
    if checkpoint is None and 0 not in listing.commits:
        return None
    for needed in range(first, target + 1):
        if needed not in listing.commits:
            raise missing_commit(table, listing, needed, target)
    entries = _entries(listing, first, target, unusable if use_compacted else None)
    return Segment(target, checkpoint, entries, listing.commits.get(target), listing.checksums.get(target))


def _entries(listing: Listing, first: int, target: int, unusable: Collection[str] | None) -> tuple[LogEntry, ...]:
    entries: list[LogEntry] = []
    version = first
    while version <= target:
        entry = LogEntry(version, version, listing.commits[version])
        if unusable is not None:
            for candidate in listing.compacted.get(version, ()):
                if entry.version < candidate.version <= target and name_of(candidate.status) not in unusable:
                    entry = candidate
        entries.append(entry)
        version = entry.version + 1
    return tuple(entries)


def readable(
    listing: Listing, *, unusable: Collection[str] = (), damaged: Collection[int] = ()
) -> tuple[tuple[int, int], ...]:
    """The versions that can be read from the files, as ranges (both ends included), ascending.

    `unusable` names checkpoint files that can't be read, `damaged` versions whose commits can't be read.
    """
    starts = {c.version for c in listing.checkpoints if not any(name in unusable for name in c.names)}
    if 0 in listing.commits and 0 not in damaged:
        starts.add(0)
    ranges: list[tuple[int, int]] = []
    for start in sorted(starts):
        if ranges and start <= ranges[-1][1]:
            continue
        last = start
        while last + 1 in starts or (last + 1 in listing.commits and last + 1 not in damaged):
            last += 1
        if ranges and start == ranges[-1][1] + 1:
            ranges[-1] = ranges[-1][0], last
        else:
            ranges.append((start, last))
    return tuple(ranges)


def ranges_text(ranges: Iterable[tuple[int, int]]) -> str:
    """Ranges of versions as text for messages."""
    return ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in ranges) or "none"


def missing_commit(table: str, listing: Listing, needed: int, target: int) -> MissingCommitError:
    """The error for a log without the commit `needed`, and perhaps the next ones: the missing files, and what to do."""
    last = min((version for version in listing.commits if needed < version <= target), default=target + 1) - 1
    missing = commit_name(needed) if last == needed else f"{commit_name(needed)} to {commit_name(last)}"
    return MissingCommitError(
        f"the log of {table} is incomplete: {missing} is missing, and version {target} can't be read without it. "
        f"Restore the file from a copy. The versions that can be read: {ranges_text(readable(listing))}. "
        "DeltaLog.for_path(...).health() lists all damage of the log.",
        table=table,
        version=needed,
        path=commit_name(needed),
    )
