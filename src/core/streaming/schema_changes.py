"""What changed between two schemas of a stream's source, and whether the user has allowed it. Pure functions.

A stream goes on by itself after an added column. After a renamed, dropped or widened one, its target may need a change
first, so that it waits until the user allows it for this version, for this query, or always.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...errors import SchemaChangedError
from ...settings.declarations import STREAMING_COLUMN_CHANGES
from ..protocol.column_mapping import physical_name
from ..protocol.schema import (
    ArrayType,
    Column,
    DataType,
    MapType,
    StructField,
    StructType,
    dotted,
    parse_schema,
    type_text,
)
from ..protocol.type_widening import can_widen
from .schema_log import TrackedSchema

_RENAME = "Rename"
_DROP = "Drop"
_TYPE_CHANGE = "TypeChange"
_RENAME_AND_DROP = "RenameAndDrop"
_OPTION_PREFIX = "allowSourceColumn"


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """The changes of columns that a stream doesn't follow by itself, in words. `incompatible` ones it can't follow."""

    renamed: Sequence[str]
    dropped: Sequence[str]
    widened: Sequence[str]
    incompatible: Sequence[str]

    @property
    def operation(self) -> str:
        """The kinds of change, by Delta's names."""
        kinds = [("RENAME", self.renamed), ("DROP", self.dropped), ("TYPE WIDENING", self.widened)]
        names = [name for name, columns in kinds if columns]
        columns_only = "" if self.widened else " COLUMN"
        return f"{' AND '.join(names) if len(names) < 3 else 'RENAME, DROP AND TYPE WIDENING'}{columns_only}"

    @property
    def details(self) -> str:
        parts = [("renamed", self.renamed), ("dropped", self.dropped), ("widened", self.widened)]
        return "; ".join(f"{name}: {', '.join(columns)}" for name, columns in parts if columns)


def change_between(old: StructType, new: StructType) -> SchemaChange:
    """The changes from `old` to `new`; columns are compared by their physical names."""
    texts: dict[str, list[str]] = {"renamed": [], "dropped": [], "widened": [], "incompatible": []}
    for kind, text in _changes(old, new, ()):
        texts[kind].append(text)
    return SchemaChange(**texts)


def _changes(old: DataType, new: DataType, at: Column) -> Iterator[tuple[str, str]]:
    if isinstance(old, StructType) and isinstance(new, StructType):
        by_name = {physical_name(f): f for f in new.fields}
        for f in old.fields:
            yield from _of_field(f, by_name.get(physical_name(f)), at)
    elif isinstance(old, ArrayType) and isinstance(new, ArrayType):
        yield from _nullability(old.contains_null, new.contains_null, (*at, "element"))
        yield from _changes(old.element_type, new.element_type, (*at, "element"))
    elif isinstance(old, MapType) and isinstance(new, MapType):
        yield from _nullability(old.value_contains_null, new.value_contains_null, (*at, "value"))
        yield from _changes(old.key_type, new.key_type, (*at, "key"))
        yield from _changes(old.value_type, new.value_type, (*at, "value"))
    elif old != new:
        kind = "widened" if can_widen(old, new) else "incompatible"
        yield kind, f"{dotted(at)} ({type_text(old)} -> {type_text(new)})"


def _of_field(f: StructField, now: StructField | None, at: Column) -> Iterator[tuple[str, str]]:
    column = (*at, f.name)
    if now is None:
        yield "dropped", dotted(column)
        return
    if now.name != f.name:
        yield "renamed", f"{dotted(column)} -> {dotted((*at, now.name))}"
    yield from _nullability(f.nullable, now.nullable, column)
    yield from _changes(f.data_type, now.data_type, column)


def _nullability(before: bool, now: bool, at: Column) -> Iterator[tuple[str, str]]:
    if before and not now:
        yield "incompatible", f"{dotted(at)} (may no longer be null)"


