"""Column mapping: the names of columns in data files and in the log (PROTOCOL.md, "Column Mapping").

A column never changes its physical name and its id, so a rename or a drop changes only the metadata. Users and
predicates use logical names; partition values, statistics and data files have the physical ones. Without mapping both
are equal, and a `ColumnMapping` has no cost.
"""

import operator
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, cast

from ...errors import CorruptLogError, InvalidArgumentError
from . import features, properties
from .actions import Metadata, Protocol
from .schema import (
    ArrayType,
    Column,
    DataType,
    MapType,
    StructField,
    StructType,
    all_fields,
    dotted,
    parse_schema,
    to_json,
    type_text,
    with_name,
)

Mode = Literal["none", "name", "id"]

MODE = "delta.columnMapping.mode"
MAX_ID = "delta.columnMapping.maxColumnId"
ID = "delta.columnMapping.id"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
FIELD_ID = "parquet.field.id"
"""The key of Parquet's `field_id` in Spark's schemas."""

_PREFIX = "delta.columnMapping."
_LARGEST_ID = 2**31 - 1


@dataclass(frozen=True)
class ColumnMapping:
    """The names of the columns of one schema. Equal schemas share one instance: see `of`."""

    mode: Mode
    logical: StructType
    partition_columns: tuple[str, ...]

    @classmethod
    def of(cls, protocol: Protocol, metadata: Metadata) -> "ColumnMapping":
        """The mapping of a table: its metadata's, if its protocol supports the feature.

        `CorruptLogError` if two columns have the same name, or if, in a table with a mapping, a column has no physical
        name or id, or shares it with another one.
        """
        mode = mode_of(metadata) if "columnMapping" in features.supported(protocol) else "none"
        return _mapping(mode, metadata.schema_string, tuple(metadata.partition_columns))

    @property
    def active(self) -> bool:
        return self.mode != "none"

    @cached_property
    def physical(self) -> StructType:
        """The schema with physical names at every depth, in the same order, with the metadata of fields."""
        return _with_names(self.logical, physical_name) if self.active else self.logical

    @cached_property
    def physical_partition_columns(self) -> tuple[str, ...]:
        return tuple(self.to_physical((name,))[0] for name in self.partition_columns)

    def to_physical(self, column: Column) -> Column:
        """The physical name of a column or a struct field, by its exact logical name; an unknown one is returned as is.

        `element`, `key` and `value` refer to the inside of arrays and maps.
        """
        return _translated(column, self.logical, lambda f: f.name, physical_name) if self.active else column

    def to_logical(self, column: Column) -> Column:
        """The inverse of `to_physical`."""
        return _translated(column, self.logical, physical_name, lambda f: f.name) if self.active else column


@lru_cache(maxsize=64)
def _mapping(mode: Mode, schema_string: str, partition_columns: tuple[str, ...]) -> ColumnMapping:
    schema = parse_schema(schema_string)
    counts = Counter(name for name, _ in all_fields(schema))
    if twice := next((name for name, count in counts.items() if count > 1), None):
        raise CorruptLogError(f"the table's schema is damaged: it has two columns {dotted(twice)}")
    if mode != "none":
        _check(schema, lambda reason: CorruptLogError(f"the table's schema is damaged: {reason}"))
    return ColumnMapping(mode, schema, partition_columns)


def mode_of(metadata: Metadata) -> Mode:
    """The property `delta.columnMapping.mode`; it applies only if the protocol supports the feature."""
    return cast(Mode, properties.get(metadata.configuration, "columnMapping.mode"))


def same_partitioning(old: ColumnMapping, metadata: Metadata) -> bool:
    """Whether the new metadata keeps the table's partitioning; its protocol must support the mapping."""
    new = _mapping(mode_of(metadata), metadata.schema_string, tuple(metadata.partition_columns))
    return old.physical_partition_columns == new.physical_partition_columns


def same_layout(old: ColumnMapping, metadata: Metadata) -> bool:
    """Whether existing files stay valid under new metadata: the same partitioning, and the same names in files."""
    mode = mode_of(metadata)
    return same_partitioning(old, metadata) and (old.mode == mode or (old.mode == "none" and mode == "name"))


def physical_name(field: StructField) -> str:
    """The name of a field in data files and in the log, if the table has a mapping."""
    name = field.metadata.get(PHYSICAL_NAME)
    return name if isinstance(name, str) else field.name


