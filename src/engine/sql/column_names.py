"""Converts between a table's logical column names and the physical names in data files (`ColumnMapping`).

Spark reads and writes files by physical names; a projection adds the logical names. For top-level columns, the
projection costs nothing, and filters are pushed through it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ...core.protocol import column_mapping, nested_ids
from ...core.protocol import schema as schemas
from ...core.protocol.column_mapping import ColumnMapping
from ...core.protocol.schema import quoted
from ...settings.spark_own import PARQUET_FIELD_IDS
from ..jvm.types import column_type, has_void, read_schema
from .conform import without_void

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BY_ID = {PARQUET_FIELD_IDS.key: "true"}
"""The reader option by which Spark finds columns by their Parquet field IDs."""


def columns_read(mapping: ColumnMapping) -> schemas.StructType:
    """The columns that a scan reads, by physical names; with field IDs if the mapping mode is `id`."""
    if not mapping.active:
        return read_schema(mapping.logical)

    def named(field: schemas.StructField, _: schemas.Column) -> schemas.StructField:
        field_id = _field_id(field) if mapping.mode == "id" else {}
        kept = {key: value for key, value in field.metadata.items() if not key.startswith("parquet.field.")}
        if schemas.has_lengths_inside(field):
            del kept[schemas.CHAR_VARCHAR_KEY]  # it has the logical names
        return schemas.with_name(replace(field, metadata={**kept, **field_id}), column_mapping.physical_name(field))

    return read_schema(cast(schemas.StructType, column_mapping.transformed(mapping.logical, named)))


def columns_written(mapping: ColumnMapping) -> schemas.StructType:
    """The columns of data files with their field IDs, all nullable (PROTOCOL.md, "Writer Requirements for Column
    Mapping"). Void columns are omitted: see `conform.without_void`.
    """

    def named(field: schemas.StructField, _: schemas.Column) -> schemas.StructField:
        return replace(field, name=column_mapping.physical_name(field), nullable=True, metadata=_field_ids(field))

    schema = cast(schemas.StructType, column_mapping.transformed(without_void(mapping.logical), named))
    return cast(schemas.StructType, _with_nulls(schema))


def all_names(mapping: ColumnMapping) -> frozenset[str]:
    """The logical and physical names of a table's columns."""
    return frozenset((*mapping.logical.names, *mapping.physical.names))


def with_extra(mapping: ColumnMapping, extra: Sequence[schemas.StructField]) -> ColumnMapping:
    """The mapping with extra columns of data files, whose logical and physical names are equal."""
    if not extra:
        return mapping
    return replace(mapping, logical=schemas.StructType((*mapping.logical.fields, *extra)))


def _field_id(field: schemas.StructField) -> dict[str, int]:
    """The metadata entry with a field's ID; empty for a column that isn't in the table."""
    number = column_mapping.field_id(field)
    return {} if number is None else {column_mapping.FIELD_ID: number}


def _field_ids(field: schemas.StructField) -> dict[str, Any]:
    """The metadata entries with a field's ID and those of its elements, keys and values."""
    inside = nested_ids.of(field)
    return {**_field_id(field), **({nested_ids.PARQUET_KEY: dict(inside)} if inside else {})}


def has_nested_ids(written: schemas.StructType) -> bool:
    """Whether the columns of data files have ids for elements, keys or values."""
    return any(nested_ids.PARQUET_KEY in field.metadata for _, field in schemas.all_fields(written))


def plain(schema: schemas.StructType) -> schemas.StructType:
    """The names and types of the non-void columns, all nullable at every level, without metadata but collations."""

    def stripped(field: schemas.StructField, _: schemas.Column) -> schemas.StructField:
        kept = {key: value for key, value in field.metadata.items() if key == schemas.COLLATIONS_KEY}
        return replace(field, nullable=True, metadata=kept)

    bare = column_mapping.transformed(without_void(schema), stripped)
    return cast(schemas.StructType, _with_nulls(bare))


def _with_nulls(data_type: schemas.DataType) -> schemas.DataType:
    """The type with nullable array elements and map values."""
    if isinstance(data_type, schemas.StructType):
        return schemas.StructType(tuple(replace(f, data_type=_with_nulls(f.data_type)) for f in data_type))
    if isinstance(data_type, schemas.ArrayType):
        return schemas.ArrayType(_with_nulls(data_type.element_type), True)
    if isinstance(data_type, schemas.MapType):
        return schemas.MapType(_with_nulls(data_type.key_type), _with_nulls(data_type.value_type), True)
    return data_type


def renamed(
    frame: "DataFrame", frame_schema: schemas.StructType, wanted: schemas.StructType, more: Sequence[str] = ()
) -> "DataFrame":
    """Rename the columns `frame_schema` of `frame` to the names and metadata of `wanted`, by position.

    The columns `more` are appended unchanged.
    """
    columns = [
        _named(frame[quoted(f.name)], f.data_type, to.data_type).alias(to.name, metadata=dict(to.metadata))
        for f, to in zip(frame_schema, wanted, strict=True)
    ]
    return frame.select(*columns, *(frame[quoted(name)] for name in more))


def with_void(frame: "DataFrame", schema: schemas.StructType, more: Sequence[str] = ()) -> "DataFrame":
    """Add the void columns and fields of `schema`, which data files don't store, to `frame`.

    The columns `more` are appended unchanged.
    """
    if not has_void(schema):
        return frame
    columns = [_filled(None if f.data_type == schemas.VOID else frame[quoted(f.name)], f) for f in schema]
    return frame.select(*columns, *(frame[quoted(name)] for name in more))


def _filled(value: "Column | None", field: schemas.StructField) -> "Column":
    """The value of a column, with the void fields added inside it; a `None` value is void itself."""
    from pyspark.sql import functions as F

    if value is None:
        result = F.lit(None)
    elif isinstance(field.data_type, schemas.StructType) and has_void(field.data_type):
        fields = (
            _filled(None if inner.data_type == schemas.VOID else value.getField(inner.name), inner)
            for inner in field.data_type
        )
        result = F.struct(*fields)
        result = F.when(value.isNotNull(), result) if field.nullable else result
    else:
        result = value
    return result.alias(field.name, metadata=dict(field.metadata))


def _named(value: "Column", value_type: schemas.DataType, wanted: schemas.DataType) -> "Column":
    """The value with renamed nested fields."""
    if value_type == wanted and not _differs(value_type, wanted):
        return value
    if isinstance(value_type, schemas.StructType) and isinstance(wanted, schemas.StructType):
        before, after = {f.name.lower() for f in value_type}, {f.name.lower() for f in wanted}
        if not before & after and not any(f.metadata for _, f in schemas.all_fields(wanted)):
            # Spark prunes nested columns through these expressions, so it reads only the required fields. It doesn't
            # prune through a cast, which is the only way to add metadata.
            result = value
            for field, to in zip(value_type, wanted, strict=True):
                result = result.withField(
                    quoted(to.name), _named(value.getField(field.name), field.data_type, to.data_type)
                )
            return result.dropFields(*(quoted(f.name) for f in value_type))
    return value.cast(column_type(schemas.StructField("c", wanted)))


def _differs(value_type: schemas.DataType, wanted: schemas.DataType) -> bool:
    """Whether the metadata of nested fields differs between equal types."""
    return bool(schemas.type_json(value_type) != schemas.type_json(wanted))
