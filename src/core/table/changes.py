"""The changes in a range of versions, from the log alone (PROTOCOL.md, "Add CDC File", "Reader Requirements").

The changes of a version are in its change data files; if it has none, they are the rows of the files that it adds and
removes. A file that one version removes and adds again has a new deletion vector: the changed rows are the difference.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import (
    ChangeDataMissingError,
    ChangeFeedSchemaError,
    CorruptLogError,
    InvalidArgumentError,
    TimestampOutOfRangeError,
    VersionNotFoundError,
)
from ..log.replay import in_commit_timestamp
from ..log.segment import Listing
from ..protocol import column_mapping, paths
from ..protocol.actions import Action, AddCDCFile, AddFile, CommitInfo, Metadata, RemoveFile
from ..protocol.change_data import DELETE, INSERT
from ..protocol.column_mapping import ColumnMapping
from ..protocol.properties import TableProperties
from ..protocol.schema import (
    ArrayType,
    Column,
    DataType,
    MapType,
    StructType,
    all_fields,
    dotted,
    parse_schema,
    type_text,
)
from . import version_times
from .version_times import in_commit_from

if TYPE_CHECKING:
    from .readable_log import ReadableLog
    from .snapshot import Snapshot

_NO_ROWS = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
_MAY_GO_BACK = 100
"""The number of versions before a range whose file times are checked for decreasing values; Delta's number."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One version: its number, its time in milliseconds, its actions."""

    version: int
    timestamp_ms: int
    actions: Sequence[Action]


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file whose rows, except those that its deletion vector deletes, changed in a version.

    `change_type` is that of all rows; `None`: the rows of a change data file have their own.
    """

    commit: Commit
    file: AddFile | RemoveFile | AddCDCFile
    change_type: str | None


@dataclass(frozen=True, slots=True)
class VectorChange:
    """A file that got another deletion vector."""

    commit: Commit
    removed: RemoveFile
    added: AddFile


def of_commit(commit: Commit, table: str) -> tuple[list[FileChange], list[VectorChange]]:
    """The changes in one version. CorruptLogError if a `remove` has too little information to read the file."""
    change_data = [FileChange(commit, action, None) for action in commit.actions if isinstance(action, AddCDCFile)]
    if change_data or changes_nothing(commit.actions):
        return change_data, []
    adds = {paths.canonical(a.path): a for a in commit.actions if isinstance(a, AddFile) and a.data_change}
    removes = {paths.canonical(a.path): a for a in commit.actions if isinstance(a, RemoveFile) and a.data_change}
    for remove in removes.values():
        if remove.partition_values is None or remove.size is None:
            raise CorruptLogError(
                f"version {commit.version} of {table} removes {remove.path} without its size or partition, so its rows "
                "can't be read: read the changes of other versions",
                table=table,
                version=commit.version,
                path=remove.path,
            )
    both = removes.keys() & adds.keys()
    changed = [FileChange(commit, add, INSERT) for path, add in adds.items() if path not in both]
    changed += [FileChange(commit, remove, DELETE) for path, remove in removes.items() if path not in both]
    return changed, [VectorChange(commit, remove, adds[path]) for path, remove in removes.items() if path in both]


def changes_nothing(actions: Iterable[Action]) -> bool:
    """Whether the commitInfo says that no row changed: a MERGE of Delta may rewrite files without changing rows."""
    info = next((action for action in actions if isinstance(action, CommitInfo)), None)
    if info is None or info.operation != "MERGE" or info.operation_metrics is None:
        return False
    return all(str(info.operation_metrics.get(name)) == "0" for name in _NO_ROWS)


def read_commits(log: "ReadableLog", first: int, last: int) -> list[Commit]:
    """The versions `first` to `last`, with their times as in `history`. VersionNotFoundError names a missing version.

    It costs one listing, and one read for each version.
    """
    listing = log.reader.list(max(first - _MAY_GO_BACK, 0))
    missing = next((version for version in range(first, last + 1) if version not in listing.commits), None)
    if missing is not None:
        raise VersionNotFoundError(
            f"the commit of version {missing} of {log.table} is no longer in the log: the changes from version "
            f"{first} to {last} can't be read. Start with a later version",
            table=log.table,
            version=missing,
            path=paths.commit_name(missing),
        )
    actions_of: dict[int, Sequence[Action]] = {}
    statuses = [listing.commits[version] for version in range(first, last + 1)]
    for version, data in enumerate(log.reader.each(statuses), first):
        if data is None:
            raise VersionNotFoundError(
                f"the commit of version {version} of {log.table} was removed while the changes were read. Start with a "
                "later version",
                table=log.table,
                version=version,
                path=paths.commit_name(version),
            )
        actions_of[version] = log.reader.parsed(version, data)

    in_commit = {version: in_commit_timestamp(actions) for version, actions in actions_of.items()}
    time_of = _times(log, log.snapshot(), listing, in_commit)
    return [Commit(version, time_of[version], actions) for version, actions in actions_of.items()]


def times(log: "ReadableLog", newest: "Snapshot", in_commit: Mapping[int, int | None]) -> dict[int, int]:
    """The times of versions, in milliseconds, as in `history`. It costs one listing.

    `in_commit` has the in-commit timestamps of the versions, None for a commit without one.
    """
    listing = log.reader.list(max(min(in_commit) - _MAY_GO_BACK, 0))
    return _times(log, newest, listing, in_commit)


def _times(
    log: "ReadableLog", newest: "Snapshot", listing: Listing, in_commit: Mapping[int, int | None]
) -> dict[int, int]:
    of_files = dict(version_times.monotonic(version_times.file_times(listing, 0, max(in_commit, default=0))))
    enabled_from = in_commit_from(newest)

    def time_of(version: int) -> int:
        if enabled_from is None or version < enabled_from:
            return of_files[version]
        timestamp = in_commit[version]
        if timestamp is None:
            raise log.reader.without_timestamp(version)
        return timestamp

    return {version: time_of(version) for version in in_commit}


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a range: a version, or a time in milliseconds."""

    version: int | None = None
    timestamp_ms: int | None = None


