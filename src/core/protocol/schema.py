"""The schema of a table (PROTOCOL.md, "Schema Serialization Format"), and functions on schemas.

Field metadata is kept exactly as it was read, so that an unchanged schema is written back unchanged.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from ...errors import CorruptLogError, InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError

if TYPE_CHECKING:
    import pyarrow as pa

Column: TypeAlias = tuple[str, ...]
"""The logical name of a column: one part for each struct level."""

CHAR_VARCHAR_KEY = "__CHAR_VARCHAR_TYPE_STRING"
INVARIANTS_KEY = "delta.invariants"
GENERATION_KEY = "delta.generationExpression"
DEFAULT_KEY = "CURRENT_DEFAULT"
TYPE_CHANGES_KEY = "delta.typeChanges"
IDENTITY_PREFIX = "delta.identity."

_INTEGRAL = ("byte", "short", "integer", "long")
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")
_MAX_DEPTH = 200


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A primitive type, by its name in the log: `long`, `decimal(10,2)`, `timestamp_ntz`, `void`, `variant`, ..."""

    name: str

    @property
    def decimal(self) -> tuple[int, int] | None:
        """(precision, scale) of a decimal, else `None`."""
        match = _DECIMAL.fullmatch(self.name)
        return (int(match[1]), int(match[2])) if match else None

    @property
    def is_integral(self) -> bool:
        return self.name in _INTEGRAL

    @property
    def is_floating(self) -> bool:
        return self.name in ("float", "double")

    @property
    def is_numeric(self) -> bool:
        return self.is_integral or self.is_floating or self.decimal is not None


@dataclass(frozen=True, slots=True)
class ArrayType:
    """An array (PROTOCOL.md, "Array Type")."""

    element_type: "DataType"
    contains_null: bool = True


@dataclass(frozen=True, slots=True)
class MapType:
    """A map (PROTOCOL.md, "Map Type")."""

    key_type: "DataType"
    value_type: "DataType"
    value_contains_null: bool = True


@dataclass(frozen=True, slots=True)
class UserDefinedType:
    """A Spark user-defined type: stored as `sql_type`, with the rest of its JSON unchanged."""

    sql_type: "DataType"
    attributes: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True, slots=True)
