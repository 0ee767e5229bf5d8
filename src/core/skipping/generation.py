"""Which partitions may hold a row of a condition on columns that the partition columns are generated from.

With `day` generated as `date(ts)`, `ts < '2024-05-01'` leaves the days up to then (PROTOCOL.md, "Generated Columns").
Only what holds for every row of the condition is derived: a file that it leaves out never held such a row.

Which date or hour a timestamp has depends on the time zone of the session that wrote it, and nobody noted that. So it
is taken for whatever it may be in some zone, from `_EARLIEST` to `_LATEST` of UTC.
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
"""Formats of `date_format` whose texts are in the order of time, with the number of their parts."""

UNITS: Mapping[str, timedelta] = {
    "year": timedelta(days=367), "quarter": timedelta(days=93), "month": timedelta(days=32), "week": timedelta(days=8),
    "day": timedelta(hours=26), "hour": timedelta(hours=2),
}  # fmt: skip
"""What `trunc` and `date_trunc` cut to, and how much they take from a time at most, whatever its zone."""


@dataclass(frozen=True, slots=True)
class Generated:
    """A partition column that is a part of another column; `type` is its own, in Arrow.

    `unit` is the format, or what `trunc` cuts to; `first` and `length` are those of a substring, a prefix has `length`.
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
"""A timestamp of a partition that names no zone is written in one zone and read in another: twice as far from UTC."""
_TOGETHER: tuple[Part, ...] = ("year", "month", "day", "hour")
_MOST_VALUES = 100

_Bounds: TypeAlias = tuple[Any, Any]
"""What a column's values are not below and not above, as Python values; `None`: nothing is known of that side."""


def derived(predicate: Predicate, generated: Iterable[Generated]) -> Predicate:
    """What the predicate says of the partition columns; TRUE where it says nothing."""
    by_source: dict[Column, list[Generated]] = {}
    for one in generated:
        by_source.setdefault(one.of, []).append(one)
    return _derived(predicate, by_source) if by_source else predicates.TRUE


def _derived(predicate: Predicate, sources: Mapping[Column, list[Generated]]) -> Predicate:
    if isinstance(predicate, And):
        return predicates.all_of(_derived(child, sources) for child in predicate.children)
    if isinstance(predicate, Or):
        children = tuple(_derived(child, sources) for child in predicate.children)
        return predicates.TRUE if predicates.TRUE in children else Or(children)
    if isinstance(predicate, IsNull):
        # A part of null is null, whatever the part.
        return predicates.all_of(IsNull(one.column) for one in sources.get(predicate.column, ()))
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
    """The value; timestamps without a time zone, in UTC; `None` where Python has none."""
    try:
        if pa.types.is_timestamp(value.type):
            micros = value.cast(pa.int64()).as_py() if value.type.unit == "us" else None
            at = None if micros is None else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
            return at if at is None or value.type.tz is not None else at.replace(tzinfo=None)
        return value.as_py()
    except (OverflowError, ValueError):
        return None


def _within(bounds: _Bounds, parts: Iterable[Generated]) -> Predicate:
    """What the bounds of a column's values say of the columns that are parts of it."""
    found: list[Predicate] = []
    together: dict[Part, Generated] = {}
    for one in parts:
        if one.part in _TOGETHER:
            together.setdefault(one.part, one)
        else:
            found.append(_one(bounds, one))
    leading: list[Generated] = []
    for part in _TOGETHER:  # month alone says nothing of a range, for it comes again each year
        if part not in together:
            break
        leading.append(together[part])
    if leading:
        found.append(_digits(bounds, leading))
    return predicates.all_of(found)


def _one(bounds: _Bounds, one: Generated) -> Predicate:
    low, high = bounds
    if one.part == "substring":
        if low is None or low != high or not isinstance(low, str):
            return predicates.TRUE
        said: list[Predicate] = [Compare("=", one.column, _scalar(_substring(low, one.first, one.length), one.type))]
    else:
        said = []
        least, most = _of(low, one, _EARLIEST), _of(high, one, _LATEST)
        if least is not None:
            above: Predicate = Compare(">=", one.column, _scalar(least, one.type))
            # Spark spells a year of five digits with a sign, which comes before any digit.
            said.append(Or((above, StartsWith(one.column, "+"))) if one.part == "format" else above)
        if most is not None:
            said.append(Compare("<=", one.column, _scalar(most, one.type)))
    # An empty text is a null in a partition column, and so is what a cast couldn't hold.
    return Or((predicates.all_of(said), IsNull(one.column))) if said else predicates.TRUE


def _digits(bounds: _Bounds, leading: list[Generated]) -> Predicate:
    """Year, month, day and hour in columns of their own, as far as they are there: they are in order together."""
    said = []
    for value, shift, op, last in ((bounds[0], _EARLIEST, ">", ">="), (bounds[1], _LATEST, "<", "<=")):
        at = _local(value, shift)
        if at is not None:
            numbers = [_scalar(getattr(at, one.part), one.type) for one in leading]
            said.append(_ordered(leading, numbers, op, last))
    return Or((predicates.all_of(said), IsNull(leading[0].column))) if said else predicates.TRUE


def _ordered(columns: list[Generated], values: list[pa.Scalar], op: Any, last: Any) -> Predicate:
    """`(columns) op (values)` as tuples compare, with `last` between the last of them."""
    choices: list[Predicate] = []
    for i, one in enumerate(columns):
        same = [Compare("=", columns[j].column, values[j]) for j in range(i)]
        choices.append(predicates.all_of([*same, Compare(last if one is columns[-1] else op, one.column, values[i])]))
    return Or(tuple(choices))


def _of(value: Any, one: Generated, shift: timedelta) -> Any:
    """The part of one value, at that end of what it may be which `shift` says; `None` where it isn't known."""
    if one.part == "same":
        return _shifted(value, _APART * shift) if _has_zone(one.type) else value
    if one.part == "prefix":
        return value[: one.length] if isinstance(value, str) else None
    if one.part == "trunc" and pa.types.is_timestamp(one.type):
        return _truncated_time(value, one.unit, shift)
    at = _local(value, shift)
    if at is None:
        return None
    if one.part == "date":
        return at.date()
    if one.part == "trunc":
        return _truncated_date(at.date(), one.unit)
    parts = (f"{at.year:04d}", f"{at.month:02d}", f"{at.day:02d}", f"{at.hour:02d}")
    return "-".join(parts[: FORMATS[one.unit]])


def _local(value: Any, shift: timedelta) -> datetime | None:
    """What a clock may have shown at a value."""
    try:
        if isinstance(value, datetime):
            return value if value.tzinfo is None else (value + shift).replace(tzinfo=None)
    except OverflowError:
        return None
    return datetime(value.year, value.month, value.day) if isinstance(value, date) else None


def _truncated_time(value: Any, unit: str, shift: timedelta) -> datetime | None:
    """Not the time itself, which depends on the zone, but one before or after it wherever that is."""
    return _shifted(value, _APART * shift - (UNITS[unit] if shift == _EARLIEST else timedelta()))


def _has_zone(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(data_type)) and data_type.tz is not None


def _shifted(value: Any, by: timedelta) -> datetime | None:
    """A time so much later; `None` where Python has none."""
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
    """SQL's `substring`: counted from 1, or from the end; 0 is as 1."""
    start = first - 1 if first > 0 else len(text) + first if first < 0 else 0
    return text[max(start, 0) : max(start + max(length, 0), 0)]


def _scalar(value: Any, data_type: pa.DataType) -> pa.Scalar:
    return pa.scalar(value, data_type)
