"""Which files may hold a row that a predicate accepts: partition values exactly, statistics as bounds.

For each part of the predicate two questions are answered for every file at once: may it be TRUE for a row, may it be
FALSE for one? NOT swaps the answers, so that nothing that is unknown ever becomes known by negation, and NULL is
simply neither. A file is dropped only where the whole is provably never TRUE; what isn't known may be anything.

What the bounds leave open is taken into account: the greatest timestamp may lie 999 microseconds after its bound, a
string may go on behind its bound, a decimal of many digits may have been rounded by its writer, and a NaN, which
Spark orders after every number, may be in any file of a floating column, for writers disagree whether a maximum tells
of it. So a file is judged twice for such a column, once for its numbers and once for its NaNs.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Literal, TypeAlias

from ...errors import InvalidArgumentError
from ..protocol import partition_values, stats
from ..protocol.schema import Column, DataType, PrimitiveType, StructType, arrow_type, find, has_min_max
from .predicates import (
    And,
    Compare,
    Constant,
    In,
    IsNotNull,
    IsNull,
    Not,
    Opaque,
    Operator,
    Or,
    Predicate,
    StartsWith,
    partition_only,
    translated,
    walk,
)

if TYPE_CHECKING:
    import pyarrow as pa

_SPLIT_COLUMNS = 4  # floating columns judged in every combination; beyond them each on its own
_MANY_VALUES = 32  # IN lists longer than this are searched, not compared one by one
_EXACT_STRING = 16  # shorter string bounds are whole: nobody cuts that early
_EXACT_DIGITS = 15  # decimals of fewer digits survive a writer that computes bounds as doubles
_NEGATED: Mapping[Operator, Operator] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

_NanMode: TypeAlias = Literal["number", "nan", "either"]
_Mask: TypeAlias = "pa.BooleanArray"


@dataclass(frozen=True, slots=True)
class _May:
    """For each file: may the predicate be TRUE, may it be FALSE."""

    true: _Mask
    false: _Mask

    def negated(self) -> "_May":
        return _May(self.false, self.true)


@dataclass(slots=True)
class _Files:
    """The files under judgement, with what is known of the columns."""

    rows: int
    schema: StructType
    partitions: Mapping[str, "pa.Array"]
    stats: stats.FileStats | None
    cache: dict[tuple[int, _NanMode | None], _May] = field(default_factory=dict)
    columns: dict[Column, "_Known"] = field(default_factory=dict)

    def all(self, value: bool) -> _Mask:
        import pyarrow as pa

        return pa.repeat(pa.scalar(value), self.rows)

    def unknown(self) -> _May:
        return _May(self.all(True), self.all(True))

    def never(self) -> _May:
        return _May(self.all(False), self.all(False))


def may_match(
    files: "pa.Table",
    predicate: Predicate,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    use_stats: bool = True,
    time_zone: str = "UTC",
) -> "pa.BooleanArray":
    """For each row of `files`: false where the file provably holds no row for which `predicate` is TRUE.

    `files` has the protocol's column names: `partitionValues`, and `stats` (text) or `stats_parsed` (struct) or both
    where statistics are to help. Columns of the predicate bear their exact names in `schema`; literals have the
    column's own type. `time_zone` is that of partition timestamps that name none. PROTOCOL.md, "Per-file Statistics".
    """
    import pyarrow.compute as pc

    named = _named(predicate)
    partitions = set(partition_columns)
    used = [name for name in partition_columns if (name,) in named]
    typed = partition_values.typed_columns(files, schema, used, time_zone=time_zone)
    data = {column for column in named if not (len(column) == 1 and column[0] in partitions)}
    known = stats.read(files, sorted(data), schema) if use_stats and data else None
    judged = _Files(files.num_rows, schema, {name: _whole(typed[name]) for name in used}, known)

    floating = sorted(column for column in data if _is_floating(schema, column)) if known is not None else []
    modes: dict[Column, _NanMode] = dict.fromkeys(floating, "either")
    split: list[Column] = floating[:_SPLIT_COLUMNS]
    result: _Mask | None = None
    choices: tuple[_NanMode, _NanMode] = ("number", "nan")
    for chosen in product(choices, repeat=len(split)):
        modes.update(zip(split, chosen, strict=True))
        found = _judge(judged, predicate, modes).true
        result = found if result is None else pc.or_(result, found)
    assert result is not None
    return result


def exact_partition_match(
    files: "pa.Table",
    predicate: Predicate,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    time_zone: str = "UTC",
) -> "pa.BooleanArray":
    """For each row of `files`: whether `predicate` is TRUE for the file's partition, and so for every row in it.

    `InvalidArgumentError` unless the predicate names partition columns only and is translated whole.
    """
    if not partition_only(predicate, partition_columns) or not translated(predicate):
        raise InvalidArgumentError("the predicate isn't decided by the partition columns alone")
    return may_match(files, predicate, schema, partition_columns, use_stats=False, time_zone=time_zone)


def may_match_values(
    values: Sequence[Mapping[str, str | None]],
    predicate: Predicate,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    time_zone: str = "UTC",
) -> list[bool]:
    """`may_match` by partition values alone, for a few files that are in no table."""
    import pyarrow as pa

    column = pa.array([list(item.items()) for item in values], pa.map_(pa.string(), pa.string()))
    files = pa.table({"partitionValues": column})
    found: list[bool] = may_match(
        files, predicate, schema, partition_columns, use_stats=False, time_zone=time_zone
    ).to_pylist()
    return found


def _named(predicate: Predicate) -> set[Column]:
    return {node.column for node in walk(predicate) if isinstance(node, Compare | In | IsNull | IsNotNull | StartsWith)}


def _whole(column: "pa.ChunkedArray") -> "pa.Array":
    return column.combine_chunks()


def _type(schema: StructType, column: Column) -> DataType | None:
    found = find(schema, column, case_sensitive=True)
    return None if found is None else found[1].data_type


def _is_floating(schema: StructType, column: Column) -> bool:
    found = _type(schema, column)
    return isinstance(found, PrimitiveType) and found.is_floating


def _judge(files: _Files, predicate: Predicate, modes: Mapping[Column, _NanMode]) -> _May:
    import pyarrow.compute as pc

    match predicate:
        case And(children) | Or(children):
            conjunction = isinstance(predicate, And)
            true, false = files.all(conjunction), files.all(not conjunction)
            for child in children:
                found = _judge(files, child, modes)
                true = (pc.and_ if conjunction else pc.or_)(true, found.true)
                false = (pc.or_ if conjunction else pc.and_)(false, found.false)
            return _May(true, false)
        case Not(child):
            return _judge(files, child, modes).negated()
        case Constant(value):
            return _May(files.all(value is True), files.all(value is False))
        case Opaque():
            return files.unknown()
        case _:
            key = (id(predicate), modes.get(predicate.column))
            known = files.cache.get(key)
            if known is None:
                known = files.cache[key] = _leaf(files, predicate, modes.get(predicate.column, "number"))
            return known


def _leaf(files: _Files, node: Compare | In | IsNull | IsNotNull | StartsWith, mode: _NanMode) -> _May:
    if len(node.column) == 1 and node.column[0] in files.partitions:
        values = files.partitions[node.column[0]]
        data_type = _type(files.schema, node.column)
        assert isinstance(data_type, PrimitiveType)
        return _exact(files, values, data_type, node)
    return _by_stats(files, node, mode)


# --- literals -----------------------------------------------------------------------------------------------------


def _literal(value: "pa.Scalar", data_type: DataType) -> "pa.Scalar | None":
    """The literal in the column's Arrow type; `None` where it doesn't fit exactly, so that nothing can be said."""
    import pyarrow as pa

    target = arrow_type(data_type)
    if value.type == target:
        return value
    if not value.is_valid:
        return pa.scalar(None, target)
    try:
        converted = value.cast(target)
        back = converted.cast(value.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    if back.equals(value) or (_is_nan(back) and _is_nan(value)):
        return converted
    return None


def _is_nan(value: "pa.Scalar") -> bool:
    import pyarrow as pa

    return bool(value.is_valid and pa.types.is_floating(value.type) and math.isnan(value.as_py()))


# --- partition columns: one value for the whole file --------------------------------------------------------------


def _known(result: "pa.Array") -> _May:
    """A three-valued result that is the same for every row of a file."""
    import pyarrow.compute as pc

    return _May(pc.fill_null(result, False), pc.fill_null(pc.invert(result), False))


def _exact(
    files: _Files, values: "pa.Array", data_type: PrimitiveType, node: Compare | In | IsNull | IsNotNull | StartsWith
) -> _May:
    import pyarrow as pa
    import pyarrow.compute as pc

    match node:
        case IsNull():
            return _known(pc.is_null(values))
        case IsNotNull():
            return _known(pc.is_valid(values))
        case StartsWith(_, prefix):
            if data_type.name != "string":
                return files.unknown()
            return _known(pc.starts_with(values, prefix))
        case Compare(op, _, value):
            literal = _literal(value, data_type)
            if literal is None:
                return files.unknown()
            if op == "<=>":
                if not literal.is_valid:
                    return _known(pc.is_null(values))
                return _known(pc.fill_null(_compare(values, "=", literal), False))
            if not literal.is_valid:
                return files.never()
            return _known(_compare(values, op, literal))
        case In(_, listed):
            result: pa.Array = files.all(False)
            for value in listed:
                literal = _literal(value, data_type)
                if literal is None:
                    return files.unknown()
                found = _compare(values, "=", literal) if literal.is_valid else pa.nulls(files.rows, pa.bool_())
                result = pc.or_kleene(result, found)
            return _known(result)


def _compare(values: "pa.Array", op: Operator, literal: "pa.Scalar") -> "pa.Array":
    """SQL's comparison as Spark does it: NaN equals NaN and is greater than any number; null where a value is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_boolean(values.type):
        values, literal = values.cast(pa.int8()), literal.cast(pa.int8())
    if not pa.types.is_floating(values.type):
        return _arrow_compare(op)(values, literal)
    nan = pc.is_nan(values)
    if _is_nan(literal):
        constant = {"=": nan, "<=": pc.is_valid(values), "<": pc.invert(nan), ">=": nan}
        if op in constant:
            return pc.if_else(pc.is_valid(values), constant[op], None)
        return pc.invert(_compare(values, _NEGATED[op], literal))
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


