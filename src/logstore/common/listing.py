"""A directory listing that isn't a snapshot of its directory, corrected so that callers may rely on it."""

from bisect import bisect_left
from collections.abc import Callable

_DIGITS = 20


def without_false_gaps(scan: Callable[[], list[bytes]], start: bytes) -> list[bytes]:
    """The names >= `start` that `scan` returns, in byte order, without gaps that don't exist in the directory.

    A directory is read in pieces, so a listing may miss a new file but have a later one. On ext4 this happens in one of
    five listings of a busy log; a version then seems to be missing. A second scan has every file that was created
    before the first scan ended. So if the first scan has a gap in the version numbers of its names, the second scan is
    used, up to the highest number of the first: later files were created after the call.
    """
    names = sorted(scan())
    numbers = _numbers(names)
    if not numbers:
        return names
    newest = max(numbers)
    first = start[:_DIGITS] if len(start) >= _DIGITS and start[:_DIGITS].isdigit() else min(numbers)
    if int(newest) - int(first) + 1 == len(numbers):
        return names
    return sorted(name for name in scan() if not is_numbered(name) or name[:_DIGITS] <= newest)


def _numbers(names: list[bytes]) -> set[bytes]:
    """The version numbers of the log files in `names`, which is sorted."""
    first, end = bisect_left(names, b"0"), bisect_left(names, b":")
    return {name[:_DIGITS] for name in names[first:end] if is_numbered(name)}


def is_numbered(name: bytes) -> bool:
    """Whether `name` starts with a version number, as the names of log files do."""
    return name[_DIGITS : _DIGITS + 1] == b"." and name[:_DIGITS].isdigit()
