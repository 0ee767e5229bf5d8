"""The version that a frame reads, and the check that this version fits the frame's schema."""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from ...core.protocol import schema as schemas
from ...core.protocol.column_mapping import ColumnMapping, physical_name
from ...errors import SchemaChangedError
from ..jvm.types import read_schema

if TYPE_CHECKING:
    from ...core.deltalog import DeltaLog
    from ...core.table.snapshot import Snapshot


class VersionSource(Protocol):
    """The source of the snapshots that a frame reads."""

    analysed: "Snapshot"

    def at(self, execution: str | None) -> "Snapshot":
        """The snapshot for one scan; `execution` is the ID of its query, if known."""
        ...


class Pinned:
    """Always the same snapshot."""

    def __init__(self, snapshot: "Snapshot") -> None:
        self.analysed = snapshot

    def at(self, execution: str | None) -> "Snapshot":
        return self.analysed


class _Commits(threading.local):
    """The number of this thread's commits to each table."""

    def __init__(self) -> None:
        self.of_table: dict[str, int] = {}


_commits = _Commits()


def note_commit(table: str) -> None:
    """Note that this thread has committed to the table: what it reads from now on has this commit."""
    _commits.of_table[table] = _commits.of_table.get(table, 0) + 1


@dataclass(frozen=True)
class _Seen:
    """The version that the first scan of an execution got, in a thread that had committed `commits` times before."""

    snapshot: "Snapshot"
    thread: int
    commits: int

    def fits(self, analysed: "Snapshot") -> bool:
        """Whether a scan of the same execution gets it, for a frame that was created for `analysed`.

        In `foreachBatch`, `DataFrame.rdd` and `foreachPartition` have the execution of the batch, in which the function
        may commit: a version from before this commit doesn't fit.
        """
        same_thread = self.thread == threading.get_ident()
        if same_thread and self.commits != _commits.of_table.get(analysed.table, 0):
            return False
        return self.snapshot.version >= analysed.version


class Newest:
    """The newest version at each execution; all scans of the table in one execution get the same version.

    Raises `SchemaChangedError` if the table can no longer be read with the schema of the frame.
    """

    _REMEMBERED: ClassVar[int] = 64  # most recent executions
    _lock: ClassVar[threading.Lock] = threading.Lock()
    _seen: ClassVar[OrderedDict[tuple[str, str], _Seen]] = OrderedDict()

    def __init__(self, log: "DeltaLog", analysed: "Snapshot", application: str) -> None:
        self._log = log
        self._application = application
        self.analysed = analysed

    def at(self, execution: str | None) -> "Snapshot":
        if execution is None:
            newest = self._log.snapshot()
        else:
            newest = self._of_execution((f"{self._application}/{execution}", self._log.table))
        check_readable_as(self.analysed, newest)
        return newest

    def _of_execution(self, key: tuple[str, str]) -> "Snapshot":
        with self._lock:
            seen = self._seen.get(key)
        if seen is None or not seen.fits(self.analysed):
            commits = _commits.of_table.get(self._log.table, 0)
            newest = _Seen(self._log.snapshot(), threading.get_ident(), commits)
        else:
            newest = seen
        with self._lock:
            seen = self._seen.get(key)
            if seen is None or not seen.fits(self.analysed):  # no other thread was faster
                seen = self._seen[key] = newest
            self._seen.move_to_end(key)
            while len(self._seen) > self._REMEMBERED:
                self._seen.popitem(last=False)
        return seen.snapshot


def check_readable_as(analysed: "Snapshot", newest: "Snapshot") -> None:
    """Raise `SchemaChangedError` unless rows of `newest` can be read with the schema of `analysed`; it may have more
    columns."""
    old, new = analysed.metadata, newest.metadata
    if old is new or (old.schema_string == new.schema_string and old.partition_columns == new.partition_columns):
        return
    changed = _difference(read_schema(analysed.schema), read_schema(newest.schema), ())
    if changed is None and (other := _other_column(analysed.mapping, newest.mapping)) is not None:
        changed = f"the column {schemas.dotted(other)} is a different column now"
    if changed is None and tuple(old.partition_columns) != tuple(new.partition_columns):
        changed = f"it is partitioned by ({', '.join(new.partition_columns)})"
    if changed is not None:
        raise SchemaChangedError(
            f"the schema of {newest.table} changed between version {analysed.version}, for which this DataFrame was "
            f"created, and version {newest.version}: {changed}. Create the DataFrame again from the table.",
            table=newest.table,
            version=newest.version,
        )


def _other_column(old: ColumnMapping, new: ColumnMapping) -> schemas.Column | None:
    """A column whose name stands for another column of the data files now, after renames or a DROP and an ADD."""
    now = _names_in_files(new)
    return next((column for column, name in _names_in_files(old).items() if now.get(column) != name), None)


def _names_in_files(mapping: ColumnMapping) -> dict[schemas.Column, str]:
    return {
        column: physical_name(field) if mapping.active else field.name
        for column, field in schemas.all_fields(mapping.logical)
    }


def _difference(old: schemas.DataType, new: schemas.DataType, at: schemas.Column) -> str | None:
    """Describes why values of the type `new` can't be read as `old`; `None` if they can."""
    if isinstance(old, schemas.StructType) and isinstance(new, schemas.StructType):
        for field in old.fields:
            name = (*at, field.name)
            now = new.get(field.name)
            if now is None:
                return f"the column {schemas.dotted(name)} no longer exists"
            if now.nullable and not field.nullable:
                return f"the column {schemas.dotted(name)} may be null now"
            inner = _difference(field.data_type, now.data_type, name)
            if inner is not None:
                return inner
        return None
    if isinstance(old, schemas.ArrayType) and isinstance(new, schemas.ArrayType):
        return _difference(old.element_type, new.element_type, (*at, "element"))
    if isinstance(old, schemas.MapType) and isinstance(new, schemas.MapType):
        return _difference(old.key_type, new.key_type, (*at, "key")) or _difference(
            old.value_type, new.value_type, (*at, "value")
        )
    if old == new:
        return None
    return f"the column {schemas.dotted(at)} is {schemas.type_text(new)} now, not {schemas.type_text(old)}"