def version_range(
    log: "ReadableLog", newest: int, start: Bound, end: Bound | None, *, lenient: bool = False
) -> tuple[int, int] | None:
    """The versions from `start` to `end`, both included; `None`: no version is in the range.

    A start by time is the first version at or after it. An end by time is the last version at or before it. Without an
    end, the range ends at `newest`.

    Raises:
        VersionNotFoundError: The start is after the newest version, and not `lenient`.
        TimestampOutOfRangeError: The start is after the newest version, or an end by time is outside the table's
            history, and not `lenient`.
        InvalidArgumentError: The end is before the start.
    """
    first = first_version(log, start)
    if first > newest:
        if lenient:
            return None
        if start.timestamp_ms is not None:
            raise TimestampOutOfRangeError(
                f"{version_times.text(start.timestamp_ms)} is after the last version of {log.table}, {newest}: there "
                "are no changes since then",
                condition="DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
                parameters={"providedTimestamp": version_times.text(start.timestamp_ms)},
                table=log.table,
            )
        raise VersionNotFoundError(
            f"the changes of {log.table} can't be read from version {first}: its newest version is {newest}",
            condition="DELTA_CDC_START_VERSION_AFTER_LATEST",
            parameters={"start": first, "latest": newest},
            table=log.table,
            version=first,
        )
    last = newest if end is None else _last(log, end, lenient)
    begins, ends = start.timestamp_ms, None if end is None else end.timestamp_ms
    if begins is not None and ends is not None and begins <= ends and last == first - 1:
        return None  # both times are between two versions
    if last < first:
        raise InvalidArgumentError(
            f"the changes of {log.table} can't be read from version {first} to version {last}: the end is before the "
            "start",
            condition="DELTA_INVALID_CDC_RANGE",
            parameters={"start": first, "end": last},
            table=log.table,
        )
    return first, min(last, newest)


def first_version(log: "ReadableLog", start: Bound) -> int:
    """The first version at or after `start`; it may be one after the newest version."""
    if start.timestamp_ms is None:
        assert start.version is not None
        return start.version
    try:
        return log.version_at(start.timestamp_ms - 1, can_return_last=True) + 1
    except TimestampOutOfRangeError:  # the time is before the first version
        return log.version_at(start.timestamp_ms, can_return_first=True, can_return_last=True)


