"""The position of a stream in a table's log, in Delta's JSON form (`DeltaSourceOffset`).

Spark stores it in the checkpoint of a query. Checkpoints of delta-spark have the same form, so that a query can change
from one to the other.
"""

import json
from dataclasses import dataclass
from typing import TypeAlias

from ...errors import CorruptLogError, UnsupportedFeatureError

Position: TypeAlias = tuple[int, int]
"""A version, and the index of a file in it; positions are ordered."""

BEFORE_FILES = -100
"""The index before the first file of a version. Stored as -1, as all versions of Delta understand it."""
AFTER_FILES = (1 << 63) - 1 - 100
"""The index after the last file of a version. It is never stored: the offset is then before the next version."""

_STORED_BEFORE_FILES = -1
_WRITTEN = 1
_NEWEST_READ = 3
_WITH_TIME = 1000
"""The form of an offset inside the first version, if that is read in the order of event time.

Delta has no such form, and Databricks documents none. Delta ignores unknown fields, so the number is one that it
refuses: it would read the files again by index.
"""
SCHEMA_CHANGE = -20
"""The index at which a batch ends before the files of a version with another schema, if a schema log tracks it."""
AFTER_SCHEMA_CHANGE = -19
"""The index of the offset that follows: Spark confirms the end of a batch only when another offset follows."""


@dataclass(frozen=True, slots=True)
class ReadTimes:
    """The rows whose event time, in the table's column `column`, is before `end`. The unit is that of `TimeRange`."""

    column: str
    end: int


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """What a stream has read: all before `position`'s version, and its files up to and including `position`'s index.

    `initial`: the version is the one that the stream began with, and its files are those of the whole table, ordered by
    modification time and path. Otherwise its files are those that its commit added. `times`: the stream has read the
    rows before this event time, and none of the other rows of the version.
    """

    table_id: str
    version: int
    index: int
    initial: bool
    times: ReadTimes | None = None

    @property
    def position(self) -> Position:
        return self.version, self.index

    @property
    def at_schema_change(self) -> bool:
        return self.index in (SCHEMA_CHANGE, AFTER_SCHEMA_CHANGE)

    def at_time(self, column: str, end: int) -> "SourceOffset":
        """The offset in the same version after the rows whose event time is before `end`."""
        return SourceOffset(self.table_id, self.version, BEFORE_FILES, self.initial, ReadTimes(column, end))

    def to_json(self) -> str:
        assert self.index != AFTER_FILES
        form = _NEWEST_READ if self.at_schema_change else _WRITTEN
        fields = {
            "sourceVersion": form if self.times is None else _WITH_TIME,
            "reservoirId": self.table_id,
            "reservoirVersion": self.version,
            "index": _STORED_BEFORE_FILES if self.index == BEFORE_FILES else self.index,
            "isStartingVersion": self.initial,
        }
        if self.times is not None:
            fields.update(eventTimeColumn=self.times.column, eventTimeEnd=self.times.end)
        return json.dumps(fields, separators=(",", ":"))


def parse(text: str) -> SourceOffset:
    """Parse an offset from a checkpoint.

    Raises:
        CorruptLogError: It isn't an offset of a Delta table.
        UnsupportedFeatureError: A newer version of Delta wrote it.
    """
    try:
        fields = json.loads(text)
        source_version, version = _long(fields["sourceVersion"]), _long(fields["reservoirVersion"])
        index = _long(fields["index"])
        table_id, initial = fields["reservoirId"], fields["isStartingVersion"]
        if not isinstance(table_id, str) or not isinstance(initial, bool):
            raise ValueError
        if version < 0 or index == AFTER_FILES:
            raise ValueError
        times = None
        if source_version == _WITH_TIME:
            column = fields["eventTimeColumn"]
            if not isinstance(column, str):
                raise ValueError
            times = ReadTimes(column, _long(fields["eventTimeEnd"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        raise CorruptLogError(
            f"The checkpoint of the stream has an offset that isn't one of a Delta table: {text[:200]!r}. If the query "
            "read another kind of source before, start it with a new checkpoint location.",
            condition="DELTA_INVALID_SOURCE_OFFSET_FORMAT",
        ) from None
    if times is not None:
        return SourceOffset(table_id, version, BEFORE_FILES, initial, times)
    if source_version > _NEWEST_READ:
        raise UnsupportedFeatureError(
            f"The offset in the checkpoint has the form {source_version}, but only forms up to {_NEWEST_READ} are "
            "known: a newer version of Delta wrote it.",
            condition="DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION",
            parameters={"expectedVersion": _NEWEST_READ, "realVersion": source_version},
        )
    if source_version not in (1, 3):
        raise CorruptLogError(
            f"The offset in the checkpoint has the form {source_version}, which doesn't exist.",
            condition="DELTA_INVALID_SOURCE_VERSION",
            parameters={"version": source_version},
        )
    if index == _STORED_BEFORE_FILES:
        index = BEFORE_FILES
    return SourceOffset(table_id, version, index, initial)


def _long(value: object) -> int:
    """A 64-bit integer; delta-spark reads a text of one too. ValueError for anything else."""
    number = int(value) if isinstance(value, str) else value
    if type(number) is not int or not -(1 << 63) <= number < 1 << 63:
        raise ValueError
    return number


def after(position: Position, previous: SourceOffset) -> SourceOffset:
    """The offset after everything up to `position` was read, from the offset before it."""
    version, index = position
    if index == AFTER_FILES:
        return SourceOffset(previous.table_id, version + 1, BEFORE_FILES, False)
    return SourceOffset(previous.table_id, version, index, version == previous.version and previous.initial)
