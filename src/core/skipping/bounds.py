"""Comparison of literals with one value of a file, or with bounds of its values, by Spark's rules."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ..protocol.schema import DataType, PrimitiveType, arrow_type
from . import stats
from .predicates import Operator

if TYPE_CHECKING:
    import pyarrow as pa

_EXACT_STRING = 16  # shorter string bounds are complete: no writer truncates to less
_EXACT_DIGITS = 15  # decimals with fewer digits stay exact if a writer computes bounds as doubles
_MARGIN = 2.0**-48
_SINGLE, _LEAST_SINGLE = 2.0**-23, 2.0**-149  # the distance of neighbouring floats, relative and at zero
NEGATED: Mapping[Operator, Operator] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

Mask: TypeAlias = "pa.BooleanArray"


def literal_of(value: "pa.Scalar", data_type: DataType) -> "pa.Scalar | None":
    """The literal in the column's Arrow type; `None` if it can't be converted exactly, so nothing is known."""
    import pyarrow as pa

    target = arrow_type(data_type)
    if value.type == target:
        return value
    if not value.is_valid:
        return pa.scalar(None, target)
    if _family(value.type) != _family(target):
        return None
    try:
        converted = value.cast(target)
        back = converted.cast(value.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    if back.equals(value) or (is_nan(back) and is_nan(value)):
        return converted
    return None


def _family(arrow: "pa.DataType") -> str:
    """The family of a type; values of one family can be compared."""
    import pyarrow as pa

    if pa.types.is_integer(arrow) or pa.types.is_floating(arrow) or pa.types.is_decimal(arrow):
        return "number"
    if pa.types.is_timestamp(arrow):
        return "timestamp" if arrow.tz else "timestamp_ntz"
    return str(arrow).removeprefix("large_").removesuffix("_view")


def is_nan(value: "pa.Scalar") -> bool:
    import pyarrow as pa

    return bool(value.is_valid and pa.types.is_floating(value.type) and math.isnan(value.as_py()))


def compare(values: "pa.Array", op: Operator, literal: "pa.Scalar") -> "pa.Array":
    """SQL's comparison as in Spark: NaN equals NaN and is greater than any number; null if the value is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_boolean(values.type):
        values, literal = values.cast(pa.int8()), literal.cast(pa.int8())
    if not pa.types.is_floating(values.type):
        return _arrow_compare(op)(values, literal)
    nan = pc.is_nan(values)
    if is_nan(literal):
        constant = {"=": nan, "<=": pc.is_valid(values), "<": pc.invert(nan), ">=": nan}
        if op in constant:
            return pc.if_else(pc.is_valid(values), constant[op], None)
        return pc.invert(compare(values, NEGATED[op], literal))
    return pc.if_else(nan, op in (">", ">=", "!="), _arrow_compare(op)(values, literal))


