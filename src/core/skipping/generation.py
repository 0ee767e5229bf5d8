"""Derives conditions on generated partition columns from conditions on their source columns.

If `day` is generated as `date(ts)`, `ts < '2024-05-01'` selects the days up to then (PROTOCOL.md, "Generated
Columns"). A derived condition is true for every row that satisfies the original one: a file that it excludes has no
such row.

The date or hour of a timestamp depends on the time zone of the session that wrote it, which isn't recorded. So all
possible zones are assumed, from `_EARLIEST` to `_LATEST` relative to UTC.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from . import predicates
from .predicates import And, Column, Compare, Constant, In, IsNull, Or, Predicate, StartsWith

Part: TypeAlias = Literal["same", "date", "year", "month", "day", "hour", "format", "prefix", "substring", "trunc"]

FORMATS: Mapping[str, int] = {"yyyy-MM": 2, "yyyy-MM-dd": 3, "yyyy-MM-dd-HH": 4}
"""Formats of `date_format` whose texts sort by time, with the number of their parts."""

UNITS: Mapping[str, timedelta] = {
    "year": timedelta(days=367), "quarter": timedelta(days=93), "month": timedelta(days=32), "week": timedelta(days=8),
    "day": timedelta(hours=26), "hour": timedelta(hours=2),
}  # fmt: skip
"""The units of `trunc` and `date_trunc`, and the most that truncation subtracts from a time, in any zone."""


@dataclass(frozen=True, slots=True)
class Generated:
    """A partition column generated from another column; `type` is its own Arrow type.

    `unit` is the format, or the unit of `trunc`; `first` and `length` are those of a substring; a prefix has `length`.
    """

    column: Column
    of: Column
    part: Part
    type: pa.DataType
    unit: str = ""
    first: int = 0
    length: int = 0


_EARLIEST, _LATEST = timedelta(hours=-18), timedelta(hours=18)
_APART = 2
"""A partition timestamp without a zone is written in one zone and read in another: twice the distance from UTC."""
_TOGETHER: tuple[Part, ...] = ("year", "month", "day", "hour")
_MOST_VALUES = 100

_Bounds: TypeAlias = tuple[Any, Any]
"""(lower, upper) bound of a column's values, as Python values; `None`: unknown."""


def derived(predicate: Predicate, generated: Iterable[Generated]) -> Predicate:
    """The condition on the partition columns that follows from the predicate; TRUE if none does."""
    by_source: dict[Column, list[Generated]] = {}
    for column in generated:
        by_source.setdefault(column.of, []).append(column)
    return _derived(predicate, by_source) if by_source else predicates.TRUE


def _derived(predicate: Predicate, sources: Mapping[Column, list[Generated]]) -> Predicate:
    if isinstance(predicate, And):
        return predicates.all_of(_derived(child, sources) for child in predicate.children)
    if isinstance(predicate, Or):
        children = tuple(_derived(child, sources) for child in predicate.children)
        return predicates.TRUE if predicates.TRUE in children else Or(children)
    if isinstance(predicate, IsNull):
        # Every part of null is null.
        return predicates.all_of(IsNull(column.column) for column in sources.get(predicate.column, ()))
    if isinstance(predicate, In):
        if not 0 < len(predicate.values) <= _MOST_VALUES or predicate.column not in sources:
            return predicates.TRUE
        return _derived(Or(tuple(Compare("=", predicate.column, value) for value in predicate.values)), sources)
    if isinstance(predicate, StartsWith):
        return _within((predicate.prefix, None), sources.get(predicate.column, ()))
    if isinstance(predicate, Compare) and predicate.column in sources:
        if not predicate.value.is_valid:
            return _derived(IsNull(predicate.column), sources) if predicate.op == "<=>" else Constant(False)
        bounds = _bounds(predicate)
        return predicates.TRUE if bounds is None else _within(bounds, sources[predicate.column])
    return predicates.TRUE


def _bounds(predicate: Compare) -> _Bounds | None:
    value = _python(predicate.value)
    if value is None:
        return None
    if predicate.op in ("=", "<=>"):
        return value, value
    if predicate.op in ("<", "<="):
        return None, value
    if predicate.op in (">", ">="):
        return value, None
    return None


def _python(value: pa.Scalar) -> Any:
    """The value in Python, timestamps without a zone in UTC; `None` if Python can't represent it."""
    try:
        if pa.types.is_timestamp(value.type):
            micros = value.cast(pa.int64()).as_py() if value.type.unit == "us" else None
            at = None if micros is None else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
            return at if at is None or value.type.tz is not None else at.replace(tzinfo=None)
        return value.as_py()
    except (OverflowError, ValueError):
        return None


