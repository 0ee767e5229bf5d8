"""Changes of a table's schema: adding, renaming, dropping and altering columns.

Pure functions: metadata or a schema in, the changed one out. A change is allowed only if existing data stays readable:
data files aren't rewritten, and keep their names, ids and types.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from ...errors import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError
from ..protocol import properties, type_widening
from ..protocol.actions import Metadata, Protocol
from ..protocol.column_mapping import MODE, mode_of, transformed
from ..protocol.features import supported
from ..protocol.schema import (
    CHAR_VARCHAR_KEY,
    COLLATIONS_KEY,
    DEFAULT_KEY,
    GENERATION_KEY,
    IDENTITY_PREFIX,
    STRING,
    TYPE_CHANGES_KEY,
    VOID,
    Column,
    PrimitiveType,
    StructField,
    StructType,
    all_fields,
    char_varchar,
    check_no_duplicates,
    dotted,
    has_lengths_inside,
    has_same_type,
    lengths_inside,
    parse_schema,
    to_json,
    type_text,
    unquoted,
    with_name,
)
from .columns import resolved, type_at, with_struct, with_type

STATS_COLUMNS = "delta.dataSkippingStatsColumns"
COMMENT = "comment"
_PREVIEW, _STABLE = "typeWidening-preview", "typeWidening"


def column_of(text: str) -> Column:
    """Parse a column name as Spark's `col` does: `a.b`, with backticks around parts that contain dots or backticks.

    `element`, `key` and `value` refer to the inside of arrays and maps. `InvalidArgumentError` for an invalid name.
    """
    part = r"(?:`(?:[^`]|``)+`|[^`.]+)"
    if not re.fullmatch(rf"{part}(?:\.{part})*", text):
        raise InvalidArgumentError(
            f"{text!r} isn't a valid column name: separate its parts by dots, and put backticks around a part with dots"
        )
    return tuple(map(unquoted, re.findall(part, text)))


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a column in its struct: after another column, or first (`None`)."""

    after: str | None = None

    @classmethod
    def of(cls, text: str) -> "Position":
        """Parse `FIRST` or `AFTER name`, as in SQL. `InvalidArgumentError` for anything else."""
        match = re.fullmatch(r"(?is)\s*(?:first|after\s+(\S.*?))\s*", text)
        parts = column_of(match[1]) if match is not None and match[1] else ()
        if match is None or len(parts) > 1:
            raise InvalidArgumentError(
                f"the position of a column must be FIRST or AFTER another column of the same struct, not {text!r}"
            )
        return cls(parts[0] if parts else None)

    def __str__(self) -> str:
        return "FIRST" if self.after is None else f"AFTER {self.after}"


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column to add to the struct `parent` (empty: the table itself); without a position it becomes the last one."""

    field: StructField
    parent: Column = ()
    position: Position | None = None

    @property
    def name(self) -> Column:
        return (*self.parent, self.field.name)


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """The changes of a column; `None` keeps the current value. `default` is SQL; the empty string removes the default.

    Only the type of the field `type` is used, with its collation and its char or varchar length.
    """

    column: Column
    type: StructField | None = None
    nullable: bool | None = None
    comment: str | None = None
    default: str | None = None
    position: Position | None = None
    drops_comment: bool = False


# --- add ----------------------------------------------------------------------------------------------------------


def added(metadata: Metadata, columns: Sequence[NewColumn]) -> Metadata:
    """The metadata with columns added, in order; existing rows have null in them.

    `InvalidArgumentError` for a parent that isn't a struct, and for a column that is NOT NULL, has a default or is
    generated; `SchemaMismatchError` for a name that exists.
    """
    schema = parse_schema(metadata.schema_string)
    for new in columns:
        check_addable(new)
        parent = resolved(schema, new.parent)[0] if new.parent else ()
        struct = type_at(schema, parent)
        if not isinstance(struct, StructType):
            raise InvalidArgumentError(
                f"the column {dotted(new.name)} can't be added: {dotted(parent)} isn't a struct but "
                f"{type_text(struct)} (the struct inside an array is at .element, inside a map at .key or .value)",
                condition="DELTA_ADD_COLUMN_PARENT_NOT_STRUCT",
                parameters={"columnName": dotted(new.name), "other": type_text(struct)},
            )
        position = new.position or (Position(struct.names[-1]) if struct.names else Position())
        schema = with_struct(schema, parent, StructType(_placed(struct.fields, new.field, position)))
        check_no_duplicates(schema)
    return replace(metadata, schema_string=to_json(schema))


def check_addable(new: NewColumn) -> None:
    """Raise `InvalidArgumentError` for a column that is NOT NULL, has a default or is generated."""
    for name, field in [(new.name, new.field), *((((*new.name, *n)), i) for n, i in all_fields(new.field.data_type))]:
        if not field.nullable:
            raise InvalidArgumentError(
                f"the column {dotted(name)} can't be added as NOT NULL: existing rows have no value for it. Add it as "
                "nullable, fill it, and add a constraint",
                condition="DELTA_OPERATION_NOT_ALLOWED",
                parameters={"operation": "NOT NULL in ALTER TABLE ADD COLUMNS"},
            )
        if DEFAULT_KEY in field.metadata:
            raise InvalidArgumentError(
                f"the column {dotted(name)} can't be added with a default value: existing rows wouldn't have it. Add "
                "the column, then set its default",
                condition="WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED",
            )
        if GENERATION_KEY in field.metadata or any(key.startswith(IDENTITY_PREFIX) for key in field.metadata):
            raise InvalidArgumentError(
                f"the column {dotted(name)} can't be added as a generated or identity column: existing rows would have "
                "no value for it"
            )


def _placed(fields: Sequence[StructField], new: StructField, position: Position) -> tuple[StructField, ...]:
    if position.after is None:
        return (new, *fields)
    previous = StructType(tuple(fields)).get(position.after)
    if previous is None:
        raise InvalidArgumentError(
            f"the column {dotted((new.name,))} can't be placed after {dotted((position.after,))}: the columns "
            f"are {', '.join(f.name for f in fields)}",
            condition="FIELD_NOT_FOUND",
            parameters={"columnName": position.after, "tableSchema": ", ".join(f.name for f in fields)},
        )
    at = fields.index(previous) + 1
    return (*fields[:at], new, *fields[at:])


# --- rename and drop ----------------------------------------------------------------------------------------------


def renamed(metadata: Metadata, column: Column, new_name: str) -> Metadata:
    """The metadata with a column renamed, or a field of a struct (through `element`, `key`, `value`).

    The data doesn't change. `InvalidArgumentError` without column mapping, or if there is no such column;
    `SchemaMismatchError` if the new name exists.
    """
    schema, at = _mapped(metadata, column, "renamed")
    *above, _ = at
    taken = {name[-1].lower() for name, _ in all_fields(schema) if list(name[:-1]) == above and name != at}
    if not new_name or new_name.lower() in taken:
        raise SchemaMismatchError(
            f"the column {dotted(at)} can't be renamed to {new_name!r}: the name is taken or empty",
            condition="FIELD_ALREADY_EXISTS",
            parameters={"duplicateCols": new_name},
        )
    changed = transformed(schema, lambda f, name: with_name(f, new_name) if name == at else f)
    partition = tuple(new_name if (name,) == at else name for name in metadata.partition_columns)

    def follow(name: Column) -> Column:
        return (*above, new_name, *name[len(at) :]) if _below(name, at) else name

    return replace(
        metadata,
        schema_string=to_json(cast(StructType, changed)),
        partition_columns=partition,
        configuration=_with_stats_columns(metadata.configuration, follow),
    )


def dropped(metadata: Metadata, column: Column) -> Metadata:
    """The metadata without a column, or a field of a struct; its data remains in the files and isn't read.

    `InvalidArgumentError` without column mapping, if there is no such column, or for a partition or the last column.
    """
    schema, at = _mapped(metadata, column, "dropped")
    if len(at) == 1 and at[0] in metadata.partition_columns:
        raise InvalidArgumentError(
            f"the partition column {dotted(at)} can't be dropped",
            condition="DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN",
            parameters={"columnList": dotted(at)},
        )
    changed = cast(StructType, transformed(schema, lambda f, name: None if name == at else f))
    if any(f.data_type == StructType() for _, f in all_fields(changed)) or not changed.fields:
        raise InvalidArgumentError(
            f"the column {dotted(at)} can't be dropped: it is the only column of its struct",
            condition="DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
        )
    if metadata.partition_columns and len(changed) == len(metadata.partition_columns):
        raise InvalidArgumentError(
            f"the column {dotted(at)} can't be dropped: all others are partition columns",
            condition="DELTA_NON_PARTITION_COLUMN_ABSENT",
        )
    return replace(
        metadata,
        schema_string=to_json(changed),
        configuration=_with_stats_columns(metadata.configuration, lambda name: None if _below(name, at) else name),
    )


def _mapped(metadata: Metadata, column: Column, verb: str) -> tuple[StructType, Column]:
    if mode_of(metadata) == "none":
        raise InvalidArgumentError(
            f"the column {dotted(column)} can't be {verb}: column mapping is needed. Set the table property {MODE} to "
            "name first (readers and writers must then support it)",
            condition="DELTA_UNSUPPORTED_DROP_COLUMN" if verb == "dropped" else "DELTA_UNSUPPORTED_RENAME_COLUMN",
            parameters={"advice": f"Set {MODE} to name first."},
        )
    schema = parse_schema(metadata.schema_string)
    exact, field = resolved(schema, column)
    if field is None:
        raise InvalidArgumentError(f"{dotted(exact)} isn't a field of a struct and can't be {verb}")
    return schema, exact


def _below(name: Column, at: Column) -> bool:
    return tuple(part.lower() for part in name[: len(at)]) == tuple(part.lower() for part in at)


def _with_stats_columns(
    configuration: Mapping[str, str], change: Callable[[Column], Column | None]
) -> Mapping[str, str]:
    """The properties with changed names in the columns with statistics (`delta.dataSkippingStatsColumns`)."""
    text = configuration.get(STATS_COLUMNS)
    if text is None:
        return configuration
    before: tuple[Column, ...] = properties.get(configuration, STATS_COLUMNS.removeprefix("delta."))
    after = tuple(name for name in map(change, before) if name is not None)
    return configuration if after == before else {**configuration, STATS_COLUMNS: ",".join(map(dotted, after))}


# --- alter --------------------------------------------------------------------------------------------------------


def altered(metadata: Metadata, protocol: Protocol, change: ColumnChange) -> Metadata:
    """The metadata with one column changed: type, nullability, comment, default or position.

    `InvalidArgumentError` if existing data may not fit: a narrower type, NOT NULL on a nullable column, a struct
    changed as a whole; `UnsupportedFeatureError` if the protocol lacks the feature that the change needs.
    """
    schema = parse_schema(metadata.schema_string)
    at, struct_field = resolved(schema, change.column)
    if change.type is not None:
        top = schema.get(at[0])
        if len(at) > 1 and top is not None and has_lengths_inside(top):
            raise lengths_inside(top.name)
        current = struct_field or StructField(at[-1], type_at(schema, at))
        new_collation = _collation(StructType((change.type,)), (change.type.name,))
        if struct_field is None and _collation(schema, at) != new_collation:
            message = f"the collation of {dotted(at)} can't be changed alone: use REPLACE COLUMNS"
            raise _type_change_refused(at, current, change.type, message)
        check_type(metadata, protocol, at, current, change.type)
        schema = recorded(with_type(schema, at, change.type), schema)
    if struct_field is None:
        if change != ColumnChange(change.column, change.type):
            raise InvalidArgumentError(f"{dotted(at)} isn't a field of a struct: only its type can be changed")
        return replace(metadata, schema_string=to_json(schema))
    if change.nullable is False and struct_field.nullable:
        raise InvalidArgumentError(
            f"the column {dotted(at)} can't be made NOT NULL: it may already contain nulls. Add a CHECK constraint "
            f"({dotted(at)} IS NOT NULL) instead, which checks the existing rows",
            condition="NOT_SUPPORTED_CHANGE_COLUMN",
            parameters={"fieldPath": dotted(at), "oldField": "NULL", "newField": "NOT NULL"},
        )
    if change.default is not None and "allowColumnDefaults" not in supported(protocol):
        raise UnsupportedFeatureError(
            f"the column {dotted(at)} can't have a default: the table doesn't support allowColumnDefaults. Set the "
            "table property delta.feature.allowColumnDefaults to 'supported' first",
            ("allowColumnDefaults",),
            condition="WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
            parameters={"commandType": "ALTER TABLE"},
        )

    def changed(field: StructField, name: Column) -> StructField:
        if name != at:
            return field
        extra = dict(field.metadata)
        if change.drops_comment:
            extra.pop(COMMENT, None)
        if change.comment is not None:
            extra[COMMENT] = change.comment
        if change.default is not None:
            _check_takes_default(field, at)
            extra.pop(DEFAULT_KEY, None)
            if change.default:
                extra[DEFAULT_KEY] = change.default
        return replace(field, nullable=field.nullable if change.nullable is None else change.nullable, metadata=extra)

    schema = cast(StructType, transformed(schema, changed))
    if change.position is not None and (change.position.after or "").lower() != at[-1].lower():
        struct = type_at(schema, at[:-1])
        assert isinstance(struct, StructType)
        (moved,) = [field for field in struct if field.name == at[-1]]
        others = [field for field in struct if field is not moved]
        schema = with_struct(schema, at[:-1], StructType(_placed(others, moved, change.position)))
    return replace(metadata, schema_string=to_json(schema))


def _collation(schema: StructType, at: Column) -> str | None:
    """The collation of a string, which may be inside an array or a map: the field around it has it."""
    fields = ((name, field) for name, field in all_fields(schema) if at[: len(name)] == name)
    around, field = max(fields, key=lambda found: len(found[0]))
    collation: str | None = field.metadata.get(COLLATIONS_KEY, {}).get(".".join((field.name, *at[len(around) :])))
    return collation


def _check_takes_default(field: StructField, at: Column) -> None:
    if GENERATION_KEY in field.metadata or any(key.startswith(IDENTITY_PREFIX) for key in field.metadata):
        raise InvalidArgumentError(f"the generated column {dotted(at)} can't have a default")


def check_type(metadata: Metadata, protocol: Protocol, at: Column, old: StructField, new: StructField) -> None:
    """Check that the column's type may become that of `new`, given the existing data."""
    if has_same_type(old, new):
        return
    if GENERATION_KEY in old.metadata or any(key.startswith(IDENTITY_PREFIX) for key in old.metadata):
        raise InvalidArgumentError(f"the type of the generated column {dotted(at)} can't be changed")
    if old.data_type == VOID:
        return
    if not isinstance(old.data_type, PrimitiveType):
        raise _type_change_refused(
            at,
            old,
            new,
            f"the type of {dotted(at)}, {type_text(old.data_type)}, can't be changed as a whole: add, drop or "
            "alter what is inside it",
        )
    prefix = f"the column {dotted(at)} can't be changed from {_shown(old)} to {_shown(new)}"
    if old.data_type == new.data_type == STRING:
        before, after = char_varchar(old), char_varchar(new)
        if after is None or (
            before is not None and before[1] <= after[1] and (after[0] == "varchar" or before == after)
        ):
            return
        raise _type_change_refused(at, old, new, f"{prefix}: existing texts may be longer")
    if not type_widening.can_widen(old.data_type, new.data_type):
        raise _type_change_refused(
            at, old, new, f"{prefix}: the data files may have values that don't fit, or can't be read with this type"
        )
    if not type_widening.can_widen(old.data_type, new.data_type, iceberg=bound_by_iceberg(protocol)):
        raise _type_change_refused(
            at, old, new, f"{prefix}: Iceberg doesn't support this change, and the table must be readable as Iceberg"
        )
    if not widening(metadata, protocol):
        raise _type_change_refused(
            at,
            old,
            new,
            f"{prefix}: set the table property delta.enableTypeWidening to true first",
            condition="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
        )
    if _STABLE not in supported(protocol):
        raise UnsupportedFeatureError(
            f"{prefix}: the table has the preview of type widening, whose metadata tablelog can't write. Add the "
            f"feature {_STABLE} to the table first",
            (_PREVIEW,),
        )


