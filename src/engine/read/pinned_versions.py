"""Which version a frame reads, and whether it can still read it as it was analysed."""

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, ClassVar, Protocol

from ...core.protocol import schema as schemas
from ...errors import SchemaChangedError
from ..jvm.types import read_schema
from ..sql.column_names import columns_read

if TYPE_CHECKING:
    from ...core.deltalog import DeltaLog
    from ...core.table.snapshot import Snapshot


class VersionSource(Protocol):
    """Which snapshot a frame reads."""

    analysed: "Snapshot"

    def at(self, execution: str | None) -> "Snapshot":
        """The snapshot for one scan; `execution` is the query that it belongs to, where there is one."""
        ...


class Pinned:
    """One snapshot for ever."""

    def __init__(self, snapshot: "Snapshot") -> None:
        self.analysed = snapshot

    def at(self, execution: str | None) -> "Snapshot":
        return self.analysed


class Newest:
    """The newest version at each execution, the same for all scans of the table within it.

    `SchemaChangedError` where the table can no longer be read by the schema that the frame was analysed with.
    """

    _REMEMBERED: ClassVar[int] = 64  # executions at a time
    _lock: ClassVar[threading.Lock] = threading.Lock()
    _seen: ClassVar[OrderedDict[tuple[str, str], "Snapshot"]] = OrderedDict()

    def __init__(self, log: "DeltaLog", analysed: "Snapshot", application: str) -> None:
        self._log = log
        self._application = application
        self.analysed = analysed

    def at(self, execution: str | None) -> "Snapshot":
        if execution is None:
            newest = self._log.snapshot()
        else:
            key = (f"{self._application}/{execution}", self._log.table)
            with self._lock:
                seen = self._seen.get(key)
            newest = seen or self._log.snapshot()
            with self._lock:
                newest = self._seen.setdefault(key, newest)
                self._seen.move_to_end(key)
                while len(self._seen) > self._REMEMBERED:
                    self._seen.popitem(last=False)
        check_readable_as(self.analysed, newest)
        return newest


def check_readable_as(analysed: "Snapshot", newest: "Snapshot") -> None:
    """`SchemaChangedError` unless rows of `newest` can be read by the schema of `analysed`; more columns may be."""
    old, new = analysed.metadata, newest.metadata
    if old is new or (old.schema_string == new.schema_string and old.partition_columns == new.partition_columns):
        return
    changed = _difference(read_schema(analysed.schema), read_schema(newest.schema), ())
    if changed is None and _difference(columns_read(analysed.mapping), columns_read(newest.mapping), ()) is not None:
        changed = "a column of the same name is another one now"
    if changed is None and tuple(old.partition_columns) != tuple(new.partition_columns):
        changed = f"it is partitioned by ({', '.join(new.partition_columns)})"
    if changed is not None:
        raise SchemaChangedError(
            f"the schema of {newest.table} changed between version {analysed.version}, with which this DataFrame was "
            f"made, and version {newest.version}: {changed}. Make the DataFrame again from the table."
        )


def _difference(old: schemas.DataType, new: schemas.DataType, at: schemas.Column) -> str | None:
    """What keeps values of the type `new` from being read as `old`, in words; `None`: nothing."""
    if isinstance(old, schemas.StructType) and isinstance(new, schemas.StructType):
        for f in old.fields:
            name = (*at, f.name)
            now = new.get(f.name)
            if now is None:
                return f"the column {schemas.dotted(name)} is gone"
            if now.nullable and not f.nullable:
                return f"the column {schemas.dotted(name)} may be null now"
            inner = _difference(f.data_type, now.data_type, name)
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
