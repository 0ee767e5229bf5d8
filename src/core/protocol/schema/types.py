"""The types of a table's columns, and its schema as a struct (PROTOCOL.md, "Schema Serialization Format").

Field metadata is kept exactly as it was read, so that an unchanged schema is written back unchanged.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ....errors import InvalidArgumentError

Column: TypeAlias = tuple[str, ...]
"""The logical name of a column: one part for each struct level."""

_INTEGRAL = ("byte", "short", "integer", "long")
DECIMAL_NAME = re.compile(r"decimal\(\s*(\d{1,9})\s*,\s*(-?\d{1,9})\s*\)", re.ASCII)


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A primitive type, by its name in the log: `long`, `decimal(10,2)`, `timestamp_ntz`, `void`, `variant`, ..."""

    name: str

    @property
    def decimal(self) -> tuple[int, int] | None:
        """(precision, scale) of a decimal, else `None`."""
        match = DECIMAL_NAME.fullmatch(self.name)
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

PRIMITIVES = {
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
