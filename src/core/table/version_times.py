"""The time of each version, for history and time travel.

The time of a version is its in-commit timestamp if the table has them, else the modification time of its file. File
times may decrease (another writer's clock, a copied table). As in Delta, each is raised to at least one millisecond
after the time before, so that each timestamp stands for one version.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ...errors import TimestampOutOfRangeError
from ..log.segment import Listing

if TYPE_CHECKING:
    from ..protocol.properties import TableProperties


def monotonic(times: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """(version, milliseconds) ascending by version, with each time raised above the one before."""
    result: list[tuple[int, int]] = []
    for version, time in times:
        result.append((version, max(time, result[-1][1] + 1) if result else time))
    return result


def file_times(listing: Listing, first: int, last: int) -> list[tuple[int, int]]:
    """(version, modification time in milliseconds) of the listed commits from `first` to `last`, ascending."""
    return [
        (version, listing.commits[version].modification_time_ms)
        for version in sorted(listing.commits)
        if first <= version <= last
    ]


def at_or_before(times: Sequence[tuple[int, int]], timestamp_ms: int) -> tuple[int, int] | None:
    """The last item of (version, milliseconds), both ascending, with a time at or before the timestamp."""
    match = None
    for version, time in times:
        if time > timestamp_ms:
            break
        match = version, time
    return match


def choose_version(
    table: str, times: Sequence[tuple[int, int]], timestamp_ms: int, *, can_return_last: bool, can_return_first: bool
) -> int:
    """The version that was the newest at a time.

    `times` are (version, milliseconds), monotonic, of all versions that can be read. Raises TimestampOutOfRangeError,
    which names the range, for a time before the first or after the last, unless the flags allow the nearest version.
    """
    first, last = times[0], times[-1]
    if timestamp_ms < first[1] and not can_return_first:
        raise TimestampOutOfRangeError(
            f"{text(timestamp_ms)} is before the first version of {table} that can be read; {_range(first, last)}",
            condition="DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
            parameters={
                "userTimestamp": text(timestamp_ms),
                "commitTs": text(first[1]),
                "timestampString": text(first[1]),
            },
        )
    if timestamp_ms > last[1] and not can_return_last:
        raise TimestampOutOfRangeError(
            f"{text(timestamp_ms)} is after the last version of {table}; {_range(first, last)}. "
            "To read the newest version, leave out the timestamp",
            condition="DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
            parameters={
                "providedTimestamp": text(timestamp_ms),
                "lastCommitTimestamp": text(last[1]),
                "maximumTimestamp": text(last[1]),
            },
        )
    match = at_or_before(times, timestamp_ms)
    return first[0] if match is None else match[0]


def _range(first: tuple[int, int], last: tuple[int, int]) -> str:
    return f"it has version {first[0]} of {text(first[1])} to version {last[0]} of {text(last[1])}"


def text(timestamp_ms: int) -> str:
    """A time in milliseconds as text in UTC, for messages."""
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_ms} ms"


def travel_times(
    times: Sequence[tuple[int, int]], enabled_from: int | None, timestamp_ms: int, read: Callable[[int], int]
) -> list[tuple[int, int]]:
    """The part of `times` that `choose_version` needs to find the version of one timestamp.

    `times` are file times, ascending by version. For versions from `enabled_from` on, `read` returns the in-commit
    timestamp and costs a request. These timestamps ascend, so a binary search needs few of them: the result has only
    the first, the last, and the one at or before the timestamp.
    """
    if enabled_from is None:
        return monotonic(times)
    before = monotonic([item for item in times if item[0] < enabled_from])
    versions = [version for version, _ in times if version >= enabled_from]
    if not versions:
        return before
    first, last = (versions[0], read(versions[0])), (versions[-1], read(versions[-1]))
    # A file time at or after the first in-commit timestamp can't be right.
    before = [item for item in before if item[1] < first[1]]
    if timestamp_ms < first[1]:
        return [*before, *sorted({first, last})]
    low, high = 0, len(versions) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if read(versions[middle]) <= timestamp_ms:
            low = middle
        else:
            high = middle - 1
    nearest = versions[low], read(versions[low])
    return sorted({*before[:1], first, nearest, last})


def with_in_commit_timestamps(
    times: Sequence[tuple[int, int]], enabled_from: int | None, read: Callable[[int], int]
) -> Mapping[int, int]:
    """Times by version: monotonic file times before `enabled_from`, `read(version)` from there on."""
    if enabled_from is None:
        return dict(monotonic(times))
    result = dict(monotonic([item for item in times if item[0] < enabled_from]))
    for version, _ in times:
        if version >= enabled_from:
            result[version] = read(version)
    return result


def in_commit_from(properties: "TableProperties") -> int | None:
    """The first version with in-commit timestamps; `None` if the table doesn't have them."""
    if not properties.enable_in_commit_timestamps:
        return None
    return properties.in_commit_timestamp_enablement_version or 0
