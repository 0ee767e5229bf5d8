"""Conditions on data columns, evaluated by the bounds and the null counts of each file.

A bound isn't always a value of the column. The greatest timestamp may be 999 microseconds after its bound, a string
may continue after its bound, and a writer may have rounded a decimal with many digits. Every file of a floating-point
column may contain NaN, because writers disagree whether the maximum includes it. Spark sorts NaN after every number,
so such a column is evaluated twice: for the file's numbers and for its NaNs.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..protocol.schema import Column, PrimitiveType, StructType, find, has_min_max
from ..protocol.type_widening import was_float
from .bounds import NEGATED, bounds_of, is_nan, literal_of, may_be_one_of, may_hold, unless
from .file_masks import FilesToPrune, KnownColumn, Leaf, MayMatch, NanMode, column_type
from .predicates import (
    Compare,
    In,
    IsNotNull,
    IsNull,
    Operator,
    StartsWith,
)

if TYPE_CHECKING:
    import pyarrow as pa

_MANY_VALUES = 32  # longer IN lists use a binary search instead of comparisons one by one


def _column(files: FilesToPrune, column: Column) -> KnownColumn | None:
    """The statistics of a data column; `None`: there are none."""
    import pyarrow.compute as pc

    if column in files.columns:
        return files.columns[column]
    data_type = column_type(files.schema, column)
    leaf = files.stats.leaves.get(column) if files.stats else None
    # Writers count the nulls of an array or map in different ways.
    if leaf is None or files.stats is None or not isinstance(data_type, PrimitiveType) or leaf.null_count is None:
        return None
    known = files.columns[column] = KnownColumn(
        files.rows,
        data_type,
        bounds_of(leaf, data_type, single=_was_float(files.schema, column)) if has_min_max(data_type) else None,
        unless(pc.equal(leaf.null_count, 0)),
        unless(pc.equal(leaf.null_count, files.stats.num_records)),
    )
    return known


def _was_float(schema: StructType, column: Column) -> bool:
    match = find(schema, column, case_sensitive=True)
    return match is not None and was_float(match[1])


def by_statistics(files: FilesToPrune, node: Leaf, mode: NanMode) -> MayMatch:
    """The masks of `node` by the statistics of its column; unknown where there are none."""
    import pyarrow.compute as pc

    known = _column(files, node.column)
    if known is None:
        return files.unknown()
    has_null, has_value = known.has_null, known.has_value
    match node:
        case IsNull():
            return MayMatch(has_null, has_value)
        case IsNotNull():
            return MayMatch(has_value, has_null)
        case Compare(op, _, value):
            literal = literal_of(value, known.data_type)
            if literal is None:
                return files.unknown()
            if not literal.is_valid:
                return MayMatch(has_null, has_value) if op == "<=>" else files.never()
            result = _compared(known, "=" if op == "<=>" else op, literal, mode)
            if op == "<=>":  # FALSE of a null row, where `=` is NULL
                return MayMatch(pc.and_(result.true, has_value), pc.or_(pc.and_(result.false, has_value), has_null))
        case In(_, listed):
            literals = [literal_of(value, known.data_type) for value in listed]
            if any(literal is None for literal in literals):
                return files.unknown()
            if not literals:
                return known.both(False, True)  # FALSE even of a null
            result = _listed(known, [literal for literal in literals if literal is not None], mode)
        case StartsWith(_, prefix):
            result = _prefixed(known, prefix)
    # Each of these is NULL for a row with null in the column.
    return MayMatch(pc.and_(result.true, has_value), pc.and_(result.false, has_value))


def _compared(known: KnownColumn, op: Operator, literal: "pa.Scalar", mode: NanMode) -> MayMatch:
    """The masks for the rows where the column isn't null."""
    import pyarrow.compute as pc

    if known.bounds is None:
        return known.both(True, True)
    if mode != "number" and known.data_type.is_floating:
        of_nan = _nan_compares(op, against_nan=is_nan(literal))
        if mode == "nan":
            return known.both(of_nan, not of_nan)
        numbers = _compared(known, op, literal, "number")
        nans = known.both(of_nan, not of_nan)
        return MayMatch(pc.or_(numbers.true, nans.true), pc.or_(numbers.false, nans.false))
    if is_nan(literal):
        holds = op in ("<", "<=", "!=")  # of any number
        return known.both(holds, not holds)
    return MayMatch(may_hold(known.bounds, op, literal), may_hold(known.bounds, NEGATED[op], literal))


def _nan_compares(op: Operator, *, against_nan: bool) -> bool:
    return op in (("=", "<=", ">=") if against_nan else (">", ">=", "!="))


def _listed(known: KnownColumn, literals: Sequence["pa.Scalar"], mode: NanMode) -> MayMatch:
    import pyarrow.compute as pc

    valid = [literal for literal in literals if literal.is_valid]
    if mode == "number" and len(valid) > _MANY_VALUES and known.bounds is not None:
        result = MayMatch(may_be_one_of(known.bounds, valid), known.has_value)
    else:
        result = known.both(False, True)
        for literal in valid:
            equal = _compared(known, "=", literal, mode)
            result = MayMatch(pc.or_(result.true, equal.true), pc.and_(result.false, equal.false))
    # With a NULL in the list, the result for a value that isn't in it is NULL.
    return result if len(valid) == len(literals) else MayMatch(result.true, known.both(False, False).false)


def _prefixed(known: KnownColumn, prefix: str) -> MayMatch:
    import pyarrow as pa
    import pyarrow.compute as pc

    if known.data_type.name != "string" or known.bounds is None:
        return known.both(True, True)
    lower, upper = known.bounds.lower, known.bounds.upper
    first = pa.scalar(prefix.encode(), pa.binary())
    beyond = pa.scalar(prefix.encode() + b"\xff", pa.binary())  # above every text with the prefix
    true = pc.and_(unless(pc.greater_equal(lower, beyond)), unless(pc.less(upper, first)))
    # All texts between two texts with the prefix have it too.
    all_have = pc.and_(pc.greater_equal(lower, first), pc.less_equal(upper, beyond))
    return MayMatch(true, unless(all_have))
