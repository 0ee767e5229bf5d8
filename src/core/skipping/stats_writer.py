"""Writing statistics of a data file, in Delta's form (PROTOCOL.md, "Per-file Statistics").

Strings are truncated to a prefix, timestamps to milliseconds; NaN and infinities are left out, so bounds stay valid.
"""

import datetime
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from ..protocol.partition_values import date_text, float_text, timestamp_text
from ..protocol.schema import Column, DataType, PrimitiveType, StructField, arrow_type, has_min_max

if TYPE_CHECKING:
    import pyarrow as pa

_ASCII_TIE = "\x7f"
_UNICODE_TIE = "\U0010ffff"
_FIRST, _LAST = -(2**63), 2**63 - 1  # the range of timestamps, in microseconds
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """The statistics of one leaf in one file; `None` is unknown.

    `min` and `max` are Python values as Arrow returns them (a date or days since the epoch, a datetime or
    microseconds).
    """

    column: Column
    data_type: DataType
    min: Any = None
    max: Any = None
    null_count: int | None = None


def _units(text: str) -> int:
    """The length in UTF-16 code units, which Delta counts."""
    return len(text) if text.isascii() else len(text) + sum(char > "\uffff" for char in text)


def truncate_min(text: str, length: int = 32) -> str | None:
    """A lower bound of at most `length` UTF-16 code units (plus one to keep a character whole); `None`: none."""
    if _units(text) <= length:
        return text
    if length <= 0:
        return None
    return text[: _cut(text, length)]


def _cut(text: str, length: int) -> int:
    """The number of whole characters that cover the first `length` code units."""
    units = 0
    for count, char in enumerate(text):
        if units >= length:
            return count
        units += 2 if char > "\uffff" else 1
    return len(text)


def truncate_max(text: str, length: int = 32) -> str | None:
    """An upper bound: a prefix of `length` UTF-16 code units and a character above whatever follows.

    This character is U+007F if the next one is below it, else U+10FFFF. Characters that aren't below U+10FFFF are added
    to the prefix, up to twice `length`; beyond that there is no bound (`None`).
    """
    if _units(text) <= length:
        return text
    if length <= 0:
        return None
    at = _cut(text, length)
    units = _units(text[:at])
    while units <= 2 * length:
        if at >= len(text):
            return text
        if text[at] == _UNICODE_TIE:
            at, units = at + 1, units + 2
        else:
            return text[:at] + (_ASCII_TIE if text[at] < _ASCII_TIE else _UNICODE_TIE)
    return None