def _arrow_compare(op: Operator) -> Callable[..., "pa.Array"]:
    import pyarrow as pa
    import pyarrow.compute as pc

    functions: dict[Operator, Callable[..., pa.Array]] = {
        "=": pc.equal,
        "!=": pc.not_equal,
        "<": pc.less,
        "<=": pc.less_equal,
        ">": pc.greater,
        ">=": pc.greater_equal,
    }
    return functions[op]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of the values except NaN, in a form that Arrow can compare; null is unknown.

    `constant`: the value of every row that isn't null, if all have the same and this is certain. `key` converts a
    literal to the same form, as the (lowest, highest) value that it may have.
    """

    lower: "pa.Array"
    upper: "pa.Array"
    constant: "pa.Array"
    key: Callable[["pa.Scalar"], tuple["pa.Scalar", "pa.Scalar"]]


def bounds_of(leaf_stats: stats.LeafStats, data_type: PrimitiveType, *, single: bool = False) -> Bounds:
    """The bounds in a file's statistics; `single`: they may be bounds of floats, in a column that is now double."""
    import pyarrow as pa
    import pyarrow.compute as pc

    low, high = leaf_stats.min, leaf_stats.max
    assert low is not None
    assert high is not None
    name = data_type.name
    same = pc.equal(low, high)
    if name == "string":
        # JSON has U+FFFD in place of bytes that aren't UTF-8, so it isn't a valid bound.
        low, high = (pc.if_else(pc.match_substring(side, "\ufffd"), None, side) for side in (low, high))
        # Bytes in UTF-8 order. No text has the byte 0xFF: with it, a truncated bound is above all possible texts.
        upper = pc.binary_join_element_wise(
            high.cast(pa.binary()), pa.scalar(b"\xff", pa.binary()), pa.scalar(b"", pa.binary())
        )
        whole = pc.and_(same, pc.less(pc.utf8_length(low), _EXACT_STRING))
        return Bounds(low.cast(pa.binary()), upper, pc.if_else(whole, low.cast(pa.binary()), None), _bytes_key)
    if name == "date":  # as days, because Python's date ends with the year 9999
        days, last = low.cast(pa.int32()), high.cast(pa.int32())
        return Bounds(days, last, pc.if_else(same, days, None), _days_key)
    if name in ("timestamp", "timestamp_ntz"):
        micros, top = low.cast(pa.int64()), high.cast(pa.int64())
        # A bound at the maximal time can't be widened, so it isn't used.
        top = pc.if_else(pc.less(top, 2**63 - 1000), top, None)
        return Bounds(micros, pc.add(top, 999), pa.nulls(len(low), pa.int64()), _long_key)
    digits = data_type.decimal
    if digits is not None and digits[0] > _EXACT_DIGITS:
        bottom, top = low.cast(pa.float64(), safe=False), high.cast(pa.float64(), safe=False)
        return Bounds(
            pc.subtract(bottom, pc.multiply(pc.abs(bottom), _MARGIN)),
            pc.add(top, pc.multiply(pc.abs(top), _MARGIN)),
            pa.nulls(len(low), pa.float64()),
            _double_key,
        )
    if data_type.is_floating:
        # A NaN bound says nothing about the numbers.
        low, high = (pc.if_else(pc.is_nan(side), None, side) for side in (low, high))
    if single:
        # The text of a float is the shortest one that identifies it: parsed as a double it is slightly different.
        low, high = (
            pc.add(side, pc.add(pc.multiply(pc.abs(side), sign * _SINGLE), sign * _LEAST_SINGLE))
            for side, sign in ((low, -1.0), (high, 1.0))
        )
    return Bounds(low, high, pc.if_else(pc.equal(low, high), low, None), _same_key)


def _same_key(value: "pa.Scalar") -> tuple["pa.Scalar", "pa.Scalar"]:
    return value, value


def _bytes_key(value: "pa.Scalar") -> tuple["pa.Scalar", "pa.Scalar"]:
    import pyarrow as pa

    return _same_key(value.cast(pa.binary()))


def _days_key(value: "pa.Scalar") -> tuple["pa.Scalar", "pa.Scalar"]:
    import pyarrow as pa

    return _same_key(value.cast(pa.int32()))


def _long_key(value: "pa.Scalar") -> tuple["pa.Scalar", "pa.Scalar"]:
    import pyarrow as pa

    return _same_key(value.cast(pa.int64()))


def _double_key(value: "pa.Scalar") -> tuple["pa.Scalar", "pa.Scalar"]:
    import pyarrow as pa

    number = float(value.as_py())
    margin = abs(number) * _MARGIN
    return pa.scalar(number - margin), pa.scalar(number + margin)


def unless(condition: "pa.Array") -> Mask:
    """True unless the condition is known to be true."""
    import pyarrow.compute as pc

    return pc.invert(pc.fill_null(condition, False))


def may_hold(bounds: Bounds, op: Operator, literal: "pa.Scalar") -> Mask:
    """Whether a value within the bounds may satisfy the comparison with the literal."""
    import pyarrow.compute as pc

    lowest, highest = bounds.key(literal)
    match op:
        case "<":
            return unless(pc.greater_equal(bounds.lower, highest))
        case "<=":
            return unless(pc.greater(bounds.lower, highest))
        case ">":
            return unless(pc.less_equal(bounds.upper, lowest))
        case ">=":
            return unless(pc.less(bounds.upper, lowest))
        case "!=":
            return unless(pc.equal(bounds.constant, lowest))
        case _:
            return pc.and_(unless(pc.greater(bounds.lower, highest)), unless(pc.less(bounds.upper, lowest)))


def may_be_one_of(bounds: Bounds, literals: Sequence["pa.Scalar"]) -> Mask:
    """Whether one of many values may be within the bounds."""
    import pyarrow as pa

    keys = [bounds.key(literal) for literal in literals if not is_nan(literal)]
    lows = sorted(key[0].as_py() for key in keys)
    highs = sorted(key[1].as_py() for key in keys)
    results = []
    for lower, upper in zip(bounds.lower.to_pylist(), bounds.upper.to_pylist(), strict=True):
        # Excluded: literals whose highest form is below the lower bound, or whose lowest form is above the upper one.
        below = 0 if lower is None else bisect_left(highs, lower)
        within = len(lows) if upper is None else bisect_right(lows, upper)
        results.append(within > below)
    return pa.array(results, pa.bool_())
