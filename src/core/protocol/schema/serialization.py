"""A schema as JSON (PROTOCOL.md, "Schema Serialization Format"), and a type as text for messages and SQL."""

import json
from functools import lru_cache
from typing import Any

from ....errors import CorruptLogError, UnsupportedFeatureError
from ..codec.strict_json import load, reason
from .types import (
    DECIMAL_NAME,
    PRIMITIVES,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    UserDefinedType,
)

_MAX_DEPTH = 200


def _corrupt(reason: str) -> CorruptLogError:
    return CorruptLogError(f"the table's schema is damaged: {reason}")


def _parse_type(value: Any, at: str, depth: int) -> DataType:
    if depth > _MAX_DEPTH:
        raise _corrupt(f"it is nested deeper than {_MAX_DEPTH} levels")
    if isinstance(value, str):
        known = PRIMITIVES.get(value)
        if known is not None:
            return known
        if value == "decimal":
            return PrimitiveType("decimal(10,0)")
        match = DECIMAL_NAME.fullmatch(value)
        if match:
            precision, scale = int(match[1]), int(match[2])
            if not (0 < precision <= 38 and 0 <= scale <= precision):
                raise _corrupt(f"the type {value} of {at} is out of bounds")
            return PrimitiveType(f"decimal({precision},{scale})")
        raise UnsupportedFeatureError(
            f"the column {at} has the type {value[:80]!r}, which this version of tablelog doesn't know",
            (f"type {value[:80]}",),
        )
    if not isinstance(value, dict):
        raise _corrupt(f"the type of {at} should be a name or an object")
    kind = value.get("type")
    if kind == "struct":
        fields = value.get("fields")
        if not isinstance(fields, list):
            raise _corrupt(f"the struct {at} has no array of fields")
        return StructType(tuple(_parse_field(item, at, depth) for item in fields))
    if kind == "array":
        element = _parse_type(value.get("elementType"), f"{at}.element", depth + 1)
        return ArrayType(element, _parse_flag(value, "containsNull", at))
    if kind == "map":
        return MapType(
            _parse_type(value.get("keyType"), f"{at}.key", depth + 1),
            _parse_type(value.get("valueType"), f"{at}.value", depth + 1),
            _parse_flag(value, "valueContainsNull", at),
        )
    if kind == "udt":
        rest = {key: item for key, item in value.items() if key != "sqlType"}
        return UserDefinedType(_parse_type(value.get("sqlType"), at, depth + 1), rest)
    raise _corrupt(f"the type of {at} is neither struct, array nor map")


def _parse_flag(obj: dict[str, Any], key: str, at: str) -> bool:
    value = obj.get(key, True)
    if not isinstance(value, bool):
        raise _corrupt(f"{key!r} of {at} should be a boolean")
    return value


def _parse_field(value: Any, parent: str, depth: int) -> StructField:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise _corrupt(f"a field of {parent or 'the table'} has no name")
    name = value["name"]
    at = f"{parent}.{name}" if parent else name
    metadata = value.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise _corrupt(f"the metadata of {at} should be an object")
    return StructField(
        name, _parse_type(value.get("type"), at, depth + 1), _parse_flag(value, "nullable", at), metadata
    )


@lru_cache(maxsize=256)
def parse_schema(text: str) -> StructType:
    """Parse `metaData.schemaString`; "" stands for a table without columns.

    `CorruptLogError` for an invalid schema, `UnsupportedFeatureError` for an unknown type.
    """
    if not text:
        return StructType()
    try:
        value = load(text)
    except (ValueError, RecursionError) as error:
        raise _corrupt(reason(error)) from None
    if not isinstance(value, dict) or value.get("type") != "struct":
        raise _corrupt("it isn't a struct")
    parsed = _parse_type(value, "", 0)
    assert isinstance(parsed, StructType)
    return parsed


def type_json(data_type: DataType) -> Any:
    """The JSON value of a type, as in the log."""
    if isinstance(data_type, PrimitiveType):
        return data_type.name
    if isinstance(data_type, StructType):
        return {
            "type": "struct",
            "fields": [
                {"name": f.name, "type": type_json(f.data_type), "nullable": f.nullable, "metadata": f.metadata}
                for f in data_type.fields
            ],
        }
    if isinstance(data_type, ArrayType):
        return {
            "type": "array",
            "elementType": type_json(data_type.element_type),
            "containsNull": data_type.contains_null,
        }
    if isinstance(data_type, MapType):
        return {
            "type": "map",
            "keyType": type_json(data_type.key_type),
            "valueType": type_json(data_type.value_type),
            "valueContainsNull": data_type.value_contains_null,
        }
    return {**data_type.attributes, "sqlType": type_json(data_type.sql_type)}


def to_json(schema: StructType) -> str:
    """The text of `metaData.schemaString`."""
    return json.dumps(type_json(schema), ensure_ascii=False, separators=(",", ":"))


def type_text(data_type: DataType) -> str:
    """A type as text for messages and SQL: `struct<a: bigint>`, `array<string>`, `decimal(10,2)`."""
    if isinstance(data_type, PrimitiveType):
        names = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
        return names.get(data_type.name, data_type.name)
    if isinstance(data_type, StructType):
        return f"struct<{', '.join(f'{f.name}: {type_text(f.data_type)}' for f in data_type.fields)}>"
    if isinstance(data_type, ArrayType):
        return f"array<{type_text(data_type.element_type)}>"
    if isinstance(data_type, MapType):
        return f"map<{type_text(data_type.key_type)}, {type_text(data_type.value_type)}>"
    return type_text(data_type.sql_type)
