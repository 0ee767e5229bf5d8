"""What changed in a range of versions, by the log alone (PROTOCOL.md, "Add CDC File", "Reader Requirements").

A version with change files is told by these; any other by the rows of the files that it adds and removes. A file that
is removed and added anew in one version has another deletion vector then: the rows between the two changed.
"""

from collections.abc import Iterable, Sequence
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
from . import history
from .history import in_commit_from

if TYPE_CHECKING:
    from .readable_log import ReadableLog

_NO_ROWS = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
_MAY_GO_BACK = 100
"""How many versions before a range are looked at for file times that went back; Delta's number."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One version: its number, its time in milliseconds, what it holds."""

    version: int
    timestamp_ms: int
    actions: Sequence[Action]


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file whose rows, but those that its deletion vector takes out, changed in a version.

    `change_type` is that of all of them; `None`: each row of a change file tells its own.
    """

    commit: Commit
    file: AddFile | RemoveFile | AddCDCFile
    change_type: str | None


@dataclass(frozen=True, slots=True)
class VectorChange:
    """A file that stays, with another deletion vector."""

    commit: Commit
    removed: RemoveFile
    added: AddFile


def of_commit(commit: Commit, table: str) -> tuple[list[FileChange], list[VectorChange]]:
    """What changed in one version. CorruptLogError for a removed file that the log says too little of to read it."""
    told = [FileChange(commit, action, None) for action in commit.actions if isinstance(action, AddCDCFile)]
    if told or _changes_nothing(commit.actions):
        return told, []
    adds = {paths.canonical(a.path): a for a in commit.actions if isinstance(a, AddFile) and a.data_change}
    removes = {paths.canonical(a.path): a for a in commit.actions if isinstance(a, RemoveFile) and a.data_change}
    for remove in removes.values():
        if remove.partition_values is None or remove.size is None:
            raise CorruptLogError(
                f"version {commit.version} of {table} removes {remove.path} and tells neither its size nor its "
                "partition, so that the rows that went with it can't be read: read the changes of other versions"
            )
    both = removes.keys() & adds.keys()
    changed = [FileChange(commit, add, INSERT) for path, add in adds.items() if path not in both]
    changed += [FileChange(commit, remove, DELETE) for path, remove in removes.items() if path not in both]
    return changed, [VectorChange(commit, remove, adds[path]) for path, remove in removes.items() if path in both]


def _changes_nothing(actions: Iterable[Action]) -> bool:
    """Whether the commit says of itself that it changed no row: a MERGE of Delta may rewrite files all the same."""
    info = next((action for action in actions if isinstance(action, CommitInfo)), None)
    if info is None or info.operation != "MERGE" or info.operation_metrics is None:
        return False
    return all(str(info.operation_metrics.get(name)) == "0" for name in _NO_ROWS)


def read_commits(log: "ReadableLog", first: int, last: int) -> list[Commit]:
    """The versions `first` to `last`, with their times as `history` has them. VersionNotFoundError names a gap.

    One list, and a read for each version.
    """
    listing = log.reader.list(max(first - _MAY_GO_BACK, 0))
    missing = next((version for version in range(first, last + 1) if version not in listing.commits), None)
    if missing is not None:
        raise VersionNotFoundError(
            f"the commit of version {missing} of {log.table} isn't in the log any more: the changes from version "
            f"{first} to {last} can't be read. Begin with a later version"
        )
    found: dict[int, Sequence[Action]] = {}
    statuses = [listing.commits[version] for version in range(first, last + 1)]
    for version, data in enumerate(log.reader.each(statuses), first):
        if data is None:
            raise VersionNotFoundError(f"the commit of version {version} of {log.table} vanished while it was read")
        found[version] = log.reader.parsed(version, data)

    of_files = dict(history.monotonic(history.file_times(listing, 0, last)))
    enabled_from = in_commit_from(log.snapshot())

    def time_of(version: int) -> int:
        if enabled_from is None or version < enabled_from:
            return of_files[version]
        told = in_commit_timestamp(found[version])
        if told is None:
            raise CorruptLogError(
                f"version {version} of {log.table} has no in-commit timestamp, and the table has them"
            )
        return told

    return [Commit(version, time_of(version), actions) for version, actions in found.items()]


@dataclass(frozen=True, slots=True)
class Bound:
    """An end of a range as it was asked for: by number, or by a time in milliseconds."""

    version: int | None = None
    timestamp_ms: int | None = None


def version_range(
    log: "ReadableLog", newest: int, start: Bound, end: Bound | None, *, lenient: bool = False
) -> tuple[int, int] | None:
    """The versions from `start` to `end`, both included; `None`: no version lies between.

    A start by time is the first version at or after it, an end by time the last at or before it, no end the `newest`.
    VersionNotFoundError or TimestampOutOfRangeError for a start after the newest version, or an end by time that lies
    outside of the table's history, unless `lenient`; InvalidArgumentError for an end before the start.
    """
    first = _first(log, start)
    if first > newest:
        if lenient:
            return None
        if start.timestamp_ms is not None:
            raise TimestampOutOfRangeError(
                f"{history.text(start.timestamp_ms)} is after the last version of {log.table}, {newest}: no change "
                "is that new",
                condition="DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
                parameters={"providedTimestamp": history.text(start.timestamp_ms)},
            )
        raise VersionNotFoundError(
            f"the changes of {log.table} can't be read from version {first} on: its newest version is {newest}",
            condition="DELTA_CDC_START_VERSION_AFTER_LATEST",
            parameters={"start": first, "latest": newest},
        )
    last = newest if end is None else _last(log, end, lenient)
    begins, ends = start.timestamp_ms, None if end is None else end.timestamp_ms
    if begins is not None and ends is not None and begins <= ends and last == first - 1:
        return None  # both times lie between two versions
    if last < first:
        raise InvalidArgumentError(
            f"the changes of {log.table} can't be read from version {first} to version {last}: the end is before the "
            "start",
            condition="DELTA_INVALID_CDC_RANGE",
            parameters={"start": first, "end": last},
        )
    return first, min(last, newest)


def _first(log: "ReadableLog", start: Bound) -> int:
    if start.timestamp_ms is None:
        assert start.version is not None
        return start.version
    try:
        return log.version_at(start.timestamp_ms - 1, can_return_last=True) + 1
    except TimestampOutOfRangeError:  # all there is came later
        return log.version_at(start.timestamp_ms, can_return_first=True, can_return_last=True)


def _last(log: "ReadableLog", end: Bound, lenient: bool) -> int:
    if end.timestamp_ms is None:
        assert end.version is not None
        return end.version
    return log.version_at(end.timestamp_ms, can_return_last=lenient)


def check_recorded(commits: Sequence[Commit], at_start: Metadata, table: str) -> None:
    """ChangeDataMissingError names the first version that recorded no changes; `at_start` is the first's metadata."""
    for commit in commits:
        metadata = next((action for action in commit.actions if isinstance(action, Metadata)), None)
        if commit is commits[0]:
            metadata = at_start
        if metadata is not None and not TableProperties.of(metadata).enable_change_data_feed:
            raise ChangeDataMissingError(
                f"the changes of {table} from version {commits[0].version} to {commits[-1].version} can't be read: "
                f"version {commit.version} didn't record them. The table's history tells when "
                "delta.enableChangeDataFeed was set: begin there",
                condition="DELTA_MISSING_CHANGE_DATA",
                parameters={
                    "startVersion": commits[0].version,
                    "endVersion": commits[-1].version,
                    "version": commit.version,
                    "key": "delta.enableChangeDataFeed",
                },
            )


