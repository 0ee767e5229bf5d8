"""Divides the initial files of a stream into ranges of event time: the option `withEventTimeOrder`.

A watermark drops rows whose event time is before that of rows in earlier batches. So each batch gets the rows of one
range, and the ranges ascend: no row is older than a row of an earlier batch. The ranges are chosen by what is known of
the event times in each file; which rows a batch has depends only on its ends, which the offsets contain.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..protocol import partition_values
from ..protocol.actions import AddFile
from ..protocol.schema import PrimitiveType, StructType
from ..skipping.bounds import bounds_of
from ..table.snapshot import Snapshot
from .limits import ReadLimits

TYPES = frozenset({"date", "timestamp"})
"""The types of a column that can be an event time.

Spark has no watermark on a timestamp without a time zone, and a cast of it to a timestamp doesn't keep the order in the
hour that a zone skips in spring.
"""

_TOLERANCE = 1e-6  # of sums of floating-point numbers, relative to one batch

Bounds: TypeAlias = tuple[int, int] | None
"""The first and the last event time in a file, in the unit of the column; None: it has none."""
Measure: TypeAlias = Callable[[str, Sequence[AddFile]], Sequence[Bounds]]
"""Reads the bounds of a column in some files."""


@dataclass(frozen=True, slots=True)
class EventTimeOrder:
    """How a stream reads its initial files in the order of event time.

    `column` is the table's column that has the event time. `time_zone` is that of partition timestamps that name none.
    `measure` reads the event times of files without statistics; if not `statistics`, of all files.
    """

    column: str
    time_zone: str
    measure: Measure
    statistics: bool = True


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The rows of a batch: those with an event time from `first` up to `end`, without `end`; None: not limited.

    The times are microseconds since 1970, or days for a column of dates. Rows without an event time belong to the range
    without `first`: a watermark never drops them.
    """

    column: str
    first: int | None = None
    end: int | None = None

    @property
    def limited(self) -> bool:
        return self.first is not None or self.end is not None


@dataclass(frozen=True, slots=True)
class FileTimes:
    """What is known of the event times in one file: their bounds, and whether rows may have none."""

    bounds: Bounds
    nulls: bool


class TimeRanges:
    """Chooses the ranges for files with these event times and sizes.

    A file is assumed to have its rows evenly between its bounds. So a range that has a half of them counts as half of
    the file, for the limits of a batch.
    """

    def __init__(self, times: Sequence[FileTimes], sizes: Sequence[int], limits: ReadLimits) -> None:
        self._times = times
        files, size_limit = limits.effective
        changes: dict[int, tuple[int, float]] = {}  # at each end: the change of the number of files, and of the density
        for time, size in zip(times, sizes, strict=True):
            if time.bounds is not None:
                first, last = time.bounds
                density = max(1 / files, size / size_limit) / (last + 1 - first)
                for end, sign in ((first, 1), (last + 1, -1)):
                    count, change = changes.get(end, (0, 0.0))
                    changes[end] = count + sign, change + sign * density
        self._ends = sorted(changes)
        self._density: list[float] = []
        self._batches: list[float] = []  # how many batches the rows before each of `_ends` fill
        density = batches = 0.0
        previous = open_files = 0
        for end in self._ends:
            batches += density * (end - previous)
            open_files += changes[end][0]
            density = density + changes[end][1] if open_files else 0.0
            self._batches.append(batches)
            self._density.append(density)
            previous = end

    def end_after(self, first: int | None) -> int | None:
        """The end of the range that begins with `first` and fills a batch; None: it has all other rows."""
        if not self._ends:
            return None
        start = self._ends[0] if first is None else first
        wanted = self._batches_before(start) + 1
        i = bisect_left(self._batches, wanted - _TOLERANCE)
        if i == len(self._ends):
            return None
        end = self._ends[i]
        if self._batches[i] > wanted + _TOLERANCE:
            end = self._ends[i - 1] + ceil((wanted - self._batches[i - 1]) / self._density[i - 1])
        end = max(end, start + 1)
        return end if end < self._ends[-1] else None

    def _batches_before(self, time: int) -> float:
        i = bisect_right(self._ends, time) - 1
        return 0.0 if i < 0 else self._batches[i] + self._density[i] * (time - self._ends[i])

    def files_in(self, wanted: TimeRange) -> list[int]:
        """The indexes of the files that may have rows of a range."""
        return [
            i
            for i, time in enumerate(self._times)
            if (time.nulls and wanted.first is None)
            or (
                time.bounds is not None
                and (wanted.first is None or time.bounds[1] >= wanted.first)
                and (wanted.end is None or time.bounds[0] < wanted.end)
            )
        ]


def file_times(snapshot: Snapshot, rows: Sequence[int], order: EventTimeOrder) -> list[FileTimes]:
    """The event times in files: `rows` of `snapshot.files`.

    They are the partition values, or are known from statistics. Files without statistics are read.
    """
    if not rows:
        return []
    physical = snapshot.mapping.to_physical((order.column,))[0]
    data_type = _type_of(snapshot.mapping.physical, physical)
    if physical in snapshot.mapping.physical_partition_columns:
        texts = partition_values.column_of(snapshot.files.column("partitionValues").take(rows), physical)
        values = _numbers(partition_values.typed(texts, data_type, time_zone=order.time_zone)).to_pylist()
        return [FileTimes(None if value is None else (value, value), value is None) for value in values]
    stats = snapshot.file_stats([(physical,)], rows)
    leaf = stats.leaves[(physical,)]
    bounds = bounds_of(leaf, data_type)
    assert leaf.null_count is not None
    nulls = pc.fill_null(pc.not_equal(leaf.null_count, 0), True).to_pylist()
    empty = pc.fill_null(pc.equal(leaf.null_count, stats.num_records), False).to_pylist()
    known = list(zip(bounds.lower.to_pylist(), bounds.upper.to_pylist(), strict=True))
    if not order.statistics:
        known, empty = [(None, None)] * len(rows), [False] * len(rows)
    unknown = [i for i, (low, high) in enumerate(known) if not empty[i] and (low is None or high is None)]
    measured = order.measure(order.column, snapshot.add_files([rows[i] for i in unknown])) if unknown else ()
    times = [FileTimes(None if empty[i] else known[i], nulls[i]) for i in range(len(rows))]
    for i, values in zip(unknown, measured, strict=True):
        times[i] = FileTimes(values, True)
    return times


def _type_of(schema: StructType, name: str) -> PrimitiveType:
    field = schema.get(name, case_sensitive=True)
    assert field is not None
    assert isinstance(field.data_type, PrimitiveType)
    return field.data_type


def _numbers(values: "pa.Array") -> "pa.Array":
    return values.cast(pa.int32() if pa.types.is_date(values.type) else pa.int64())
