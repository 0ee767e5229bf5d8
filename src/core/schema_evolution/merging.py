"""Merging the schema of new data into a table's schema (mergeSchema, MERGE with schema evolution). Pure functions."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import cast

from ...errors import UnsupportedFeatureError
from ...settings.declarations import AUTOMATIC_WIDENING
from ..protocol import type_widening
from ..protocol.actions import Metadata, Protocol
from ..protocol.features import supported
from ..protocol.schema import (
    BYTE,
    DEFAULT_KEY,
    GENERATION_KEY,
    IDENTITY_PREFIX,
    INTEGER,
    SHORT,
    VOID,
    ArrayType,
    Column,
    DataType,
    MapType,
    StructField,
    StructType,
    all_fields,
    check_lengths_inside,
    check_no_duplicates,
    parse_schema,
    to_json,
)
from ..protocol.type_widening import Automatic
from .changes import bound_by_iceberg, recorded, widening

_ONE_PHYSICAL_TYPE = (BYTE, SHORT, INTEGER)
Widens = Callable[[DataType, DataType], bool]


def merged(
    metadata: Metadata,
    data: StructType,
    *,
    protocol: Protocol | None = None,
    conf: Mapping[str, str] | None = None,
    integers: bool = True,
) -> Metadata:
    """The metadata after schema evolution with data of the schema `data`; unchanged if nothing changes.

    Columns that only the data has are added. If the table allows it (`protocol` and `delta.enableTypeWidening`),
    columns get the data's wider types, as far as the session's `conf` allows. `integers`: bytes and shorts of other
    tables are widened too, up to integer. Raises SchemaMismatchError, UnsupportedFeatureError, and
    InvalidArgumentError for an invalid value in `conf`.
    """
    current = parse_schema(metadata.schema_string)
    if protocol is None or not widening(metadata, protocol):
        new_schema = merged_schema(current, data, integers=integers)
    else:
        automatic, iceberg = automatic_of(conf or {}), bound_by_iceberg(protocol)

        def widens(old: DataType, new: DataType) -> bool:
            return type_widening.widens_by_itself(old, new, automatic, iceberg=iceberg)

        plain = merged_schema(current, data, widens, integers=integers)
        new_schema = recorded(plain, current)
        if new_schema is not plain and "typeWidening" not in supported(protocol):
            raise UnsupportedFeatureError(
                "the data has wider types than the table, which has the preview of type widening, whose metadata "
                "tablelog can't write. Add the feature typeWidening to the table first",
                ("typeWidening-preview",),
            )
    check_lengths_inside(new_schema, current)
    return metadata if new_schema == current else replace(metadata, schema_string=to_json(new_schema))


def automatic_of(conf: Mapping[str, str]) -> Automatic:
    """The widenings that the session allows for schema evolution; `InvalidArgumentError` for an invalid value."""
    return cast(Automatic, AUTOMATIC_WIDENING.of(conf))


def _never(old: DataType, new: DataType) -> bool:
    return False


def merged_schema(table: StructType, data: StructType, widens: Widens = _never, *, integers: bool = True) -> StructType:
    """The table's schema merged with the data's, as in Delta: names are compared without case, new columns are added at
    the end of their struct and are nullable, a void column gets the data's type, byte and short are widened up to
    integer (if `integers`), and `widens` decides which other types are widened to the data's. All other types stay the
    table's: the write checks whether the data fits.
    """
    check_no_duplicates(data)

    def all_widenings(old: DataType, new: DataType) -> bool:
        wider = integers and old in _ONE_PHYSICAL_TYPE and new in _ONE_PHYSICAL_TYPE
        return widens(old, new) or (wider and _ONE_PHYSICAL_TYPE.index(old) < _ONE_PHYSICAL_TYPE.index(new))

    return cast(StructType, _merged(table, data, all_widenings))


def _merged(kept: DataType, data: DataType, widens: Widens) -> DataType:
    if isinstance(kept, StructType) and isinstance(data, StructType):
        fields = []
        for field in kept.fields:
            match = None if _is_computed(field) else data.get(field.name)
            fields.append(
                field if match is None else replace(field, data_type=_merged(field.data_type, match.data_type, widens))
            )
        names = {f.name.lower() for f in kept.fields}
        fresh = as_nullable(StructType(tuple(f for f in data.fields if f.name.lower() not in names)))
        return StructType((*fields, *fresh.fields))
    if isinstance(kept, ArrayType) and isinstance(data, ArrayType):
        return replace(kept, element_type=_merged(kept.element_type, data.element_type, widens))
    if isinstance(kept, MapType) and isinstance(data, MapType):
        return replace(
            kept,
            key_type=_merged(kept.key_type, data.key_type, widens),
            value_type=_merged(kept.value_type, data.value_type, widens),
        )
    if kept == VOID:
        return _nullable(data)
    if widens(kept, data):
        return data
    return kept


def _is_computed(field: StructField) -> bool:
    """Whether the column's values are computed: a generated or an identity column."""
    return GENERATION_KEY in field.metadata or any(key.startswith(IDENTITY_PREFIX) for key in field.metadata)


def retyped(old: StructType, new: StructType) -> Iterator[tuple[Column, DataType, DataType]]:
    """Each column whose type differs in `new`; arrays and maps as a whole, structs by their fields."""
    later = dict(all_fields(new))
    for name, field in all_fields(old):
        now = later.get(name)
        if now is not None and now.data_type != field.data_type and not isinstance(field.data_type, StructType):
            yield name, field.data_type, now.data_type


def as_nullable(schema: StructType) -> StructType:
    """The schema of data as a table's schema: all columns nullable, without rules of another table."""
    return cast(StructType, _nullable(schema))


def _nullable(data_type: DataType) -> DataType:
    if isinstance(data_type, StructType):
        return StructType(
            tuple(StructField(f.name, _nullable(f.data_type), True, _own(f.metadata)) for f in data_type.fields)
        )
    if isinstance(data_type, ArrayType):
        return ArrayType(_nullable(data_type.element_type), True)
    if isinstance(data_type, MapType):
        return MapType(_nullable(data_type.key_type), _nullable(data_type.value_type), True)
    return data_type


def _own(metadata: Mapping[str, object]) -> dict[str, object]:
    return {k: v for k, v in metadata.items() if not k.startswith(("delta.", DEFAULT_KEY, "EXISTS_DEFAULT"))}