def field_id(field: StructField) -> int | None:
    """The id of a field; `None` if it has none."""
    id_ = field.metadata.get(ID)
    return id_ if isinstance(id_, int) and not isinstance(id_, bool) else None


def without_mapping(field: StructField) -> StructField:
    """The field without keys of a mapping, as in data from outside the table."""
    kept = {key: value for key, value in field.metadata.items() if not key.startswith((_PREFIX, "parquet.field."))}
    return field if len(kept) == len(field.metadata) else replace(field, metadata=kept)


Change = Callable[[StructField, Column], StructField | None]


def transformed(data_type: DataType, change: Change, at: Column = ()) -> DataType:
    """The type with `change` applied to every field at every depth; `change` gets the field and its full logical name.

    If it returns `None`, the field is dropped. A field is changed before its inner fields, whose full names use the
    old names.
    """
    if isinstance(data_type, StructType):
        fields = []
        for field in data_type.fields:
            name = (*at, field.name)
            changed = change(field, name)
            if changed is not None:
                inner = transformed(changed.data_type, change, name)
                fields.append(changed if inner is changed.data_type else replace(changed, data_type=inner))
        same = len(fields) == len(data_type) and all(map(operator.is_, fields, data_type.fields))
        return data_type if same else StructType(tuple(fields))
    if isinstance(data_type, ArrayType):
        element = transformed(data_type.element_type, change, (*at, "element"))
        return data_type if element is data_type.element_type else replace(data_type, element_type=element)
    if isinstance(data_type, MapType):
        key = transformed(data_type.key_type, change, (*at, "key"))
        value = transformed(data_type.value_type, change, (*at, "value"))
        same = key is data_type.key_type and value is data_type.value_type
        return data_type if same else replace(data_type, key_type=key, value_type=value)
    return data_type


def _with_names(schema: StructType, name_of: Callable[[StructField], str]) -> StructType:
    return cast(StructType, transformed(schema, lambda f, _: with_name(f, name_of(f))))


def _translated(
    column: Column, schema: StructType, known_as: Callable[[StructField], str], called: Callable[[StructField], str]
) -> Column:
    level: DataType = schema
    translated: list[str] = []
    for part in column:
        if isinstance(level, StructType):
            field = next((f for f in level.fields if known_as(f) == part), None)
            if field is None:
                return column
            translated.append(called(field))
            level = field.data_type
        else:
            inner = dict(_inside(level))
            if part not in inner:
                return column
            translated.append(part)
            level = inner[part]
    return tuple(translated)


def _inside(data_type: DataType) -> Iterator[tuple[str, DataType]]:
    if isinstance(data_type, ArrayType):
        yield "element", data_type.element_type
    elif isinstance(data_type, MapType):
        yield "key", data_type.key_type
        yield "value", data_type.value_type


# --- checks -------------------------------------------------------------------------------------------------------


def check(metadata: Metadata) -> None:
    """Raise `InvalidArgumentError` unless every column has a unique id and physical name, and the ids are valid."""
    if mode_of(metadata) == "none":
        return
    schema = parse_schema(metadata.schema_string)
    _check(schema, lambda reason: InvalidArgumentError(f"the column mapping isn't valid: {reason}"))
    largest = max_id(metadata)
    if _largest(schema) > largest:
        raise InvalidArgumentError(
            f"a column has the id {_largest(schema)}, but {MAX_ID} is {largest}: it must be at least that id"
        )


def _check(schema: StructType, error: Callable[[str], Exception]) -> None:
    ids: dict[int, Column] = {}
    names: dict[Column, Column] = {}
    physical = all_fields(_with_names(schema, physical_name))
    for (name, field), (where, _) in zip(all_fields(schema), physical, strict=True):
        id_ = field_id(field)
        if id_ is None or not 0 <= id_ <= _LARGEST_ID:
            raise error(f"the column {dotted(name)} has no id ({ID}), although the table has column mapping")
        if not isinstance(field.metadata.get(PHYSICAL_NAME), str) or not field.metadata[PHYSICAL_NAME]:
            raise error(
                f"the column {dotted(name)} has no physical name ({PHYSICAL_NAME}), although the table has column "
                "mapping"
            )
        if ids.setdefault(id_, name) != name:
            raise error(f"the columns {dotted(ids[id_])} and {dotted(name)} have the same id, {id_}")
        if names.setdefault(where, name) != name:
            raise error(f"the columns {dotted(names[where])} and {dotted(name)} have the same physical name")


def max_id(metadata: Metadata) -> int:
    """The largest id that was ever assigned to a column of the table."""
    return int(properties.get(metadata.configuration, "columnMapping.maxColumnId"))


