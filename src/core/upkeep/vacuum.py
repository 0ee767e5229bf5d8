"""What VACUUM may remove: decided from names and times alone, and from the log that says which names are needed.

A file stays when the newest version has it, when a version that was current at or after a moment had it, when a commit
since then tells changes by it, and when it is younger than that moment: a transaction under way may be about to commit
it. The log's own statement of when a file was removed is not enough: it is made before the commit, and a checkpoint
forgets it after the table's retention, whatever is asked of VACUUM. So the commits since that moment are read.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ...errors import InvalidArgumentError, TimestampOutOfRangeError, VersionNotFoundError
from ...settings.honoured import RETENTION_CHECK
from ..protocol import deletion_vectors, paths
from ..protocol.actions import AddCDCFile, DeletionVectorDescriptor, RemoveFile

if TYPE_CHECKING:
    import pyarrow as pa

    from ..table.readable_log import ReadableLog
    from ..table.snapshot import Snapshot

_log = logging.getLogger(__name__)

_HOUR_MS = 3_600_000
_SWEPT = ("_delta_index", "_change_data")
_CHUNK = 256
_ODD = "%|:|//|/\\.|^[/.]"
"""A path in which `paths.below` may find another name than the path itself."""


class ListedFile(NamedTuple):
    """A file of a listing: `name` is relative to the directory that was listed, or to the root; times in ms."""

    name: str
    size: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Directory:
    """One directory below the root (its name is "" for the root itself), as it was listed.

    `files` are named relative to the directory. `hidden` are entries that a listing passes over, `other` counts what
    is neither file nor directory (links, which nobody follows). `modified_ms` is `None` where directories are no more
    than parts of names.
    """

    name: str
    files: Sequence[ListedFile]
    directories: Sequence[str] = ()
    hidden: Sequence[str] = ()
    other: int = 0
    modified_ms: int | None = None

    def path_of(self, name: str) -> str:
        """The name, relative to the root, of an entry."""
        return f"{self.name}/{name}" if self.name else name


@dataclass(slots=True)
class Removable:
    """What may go: files (name relative to the root, bytes), directories that were empty, and how many were seen."""

    files: list[tuple[str, int]] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    directories_seen: int = 0

    @property
    def size_in_bytes(self) -> int:
        return sum(size for _, size in self.files)

    def __len__(self) -> int:
        return len(self.files) + len(self.empty)


def retention_ms(hours: float | None, default_ms: int, *, checked: bool, table: str) -> int:
    """For how long, in milliseconds, files stay; InvalidArgumentError for less than none, or less than is safe.

    `default_ms` is the table's `delta.deletedFileRetentionDuration`.
    """
    if hours is None:
        return default_ms
    found = round(hours * _HOUR_MS)
    if found < 0:
        raise InvalidArgumentError(
            f"the retention of VACUUM can't be less than 0, and {hours} hours were given",
            condition="DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE",
        )
    if checked and found < default_ms:
        raise InvalidArgumentError(
            f"{table}: a retention of {hours} hours is less than the table's, {-(-default_ms // _HOUR_MS)} hours. "
            "Writers that are at work, and readers of older versions, would lose files. If there are none, set "
            f"{RETENTION_CHECK.key} to false",
            condition="DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
            parameters={"configuredRetentionHours": -(-default_ms // _HOUR_MS)},
        )
    return found


def is_hidden(name: str, partition_columns: Collection[str] = (), *, iceberg: bool = False) -> bool:
    """Whether VACUUM passes over a file or directory of this name, at whatever depth.

    `iceberg`: the table has Iceberg's metadata beside Delta's.
    """
    if iceberg and name == "metadata":
        return True
    if not name.startswith((".", "_")) or name.startswith(_SWEPT):
        return False
    return not any(name.startswith(f"{column}=") for column in partition_columns)


# --- what is needed -----------------------------------------------------------------------------------------------


class Needed:
    """The names, relative to the root, of files that stay. `same_place` finds a name of a path that looks foreign."""

    def __init__(self, table: str, same_place: Callable[[str], str | None] = lambda path: None) -> None:
        self._table = table
        self._same_place = same_place
        self._names: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def add(self, path: str) -> None:
        """The file of an action's `path`, by every name that it may mean."""
        self._names.update(names_of(self._table, path, self._same_place))

    def add_vector(self, vector: DeletionVectorDescriptor | None) -> None:
        """The file that a deletion vector lies in."""
        if vector is not None and vector.storage_type != "i":
            self.add(deletion_vectors.path_of(vector))

    def add_files(self, files: "pa.Table") -> None:
        """The files of a table with the columns `path` and `deletionVector`, and those of their vectors."""
        import pyarrow.compute as pc

        from ..log.columns import deletion_vector_of

        column = files.column("path")
        self._names.update(column.to_pylist())
        for path in column.filter(pc.match_substring_regex(column, _ODD)).to_pylist():
            self.add(path)
        vectors = files.column("deletionVector")
        if vectors.null_count < len(vectors):
            for value in vectors.filter(pc.is_valid(vectors)).to_pylist():
                self.add_vector(deletion_vector_of(value))


