"""Which types a column may grow to, and the record of it in the schema (PROTOCOL.md, "Type Widening").

Data files stay as they are: a reader converts what it finds to the wider type. Pure decisions over schemas.
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
"""What a write with schema evolution may widen by itself, as `spark.databricks.delta.typeWidening...` says."""

_INTEGRAL = (BYTE, SHORT, INTEGER, LONG)
# How other writers may spell a type in a record.
_ALIASES = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}


def can_widen(old: DataType, new: DataType, *, iceberg: bool = False) -> bool:
    """Whether a column of the type `old` may become one of the different type `new`, both with no parts.

    `iceberg`: as far as Iceberg has the same.
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
    """Whether the type is a decimal that loses no digit of one of this precision and scale."""
    bounds = wide.decimal
    return bounds is not None and bounds[0] - bounds[1] >= precision - scale and bounds[1] >= scale


def widens_by_itself(old: DataType, new: DataType, automatic: Automatic, *, iceberg: bool = False) -> bool:
    """Whether a write with schema evolution makes a column `old` one of the type `new`, which its data has."""
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
    """One entry of `delta.typeChanges`. `inside` leads through arrays and maps: `element`, `key`, `value`."""

    old: PrimitiveType
    new: PrimitiveType
    inside: Column = ()

    def json(self) -> dict[str, str]:
        where = {"fieldPath": ".".join(self.inside)} if self.inside else {}
        return {"fromType": self.old.name, "toType": self.new.name, **where}


def changes_of(f: StructField) -> list[TypeChange]:
    """What is recorded of a field; `CorruptLogError` for a record that isn't one."""
    found = f.metadata.get(TYPE_CHANGES_KEY, [])
    try:
        return [_change(entry) for entry in found]
    except (KeyError, TypeError, AttributeError) as error:
        raise CorruptLogError(
            f"{TYPE_CHANGES_KEY} of the column {f.name} is no list of type changes: {error}"
        ) from None


def _change(entry: Mapping[str, Any]) -> TypeChange:
    path = entry.get("fieldPath")
    return TypeChange(_named(entry["fromType"]), _named(entry["toType"]), tuple(path.split(".")) if path else ())


def _named(name: str) -> PrimitiveType:
    plain = re.sub(r"\s", "", name.lower())
    return PrimitiveType(_ALIASES.get(plain, plain))


def check(schema: StructType, table: str) -> None:
    """`UnsupportedFeatureError` for a recorded change that the feature doesn't have ("Reader Requirements")."""
    for name, f in all_fields(schema):
        for change in changes_of(f) if TYPE_CHANGES_KEY in f.metadata else ():
            texts = all(t == STRING or t.name.startswith(("char(", "varchar(")) for t in (change.old, change.new))
            if not texts and change.old != change.new and not can_widen(change.old, change.new):
                raise UnsupportedFeatureError(
                    f"{table} can't be read: the column {dotted((*name, *change.inside))} was changed from "
                    f"{type_text(change.old)} to {type_text(change.new)}, which the feature typeWidening doesn't have",
                    ("typeWidening",),
                )


def was_float(f: StructField) -> bool:
    """Whether a double column was a float once: the log's texts of its bounds are then those of floats."""
    return f.data_type == DOUBLE and TYPE_CHANGES_KEY in f.metadata and any(c.old == FLOAT for c in changes_of(f))


def differences(old: DataType, new: DataType, inside: Column = ()) -> Iterator[TypeChange]:
    """The widenings from one field's type to another's, but not those of fields inside it: they have own records."""
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        yield from differences(old.element_type, new.element_type, (*inside, "element"))
    elif isinstance(old, MapType) and isinstance(new, MapType):
        yield from differences(old.key_type, new.key_type, (*inside, "key"))
        yield from differences(old.value_type, new.value_type, (*inside, "value"))
    elif can_widen(old, new):
        assert isinstance(old, PrimitiveType)
        assert isinstance(new, PrimitiveType)
        yield TypeChange(old, new, inside)