def _within(bounds: _Bounds, parts: Iterable[Generated]) -> Predicate:
    """The condition on columns generated from a column that follows from the bounds of its values."""
    conditions: list[Predicate] = []
    together: dict[Part, Generated] = {}
    for column in parts:
        if column.part in _TOGETHER:
            together.setdefault(column.part, column)
        else:
            conditions.append(_source_condition(bounds, column))
    leading: list[Generated] = []
    for part in _TOGETHER:  # month alone doesn't restrict a range, because it repeats each year
        if part not in together:
            break
        leading.append(together[part])
    if leading:
        conditions.append(_digits(bounds, leading))
    return predicates.all_of(conditions)


def _source_condition(bounds: _Bounds, column: Generated) -> Predicate:
    low, high = bounds
    if column.part == "substring":
        if low is None or low != high or not isinstance(low, str):
            return predicates.TRUE
        conditions: list[Predicate] = [
            Compare("=", column.column, _scalar(_substring(low, column.first, column.length), column.type))
        ]
    else:
        conditions = []
        least, most = _of(low, column, _EARLIEST), _of(high, column, _LATEST)
        if least is not None:
            above: Predicate = Compare(">=", column.column, _scalar(least, column.type))
            # Spark writes a year of five digits with a sign, which sorts before any digit.
            conditions.append(Or((above, StartsWith(column.column, "+"))) if column.part == "format" else above)
        if most is not None:
            conditions.append(Compare("<=", column.column, _scalar(most, column.type)))
    # In a partition column an empty text is null, and so is a value that a cast can't convert.
    return Or((predicates.all_of(conditions), IsNull(column.column))) if conditions else predicates.TRUE


def _digits(bounds: _Bounds, leading: list[Generated]) -> Predicate:
    """The condition on separate columns for year, month, day and hour, compared as a tuple as far as they exist."""
    conditions = []
    for value, shift, op, last in ((bounds[0], _EARLIEST, ">", ">="), (bounds[1], _LATEST, "<", "<=")):
        at = _local(value, shift)
        if at is not None:
            numbers = [_scalar(getattr(at, column.part), column.type) for column in leading]
            conditions.append(_ordered(leading, numbers, op, last))
    return Or((predicates.all_of(conditions), IsNull(leading[0].column))) if conditions else predicates.TRUE


def _ordered(columns: list[Generated], values: list[pa.Scalar], op: Any, last: Any) -> Predicate:
    """`(columns) op (values)` as a tuple comparison, with the operator `last` for the last column."""
    choices: list[Predicate] = []
    for i, column in enumerate(columns):
        same = [Compare("=", columns[j].column, values[j]) for j in range(i)]
        choices.append(
            predicates.all_of([*same, Compare(last if column is columns[-1] else op, column.column, values[i])])
        )
    return Or(tuple(choices))


def _of(value: Any, column: Generated, shift: timedelta) -> Any:
    """The part of a value, at the end of its possible range that `shift` selects; `None` if it is unknown."""
    if column.part == "same":
        return _shifted(value, _APART * shift) if _has_zone(column.type) else value
    if column.part == "prefix":
        return value[: column.length] if isinstance(value, str) else None
    if column.part == "trunc" and pa.types.is_timestamp(column.type):
        return _truncated_time(value, column.unit, shift)
    at = _local(value, shift)
    if at is None:
        return None
    if column.part == "date":
        return at.date()
    if column.part == "trunc":
        return _truncated_date(at.date(), column.unit)
    parts = (f"{at.year:04d}", f"{at.month:02d}", f"{at.day:02d}", f"{at.hour:02d}")
    return "-".join(parts[: FORMATS[column.unit]])


def _local(value: Any, shift: timedelta) -> datetime | None:
    """The local time of a value in the zone with the offset `shift`."""
    try:
        if isinstance(value, datetime):
            return value if value.tzinfo is None else (value + shift).replace(tzinfo=None)
    except OverflowError:
        return None
    return datetime(value.year, value.month, value.day) if isinstance(value, date) else None


def _truncated_time(value: Any, unit: str, shift: timedelta) -> datetime | None:
    """A time before or after the truncated time in every zone; the exact one depends on the zone."""
    return _shifted(value, _APART * shift - (UNITS[unit] if shift == _EARLIEST else timedelta()))


def _has_zone(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(data_type)) and data_type.tz is not None


def _shifted(value: Any, by: timedelta) -> datetime | None:
    """The time shifted by `by`; `None` if Python can't represent it."""
    try:
        return value + by if isinstance(value, datetime) else None
    except OverflowError:
        return None


def _truncated_date(day: date, unit: str) -> date | None:
    if unit == "week":
        return day - timedelta(days=day.weekday()) if day.toordinal() > 7 else None
    month = {"year": 1, "quarter": (day.month - 1) // 3 * 3 + 1, "month": day.month}.get(unit)
    return None if month is None else day.replace(month=month, day=1)


def _substring(text: str, first: int, length: int) -> str:
    """SQL's `substring`: counted from 1, or from the end; 0 counts as 1."""
    start = first - 1 if first > 0 else len(text) + first if first < 0 else 0
    return text[max(start, 0) : max(start + max(length, 0), 0)]


def _scalar(value: Any, data_type: pa.DataType) -> pa.Scalar:
    return pa.scalar(value, data_type)