def _micros(value: Any) -> int:
    if isinstance(value, datetime.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
        return (aware - _EPOCH) // datetime.timedelta(microseconds=1)
    return int(value)


def timestamp_bound(micros: int) -> str | None:
    """The text of a bound without zone, rounded down to milliseconds; so is the maximum, which readers widen again.

    `None` at the limits of the range, where a reader can't represent the truncated or the widened bound.
    """
    cut = micros // 1000 * 1000
    return timestamp_text(cut, "T", fraction=3) if _FIRST <= cut <= _LAST - 1000 else None


def _bound(value: Any, data_type: DataType, prefix: int, *, upper: bool) -> str | None:
    """The JSON of a bound; `None` if there is none."""
    if value is None or not isinstance(data_type, PrimitiveType) or not has_min_max(data_type):
        return None
    name = data_type.name
    if name == "string":
        try:
            text = value.decode() if isinstance(value, bytes) else str(value)
        except UnicodeDecodeError:  # a string in Spark may have any bytes, but JSON can't represent them
            return None
        cut = truncate_max(text, prefix) if upper else truncate_min(text, prefix)
        return None if cut is None else encode_basestring(cut)
    if name == "date":
        days = value.toordinal() - 719_163 if isinstance(value, datetime.date) else int(value)
        return f'"{date_text(days)}"'
    if name in ("timestamp", "timestamp_ntz"):
        bound = timestamp_bound(_micros(value))
        if bound is None:
            return None
        return f'"{bound}Z"' if name == "timestamp" else f'"{bound}"'
    if data_type.is_floating:
        if not math.isfinite(value):
            return None
        return float_text(_shortest(value, single=name == "float"))
    if data_type.decimal is not None:
        return f"{Decimal(value):f}"
    return str(int(value))


def _shortest(value: float, *, single: bool) -> str:
    if not single:
        return repr(float(value))
    import pyarrow as pa

    return str(pa.scalar(value, pa.float32()).cast(pa.string()).as_py())


def _nested(entries: Sequence[tuple[Column, str]]) -> str:
    """A JSON object from fragments by path, in the order of their first appearance."""
    parts: dict[str, str | list[tuple[Column, str]]] = {}
    for path, text in entries:
        if len(path) == 1:
            parts[path[0]] = text
        else:
            inner = parts.setdefault(path[0], [])
            assert isinstance(inner, list)
            inner.append((path[1:], text))
    body = ",".join(
        f"{encode_basestring(name)}:{part if isinstance(part, str) else _nested(part)}" for name, part in parts.items()
    )
    return f"{{{body}}}"


def stats_json(
    num_records: int, columns: Iterable[ColumnStats], *, prefix: int = 32, tight_bounds: bool | None = None
) -> str:
    """The text of `add.stats`.

    Args:
        num_records: The number of rows.
        columns: The indexed leaves in schema order; unknown statistics are left out.
        prefix: The length to which string bounds are truncated, in UTF-16 code units.
        tight_bounds: Written if it isn't `None`, for tables with deletion vectors.
    """
    lower: list[tuple[Column, str]] = []
    upper: list[tuple[Column, str]] = []
    nulls: list[tuple[Column, str]] = []
    for stats in columns:
        low = _bound(stats.min, stats.data_type, prefix, upper=False)
        high = _bound(stats.max, stats.data_type, prefix, upper=True)
        if low is not None:
            lower.append((stats.column, low))
        if high is not None:
            upper.append((stats.column, high))
        if stats.null_count is not None:
            nulls.append((stats.column, str(stats.null_count)))
    parts = [f'"numRecords":{num_records}']
    parts += [
        f'"{name}":{_nested(entries)}'
        for name, entries in (("minValues", lower), ("maxValues", upper), ("nullCount", nulls))
        if entries
    ]
    if tight_bounds is not None:
        parts.append(f'"tightBounds":{"true" if tight_bounds else "false"}')
    return "{" + ",".join(parts) + "}"


def collect(data: "pa.Table", leaves: Sequence[tuple[Column, StructField]], *, prefix: int = 32) -> str:
    """The text of `add.stats` for one file, computed from its rows.

    `leaves` come from `schema.indexed_leaves`; a leaf that isn't in the data is null in all rows. A column with a NaN
    has no maximum, because NaN is the greatest value; its minimum is that of the numbers.
    """
    return stats_json(data.num_rows, [_column_stats(data, column, f) for column, f in leaves], prefix=prefix)


def _column_stats(data: "pa.Table", column: Column, field: StructField) -> ColumnStats:
    import pyarrow as pa
    import pyarrow.compute as pc

    if column[0] not in data.column_names:
        return ColumnStats(column, field.data_type, null_count=data.num_rows)
    values: pa.ChunkedArray = data[column[0]]
    for part in column[1:]:
        values = pc.struct_field(values, [part])
    nulls = values.null_count
    if not has_min_max(field.data_type) or nulls == len(values):
        return ColumnStats(column, field.data_type, null_count=nulls)
    values = values.cast(arrow_type(field.data_type))
    assert isinstance(field.data_type, PrimitiveType)
    has_nan = False
    if field.data_type.is_floating:
        nan = pc.is_nan(values)
        has_nan = bool(pc.any(nan).as_py())
        values = values.filter(pc.invert(nan)) if has_nan else values
    elif field.data_type.name == "date":
        values = values.cast(pa.int32())
    elif field.data_type.name.startswith("timestamp"):
        values = values.cast(pa.int64())
    elif field.data_type.name == "string":
        values = values.cast(pa.binary())  # in UTF-8 order; also allows invalid UTF-8
    bounds = pc.min_max(values)
    return ColumnStats(
        column, field.data_type, bounds["min"].as_py(), None if has_nan else bounds["max"].as_py(), nulls
    )