def _type_change_refused(
    at: Column, old: StructField, new: StructField, message: str, *, condition: str = "NOT_SUPPORTED_CHANGE_COLUMN"
) -> InvalidArgumentError:
    """The error for a column whose type can't become that of `new`."""
    return InvalidArgumentError(
        message,
        condition=condition,
        parameters={
            "fieldPath": dotted(at),
            "oldField": type_text(old.data_type),
            "newField": type_text(new.data_type),
        },
    )


def _shown(field: StructField) -> str:
    return str(field.metadata.get(CHAR_VARCHAR_KEY) or type_text(field.data_type))


def widening(metadata: Metadata, protocol: Protocol) -> bool:
    """Whether columns may be widened: the property is set, and the protocol has the feature."""
    enabled = bool(properties.get(metadata.configuration, "enableTypeWidening"))
    return enabled and not supported(protocol).isdisjoint((_STABLE, _PREVIEW))


def bound_by_iceberg(protocol: Protocol) -> bool:
    """Whether only widenings that Iceberg has are allowed (PROTOCOL.md, "Writer Requirements for Type Widening")."""
    return not supported(protocol).isdisjoint(("icebergCompatV1", "icebergCompatV2"))


def recorded(schema: StructType, old: StructType) -> StructType:
    """`schema` with each widening since `old` recorded at its nearest field, after earlier records.

    PROTOCOL.md, "Type Change Metadata".
    """
    old_fields = dict(all_fields(old))

    def note(field: StructField, name: Column) -> StructField:
        before = old_fields.get(name)
        changes = (
            [] if before is None else [c.json() for c in type_widening.differences(before.data_type, field.data_type)]
        )
        if not changes:
            return field
        return replace(
            field, metadata={**field.metadata, TYPE_CHANGES_KEY: [*field.metadata.get(TYPE_CHANGES_KEY, ()), *changes]}
        )

    return cast(StructType, transformed(schema, note))
