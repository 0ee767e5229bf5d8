"""The files of the version with which a stream begins: all files of the table."""

from collections.abc import Sequence
from functools import cached_property

from ...errors import InvalidArgumentError
from ..protocol.actions import AddFile
from ..table.snapshot import Snapshot
from .commits import CommitRules
from .event_times import EventTimeOrder, TimeRange, TimeRanges, file_times
from .limits import ReadLimits
from .offset import AFTER_FILES, SourceOffset, after
from .planning import VersionFiles


class InitialFiles:
    """All files of a version, ordered by modification time and path; with `order`, also by event time.

    Without `order`, an index of an offset is the position of a file in that order. With it, the rows are divided by
    their event times, and files that `rules` exclude are left out.
    """

    def __init__(
        self, snapshot: Snapshot, rules: CommitRules, limits: ReadLimits, order: EventTimeOrder | None = None
    ) -> None:
        self.snapshot = snapshot
        self._rules = rules
        self._limits = limits
        self._order = order
        files = snapshot.files.select(["modificationTime", "path", "size"])
        ordered = files.append_column("row", [list(range(files.num_rows))]).sort_by(
            [("modificationTime", "ascending"), ("path", "ascending")]
        )
        self._rows: list[int] = ordered.column("row").to_pylist()
        self._paths = ordered.column("path")
        self.sizes: list[int] = [size or 0 for size in ordered.column("size").to_pylist()]

    def planned(self) -> VersionFiles:
        """The input of `planning`."""
        excluded: frozenset[int] = frozenset()
        if self._rules.changes and self._rules.exclude is not None:
            excluded = frozenset(i for i, path in enumerate(self._paths.to_pylist()) if self._rules.excludes(path))
        return VersionFiles(self.snapshot.version, self.sizes, excluded=excluded)

    def add_files(self, first: int, end: int) -> list[AddFile]:
        return self.snapshot.add_files(self._rows[first:end])

    def sizes_after(self, offset: SourceOffset) -> Sequence[int]:
        """The sizes of the files that have rows after an offset in this version."""
        if self._order is None:
            return self.sizes[max(offset.index + 1, 0) :]
        first = None if offset.times is None else offset.times.end
        return [self._kept_sizes[i] for i in self._ranges.files_in(TimeRange(self._order.column, first))]

    # --- in the order of event time -------------------------------------------------------------------------------

    def end_of_range(self, begin: SourceOffset) -> SourceOffset:
        """The end of the batch after `begin`, with about as many rows as the limits allow."""
        assert self._order is not None
        first = None if begin.times is None else begin.times.end
        end = self._ranges.end_after(first)
        if end is None:
            return after((begin.version, AFTER_FILES), begin)
        return begin.at_time(self._order.column, end)

    def add_files_in(self, times: TimeRange) -> list[AddFile]:
        """The files that may have rows of a range."""
        return self.snapshot.add_files([self._kept[i] for i in self._ranges.files_in(times)])

    @cached_property
    def _kept_indexes(self) -> list[int]:
        if self._rules.exclude is None:
            return list(range(len(self._rows)))
        return [i for i, path in enumerate(self._paths.to_pylist()) if not self._rules.excludes(path)]

    @cached_property
    def _kept(self) -> list[int]:
        return [self._rows[i] for i in self._kept_indexes]

    @cached_property
    def _kept_sizes(self) -> list[int]:
        return [self.sizes[i] for i in self._kept_indexes]

    @cached_property
    def _ranges(self) -> TimeRanges:
        assert self._order is not None
        return TimeRanges(file_times(self.snapshot, self._kept, self._order), self._kept_sizes, self._limits)


def other_order(table: str, column: str | None, stored: str | None) -> InvalidArgumentError:
    """The error for a query that read the first version in the order of `stored`, and would go on by `column`.

    None: by the time of the files.
    """
    before, now = (
        "by the time of the files" if name is None else f"by the event time {name}" for name in (stored, column)
    )
    return InvalidArgumentError(
        f"The query began to read all rows of {table} {before}, and would go on {now}. It must finish this first with "
        "the same option withEventTimeOrder and the same column of the watermark; or start it with a new checkpoint "
        "location.",
        condition="DELTA_ILLEGAL_OPTION",
        parameters={
            "input": "false" if column is None else "true",
            "name": "withEventTimeOrder",
            "explain": "it can't change before all rows of the first version are read",
        },
        table=table,
    )