class StructField:
    """One column (PROTOCOL.md, "Struct Field"). `metadata` is JSON and must not be changed in place."""

    name: str
    data_type: "DataType"
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class StructType:
    """A struct, and the schema of a table (PROTOCOL.md, "Struct Type")."""

    fields: tuple[StructField, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    def __iter__(self) -> Iterator[StructField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def get(self, name: str, *, case_sensitive: bool = False) -> StructField | None:
        """The field `name`: the one with exactly this name, else the first that differs only in case."""
        for candidate in self.fields:
            if candidate.name == name:
                return candidate
        if not case_sensitive:
            folded = name.lower()
            for candidate in self.fields:
                if candidate.name.lower() == folded:
                    return candidate
        return None

    def select(self, names: Iterable[str]) -> "StructType":
        """The fields with exactly these names, in the schema's order."""
        chosen = set(names)
        return StructType(tuple(f for f in self.fields if f.name in chosen))

    def without(self, names: Iterable[str]) -> "StructType":
        """The fields without those in `names`."""
        dropped = set(names)
        return StructType(tuple(f for f in self.fields if f.name not in dropped))


DataType: TypeAlias = PrimitiveType | ArrayType | MapType | StructType | UserDefinedType

BYTE, SHORT, INTEGER, LONG = (PrimitiveType(name) for name in _INTEGRAL)
FLOAT, DOUBLE = PrimitiveType("float"), PrimitiveType("double")
STRING, BINARY, BOOLEAN = PrimitiveType("string"), PrimitiveType("binary"), PrimitiveType("boolean")
DATE, TIMESTAMP, TIMESTAMP_NTZ = PrimitiveType("date"), PrimitiveType("timestamp"), PrimitiveType("timestamp_ntz")
VOID, VARIANT = PrimitiveType("void"), PrimitiveType("variant")

_PRIMITIVES = {
    t.name: t
    for t in (BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE, STRING, BINARY, BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ)
} | {"void": VOID, "null": VOID, "variant": VARIANT}


def decimal(precision: int, scale: int) -> PrimitiveType:
    """The type `decimal(precision,scale)`; `InvalidArgumentError` outside Delta's limits."""
    if not (0 < precision <= 38 and 0 <= scale <= precision):
        raise InvalidArgumentError(
            f"decimal({precision},{scale}) isn't valid: the precision must be 1 to 38, the scale 0 to the precision"
        )
    return PrimitiveType(f"decimal({precision},{scale})")


# --- JSON ---------------------------------------------------------------------------------------------------------


def _corrupt(reason: str) -> CorruptLogError:
    return CorruptLogError(f"the table's schema is damaged: {reason}")


def _parse_type(value: Any, at: str, depth: int) -> DataType:
    if depth > _MAX_DEPTH:
        raise _corrupt(f"it is nested deeper than {_MAX_DEPTH} levels")
    if isinstance(value, str):
        known = _PRIMITIVES.get(value)
        if known is not None:
            return known
        if value == "decimal":
            return PrimitiveType("decimal(10,0)")
        match = _DECIMAL.fullmatch(value)
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
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _corrupt("the nesting is too deep" if isinstance(error, RecursionError) else str(error)) from None
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


# --- Arrow --------------------------------------------------------------------------------------------------------


def arrow_type(data_type: DataType) -> "pa.DataType":
    """The Arrow type for a column's values.

    A timestamp is `timestamp('us', 'UTC')`, one without time zone `timestamp('us')`, a void column null.
    `UnsupportedFeatureError` for a variant.
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
        return pa.struct([_arrow_field(f) for f in data_type.fields])
    if isinstance(data_type, ArrayType):
        return pa.list_(pa.field("element", arrow_type(data_type.element_type), data_type.contains_null))
    if isinstance(data_type, MapType):
        value = pa.field("value", arrow_type(data_type.value_type), data_type.value_contains_null)
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


def _arrow_field(f: StructField) -> "pa.Field":
    import pyarrow as pa

    return pa.field(f.name, arrow_type(f.data_type), f.nullable)


def arrow_schema(schema: StructType) -> "pa.Schema":
    """The Arrow schema of a table's rows."""
    import pyarrow as pa

    return pa.schema([_arrow_field(f) for f in schema.fields])


def from_arrow(schema: "pa.Schema") -> StructType:
    """The Delta schema of Arrow data; `SchemaMismatchError` for a column whose type Delta doesn't have."""
    return StructType(tuple(StructField(f.name, _from_arrow_type(f.type, f.name), f.nullable) for f in schema))


def _from_arrow_type(value: "pa.DataType", at: str) -> DataType:
    import pyarrow as pa

    for name, candidate in _arrow_primitives().items():
        if value == candidate:
            return _PRIMITIVES[name]
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


# --- queries ------------------------------------------------------------------------------------------------------


def leaves(schema: StructType, prefix: Column = ()) -> Iterator[tuple[Column, StructField]]:
    """Each column that isn't a struct, in schema order, with its full name; arrays and maps are leaves."""
    for f in schema.fields:
        if isinstance(f.data_type, StructType):
            yield from leaves(f.data_type, (*prefix, f.name))
        else:
            yield (*prefix, f.name), f


def find(
    schema: StructType, column: Sequence[str], *, case_sensitive: bool = False
) -> tuple[Column, StructField] | None:
    """The exact name and the field of `column`, each part looked up as in `StructType.get`; `None` if it is missing."""
    exact: list[str] = []
    field: StructField | None = None
    level: DataType = schema
    for part in column:
        if not isinstance(level, StructType):
            return None
        field = level.get(part, case_sensitive=case_sensitive)
        if field is None:
            return None
        exact.append(field.name)
        level = field.data_type
    return (tuple(exact), field) if field is not None else None


def contains(data_type: DataType, test: Callable[[DataType], bool]) -> bool:
    """Whether `test` holds for the type or for any type inside it."""
    if test(data_type):
        return True
    if isinstance(data_type, StructType):
        return any(contains(f.data_type, test) for f in data_type.fields)
    if isinstance(data_type, ArrayType):
        return contains(data_type.element_type, test)
    if isinstance(data_type, MapType):
        return contains(data_type.key_type, test) or contains(data_type.value_type, test)
    return isinstance(data_type, UserDefinedType) and contains(data_type.sql_type, test)


def all_fields(data_type: DataType, prefix: Column = ()) -> Iterator[tuple[Column, StructField]]:
    """Every field at every depth, including structs inside arrays (`element`) and maps (`key`, `value`)."""
    if isinstance(data_type, StructType):
        for f in data_type.fields:
            yield (*prefix, f.name), f
            yield from all_fields(f.data_type, (*prefix, f.name))
    elif isinstance(data_type, ArrayType):
        yield from all_fields(data_type.element_type, (*prefix, "element"))
    elif isinstance(data_type, MapType):
        yield from all_fields(data_type.key_type, (*prefix, "key"))
        yield from all_fields(data_type.value_type, (*prefix, "value"))


def has_min_max(data_type: DataType) -> bool:
    """Whether Delta has minimum and maximum for a column of this type: numbers, dates, timestamps and strings."""
    return isinstance(data_type, PrimitiveType) and (
        data_type.is_numeric or data_type in (DATE, TIMESTAMP, TIMESTAMP_NTZ, STRING)
    )


def indexed_leaves(
    schema: StructType,
    partition_columns: Sequence[str],
    num_indexed: int = 32,
    stats_columns: Sequence[Column] | None = None,
) -> list[tuple[Column, StructField]]:
    """The leaves with statistics, in schema order.

    These are the first `num_indexed` leaves that aren't partition columns (all if negative; an array or a map counts as
    one leaf), or, with `stats_columns` (`delta.dataSkippingStatsColumns`), the leaves at or below these names, ignoring
    case. Identity columns are always included, because the next high-water mark comes from their bounds. Every indexed
    leaf has a null count; `has_min_max` says which ones also have bounds.
    """
    all_leaves = list(leaves(schema.without(partition_columns)))
    if stats_columns is None:
        return [(name, f) for i, (name, f) in enumerate(all_leaves) if not 0 <= num_indexed <= i or _is_identity(f)]
    names = [tuple(part.lower() for part in name) for name in stats_columns]
    return [
        (name, f)
        for name, f in all_leaves
        if _is_identity(f) or any(tuple(part.lower() for part in name[: len(w)]) == w for w in names)
    ]


def _is_identity(f: StructField) -> bool:
    return any(key.startswith(IDENTITY_PREFIX) for key in f.metadata)


def char_varchar(f: StructField) -> tuple[str, int] | None:
    """("char" or "varchar", length) of a string column that was declared with such a type, else `None`."""
    match = re.fullmatch(r"(char|varchar)\((\d+)\)", str(f.metadata.get(CHAR_VARCHAR_KEY, "")))
    return (match[1], int(match[2])) if match else None


# --- checks before a commit ---------------------------------------------------------------------------------------


def dotted(column: Column) -> str:
    """A column's name for messages: parts with special characters are in backticks."""
    return ".".join(part if re.fullmatch(r"\w+", part) else "`" + part.replace("`", "``") + "`" for part in column)


def check_no_duplicates(schema: StructType) -> None:
    """Raise `SchemaMismatchError` if two columns of one struct, at any depth, have the same name, ignoring case."""
    seen: set[Column] = set()
    for name, _ in all_fields(schema):
        folded = tuple(part.lower() for part in name)
        if folded in seen:
            raise SchemaMismatchError(
                f"the column {dotted(name)} occurs twice (names that differ only in case count as the same name)",
                condition="DELTA_DUPLICATE_COLUMNS_FOUND.DATA",
                parameters={"duplicateCols": dotted(name)},
            )
        seen.add(folded)


_FORBIDDEN = " ,;{}()\n\t="


def check_parquet_names(schema: StructType) -> None:
    """Raise `InvalidArgumentError` for a name with a character that Parquet doesn't allow without column mapping."""
    for name, _ in all_fields(schema):
        bad = sorted({char for char in name[-1] if char in _FORBIDDEN})
        if bad or not name[-1]:
            shown = ", ".join(repr(char) for char in bad) or "no character"
            raise InvalidArgumentError(
                f"the name of the column {dotted(name)} has {shown}: a column name is not empty and has none of "
                f"{_FORBIDDEN!r} unless the table uses column mapping; rename the column",
                condition="DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
                parameters={"invalidColumnNames": dotted(name)},
            )


def check_partition_columns(schema: StructType, partition_columns: Sequence[str]) -> None:
    """Raise `InvalidArgumentError` unless they are distinct top-level primitive columns, and another column remains."""
    seen: set[str] = set()
    for name in partition_columns:
        field = schema.get(name, case_sensitive=True)
        if field is None:
            raise InvalidArgumentError(
                f"the partition column {name!r} is not in the schema ({', '.join(schema.names)})",
                condition="DELTA_PARTITION_COLUMN_NOT_FOUND",
                parameters={"columnName": name, "schemaMap": ", ".join(schema.names)},
            )
        if name in seen:
            raise InvalidArgumentError(
                f"the partition column {name!r} is listed twice",
                condition="DELTA_DUPLICATE_COLUMNS_FOUND",
                parameters={"duplicateCols": name},
            )
        seen.add(name)
        if not isinstance(field.data_type, PrimitiveType) or field.data_type in (VOID, VARIANT):
            raise InvalidArgumentError(
                f"a table can't be partitioned by {name!r}, which has the type {type_text(field.data_type)}",
                condition="DELTA_INVALID_PARTITION_COLUMN_TYPE",
                parameters={"name": name, "dataType": type_text(field.data_type)},
            )
    if partition_columns and len(seen) == len(schema):
        raise InvalidArgumentError(
            "every column is a partition column: a table needs at least one other column",
            condition="DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION",
        )
