"""The versions of a change data feed: which ones a range has, and whether they can be read together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import (
    ChangeDataMissingError,
    ChangeFeedSchemaError,
    InvalidArgumentError,
    TimestampOutOfRangeError,
    VersionNotFoundError,
)
from ..log import large_commits
from ..log.columns import removes_of
from ..log.replay import in_commit_timestamp
from ..log.segment import Listing
from ..protocol import column_mapping, paths
from ..protocol.actions import Action, AddCDCFile, Metadata, RemoveFile
from ..protocol.column_mapping import ColumnMapping
from ..protocol.properties import TableProperties
from ..protocol.schema import (
    VOID,
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
from ..protocol.type_widening import can_widen
from . import changed_files, version_times
from .changed_files import Commit
from .version_times import in_commit_from

if TYPE_CHECKING:
    from ..protocol.properties import TableProperties
    from .readable_log import ReadableLog
    from .snapshot import Snapshot

_MAY_GO_BACK = 100
"""The number of versions before a range whose file times are checked for decreasing values; Delta's number."""


def read_commits(
    log: "ReadableLog", newest: "Snapshot", first: int, last: int, *, in_columns: bool = False
) -> list[Commit]:
    """The versions `first` to `last`, with their times as in `history`. VersionNotFoundError names a missing version.

    `newest` is a version from `last` on. With `in_columns`, the files of large commits are in columns (`Commit.files`).
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
    files_of: dict[int, changed_files.Files] = {}
    statuses = {version: listing.commits[version] for version in range(first, last + 1)}
    large = {version for version, status in statuses.items() if in_columns and large_commits.is_large(status)}
    whole = [version for version in statuses if version not in large]
    for version, data in zip(whole, log.reader.each([statuses[version] for version in whole]), strict=True):
        if data is None:
            raise _removed(log, version)
        actions_of[version] = log.reader.parsed(version, data)
    for version in large:
        collected = changed_files.collected(log.reader.batches(version, statuses[version]))
        if collected is None:
            raise _removed(log, version)
        actions_of[version], files_of[version] = collected
    in_commit = {version: in_commit_timestamp(actions_of[version]) for version in statuses}
    time_of = _times(log, newest.properties, listing, in_commit)
    return [Commit(version, time_of[version], actions_of[version], files_of.get(version)) for version in statuses]


def _removed(log: "ReadableLog", version: int) -> VersionNotFoundError:
    return VersionNotFoundError(
        f"the commit of version {version} of {log.table} was removed while the changes were read. Start with a "
        "later version",
        table=log.table,
        version=version,
        path=paths.commit_name(version),
    )


def times(log: "ReadableLog", properties: "TableProperties", in_commit: Mapping[int, int | None]) -> dict[int, int]:
    """The times of versions, in milliseconds, as in `history`. It costs one listing.

    `properties` are those of the newest version that is known. `in_commit` has the in-commit timestamps of the
    versions, None for a commit without one.
    """
    listing = log.reader.list(max(min(in_commit) - _MAY_GO_BACK, 0))
    return _times(log, properties, listing, in_commit)


def _times(
    log: "ReadableLog", properties: "TableProperties", listing: Listing, in_commit: Mapping[int, int | None]
) -> dict[int, int]:
    of_files = dict(version_times.monotonic(version_times.file_times(listing, 0, max(in_commit, default=0))))
    enabled_from = in_commit_from(properties)

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


def mapping_before(log: "ReadableLog", commit: Commit) -> ColumnMapping | None:
    """The columns of the files that a commit removes, if it changes the metadata, and the version before it exists.

    None if the feed reads none of them, because the commit has change data files.
    """
    kinds = {type(action) for action in commit.actions}
    change_data = AddCDCFile in kinds or (commit.files is not None and commit.files.change_data.num_rows)
    removes = RemoveFile in kinds or commit.files is not None
    if commit.version == 0 or change_data or not removes or Metadata not in kinds:
        return None
    try:
        return log.snapshot(version=commit.version - 1).mapping
    except VersionNotFoundError:
        return None


def check_schemas(
    commits: Sequence[Commit],
    at_start: ColumnMapping,
    read: ColumnMapping,
    at: int,
    table: str,
    before: ColumnMapping | None = None,
) -> None:
    """Raise ChangeFeedSchemaError unless the columns of version `at` can read the rows of every version, as in Delta.

    Only added columns are allowed. All files must have the same partition columns, which their data doesn't have.
    `at_start` is the mapping of the first version of the range, and `before` that of the rows that it removes.
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
        if difference is None and set(older.physical_partition_columns) != set(newer.physical_partition_columns):
            difference = "the partition columns changed"
        if difference is not None:
            raise _not_together(
                commits,
                at,
                f"they are read with the columns of version {at}, but between it and version {version} {difference}",
                version,
                table,
            )
    narrowed = None if before is None else _narrowed(before, read)
    if narrowed is not None:
        first = commits[0].version
        raise _not_together(commits, at, f"version {first} removes rows of other types: {narrowed}", first, table)
    if not _removed_partitioning(commits[0]) <= {frozenset(read.physical_partition_columns)}:
        first = commits[0].version
        raise _not_together(commits, at, f"version {first} changes the partition columns", first, table)


def _removed_partitioning(commit: Commit) -> set[frozenset[str]]:
    """The partition columns of the files that a commit removes, if it changes the metadata: it may change them too."""
    if not any(isinstance(action, Metadata) for action in commit.actions):
        return set()
    removes = [action for action in commit.actions if isinstance(action, RemoveFile)]
    if commit.files is not None:
        removes += removes_of(commit.files.removes.slice(0, 1))
    return {frozenset(remove.partition_values) for remove in removes if remove.partition_values is not None}


def _not_together(commits: Sequence[Commit], at: int, reason: str, version: int, table: str) -> ChangeFeedSchemaError:
    return ChangeFeedSchemaError(
        f"the changes of {table} from version {commits[0].version} to {commits[-1].version} can't be read together: "
        f"{reason}. Read the versions before and after that change separately",
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
            physical = older.to_physical(at)
            renamed = (name for name, _ in later.values() if newer.active and newer.to_physical(name) == physical)
            new_name = next(renamed, None)
            return f"the column {dotted(at)} was " + (
                "dropped" if new_name is None else f"renamed to {dotted(new_name)}"
            )
        at_now, now = later[_folded(at)]
        if _shape(now.data_type) != _shape(field.data_type):
            return f"the column {dotted(at)} changed from {type_text(field.data_type)} to {type_text(now.data_type)}"
        if (field.nullable and not now.nullable) if read_is_newer else (now.nullable and not field.nullable):
            return f"the nullability of the column {dotted(at)} changed"
        if _folded(older.to_physical(at)) != _folded(newer.to_physical(at_now)):
            return f"the column {dotted(at)} was replaced by another column with the same name"
    return None


def _narrowed(before: ColumnMapping, read: ColumnMapping) -> str | None:
    """The first column whose older values don't fit its type, in words. A column that is no longer there has nulls."""
    now = {_folded(read.to_physical(at)): (at, field.data_type) for at, field in all_fields(read.logical)}
    for at, field in all_fields(before.logical):
        found = now.get(_folded(before.to_physical(at)))
        fits = found is None or field.data_type == VOID or _shape(found[1]) == _shape(field.data_type)
        if found is None or fits or can_widen(field.data_type, found[1]):
            continue
        return f"the column {dotted(found[0])} changed from {type_text(field.data_type)} to {type_text(found[1])}"
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