def _largest(schema: StructType) -> int:
    nested = (f.metadata.get(_PREFIX + "nested.ids") or {} for _, f in all_fields(schema))
    inside = [i for ids in nested if isinstance(ids, Mapping) for i in ids.values() if isinstance(i, int)]
    return max([field_id(f) or 0 for _, f in all_fields(schema)] + inside, default=0)


# --- the metadata of a commit -------------------------------------------------------------------------------------


def assigned(
    metadata: Metadata,
    old: Metadata | None,
    protocol: Protocol | None = None,
    *,
    replaces_table: bool = False,
    new_name: Callable[[], str] = lambda: f"col-{uuid.uuid4()}",
) -> Metadata:
    """The metadata with ids and physical names for columns that have none, and with the largest id.

    A table that starts to map its columns keeps the names in its files. With `replaces_table`, which removes all files,
    the mode may change, and a column with the same name and type keeps its id and physical name. Without a mapping,
    keys of a mapping that the commit adds are removed.

    Args:
        metadata: The new metadata.
        old: The current metadata; `None` for a new table.
        protocol: The current protocol; `None` for a new table.
        replaces_table: The commit replaces the table.
        new_name: Creates physical names.

    Raises:
        InvalidArgumentError: The mode changes in a way that needs new files, or together with the schema.
    """
    mode = mode_of(metadata)
    before: Mode = "none" if old is None or protocol is None else ColumnMapping.of(protocol, old).mode
    schema = parse_schema(metadata.schema_string)
    old_schema = StructType() if old is None else parse_schema(old.schema_string)
    if old is not None and mode != before and not (replaces_table or (before == "none" and mode == "name")):
        raise InvalidArgumentError(
            f"{MODE} can't be changed from {before} to {mode}: it can only be changed from none to name, or set when "
            "a table is created",
            condition="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
            parameters={"oldMode": before, "newMode": mode},
        )
    if mode == "none":
        if not _marked(schema) or _marked(old_schema):
            return metadata
        plain = transformed(schema, lambda f, _: without_mapping(f))
        return replace(metadata, schema_string=to_json(cast(StructType, plain)))
    begins = old is not None and before == "none" and not replaces_table
    if begins and _marked(old_schema):
        raise InvalidArgumentError(
            f"{MODE} can't be set: the schema has keys of a mapping that isn't enabled, written by another writer"
        )
    largest = max(max_id(metadata), 0 if old is None else max_id(old), _largest(schema), _largest(old_schema))

    def assign(field: StructField, name: Column) -> StructField | None:
        nonlocal largest
        known = _at(old_schema, name)
        if begins and known is None:
            raise InvalidArgumentError(
                f"{MODE} can't be set in a commit that changes the schema: it adds the column {dotted(name)}"
            )
        reused = known if replaces_table and not begins and _alike(known, field) else None
        added: dict[str, Any] = {}
        if field_id(field) is None:
            new_id = None if reused is None else field_id(reused)
            if new_id is None:
                largest += 1
                new_id = largest
            added[ID] = new_id
        if PHYSICAL_NAME not in field.metadata:
            if begins and known is not None:
                added[PHYSICAL_NAME] = known.name
            else:
                added[PHYSICAL_NAME] = new_name() if reused is None else physical_name(reused)
        return replace(field, metadata={**field.metadata, **added}) if added else field

    assigned_schema = transformed(schema, assign)
    text = metadata.schema_string if assigned_schema is schema else to_json(cast(StructType, assigned_schema))
    return replace(metadata, schema_string=text, configuration={**metadata.configuration, MAX_ID: str(largest)})


def unassigned(metadata: Metadata) -> bool:
    """Whether a column has no id, or column mapping is disabled."""
    fields = all_fields(parse_schema(metadata.schema_string))
    return mode_of(metadata) == "none" or any(field_id(f) is None for _, f in fields)


def _marked(schema: StructType) -> bool:
    return any(key.startswith(_PREFIX) for _, f in all_fields(schema) for key in f.metadata)


def _at(schema: StructType, name: Column) -> StructField | None:
    """The field with a full name, ignoring case, also inside arrays and maps."""
    folded = tuple(part.lower() for part in name)
    return next((f for at, f in all_fields(schema) if tuple(part.lower() for part in at) == folded), None)


def _alike(known: StructField | None, field: StructField) -> bool:
    return known is not None and type_text(known.data_type).lower() == type_text(field.data_type).lower()