def _last(log: "ReadableLog", end: Bound, lenient: bool) -> int:
    if end.timestamp_ms is None:
        assert end.version is not None
        return end.version
    return log.version_at(end.timestamp_ms, can_return_last=lenient)


def check_recorded(commits: Sequence[Commit], at_start: Metadata, table: str) -> None:
    """Raise ChangeDataMissingError for the first version without change data; `at_start`: metadata of the first."""
    for commit in commits:
        metadata = next((action for action in commit.actions if isinstance(action, Metadata)), None)
        if commit is commits[0]:
            metadata = at_start
        if metadata is not None and not TableProperties.of(metadata).enable_change_data_feed:
            raise ChangeDataMissingError(
                f"the changes of {table} from version {commits[0].version} to {commits[-1].version} can't be read: "
                f"version {commit.version} has no change data. The table's history shows when "
                "delta.enableChangeDataFeed was set: start with that version",
                condition="DELTA_MISSING_CHANGE_DATA",
                parameters={
                    "startVersion": commits[0].version,
                    "endVersion": commits[-1].version,
                    "version": commit.version,
                    "key": "delta.enableChangeDataFeed",
                },
                table=table,
                version=commit.version,
            )


def check_schemas(commits: Sequence[Commit], at_start: ColumnMapping, read: ColumnMapping, at: int, table: str) -> None:
    """Raise ChangeFeedSchemaError unless the columns of version `at` can read the rows of every version, as in Delta.

    Only added columns are allowed. `at_start` is the mapping of the first version of the range.
    """
    mappings = [(commits[0].version, at_start)]
    for commit in commits[1:]:
        for metadata in (action for action in commit.actions if isinstance(action, Metadata)):
            mode = column_mapping.mode_of(metadata)
            mapping = ColumnMapping(mode, parse_schema(metadata.schema_string), tuple(metadata.partition_columns))
            mappings.append((commit.version, mapping))
    for version, mapping in mappings:
        older, newer = (mapping, read) if version <= at else (read, mapping)
        difference = _difference(older, newer, read_is_newer=version <= at)
        if difference is not None:
            raise ChangeFeedSchemaError(
                f"the changes of {table} from version {commits[0].version} to {commits[-1].version} can't be read "
                f"together: they are read with the columns of version {at}, but between it and version {version} "
                f"{difference}. Read the versions before and after that change separately",
                condition="DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
                parameters={"start": commits[0].version, "end": commits[-1].version, "readVersion": at},
                table=table,
                version=version,
            )


def _difference(older: ColumnMapping, newer: ColumnMapping, *, read_is_newer: bool) -> str | None:
    """The first difference between two schemas other than an added column, in words."""
    later = {_folded(at): (at, f) for at, f in all_fields(newer.logical)}
    for at, field in all_fields(older.logical):
        if _folded(at) not in later:
            return f"the column {dotted(at)} was dropped"
        at_now, now = later[_folded(at)]
        if _shape(now.data_type) != _shape(field.data_type):
            return f"the column {dotted(at)} changed from {type_text(field.data_type)} to {type_text(now.data_type)}"
        if (field.nullable and not now.nullable) if read_is_newer else (now.nullable and not field.nullable):
            return f"the nullability of the column {dotted(at)} changed"
        if _folded(older.to_physical(at)) != _folded(newer.to_physical(at_now)):
            return f"the column {dotted(at)} was replaced by another column with the same name"
    return None


def _folded(column: Column) -> Column:
    return tuple(part.lower() for part in column)


def _shape(data_type: DataType) -> str:
    """The type without the fields of its structs, which are compared on their own."""
    if isinstance(data_type, StructType):
        return "struct"
    if isinstance(data_type, ArrayType):
        return f"array<{_shape(data_type.element_type)}>"
    if isinstance(data_type, MapType):
        return f"map<{_shape(data_type.key_type)}, {_shape(data_type.value_type)}>"
    return type_text(data_type)