# --- data columns: bounds -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Bounds of the values (no NaN among them) in a form that Arrow compares; null is unknown.

    `constant`: the one value that every row has that isn't null, where that is certain. `key` brings a literal into
    the same form as (lowest, highest) that it may be.
    """

    lower: "pa.Array"
    upper: "pa.Array"
    constant: "pa.Array"
    key: Callable[["pa.Scalar"], tuple["pa.Scalar", "pa.Scalar"]]


@dataclass(frozen=True, slots=True)
class _Known:
    """A data column of which something is known; no bounds: its type has none."""

    rows: int
    data_type: PrimitiveType
    bounds: _Bounds | None
    has_null: _Mask
    has_value: _Mask

    def both(self, true: bool, false: bool) -> _May:
        import pyarrow as pa

        return _May(pa.repeat(pa.scalar(true), self.rows), pa.repeat(pa.scalar(false), self.rows))


def _column(files: _Files, column: Column) -> _Known | None:
    """What is known of a data column; `None`: nothing."""
    import pyarrow.compute as pc

    if column in files.columns:
        return files.columns[column]
    data_type = _type(files.schema, column)
    leaf = files.stats.leaves.get(column) if files.stats else None
    # The null count of an array or map is counted in different ways by different writers.
    if leaf is None or files.stats is None or not isinstance(data_type, PrimitiveType) or leaf.null_count is None:
        return None
    found = files.columns[column] = _Known(
        files.rows,
        data_type,
        _bounds(leaf, data_type) if has_min_max(data_type) else None,
        _unless(pc.equal(leaf.null_count, 0)),
        _unless(pc.equal(leaf.null_count, files.stats.num_records)),
    )
    return found


def _bounds(known: stats.LeafStats, data_type: PrimitiveType) -> _Bounds:
    import pyarrow as pa
    import pyarrow.compute as pc

    low, high = known.min, known.max
    assert low is not None
    assert high is not None
    name = data_type.name
    same = pc.equal(low, high)
    if name == "string":
        # Bytes in UTF-8 order. No text holds the byte 0xFF: with it a cut bound is above all that it was cut from.
        upper = pc.binary_join_element_wise(
            high.cast(pa.binary()), pa.scalar(b"\xff", pa.binary()), pa.scalar(b"", pa.binary())
        )
        whole = pc.and_(same, pc.less(pc.utf8_length(low), _EXACT_STRING))
        return _Bounds(low.cast(pa.binary()), upper, pc.if_else(whole, low.cast(pa.binary()), None), _bytes_key)
    if name in ("timestamp", "timestamp_ntz"):
        micros, top = low.cast(pa.int64()), high.cast(pa.int64())
        # A bound at the end of time can't be widened: it is none.
        top = pc.if_else(pc.less(top, 2**63 - 1000), top, None)
        return _Bounds(micros, pc.add(top, 999), pa.nulls(len(low), pa.int64()), _long_key)
    digits = data_type.decimal
    if digits is not None and digits[0] > _EXACT_DIGITS:
        bottom, top = low.cast(pa.float64(), safe=False), high.cast(pa.float64(), safe=False)
        return _Bounds(
            pc.subtract(bottom, pc.multiply(pc.abs(bottom), 2.0**-48)),
            pc.add(top, pc.multiply(pc.abs(top), 2.0**-48)),
            pa.nulls(len(low), pa.float64()),
            _double_key,
        )
    if data_type.is_floating:
        # A bound that is NaN says nothing of the numbers.
        low, high = (pc.if_else(pc.is_nan(side), None, side) for side in (low, high))
    return _Bounds(low, high, pc.if_else(pc.equal(low, high), low, None), _same_key)


def _same_key(value: "pa.Scalar") -> tuple["pa.Scalar", "pa.Scalar"]:
    return value, value


def _bytes_key(value: "pa.Scalar") -> tuple["pa.Scalar", "pa.Scalar"]:
    import pyarrow as pa

    return _same_key(value.cast(pa.binary()))


def _long_key(value: "pa.Scalar") -> tuple["pa.Scalar", "pa.Scalar"]:
    import pyarrow as pa

    return _same_key(value.cast(pa.int64()))


def _double_key(value: "pa.Scalar") -> tuple["pa.Scalar", "pa.Scalar"]:
    import pyarrow as pa

    number = float(value.as_py())
    margin = abs(number) * 2.0**-48
    return pa.scalar(number - margin), pa.scalar(number + margin)


def _unless(condition: "pa.Array") -> _Mask:
    """May, unless the condition is known to be true."""
    import pyarrow.compute as pc

    return pc.invert(pc.fill_null(condition, False))


def _by_stats(files: _Files, node: Compare | In | IsNull | IsNotNull | StartsWith, mode: _NanMode) -> _May:
    import pyarrow.compute as pc

    known = _column(files, node.column)
    if known is None:
        return files.unknown()
    has_null, has_value = known.has_null, known.has_value
    match node:
        case IsNull():
            return _May(has_null, has_value)
        case IsNotNull():
            return _May(has_value, has_null)
        case Compare(op, _, value):
            literal = _literal(value, known.data_type)
            if literal is None:
                return files.unknown()
            if not literal.is_valid:
                return _May(has_null, has_value) if op == "<=>" else files.never()
            found = _compared(known, "=" if op == "<=>" else op, literal, mode)
            if op == "<=>":  # FALSE of a null row, where `=` is NULL
                return _May(pc.and_(found.true, has_value), pc.or_(pc.and_(found.false, has_value), has_null))
        case In(_, listed):
            literals = [_literal(value, known.data_type) for value in listed]
            if any(literal is None for literal in literals):
                return files.unknown()
            found = _listed(known, [literal for literal in literals if literal is not None], mode)
        case StartsWith(_, prefix):
            found = _prefixed(known, prefix)
    # A row where the column is null makes each of these NULL.
    return _May(pc.and_(found.true, has_value), pc.and_(found.false, has_value))


def _compared(known: _Known, op: Operator, literal: "pa.Scalar", mode: _NanMode) -> _May:
    """For the rows where the column is not null."""
    import pyarrow.compute as pc

    if known.bounds is None:
        return known.both(True, True)
    if mode != "number" and known.data_type.is_floating:
        of_nan = _nan_compares(op, against_nan=_is_nan(literal))
        if mode == "nan":
            return known.both(of_nan, not of_nan)
        numbers = _compared(known, op, literal, "number")
        nans = known.both(of_nan, not of_nan)
        return _May(pc.or_(numbers.true, nans.true), pc.or_(numbers.false, nans.false))
    if _is_nan(literal):
        holds = op in ("<", "<=", "!=")  # of any number
        return known.both(holds, not holds)
    return _May(_may_hold(known.bounds, op, literal), _may_hold(known.bounds, _NEGATED[op], literal))


def _nan_compares(op: Operator, *, against_nan: bool) -> bool:
    return op in (("=", "<=", ">=") if against_nan else (">", ">=", "!="))


def _may_hold(bounds: _Bounds, op: Operator, literal: "pa.Scalar") -> _Mask:
    """May a value within the bounds compare so with the literal?"""
    import pyarrow.compute as pc

    lowest, highest = bounds.key(literal)
    match op:
        case "<":
            return _unless(pc.greater_equal(bounds.lower, highest))
        case "<=":
            return _unless(pc.greater(bounds.lower, highest))
        case ">":
            return _unless(pc.less_equal(bounds.upper, lowest))
        case ">=":
            return _unless(pc.less(bounds.upper, lowest))
        case "!=":
            return _unless(pc.equal(bounds.constant, lowest))
        case _:
            return pc.and_(_unless(pc.greater(bounds.lower, highest)), _unless(pc.less(bounds.upper, lowest)))


def _listed(known: _Known, literals: Sequence["pa.Scalar"], mode: _NanMode) -> _May:
    import pyarrow.compute as pc

    valid = [literal for literal in literals if literal.is_valid]
    if mode == "number" and len(valid) > _MANY_VALUES and known.bounds is not None:
        found = _May(_searched(known.bounds, valid), known.has_value)
    else:
        found = known.both(False, True)
        for literal in valid:
            one = _compared(known, "=", literal, mode)
            found = _May(pc.or_(found.true, one.true), pc.and_(found.false, one.false))
    # With a NULL in the list, a value that isn't found makes the whole NULL.
    return found if len(valid) == len(literals) else _May(found.true, known.both(False, False).false)


def _searched(bounds: _Bounds, literals: Sequence["pa.Scalar"]) -> _Mask:
    """Whether one of many values lies within the bounds."""
    import pyarrow as pa

    keys = [bounds.key(literal) for literal in literals if not _is_nan(literal)]
    lows = sorted(key[0].as_py() for key in keys)
    highs = sorted(key[1].as_py() for key in keys)
    found = []
    for lower, upper in zip(bounds.lower.to_pylist(), bounds.upper.to_pylist(), strict=True):
        # Out are those whose highest form is below the lower bound and those whose lowest form is above the upper one.
        below = 0 if lower is None else bisect_left(highs, lower)
        within = len(lows) if upper is None else bisect_right(lows, upper)
        found.append(within > below)
    return pa.array(found, pa.bool_())


def _prefixed(known: _Known, prefix: str) -> _May:
    import pyarrow as pa
    import pyarrow.compute as pc

    if known.data_type.name != "string" or known.bounds is None:
        return known.both(True, True)
    lower, upper = known.bounds.lower, known.bounds.upper
    first = pa.scalar(prefix.encode(), pa.binary())
    beyond = pa.scalar(prefix.encode() + b"\xff", pa.binary())  # above every text with the prefix
    true = pc.and_(_unless(pc.greater_equal(lower, beyond)), _unless(pc.less(upper, first)))
    # All texts between two that have the prefix have it too.
    all_have = pc.and_(pc.greater_equal(lower, first), pc.less_equal(upper, beyond))
    return _May(true, _unless(all_have))
