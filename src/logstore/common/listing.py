"""A listing that is no snapshot of its directory, made safe to draw conclusions from."""

from bisect import bisect_left
from collections.abc import Callable

_DIGITS = 20


def without_false_gaps(scan: Callable[[], list[bytes]], start: bytes) -> list[bytes]:
    """The names >= `start` that `scan` gives, in byte order, with no hole that isn't in the directory.

    A directory is read in pieces, so a file that is made meanwhile may be missed while a later one is seen: on ext4
    that happens in one listing of five of a busy log, and looks as if a version were missing. All that was made
    before the first scan ended is in a second one. So where the first has a gap in the numbers that the log's names
    start with, the second is taken, up to the greatest number of the first: what is beyond came after the call.
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
    """The numbers of the log's files in `names`, which is sorted."""
    first, end = bisect_left(names, b"0"), bisect_left(names, b":")
    return {name[:_DIGITS] for name in names[first:end] if is_numbered(name)}


def is_numbered(name: bytes) -> bool:
    """Whether `name` begins as those of the log's files do, with the number of a version."""
    return name[_DIGITS : _DIGITS + 1] == b"." and name[:_DIGITS].isdigit()
