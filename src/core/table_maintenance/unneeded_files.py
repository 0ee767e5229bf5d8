"""The files that VACUUM may remove, decided from names and times, and from the log.

A file is kept if the newest version has it, if a version that was current at or after the cutoff time had it, if it is
the change data file of a commit since then, or if it is younger than that: a running transaction may be about to commit
it. The removal time in the log isn't enough: it is set before the commit, and a checkpoint drops it after the table's
retention, whatever retention VACUUM gets. So the commits since the cutoff are read.
"""

import logging
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from ...errors import CorruptLogError, InvalidArgumentError, TimestampOutOfRangeError, VersionNotFoundError
from ...logstore.base import FileStatus
from ...settings.declarations import RETENTION_CHECK
from ..log.large_commits import is_large
from ..log.segment import Listing
from ..protocol import deletion_vectors, paths
from ..protocol.actions import Action, AddCDCFile, DeletionVectorDescriptor, RemoveFile
from ..protocol.paths import crc_name
from ..table.checked_pieces import checked_pieces

if TYPE_CHECKING:
    import pyarrow as pa

    from ..table.readable_log import ReadableLog
    from ..table.snapshot import Snapshot

_log = logging.getLogger(__name__)

_HOUR_MS = 3_600_000
_MOST_HOURS = 10_000_000
"""Some thousand years: the time before which files are removed is still a date."""
_SWEPT = re.compile(r"_delta_index|_change_data|(_temporary|__magic|__magic_job-.*|__base)\Z")
"""Names that aren't ignored. Those in brackets are directories of Hadoop's committers; killed jobs leave them."""
_CHUNK = 256
_ODD = "%|:|//|/\\.|^[/.]"
"""Matches paths for which `paths.below` may return a name other than the path itself."""


class ListedFile(NamedTuple):
    """A listed file: `name` is relative to the listed directory, or to the root; times in ms."""

    name: str
    size: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Directory:
    """One listed directory below the root (the root itself has the name "").

    `files` have names relative to the directory. `hidden` are entries that the listing ignores, `other` counts entries
    that are neither files nor directories (links aren't followed). `modified_ms` is `None` where directories are only
    parts of names.
    """

    name: str
    files: Sequence[ListedFile]
    directories: Sequence[str] = ()
    hidden: Sequence[str] = ()
    other: int = 0
    modified_ms: int | None = None

    def path_of(self, name: str) -> str:
        """The name of an entry relative to the root."""
        return f"{self.name}/{name}" if self.name else name


@dataclass(slots=True)
class Removable:
    """The removable files (name relative to the root, bytes) and empty directories, and the number of directories."""

    files: list[tuple[str, int]] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    directories_seen: int = 0

    @property
    def size_in_bytes(self) -> int:
        return sum(size for _, size in self.files)

    def __len__(self) -> int:
        return len(self.files) + len(self.empty)


