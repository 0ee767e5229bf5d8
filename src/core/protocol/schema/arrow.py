"""Types and schemas of Arrow for those of a table, and back."""

from functools import lru_cache
from typing import TYPE_CHECKING

from ....errors import SchemaMismatchError, UnsupportedFeatureError
from .types import (
    BINARY,
    DATE,
    PRIMITIVES,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    decimal,
)

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_type(data_type: DataType) -> "pa.DataType":
    """The Arrow type for a column's values.

    A timestamp is `timestamp('us', 'UTC')`, one without time zone `timestamp('us')`, a void column null.
    `UnsupportedFeatureError` for a variant, and for a map with void keys.
    """
    import pyarrow as pa

    if isinstance(data_type, PrimitiveType):
        bounds = data_type.decimal
        if bounds is not None:
            return pa.decimal128(*bounds)
        try:
            return _arrow_primitives()[data_type.name]
        except KeyError:
            raise UnsupportedFeatureError(
                f"the type {data_type.name!r} has no Arrow form in this version of tablelog", ("variantType",)
            ) from None
    if isinstance(data_type, StructType):
        return pa.struct([_field(f.name, f.data_type, f.nullable) for f in data_type.fields])
    if isinstance(data_type, ArrayType):
        return pa.list_(_field("element", data_type.element_type, data_type.contains_null))
    if isinstance(data_type, MapType):
        if data_type.key_type == VOID:
            raise UnsupportedFeatureError("a map with keys of the type 'void' has no Arrow form")
        value = _field("value", data_type.value_type, data_type.value_contains_null)
        return pa.map_(arrow_type(data_type.key_type), value)
    return arrow_type(data_type.sql_type)


@lru_cache(maxsize=1)
def _arrow_primitives() -> dict[str, "pa.DataType"]:
    import pyarrow as pa

    return {
        "byte": pa.int8(),
        "short": pa.int16(),
        "integer": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "binary": pa.binary(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestamp_ntz": pa.timestamp("us"),
        "void": pa.null(),
    }


def _field(name: str, data_type: DataType, nullable: bool) -> "pa.Field":
    import pyarrow as pa

    type_ = arrow_type(data_type)
    return pa.field(name, type_, nullable or type_ == pa.null())  # Arrow has no void type without nulls


def arrow_schema(schema: StructType) -> "pa.Schema":
    """The Arrow schema of a table's rows."""
    import pyarrow as pa

    return pa.schema([_field(f.name, f.data_type, f.nullable) for f in schema.fields])


def from_arrow(schema: "pa.Schema") -> StructType:
    """The Delta schema of Arrow data; `SchemaMismatchError` for a column whose type Delta doesn't have."""
    return StructType(tuple(StructField(f.name, _from_arrow_type(f.type, f.name), f.nullable) for f in schema))


def _from_arrow_type(value: "pa.DataType", at: str) -> DataType:
    import pyarrow as pa

    for name, candidate in _arrow_primitives().items():
        if value == candidate:
            return PRIMITIVES[name]
    if pa.types.is_decimal(value) and 0 <= value.scale <= value.precision <= 38:
        return decimal(value.precision, value.scale)
    if pa.types.is_timestamp(value):
        return TIMESTAMP_NTZ if value.tz is None else TIMESTAMP
    if pa.types.is_large_string(value) or value == pa.string_view():
        return STRING
    if pa.types.is_large_binary(value) or pa.types.is_fixed_size_binary(value) or value == pa.binary_view():
        return BINARY
    if pa.types.is_dictionary(value):
        return _from_arrow_type(value.value_type, at)
    if pa.types.is_date64(value):
        return DATE
    if pa.types.is_struct(value):
        return StructType(
            tuple(StructField(f.name, _from_arrow_type(f.type, f"{at}.{f.name}"), f.nullable) for f in value)
        )
    if pa.types.is_map(value):
        return MapType(
            _from_arrow_type(value.key_type, f"{at}.key"),
            _from_arrow_type(value.item_type, f"{at}.value"),
            value.item_field.nullable,
        )
    if pa.types.is_list(value) or pa.types.is_large_list(value) or pa.types.is_fixed_size_list(value):
        return ArrayType(_from_arrow_type(value.value_type, f"{at}.element"), value.value_field.nullable)
    raise SchemaMismatchError(f"the column {at} has the Arrow type {value}, which a Delta table can't contain")
