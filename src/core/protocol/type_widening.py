"""Type widening: the allowed changes of a column's type, and their record in the schema (PROTOCOL.md, "Type Widening").

Data files aren't rewritten: a reader converts their values to the wider type. Pure functions on schemas.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ...errors import CorruptLogError, UnsupportedFeatureError
from .schema import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP_NTZ,
    TYPE_CHANGES_KEY,
    ArrayType,
    Column,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    all_fields,
    dotted,
    type_text,
)

Automatic = Literal["always", "same_family_type", "never"]
"""The widenings that a write with schema evolution may do, as in `spark.databricks.delta.typeWidening...`."""

_INTEGRAL = (BYTE, SHORT, INTEGER, LONG)
# Other names of types in records of other writers.
_ALIASES = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}


def can_widen(old: DataType, new: DataType, *, iceberg: bool = False) -> bool:
    """Whether a column may change from the primitive type `old` to the different primitive type `new`.

    `iceberg`: only changes that Iceberg has too.
    """
    if not isinstance(old, PrimitiveType) or not isinstance(new, PrimitiveType) or old == new:
        return False
    if old in _INTEGRAL and new in _INTEGRAL:
        return _INTEGRAL.index(old) < _INTEGRAL.index(new)
    if (old, new) == (FLOAT, DOUBLE):
        return True
    if old.decimal and new.decimal:
        return _holds(new, *old.decimal) and not (iceberg and old.decimal[1] != new.decimal[1])
    if iceberg:
        return False
    if (old, new) == (DATE, TIMESTAMP_NTZ):
        return True
    if old in (BYTE, SHORT, INTEGER):
        return new == DOUBLE or _holds(new, 10, 0)
    return old == LONG and _holds(new, 20, 0)


def _holds(wide: PrimitiveType, precision: int, scale: int) -> bool:
    """Whether the type is a decimal that holds all digits of this precision and scale."""
    bounds = wide.decimal
    return bounds is not None and bounds[0] - bounds[1] >= precision - scale and bounds[1] >= scale


def widens_by_itself(old: DataType, new: DataType, automatic: Automatic, *, iceberg: bool = False) -> bool:
    """Whether a write with schema evolution widens a column from `old` to the data's type `new`."""
    if automatic == "never" or not can_widen(old, new, iceberg=iceberg):
        return False
    return automatic == "always" or _family(old) == _family(new) or (old, new) == (DATE, TIMESTAMP_NTZ)


def _family(data_type: DataType) -> str:
    assert isinstance(data_type, PrimitiveType)
    if data_type.decimal:
        return "decimal"
    return "integral" if data_type in _INTEGRAL else "floating" if data_type.is_floating else data_type.name


# --- the record ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TypeChange:
    """One entry of `delta.typeChanges`. `inside` is the path in arrays and maps: `element`, `key`, `value`."""

    old: PrimitiveType
    new: PrimitiveType
    inside: Column = ()

    def json(self) -> dict[str, str]:
        path = {"fieldPath": ".".join(self.inside)} if self.inside else {}
        return {"fromType": self.old.name, "toType": self.new.name, **path}


def changes_of(field: StructField) -> list[TypeChange]:
    """The recorded type changes of a field; `CorruptLogError` for an invalid record."""
    entries = field.metadata.get(TYPE_CHANGES_KEY, [])
    try:
        return [_change(entry) for entry in entries]
    except (KeyError, TypeError, AttributeError) as error:
        raise CorruptLogError(
            f"{TYPE_CHANGES_KEY} of the column {field.name} isn't a list of type changes: {error}"
        ) from None


def _change(entry: Mapping[str, Any]) -> TypeChange:
    path = entry.get("fieldPath")
    return TypeChange(_named(entry["fromType"]), _named(entry["toType"]), tuple(path.split(".")) if path else ())


def _named(name: str) -> PrimitiveType:
    plain = re.sub(r"\s", "", name.lower())
    return PrimitiveType(_ALIASES.get(plain, plain))


def check(schema: StructType, table: str) -> None:
    """Raise `UnsupportedFeatureError` for a recorded change that the feature doesn't have ("Reader Requirements")."""
    for name, field in all_fields(schema):
        for change in changes_of(field) if TYPE_CHANGES_KEY in field.metadata else ():
            texts = all(t == STRING or t.name.startswith(("char(", "varchar(")) for t in (change.old, change.new))
            if not texts and change.old != change.new and not can_widen(change.old, change.new):
                raise UnsupportedFeatureError(
                    f"{table} can't be read: the column {dotted((*name, *change.inside))} was changed from "
                    f"{type_text(change.old)} to {type_text(change.new)}, which the feature typeWidening doesn't have",
                    ("typeWidening",),
                )


def was_float(field: StructField) -> bool:
    """Whether a double column was a float before: the bounds in the log may then be texts of floats."""
    return (
        field.data_type == DOUBLE
        and TYPE_CHANGES_KEY in field.metadata
        and any(c.old == FLOAT for c in changes_of(field))
    )


def differences(old: DataType, new: DataType, inside: Column = ()) -> Iterator[TypeChange]:
    """The widenings between two types of a field, except those of inner fields, which have their own records."""
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        yield from differences(old.element_type, new.element_type, (*inside, "element"))
    elif isinstance(old, MapType) and isinstance(new, MapType):
        yield from differences(old.key_type, new.key_type, (*inside, "key"))
        yield from differences(old.value_type, new.value_type, (*inside, "value"))
    elif can_widen(old, new):
        assert isinstance(old, PrimitiveType)
        assert isinstance(new, PrimitiveType)
        yield TypeChange(old, new, inside)