def retention_ms(hours: float | None, default_ms: int, *, checked: bool, table: str) -> int:
    """How long files are kept, in milliseconds; InvalidArgumentError for a negative or unsafe retention, or no number.

    `default_ms` is the table's `delta.deletedFileRetentionDuration`.
    """
    if hours is None:
        return default_ms
    if not abs(hours) <= _MOST_HOURS:  # NaN is not less than anything
        raise InvalidArgumentError(
            f"{table}: the retention of VACUUM is a number of hours up to {_MOST_HOURS:,}, but it is {hours}"
        )
    retention = round(hours * _HOUR_MS)
    if retention < 0:
        raise InvalidArgumentError(
            f"{table}: the retention of VACUUM can't be negative, but it is {hours} hours",
            condition="DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE",
        )
    if checked and retention < default_ms:
        raise InvalidArgumentError(
            f"{table}: a retention of {hours} hours is less than the table's, {-(-default_ms // _HOUR_MS)} hours. "
            "Running writers, and readers of older versions, would lose files. If there are none, set "
            f"{RETENTION_CHECK.key} to false (`tablelog vacuum`: --no-retention-check)",
            condition="DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
            parameters={"configuredRetentionHours": -(-default_ms // _HOUR_MS)},
        )
    return retention


def is_hidden(name: str, partition_columns: Collection[str] = (), *, iceberg: bool = False) -> bool:
    """Whether VACUUM ignores a file or directory with this name, at any depth.

    `iceberg`: the table also has Iceberg metadata.
    """
    if iceberg and name == "metadata":
        return True
    if not name.startswith((".", "_")) or _SWEPT.match(name):
        return False
    return not any(name.startswith(f"{column}=") for column in partition_columns)


# --- what is needed -----------------------------------------------------------------------------------------------


class Needed:
    """The names of files to keep, relative to the root. `same_place` maps a path that looks foreign to a name.

    The files of versions are kept as hashes of 8 bytes. So one name in 2^64 is taken for another, and its file is kept.
    """

    def __init__(self, table: str, same_place: Callable[[str], str | None] = lambda path: None) -> None:
        self._table = table
        self._same_place = same_place
        self._names: set[str] = set()
        self._chunks: list[pa.Array] = []
        """Hashes of names: one ordered array, and those that were added since."""
        self._ordered = memoryview(b"").cast("q")
        self._changed = False
        self._sources: list[Callable[[], Iterable[pa.Table]]] = []
        self.num_live = 0
        """The number of files of the version that was added last."""

    def __contains__(self, name: str) -> bool:
        if name in self._names:
            return True
        if self._changed:
            self._sort()
        place, wanted = bisect_left(self._ordered, hash(name)), hash(name)
        return place < len(self._ordered) and self._ordered[place] == wanted

    def _sort(self) -> None:
        import pyarrow as pa

        whole = pa.concat_arrays(self._chunks).sort()
        self._chunks, self._changed = [whole], False
        self._ordered = memoryview(whole.buffers()[1]).cast("q")[: len(whole)]

    def __iter__(self) -> Iterator[str]:
        yield from self._names
        for source in self._sources:
            for files in source():
                yield from files.column("path").to_pylist()

    def add(self, path: str) -> None:
        """Add the file of an action's `path`, with every name that it may have."""
        self._names.update(names_of(self._table, path, self._same_place))

    def add_vector(self, vector: DeletionVectorDescriptor | None) -> None:
        """Add the file of a deletion vector."""
        if vector is not None and vector.storage_type != "i":
            self.add(deletion_vectors.path_of(vector))

    def add_files(self, files: "pa.Table") -> None:
        """Add the files of a table with the columns `path` and `deletionVector`, and the files of their vectors."""
        self._add_hashes(files)
        self._sources.append(lambda: [files])

    def add_version(self, snapshot: "Snapshot") -> None:
        """Add the files of a version; the names in a large checkpoint are in memory only piece by piece.

        Raises ChecksumMismatchError.
        """
        from ..log.checkpoint_file import DamagedCheckpointError

        self.num_live = 0
        try:
            for piece in checked_pieces(snapshot):
                self._add_hashes(piece)
                self.num_live += piece.num_rows
        except DamagedCheckpointError:  # other files of the log may have the version
            self._add_hashes(snapshot.files)
            self.num_live = snapshot.files.num_rows
        self._sources.append(lambda: snapshot.pieces(with_stats=False))

    def add_removed(self, snapshot: "Snapshot", since_ms: int) -> None:
        """Add the tombstones of a version that are not older than `since_ms`."""
        import pyarrow.compute as pc

        from ..log.checkpoint_file import DamagedCheckpointError

        def pieces() -> "Iterator[pa.Table]":
            for piece in snapshot.tombstone_pieces():
                yield piece.filter(pc.greater_equal(piece.column("deletionTimestamp"), since_ms))

        try:
            self.add_pieces(pieces)
        except DamagedCheckpointError:  # other files of the log may have the version
            self.add_pieces(pieces)

    def add_pieces(self, pieces: "Callable[[], Iterable[pa.Table]]") -> None:
        """`add_files` of files that aren't all in memory: their names are read again if they are needed."""
        for piece in pieces():
            self._add_hashes(piece)
        self._sources.append(pieces)

    def add_newer(self, snapshot: "Snapshot", known: "Snapshot") -> None:
        """Add the files of a version, of which those of the earlier version `known` are added already."""
        if snapshot.base is not known.base:
            self.add_version(snapshot)
            return
        for piece in snapshot.newer_pieces(with_stats=False):
            self.add_files(piece)

    def _add_hashes(self, files: "pa.Table") -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        from ..log.columns import deletion_vector_of

        column = files.column("path")
        self._changed = self._changed or files.num_rows > 0
        self._chunks += [pa.array([hash(name) for name in chunk.to_pylist()], pa.int64()) for chunk in column.chunks]
        for path in column.filter(pc.match_substring_regex(column, _ODD)).to_pylist():
            self.add(path)
        vectors = files.column("deletionVector")
        if vectors.null_count < len(vectors):
            for value in vectors.filter(pc.is_valid(vectors)).to_pylist():
                self.add_vector(deletion_vector_of(value))


def names_of(table: str, path: str, same_place: Callable[[str], str | None] = lambda path: None) -> tuple[str, ...]:
    """The possible names of an action's path, relative to the root; none for a file outside the root.

    A path that isn't encoded, as some writers write it, also counts literally.
    """
    name = paths.below(table, path)
    if name is None:
        name = same_place(path)
        return () if name is None else (name,)
    return (name,) if name == path else (name, path)


def needed_by(
    log: "ReadableLog", snapshot: "Snapshot", before_ms: int, same_place: Callable[[str], str | None]
) -> tuple[Needed, int | None]:
    """The files that versions current at `before_ms` or later need, and the version that was current then.

    The version is `None` if the log doesn't reach back that far; the files are then those of every readable version.
    """
    needed = Needed(log.table, same_place)
    needed.add_version(snapshot)
    needed.add_removed(snapshot, before_ms)
    try:
        version: int | None = min(log.version_at(before_ms, can_return_last=True), snapshot.version)
    except (TimestampOutOfRangeError, VersionNotFoundError):
        version = None
    first = 0 if version is None else version + 1
    small, large = _commits(log, first, snapshot.version)
    for action in _gone_in(log, small):
        needed.add(action.path)
        if isinstance(action, RemoveFile):
            needed.add_vector(action.deletion_vector)
    if large:
        needed.add_pieces(lambda: _gone_pieces(log, large))
    return needed, version


def gone_since(log: "ReadableLog", first: int, last: int) -> Iterator[RemoveFile | AddCDCFile]:
    """The removed files and the change data files of the commits `first` to `last` that still exist."""
    small, large = _commits(log, first, last)
    yield from _gone_in(log, small)
    yield from chain.from_iterable(_gone_in_large(log, large))


def _commits(log: "ReadableLog", first: int, last: int) -> tuple[dict[int, FileStatus], dict[int, FileStatus]]:
    """The commits from `first` to `last` by version: the small and the large ones."""
    listing = log.reader.list(first) if first <= last else Listing()
    listed = listing.commits
    lost, newest = max(listing.checksums, default=-1), max(listed, default=last)
    if lost > newest:
        raise CorruptLogError(
            f"the log of {log.table} has a checksum of version {lost}, and its newest commit is {newest}: commits "
            "were probably lost, and VACUUM would delete their files. Restore the commits. If they were removed on "
            f"purpose, remove {crc_name(lost)} too",
            table=log.table,
            version=lost,
            path=crc_name(lost),
        )
    chosen = {version: listed[version] for version in sorted(listed) if first <= version <= last}
    large = {version: status for version, status in chosen.items() if is_large(status)}
    return {version: status for version, status in chosen.items() if version not in large}, large


def _gone_in(log: "ReadableLog", commits: Mapping[int, FileStatus]) -> Iterator[RemoveFile | AddCDCFile]:
    versions = list(commits)
    for start in range(0, len(versions), _CHUNK):
        chunk = versions[start : start + _CHUNK]
        for version, data in zip(chunk, log.reader.many([commits[v] for v in chunk]), strict=True):
            if data is None or (b'"remove"' not in data and b'"cdc"' not in data):
                continue
            yield from _gone(log.reader.parsed(version, data))


def _gone_in_large(log: "ReadableLog", commits: Mapping[int, FileStatus]) -> Iterator[list[RemoveFile | AddCDCFile]]:
    for version, status in commits.items():
        yield from (_gone(actions) for actions in log.reader.batches(version, status))


def _gone(actions: Iterable[Action]) -> list[RemoveFile | AddCDCFile]:
    return [action for action in actions if isinstance(action, RemoveFile | AddCDCFile)]


def _gone_pieces(log: "ReadableLog", commits: Mapping[int, FileStatus]) -> "Iterator[pa.Table]":
    """The removed files and the change data files of large commits, with the columns that `Needed` reads."""
    import pyarrow as pa

    from ..log.columns import DELETION_VECTOR, column_of

    for actions in _gone_in_large(log, commits):
        removes = [action for action in actions if isinstance(action, RemoveFile)]
        changes = [action.path for action in actions if isinstance(action, AddCDCFile)]
        paths_ = pa.chunked_array([column_of(removes, "path", pa.string()), pa.array(changes, pa.string())])
        vectors = column_of(removes, "deletionVector", DELETION_VECTOR)
        none = pa.nulls(len(changes), DELETION_VECTOR)
        yield pa.table({"path": paths_, "deletionVector": pa.chunked_array([vectors, none])})


# --- what may go --------------------------------------------------------------------------------------------------


def removable(directories: Iterable[Directory], needed: Needed, before_ms: int) -> Removable:
    """The listed files that aren't needed and are older than `before_ms`, and the empty directories.

    A directory is empty if it contains only empty directories; directories that this cleanup empties don't count. Files
    in a directory with its own log belong to another table.
    """
    result = Removable()
    filled: set[str] = set()
    old: list[str] = []
    tables: list[str] = []
    for directory in directories:
        result.directories_seen += 1
        if is_other_table(directory):
            tables.append(f"{directory.name}/")
        for name, size, modified in directory.files:
            path = directory.path_of(name)
            if modified < before_ms and path not in needed:
                result.files.append((path, size))
        if directory.files or directory.hidden or directory.other:
            filled.update(_upwards(directory.name))
        elif directory.name and directory.modified_ms is not None:
            if directory.modified_ms < before_ms:
                old.append(directory.name)
            else:
                filled.update(_upwards(directory.name))
    if tables:
        _log.warning("VACUUM ignores other tables below this table: %s", ", ".join(sorted(tables)))
        others = tuple(tables)
        result.files = [file for file in result.files if not file[0].startswith(others)]
        old = [name for name in old if not name.startswith(others)]
    result.empty = sorted((name for name in old if name not in filled), key=lambda name: (-name.count("/"), name))
    return result


def is_other_table(directory: Directory) -> bool:
    """Whether a listed directory below a table is a table of its own."""
    return bool(directory.name) and paths.LOG_DIRECTORY in directory.hidden


def _upwards(name: str) -> Iterator[str]:
    while name:
        yield name
        name = name.rpartition("/")[0]


def abandoned(directories: Sequence[Directory], before_ms: int) -> Removable:
    """The whole content of a staging directory, if nothing in it is younger than `before_ms`; else nothing."""
    if any(
        (directory.modified_ms or 0) >= before_ms or any(file.modified_ms >= before_ms for file in directory.files)
        for directory in directories
    ):
        return Removable()
    files = [(directory.path_of(file.name), file.size) for directory in directories for file in directory.files]
    empty = [directory.name for directory in directories if directory.modified_ms is not None]
    return Removable(files, sorted(empty, key=lambda name: (-name.count("/"), name)), 0)
