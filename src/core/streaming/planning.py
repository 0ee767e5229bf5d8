"""Which files the next batch of a stream has: pure functions of the versions since the last offset.

The order of the files, and where a batch may end, are Delta's: a query can change between delta-spark and tablelog at
any offset.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from .limits import Admission
from .offset import AFTER_FILES, BEFORE_FILES, SCHEMA_CHANGE, Position


class Separable(Enum):
    """How a batch may divide the files of a version."""

    BY_FILE = "by file"
    NOT = "not"
    """All or none, with the begin and the end of the version."""
    CHANGE_DATA = "change data"
    """All or none; the offset after them is that of the last file."""


@dataclass(frozen=True, slots=True)
class VersionFiles:
    """The files of one version that a stream reads, in order. Their indexes count from 0.

    `sizes` are their sizes in bytes. `excluded` are indexes of files that don't count for limits and aren't read.
    `changes_schema`: the files need another schema than that of the stream, so that a batch ends before them.
    """

    version: int
    sizes: Sequence[int]
    separable: Separable = Separable.BY_FILE
    excluded: frozenset[int] = frozenset()
    changes_schema: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """The files of one version in a batch: those with an index from `first` to `end`, without `end`."""

    version: int
    first: int
    end: int


def last_position(
    start: Position,
    versions: Iterable[VersionFiles],
    admission: Admission | None,
    bound: Position | None = None,
    *,
    stops_at_limit: bool = False,
) -> Position | None:
    """The last position of the batch that begins after `start`; None: there is nothing after it.

    Args:
        start: The position that was read last.
        versions: The versions from that of `start` on, in order.
        admission: The limits; None for no limit.
        bound: The last position that may be read, if there is one.
        stops_at_limit: Whether a full batch ends before versions without files. It does for change data.
    """
    last = None
    for files in versions:
        if stops_at_limit and admission is not None and not admission.has_capacity:
            break
        if bound is not None and (files.version, BEFORE_FILES) > bound:
            break
        reached, complete = _within(start, files, admission, bound)
        last = reached or last
        if not complete:
            break
    return last


def _within(
    start: Position, files: VersionFiles, admission: Admission | None, bound: Position | None
) -> tuple[Position | None, bool]:
    """The last position of the batch in one version, and whether the batch may go on with the next version."""
    barrier = files.version, SCHEMA_CHANGE
    if files.changes_schema and start < barrier and (bound is None or barrier <= bound):
        return barrier, False
    if admission is not None and files.separable is not Separable.BY_FILE:
        return _group(start, files, admission, bound)
    last = None
    for index in _indexes(start, files):
        position = files.version, index
        if bound is not None and position > bound:
            return last, False
        if admission is not None:
            if 0 <= index < AFTER_FILES:
                if not admission.file(files.sizes[index]):
                    return last, False
            else:
                admission.mark()
        last = position
    return last, True


def _group(
    start: Position, files: VersionFiles, admission: Admission, bound: Position | None
) -> tuple[Position | None, bool]:
    marks = files.separable is Separable.NOT
    indexes = [
        index
        for index in _indexes(start, files)
        if (marks or 0 <= index < AFTER_FILES) and (bound is None or (files.version, index) <= bound)
    ]
    size = sum(files.sizes[index] for index in indexes if 0 <= index < AFTER_FILES)
    if not admission.group(len(indexes), size):
        return None, False
    return ((files.version, indexes[-1]) if indexes else None), True


def _indexes(start: Position, files: VersionFiles) -> Iterator[int]:
    """The indexes of a version after `start`: its begin, its files, its end."""
    version, index = start
    first = index if version == files.version else BEFORE_FILES - 1
    if first < BEFORE_FILES:
        yield BEFORE_FILES
    for i in range(max(first + 1, 0), len(files.sizes)):
        if i not in files.excluded:
            yield i
    if first < AFTER_FILES:
        yield AFTER_FILES


def spans(start: Position, end: Position, count_of: Callable[[int], int | None]) -> Iterator[Span]:
    """The files after `start` up to and including `end`, by version.

    `count_of` gives the number of files of a version, None for a version that the log no longer has.
    """
    for version in range(start[0], end[0] + 1):
        if version == end[0] and end[1] < 0:
            return
        count = count_of(version)
        if count is None:
            continue
        first = max(start[1] + 1, 0) if version == start[0] else 0
        stop = min(count, end[1] + 1) if version == end[0] else count
        if first < stop:
            yield Span(version, first, stop)
