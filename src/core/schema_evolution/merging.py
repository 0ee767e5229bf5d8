"""What new data makes of a table's schema (mergeSchema, MERGE with schema evolution). Pure decisions."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import cast

from ...errors import UnsupportedFeatureError
from ...settings.honoured import AUTOMATIC_WIDENING
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
    check_no_duplicates,
    parse_schema,
    to_json,
)
from ..protocol.type_widening import Automatic
from .changes import bound_by_iceberg, recorded, widening

_ONE_PHYSICAL_TYPE = (BYTE, SHORT, INTEGER)
Widens = Callable[[DataType, DataType], bool]


def merged(
    metadata: Metadata, data: StructType, *, protocol: Protocol | None = None, conf: Mapping[str, str] | None = None
) -> Metadata:
    """The metadata after data of the schema `data` has come with schema evolution; the same where nothing changes.

    What the data has beyond the table's schema is added to it. Where the table allows it (`protocol` and
    `delta.enableTypeWidening`), columns take the data's wider types, as far as the session's `conf` lets them.
    Raises SchemaMismatchError, InvalidArgumentError for a bad value in `conf`, UnsupportedFeatureError.
    """
    current = parse_schema(metadata.schema_string)
    if protocol is None or not widening(metadata, protocol):
        found = merged_schema(current, data)
    else:
        automatic, iceberg = automatic_of(conf or {}), bound_by_iceberg(protocol)

        def widens(old: DataType, new: DataType) -> bool:
            return type_widening.widens_by_itself(old, new, automatic, iceberg=iceberg)

        plain = merged_schema(current, data, widens)
        found = recorded(plain, current)
        if found is not plain and "typeWidening" not in supported(protocol):
            raise UnsupportedFeatureError(
                "the data has wider types than the table, which has the preview of type widening, whose records "
                "tablelog doesn't write. Add the feature typeWidening to the table first",
                ("typeWidening-preview",),
            )
    return metadata if found == current else replace(metadata, schema_string=to_json(found))


def automatic_of(conf: Mapping[str, str]) -> Automatic:
    """What a session lets schema evolution widen; `InvalidArgumentError` for a value that says nothing."""
    return cast(Automatic, AUTOMATIC_WIDENING.of(conf))


def _never(old: DataType, new: DataType) -> bool:
    return False


def merged_schema(table: StructType, data: StructType, widens: Widens = _never) -> StructType:
    """The table's schema with what the data has beyond it, as Delta merges: names differ by more than case, new columns
    go to the end of their struct and are nullable, a void column takes the data's type, byte and short grow as far as
    integer, and `widens` says which other types grow to the data's. Any other type stays the table's: whether the data
    can be stored so is for the write to say.
    """
    check_no_duplicates(data)
    return cast(StructType, _merged(table, data, widens))


def _merged(kept: DataType, given: DataType, widens: Widens) -> DataType:
    if isinstance(kept, StructType) and isinstance(given, StructType):
        fields = []
        for f in kept.fields:
            found = None if _is_made(f) else given.get(f.name)
            fields.append(f if found is None else replace(f, data_type=_merged(f.data_type, found.data_type, widens)))
        names = {f.name.lower() for f in kept.fields}
        fresh = as_nullable(StructType(tuple(f for f in given.fields if f.name.lower() not in names)))
        return StructType((*fields, *fresh.fields))
    if isinstance(kept, ArrayType) and isinstance(given, ArrayType):
        return replace(kept, element_type=_merged(kept.element_type, given.element_type, widens))
    if isinstance(kept, MapType) and isinstance(given, MapType):
        return replace(
            kept,
            key_type=_merged(kept.key_type, given.key_type, widens),
            value_type=_merged(kept.value_type, given.value_type, widens),
        )
    if kept == VOID:
        return _nullable(given)
    if widens(kept, given):
        return given
    if kept in _ONE_PHYSICAL_TYPE and given in _ONE_PHYSICAL_TYPE:
        return max(kept, given, key=_ONE_PHYSICAL_TYPE.index)
    return kept


def _is_made(f: StructField) -> bool:
    """Whether the column's values, and so its type, are a rule's to say: a generated or an identity column."""
    return GENERATION_KEY in f.metadata or any(key.startswith(IDENTITY_PREFIX) for key in f.metadata)


def retyped(old: StructType, new: StructType) -> Iterator[tuple[Column, DataType, DataType]]:
    """Each column, arrays and maps whole, whose type is another one in `new`; structs by what is inside them."""
    later = dict(all_fields(new))
    for name, f in all_fields(old):
        now = later.get(name)
        if now is not None and now.data_type != f.data_type and not isinstance(f.data_type, StructType):
            yield name, f.data_type, now.data_type


def as_nullable(schema: StructType) -> StructType:
    """The schema of data as that of a table: everything nullable, and none of another table's rules."""
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