def names_of(table: str, path: str, same_place: Callable[[str], str | None] = lambda path: None) -> tuple[str, ...]:
    """The names, relative to the root, that an action's path may mean; none for a file that lies elsewhere.

    A path that isn't encoded, as a careless writer leaves it, is taken literally as well.
    """
    found = paths.below(table, path)
    if found is None:
        found = same_place(path)
        return () if found is None else (found,)
    return (found,) if found == path else (found, path)


def needed_by(
    log: "ReadableLog", snapshot: "Snapshot", before_ms: int, same_place: Callable[[str], str | None]
) -> tuple[Needed, int | None]:
    """The files that the versions current at `before_ms` or later need, and the version that was current then.

    Where the log doesn't reach back so far it is `None`, and the files are those of every version that can be read.
    """
    import pyarrow.compute as pc

    needed = Needed(log.table, same_place)
    needed.add_files(snapshot.files)
    tombstones = snapshot.tombstones
    needed.add_files(tombstones.filter(pc.greater_equal(tombstones.column("deletionTimestamp"), before_ms)))
    try:
        version: int | None = min(log.version_at(before_ms, can_return_last=True), snapshot.version)
    except (TimestampOutOfRangeError, VersionNotFoundError):
        version = None
    for action in gone_since(log, 0 if version is None else version + 1, snapshot.version):
        needed.add(action.path)
        if isinstance(action, RemoveFile):
            needed.add_vector(action.deletion_vector)
    return needed, version


def gone_since(log: "ReadableLog", first: int, last: int) -> Iterator[RemoveFile | AddCDCFile]:
    """What the commits `first` to `last`, as far as they are still there, removed, and their change files."""
    if first > last:
        return
    listed = log.reader.list(first).commits
    versions = [version for version in sorted(listed) if first <= version <= last]
    for start in range(0, len(versions), _CHUNK):
        chunk = versions[start : start + _CHUNK]
        for version, data in zip(chunk, log.reader.many([listed[v] for v in chunk]), strict=True):
            if data is None or (b'"remove"' not in data and b'"cdc"' not in data):
                continue
            for action in log.reader.parsed(version, data):
                if isinstance(action, RemoveFile | AddCDCFile):
                    yield action


# --- what may go --------------------------------------------------------------------------------------------------


def removable(directories: Iterable[Directory], needed: Needed, before_ms: int) -> Removable:
    """Of what was listed: the files that nobody needs and that are older than `before_ms`, and the empty directories.

    A directory is empty where nothing was below it but directories that are; those that this makes empty are not. What
    lies in a directory with a log of its own is another table's.
    """
    result = Removable()
    filled: set[str] = set()
    old: list[str] = []
    tables: list[str] = []
    for directory in directories:
        result.directories_seen += 1
        if directory.name and paths.LOG_DIRECTORY in directory.hidden:
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
        _log.warning("VACUUM leaves alone the tables that lie below this one: %s", ", ".join(sorted(tables)))
        others = tuple(tables)
        result.files = [file for file in result.files if not file[0].startswith(others)]
        old = [name for name in old if not name.startswith(others)]
    result.empty = sorted((name for name in old if name not in filled), key=lambda name: (-name.count("/"), name))
    return result


def _upwards(name: str) -> Iterator[str]:
    while name:
        yield name
        name = name.rpartition("/")[0]


def abandoned(directories: Sequence[Directory], before_ms: int) -> Removable:
    """A staging directory, all of it, where nothing in it is younger than `before_ms`; else nothing."""
    if any(
        (one.modified_ms or 0) >= before_ms or any(file.modified_ms >= before_ms for file in one.files)
        for one in directories
    ):
        return Removable()
    files = [(one.path_of(file.name), file.size) for one in directories for file in one.files]
    empty = [one.name for one in directories if one.modified_ms is not None]
    return Removable(files, sorted(empty, key=lambda name: (-name.count("/"), name)), 0)
