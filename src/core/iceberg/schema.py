"""A table's schema, partitioning and partition values in Iceberg's types. The ids are those of the column mapping."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyiceberg import types
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record

from ...errors import CorruptLogError, UnsupportedFeatureError
from ..protocol import nested_ids, partition_values
from ..protocol.column_mapping import ColumnMapping, field_id, physical_name
from ..protocol.schema import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType, type_text

if TYPE_CHECKING:
    from ..protocol.actions import AddFile

FIRST_PARTITION_ID: Final = 1000

_PRIMITIVES: Final[Mapping[str, types.PrimitiveType]] = {
    "byte": types.IntegerType(),
    "short": types.IntegerType(),
    "integer": types.IntegerType(),
    "long": types.LongType(),
    "float": types.FloatType(),
    "double": types.DoubleType(),
    "string": types.StringType(),
    "binary": types.BinaryType(),
    "boolean": types.BooleanType(),
    "date": types.DateType(),
    "timestamp": types.TimestamptzType(),
    "timestamp_ntz": types.TimestampType(),
}


def schema_of(schema: StructType, schema_id: int = 0) -> Schema:
    """The schema with logical names. Every column is optional, because files don't declare columns as required."""
    return Schema(*(_field(field) for field in schema), schema_id=schema_id)


def primitive(data_type: PrimitiveType) -> types.PrimitiveType:
    """Iceberg's type; UnsupportedFeatureError if it has none."""
    if data_type.decimal is not None:
        return types.DecimalType(*data_type.decimal)
    if data_type.name not in _PRIMITIVES:
        raise UnsupportedFeatureError(f"Iceberg has no type for {type_text(data_type)}", ("icebergCompatV2",))
    return _PRIMITIVES[data_type.name]


def _field(field: StructField) -> types.NestedField:
    comment = field.metadata.get("comment")
    return types.NestedField(
        field_id=_id(field),
        name=field.name,
        field_type=_type(field.data_type, physical_name(field), nested_ids.of(field)),
        required=False,
        doc=comment if isinstance(comment, str) else None,
    )


def _id(field: StructField) -> int:
    number = field_id(field)
    if number is None:
        raise CorruptLogError(f"the column {field.name} has no id, although Iceberg compatibility is enabled")
    return number


def _type(data_type: DataType, path: str, ids: Mapping[str, int]) -> types.IcebergType:
    if isinstance(data_type, StructType):
        return types.StructType(*(_field(field) for field in data_type))
    if isinstance(data_type, ArrayType):
        element = f"{path}.element"
        return types.ListType(
            element_id=_inner(ids, element),
            element_type=_type(data_type.element_type, element, ids),
            element_required=False,
        )
    if isinstance(data_type, MapType):
        key, value = f"{path}.key", f"{path}.value"
        return types.MapType(
            key_id=_inner(ids, key),
            key_type=_type(data_type.key_type, key, ids),
            value_id=_inner(ids, value),
            value_type=_type(data_type.value_type, value, ids),
            value_required=False,
        )
    if not isinstance(data_type, PrimitiveType):
        raise UnsupportedFeatureError(f"Iceberg has no type for {type_text(data_type)}", ("icebergCompatV2",))
    return primitive(data_type)


def _inner(ids: Mapping[str, int], path: str) -> int:
    if path not in ids:
        raise CorruptLogError(f"{path} has no id ({nested_ids.KEY}), although Iceberg compatibility is enabled")
    return ids[path]


def sources_of(mapping: ColumnMapping) -> list[tuple[int, str]]:
    """The id and the name of each partition column."""
    fields = [mapping.logical.get(name, case_sensitive=True) for name in mapping.partition_columns]
    return [(_id(field), field.name) for field in fields if field is not None]


def spec_of(mapping: ColumnMapping, known: Sequence[PartitionSpec]) -> PartitionSpec:
    """The partitioning by the values of the columns: a known one, else a new one with ids that no other has."""
    wanted = sources_of(mapping)
    for spec in known:
        if [(field.source_id, field.name) for field in spec.fields] == wanted:
            return spec
    first = max([FIRST_PARTITION_ID - 1, *(field.field_id for spec in known for field in spec.fields)]) + 1
    fields = [
        PartitionField(source_id=source, field_id=first + i, transform=IdentityTransform(), name=name)
        for i, (source, name) in enumerate(wanted)
    ]
    return PartitionSpec(*fields, spec_id=max((spec.spec_id for spec in known), default=-1) + 1)


def partitions_of(mapping: ColumnMapping, adds: "Sequence[AddFile]") -> Iterable[Record]:
    """The partition values of each file, as Iceberg stores them."""
    columns: list[list[Any]] = []
    for name, physical in zip(mapping.partition_columns, mapping.physical_partition_columns, strict=True):
        field = mapping.logical.get(name, case_sensitive=True)
        assert field is not None
        assert isinstance(field.data_type, PrimitiveType)
        texts = pa.array([add.partition_values.get(physical) for add in adds], pa.string())
        values = partition_values.typed(texts, field.data_type, time_zone="UTC")
        if field.data_type.name == "date":
            values = values.cast(pa.int32())
        elif field.data_type.name.startswith("timestamp"):
            values = values.cast(pa.int64())
        columns.append(values.to_pylist())
    return [Record(*(column[i] for column in columns)) for i in range(len(adds))]
