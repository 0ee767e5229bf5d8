"""The commits in a table's log: its history, the version at a time, and the commit with a token."""

from contextlib import suppress
from dataclasses import dataclass

from ...errors import InvalidArgumentError, TableNotFoundError, VersionNotFoundError
from ..log.large_commits import is_large
from ..log.reader import LogReader
from ..protocol.actions import CommitInfo
from . import version_times
from .newest_snapshot import NewestSnapshot
from .version_times import in_commit_from


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One commit: its time in milliseconds since the epoch, and its `commitInfo` if the writer wrote one."""

    version: int
    timestamp_ms: int
    commit_info: CommitInfo | None


def version_at(newest: NewestSnapshot, timestamp_ms: int, *, can_return_last: bool, can_return_first: bool) -> int:
    """See `DeltaLog.version_at`."""
    reader, table = newest.reader, newest.table
    listing = reader.list(0)
    if listing.newest is None:
        raise TableNotFoundError(f"there is no Delta table at {table}")
    first = listing.earliest
    times = version_times.file_times(listing, first or 0, listing.newest) if first is not None else []
    if not times:
        raise VersionNotFoundError(
            f"no version of {table} can be read: its log has neither version 0 nor a checkpoint. Restore the "
            "log from a copy"
        )
    enabled_from = in_commit_from(newest.refresh().properties)
    times = version_times.travel_times(times, enabled_from, timestamp_ms, reader.in_commit_timestamp)
    return version_times.choose_version(
        table, times, timestamp_ms, can_return_last=can_return_last, can_return_first=can_return_first
    )


def entries(newest: NewestSnapshot, limit: int | None) -> list[HistoryEntry]:
    """See `DeltaLog.history`."""
    if limit is not None and limit <= 0:
        raise InvalidArgumentError(f"the limit of the history of {newest.table} must be positive, but it is {limit}")
    snapshot, reader = newest.refresh(), newest.reader
    listing = reader.list(0 if limit is None else max(snapshot.version - limit + 1, 0))
    times = version_times.file_times(listing, 0, snapshot.version)
    infos_by_version: dict[int, CommitInfo | None] = {}
    versions = [version for version, _ in times]
    large = [version for version in versions if is_large(listing.commits[version])]
    for version in large:
        with suppress(VersionNotFoundError):
            infos_by_version[version] = reader.commit_info(version)
    versions = [version for version in versions if version not in large]
    for version, data in zip(versions, reader.each([listing.commits[v] for v in versions]), strict=True):
        if data is not None:
            infos = (action for action in reader.parsed(version, data) if isinstance(action, CommitInfo))
            infos_by_version[version] = next(infos, None)
    # A file that cleanup removed meanwhile is no longer part of the history.
    times = [item for item in times if item[0] in infos_by_version]

    def in_commit(version: int) -> int:
        info = infos_by_version[version]
        if info is None or info.in_commit_timestamp is None:
            raise reader.without_timestamp(version)
        return info.in_commit_timestamp

    by_version = version_times.with_in_commit_timestamps(times, in_commit_from(snapshot.properties), in_commit)
    return [
        HistoryEntry(version, by_version[version], infos_by_version[version])
        for version in sorted(infos_by_version, reverse=True)
    ]


def find_commit(reader: LogReader, token: str) -> int | None:
    """See `DeltaLog.find_commit`."""
    listing = reader.list(0)
    token_bytes = token.encode()
    for version in sorted(listing.commits, reverse=True):
        if is_large(listing.commits[version]):
            with suppress(VersionNotFoundError):
                info = reader.commit_info(version)
                if info is not None and info.txn_id == token:
                    return version
            continue
        data = reader.read(listing.commits[version])
        if data is None or token_bytes not in data:
            continue
        if any(isinstance(action, CommitInfo) and action.txn_id == token for action in reader.parsed(version, data)):
            return version
    return None