def check_schemas(commits: Sequence[Commit], at_start: ColumnMapping, read: ColumnMapping, at: int, table: str) -> None:
    """ChangeFeedSchemaError unless every version's rows can be read with the columns of version `at`, as Delta has it.

    Columns may have been added, and nothing else. `at_start` is what the first version of the range has.
    """
    seen = [(commits[0].version, at_start)]
    for commit in commits[1:]:
        for metadata in (action for action in commit.actions if isinstance(action, Metadata)):
            mode = column_mapping.mode_of(metadata)
            mapping = ColumnMapping(mode, parse_schema(metadata.schema_string), tuple(metadata.partition_columns))
            seen.append((commit.version, mapping))
    for version, mapping in seen:
        older, newer = (mapping, read) if version <= at else (read, mapping)
        found = _difference(older, newer, read_is_newer=version <= at)
        if found is not None:
            raise ChangeFeedSchemaError(
                f"the changes of {table} from version {commits[0].version} to {commits[-1].version} can't be read in "
                f"one: they are read with the columns of version {at}, and between it and version {version} {found}. "
                "Read the versions before and after that change each on their own",
                condition="DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
                parameters={"start": commits[0].version, "end": commits[-1].version, "readVersion": at},
            )


def _difference(older: ColumnMapping, newer: ColumnMapping, *, read_is_newer: bool) -> str | None:
    """What but added columns lies between two schemas, in words."""
    later = {_folded(at): (at, f) for at, f in all_fields(newer.logical)}
    for at, f in all_fields(older.logical):
        if _folded(at) not in later:
            return f"the column {dotted(at)} went"
        at_now, now = later[_folded(at)]
        if _shape(now.data_type) != _shape(f.data_type):
            return f"the column {dotted(at)} became {type_text(now.data_type)}, from {type_text(f.data_type)}"
        if (f.nullable and not now.nullable) if read_is_newer else (now.nullable and not f.nullable):
            return f"whether the column {dotted(at)} may be null changed"
        if _folded(older.to_physical(at)) != _folded(newer.to_physical(at_now)):
            return f"the column {dotted(at)} became another one of that name"
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
