"""The ids of the elements of arrays and of the keys and values of maps (PROTOCOL.md, "Iceberg Compatibility V2").

Iceberg identifies each of them by an id, as it does columns. The nearest struct field has them in its metadata, by a
path that starts with its physical name: `col-a.element`, `col-a.value.element`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, cast

from . import column_mapping
from .actions import Metadata
from .column_mapping import MAX_ID, physical_name, transformed
from .schema import ArrayType, Column, DataType, MapType, StructField, StructType, parse_schema, to_json

KEY: Final = "delta.columnMapping.nested.ids"
PARQUET_KEY: Final = "parquet.field.nested.ids"
"""The key by which the schema of a data file has the same ids; their paths begin with the name in the file."""


def of(field: StructField) -> Mapping[str, int]:
    """The ids inside a field, by their paths; empty if it has none."""
    ids = field.metadata.get(KEY)
    return ids if isinstance(ids, Mapping) else {}


def inside(data_type: DataType, path: str) -> Iterator[str]:
    """The paths that need an id: of this type, without those inside a struct."""
    if isinstance(data_type, ArrayType):
        yield f"{path}.element"
        yield from inside(data_type.element_type, f"{path}.element")
    elif isinstance(data_type, MapType):
        yield f"{path}.key"
        yield from inside(data_type.key_type, f"{path}.key")
        yield f"{path}.value"
        yield from inside(data_type.value_type, f"{path}.value")


def assigned(metadata: Metadata) -> Metadata:
    """The metadata with an id for each element, key and value; existing ids stay. Every column must have its own id."""
    largest = column_mapping.max_id(metadata)

    def assign(field: StructField, _: Column) -> StructField:
        nonlocal largest
        known = of(field)
        ids: dict[str, int] = {}
        for path in inside(field.data_type, physical_name(field)):
            if path not in known:
                largest += 1
            ids[path] = known.get(path, largest)
        if ids == known:
            return field
        kept = {key: value for key, value in field.metadata.items() if key != KEY}
        return replace(field, metadata={**kept, KEY: ids} if ids else kept)

    schema = parse_schema(metadata.schema_string)
    with_ids = transformed(schema, assign)
    if with_ids is schema:
        return metadata
    return replace(
        metadata,
        schema_string=to_json(cast(StructType, with_ids)),
        configuration={**metadata.configuration, MAX_ID: str(largest)},
    )
