"""Types of columns in checkpoints of other programs: what may stand for the type that is expected."""

from typing import TYPE_CHECKING, Any

from ...errors import CorruptLogError

if TYPE_CHECKING:
    import pyarrow as pa

_OPTIONAL = frozenset({"offset"})


def fitted(column: Any, type_: "pa.DataType") -> Any:
    """A column (or a chunk) cast to the type that checkpoints have for it; CorruptLogError for an incompatible type."""
    if column.type.equals(type_):
        return column
    if not fits(column.type, type_):
        raise CorruptLogError(f"a column has the type {column.type}, but must have {type_}")
    return column.cast(type_)


def fits(actual: "pa.DataType", expected: "pa.DataType") -> bool:
    import pyarrow as pa

    if pa.types.is_null(actual):
        return True
    for is_kind in (pa.types.is_integer, pa.types.is_boolean, _is_text):
        if is_kind(expected):
            return bool(is_kind(actual))
    if pa.types.is_map(expected):
        return bool(
            pa.types.is_map(actual)
            and fits(actual.key_type, expected.key_type)
            and fits(actual.item_type, expected.item_type)
        )
    if not pa.types.is_struct(actual):
        return False
    # A deletion vector without one of its fields must not be read as no vector: deleted rows would reappear.
    return all(
        child.name in _OPTIONAL if index < 0 else fits(actual.field(index).type, child.type)
        for child, index in ((child, actual.get_field_index(child.name)) for child in expected)
    )


def _is_text(type_: "pa.DataType") -> bool:
    import pyarrow as pa

    kinds = pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary
    return any(kind(type_) for kind in kinds)