@dataclass(frozen=True, slots=True)
class Permissions:
    """What the user allows, by options of the reader and by settings; both look up a value by its name.

    `source_path` is the directory of the source in the query's checkpoint: settings may be for this query only.
    """

    option: Callable[[str], str | None]
    setting: Callable[[str], str | None]
    source_path: str

    def allow(self, change: str, version: int, *others: str) -> bool:
        """Whether a kind of change is allowed at a version: by its option, its setting, or the settings of `others`."""
        if (self.option(_OPTION_PREFIX + change) or "").lower() in ("always", str(version)):
            return True
        for key in (STREAMING_COLUMN_CHANGES.prefix + name for name in (change, *others)):
            if _lower(self.setting(key)) == "always":
                return True
            if _lower(self.setting(f"{key}.{self.suffix}")) in ("always", str(version)):
                return True
        return False

    @property
    def suffix(self) -> str:
        """The last part of a setting for this query only."""
        return f"ckpt_{java_hash(self.source_path)}"


def _lower(text: str | None) -> str | None:
    return None if text is None else text.strip("\"' ").lower()


def java_hash(text: str) -> int:
    """`String.hashCode` of Java."""
    value = 0
    data = text.encode("utf-16-be")
    for i in range(0, len(data), 2):
        value = (31 * value + (data[i] << 8 | data[i + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def check_allowed(previous: TrackedSchema, current: TrackedSchema, permissions: Permissions, table: str) -> None:
    """Raise SchemaChangedError unless the stream may go on from one entry of its schema log with the next."""
    change = change_between(parse_schema(previous.schema_string), parse_schema(current.schema_string))
    version = current.version
    if change.incompatible:
        raise SchemaChangedError(
            f"The schema of {table} in version {version} doesn't fit the stream: {', '.join(change.incompatible)}. A "
            "restart doesn't help: start the query with a new checkpoint location.",
            condition="DELTA_SCHEMA_CHANGED_WITH_VERSION",
            parameters={
                "version": version, "readSchema": previous.schema_string, "dataSchema": current.schema_string,
            },
            table=table,
            version=version,
        )  # fmt: skip
    needed = []
    if change.renamed and not permissions.allow(_RENAME, version, _RENAME_AND_DROP):
        needed.append(_RENAME)
    if change.dropped and not permissions.allow(_DROP, version, _RENAME_AND_DROP):
        needed.append(_DROP)
    if change.widened and not permissions.allow(_TYPE_CHANGE, version):
        needed.append(_TYPE_CHANGE)
    if needed:
        raise _not_allowed(change, needed, previous.version, version, permissions, table)


def _not_allowed(
    change: SchemaChange, needed: Sequence[str], before: int, version: int, permissions: Permissions, table: str
) -> SchemaChangedError:
    this_change = "".join(f'.option("{_OPTION_PREFIX}{name}", "{version}")' for name in needed)
    this_query = "".join(f'.option("{_OPTION_PREFIX}{name}", "always")' for name in needed)
    keys = [STREAMING_COLUMN_CHANGES.prefix + name for name in needed]
    settings = [f"{key}.{permissions.suffix}" for key in keys]
    every_query = ", ".join(keys)
    return SchemaChangedError(
        f"The columns of {table} changed between version {before} and version {version} ({change.operation}): "
        f"{change.details}. Change the target of the query if it needs that. Then allow the change and restart the "
        f"query: readStream{this_change} for this change, or readStream{this_query} for all changes of this kind. "
        f"Or set {', '.join(settings)} to {version} or to always; for all queries, set {every_query} to always.",
        condition="DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION",
        parameters={
            "opType": change.operation,
            "previousSchemaChangeVersion": before,
            "currentSchemaChangeVersion": version,
            "columnChangeDetails": change.details,
            "unblockChangeOptions": this_change,
            "unblockStreamOptions": this_query,
            "unblockChangeConfs": ", ".join(f"{name} = {version}" for name in settings),
            "unblockStreamConfs": ", ".join(f"{name} = always" for name in settings),
            "unblockAllConfs": f"{every_query} = always",
        },
        table=table,
        version=version,
    )
