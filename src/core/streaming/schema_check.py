"""Whether the rows of a version can be read with the schema of a stream, by Delta's rules for a stream's source."""

from dataclasses import dataclass

from ...errors import CorruptLogError, SchemaChangedError, UnsupportedFeatureError
from ..protocol import column_mapping, features
from ..protocol.actions import Metadata
from ..protocol.column_mapping import ColumnMapping
from ..protocol.schema import (
    ArrayType,
    Column,
    DataType,
    MapType,
    StructField,
    StructType,
    all_fields,
    dotted,
    parse_schema,
    type_text,
)
from ..protocol.type_widening import can_widen
from ..table.snapshot import Snapshot


def changed_at_start(read: Snapshot) -> SchemaChangedError:
    """The error for a query that starts with a streaming DataFrame that has other columns than `read`."""
    return SchemaChangedError(
        f"The schema of {read.table} changed since the streaming DataFrame was created. Create it again, and start the "
        "query.",
        condition="DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART",
        table=read.table,
        version=read.version,
    )


@dataclass(frozen=True, slots=True)
class StreamSchema:
    """The version with whose schema a stream reads. `has_start`: the user chose the version or time to start with."""

    read: Snapshot
    has_start: bool

    def check(self, metadata: Metadata, version: int) -> None:
        """Raise an error if the rows of `version`, which has `metadata`, can't be read with the schema of the stream.

        Raises:
            CorruptLogError: The version is of another table.
            UnsupportedFeatureError: A column was renamed or dropped.
            SchemaChangedError: The schema differs in another way.
        """
        read = self.read.metadata
        same_schema = metadata.schema_string == read.schema_string
        if metadata.id == read.id and same_schema and metadata.partition_columns == read.partition_columns:
            return
        table, older = self.read.table, version < self.read.version
        if metadata.id != read.id:
            raise other_table(table, table_id=metadata.id, expected=read.id)
        mapping = _mapping(metadata)
        before, now = (mapping, self.read.mapping) if older else (self.read.mapping, mapping)
        change = _renamed_or_dropped(before, now) if now.active or before.active else None
        if change is not None:
            raise UnsupportedFeatureError(
                f"The stream of {table} can't go past a change of its columns: between version {version} and version "
                f"{self.read.version}, with whose columns it reads, {change}. Restart the query with the option "
                "schemaTrackingLocation, a directory below its checkpoint location; or start it with a new checkpoint "
                f"location{' and a later startingVersion' if self.has_start else ''}.",
                condition="DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG",
                parameters={"readSchema": read.schema_string, "incompatibleSchema": metadata.schema_string},
                table=table,
                version=version,
            )
        widening = older and "typeWidening" in features.supported(self.read.protocol)
        difference = _difference(mapping.logical, self.read.schema, (), widening)
        if difference is None and metadata.partition_columns != read.partition_columns:
            difference = f"it is partitioned by ({', '.join(metadata.partition_columns)})"
        if difference is not None:
            restart = not older and _difference(self.read.schema, mapping.logical, (), True) is None
            raise self._changed(metadata, version, difference, restart=restart)

    def _changed(self, metadata: Metadata, version: int, difference: str, *, restart: bool) -> SchemaChangedError:
        if restart:
            advice = "Create the streaming DataFrame again and restart the query with the same checkpoint location."
        else:
            advice = "A restart doesn't help: start the query with a new checkpoint location"
            advice += f", and a startingVersion after {version}." if self.has_start else "."
        return SchemaChangedError(
            f"The schema of {self.read.table} in version {version} doesn't fit the stream, which reads with the "
            f"columns of version {self.read.version}: {difference}. {advice}",
            condition=(
                "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS" if self.has_start else "DELTA_SCHEMA_CHANGED_WITH_VERSION"
            ),
            parameters={
                "version": version,
                "readSchema": self.read.metadata.schema_string,
                "dataSchema": metadata.schema_string,
            },
            table=self.read.table,
            version=version,
        )


def other_table(table: str, *, table_id: str, expected: str) -> CorruptLogError:
    """The error for a table that was deleted and created again, or a checkpoint that belongs to another table."""
    return CorruptLogError(
        f"The stream has read the table with the id {expected}, but {table} has the id {table_id}: it was deleted and "
        "created again, or the query read another table before. Read that table, or start the query with a new "
        "checkpoint location.",
        condition="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
        parameters={"newTableId": table_id, "oldTableId": expected},
        table=table,
    )


def _mapping(metadata: Metadata) -> ColumnMapping:
    schema = parse_schema(metadata.schema_string)
    return ColumnMapping(column_mapping.mode_of(metadata), schema, tuple(metadata.partition_columns))


def _renamed_or_dropped(before: ColumnMapping, now: ColumnMapping) -> str | None:
    """The first column that was renamed or dropped, or that files have by another name since, in words."""
    names = {now.to_physical(column): column for column, _ in all_fields(now.logical)}
    for column, _ in all_fields(before.logical):
        physical = before.to_physical(column)
        current = names.get(physical)
        if current is None and not now.active and physical != column:
            return f"column mapping was disabled, and files had another name for the column {dotted(column)}"
        if current is None:
            return f"the column {dotted(column)} was dropped"
        if current != column:
            return f"the column {dotted(column)} was renamed to {dotted(current)}"
    return None


def _difference(data: DataType, read: DataType, at: Column, widening: bool) -> str | None:
    """Why values of the type `data` can't be read as `read`; None if they can. `widening`: `read` may be wider."""
    if isinstance(data, StructType) and isinstance(read, StructType):
        return _of_fields(data, read, at, widening)
    if isinstance(data, ArrayType) and isinstance(read, ArrayType):
        if data.contains_null and not read.contains_null:
            return f"elements of {dotted(at)} may be null"
        return _difference(data.element_type, read.element_type, (*at, "element"), widening)
    if isinstance(data, MapType) and isinstance(read, MapType):
        if data.value_contains_null and not read.value_contains_null:
            return f"values of {dotted(at)} may be null"
        return _difference(data.key_type, read.key_type, (*at, "key"), widening) or _difference(
            data.value_type, read.value_type, (*at, "value"), widening
        )
    if data == read or (widening and can_widen(data, read)):
        return None
    return f"the column {dotted(at)} is {type_text(data)}, not {type_text(read)}"


def _of_fields(data: StructType, read: StructType, at: Column, widening: bool) -> str | None:
    names = {f.name.lower(): f for f in read.fields}
    for field in data.fields:
        column = (*at, field.name)
        wanted: StructField | None = names.pop(field.name.lower(), None)
        if wanted is None or wanted.name != field.name:
            return f"it has the column {dotted(column)}"
        if field.nullable and not wanted.nullable:
            return f"the column {dotted(column)} may be null"
        inner = _difference(field.data_type, wanted.data_type, column, widening)
        if inner is not None:
            return inner
    missing = next((f for f in names.values() if not f.nullable), None)
    return None if missing is None else f"it lacks the column {dotted((*at, missing.name))}, which isn't nullable"
