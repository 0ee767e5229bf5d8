"""The values of rows as JSON and as text."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def python_values(column: "pa.Array") -> list[Any]:
    """The values of a column; as text if Python has no such value, as for a date after the year 9999."""
    import pyarrow as pa

    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):
        try:
            values = column.cast(pa.string()).to_pylist()
        except pa.ArrowException:
            values = [str(value) for value in column]
    return values


def as_json(value: Any) -> Any:
    """A value of a row as JSON: bytes as hexadecimal text, dates and decimals as text, NaN and infinity as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(name): as_json(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [as_json(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def as_text(value: Any) -> str:
    """A value of a row as text."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return value
    plain = as_json(value)
    if isinstance(plain, str):
        return plain
    import json

    return json.dumps(plain, ensure_ascii=False)
