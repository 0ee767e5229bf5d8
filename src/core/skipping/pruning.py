"""Finds the files that may have a row which satisfies a predicate, from exact partition values and statistics.

For each part of the predicate, two masks over all files are computed: may it be TRUE for a row, and may it be FALSE for
a row? NOT swaps the masks, so an unknown result stays unknown, and NULL is neither. A file is excluded only if the
whole predicate is certainly never TRUE.

Bounds are interpreted carefully: the greatest timestamp may be 999 microseconds after its bound, a string may continue
after its bound, a writer may have rounded a decimal with many digits, and every file of a floating-point column may
contain NaN, which Spark sorts after every number, because writers disagree whether the maximum includes it. So for such
a column a file is evaluated twice: for its numbers and for its NaNs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Literal, TypeAlias

from ...errors import InvalidArgumentError
from ..protocol import partition_values
from ..protocol.schema import Column, DataType, PrimitiveType, StructType, find, has_min_max
from ..protocol.type_widening import was_float
from . import stats
from .bounds import NEGATED, Bounds, Mask, bounds_of, compare, is_nan, literal_of, may_be_one_of, may_hold, unless
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

_SPLIT_COLUMNS = 4  # floating-point columns evaluated in every combination; more columns are evaluated separately
_MANY_VALUES = 32  # longer IN lists use a binary search instead of comparisons one by one

_NanMode: TypeAlias = Literal["number", "nan", "either"]


@dataclass(frozen=True, slots=True)
class _May:
    """For each file: whether the predicate may be TRUE, and whether it may be FALSE."""

    true: Mask
    false: Mask

    def negated(self) -> "_May":
        return _May(self.false, self.true)


@dataclass(slots=True)
class _Files:
    """The files to evaluate, with their partition values and statistics."""

    rows: int
    schema: StructType
    partitions: Mapping[str, "pa.Array"]
    stats: stats.FileStats | None
    cache: dict[tuple[int, _NanMode | None], _May] = field(default_factory=dict)
    columns: dict[Column, "_Known"] = field(default_factory=dict)

    def all(self, value: bool) -> Mask:
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
    time_zone: str,
) -> "pa.BooleanArray":
    """For each row of `files`: false if the file certainly has no row for which `predicate` is TRUE.

    PROTOCOL.md, "Per-file Statistics".

    Args:
        files: A table with the protocol's column names: `partitionValues`, and for statistics `stats` (text) or
            `stats_parsed` (struct) or both.
        predicate: Its columns have their exact names in `schema`; its literals have the column's type.
        schema: The table's schema.
        partition_columns: The names of the partition columns.
        use_stats: Whether to use statistics.
        time_zone: The time zone of partition timestamps that name none.
    """
    import pyarrow as pa

    try:
        return _may_match(files, predicate, schema, partition_columns, use_stats=use_stats, time_zone=time_zone)
    except RecursionError:
        # The predicate is nested too deeply, so nothing is known.
        return pa.repeat(pa.scalar(True), files.num_rows)


def _may_match(
    files: "pa.Table",
    predicate: Predicate,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    use_stats: bool,
    time_zone: str,
) -> "pa.BooleanArray":
    import pyarrow.compute as pc

    named = _named(predicate)
    partitions = set(partition_columns)
    used_partitions = [name for name in partition_columns if (name,) in named]
    typed = partition_values.typed_columns(files, schema, used_partitions, time_zone=time_zone)
    data = {column for column in named if not (len(column) == 1 and column[0] in partitions)}
    file_stats = stats.read(files, sorted(data), schema) if use_stats and data else None
    evaluated = _Files(files.num_rows, schema, {name: _whole(typed[name]) for name in used_partitions}, file_stats)

    floating = sorted(column for column in data if _is_floating(schema, column)) if file_stats is not None else []
    modes: dict[Column, _NanMode] = dict.fromkeys(floating, "either")
    split: list[Column] = floating[:_SPLIT_COLUMNS]
    predicate = _flat(predicate)
    result: Mask | None = None
    choices: tuple[_NanMode, _NanMode] = ("number", "nan")
    for combination in product(choices, repeat=len(split)):
        modes.update(zip(split, combination, strict=True))
        mask = _evaluate(evaluated, predicate, modes).true
        result = mask if result is None else pc.or_(result, mask)
    assert result is not None
    return result


def exact_partition_match(
    files: "pa.Table",
    predicate: Predicate,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    time_zone: str,
) -> "pa.BooleanArray":
    """For each row of `files`: whether `predicate` is TRUE for the file's partition, and so for all its rows.

    `InvalidArgumentError` unless the predicate uses only partition columns and has no `Opaque` part.
    """
    if not partition_only(predicate, partition_columns) or not translated(predicate):
        raise InvalidArgumentError(
            "the predicate doesn't depend on partition columns alone: use only partition columns and simple comparisons"
        )
    try:
        return _may_match(files, predicate, schema, partition_columns, use_stats=False, time_zone=time_zone)
    except RecursionError:
        raise InvalidArgumentError("the predicate is nested too deeply to be evaluated: simplify it") from None


def may_match_values(
    values: Sequence[Mapping[str, str | None]],
    predicate: Predicate,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    time_zone: str,
) -> list[bool]:
    """`may_match` by partition values alone, for a few files that aren't in a table."""
    import pyarrow as pa

    column = pa.array([list(item.items()) for item in values], pa.map_(pa.string(), pa.string()))
    files = pa.table({"partitionValues": column})
    matches: list[bool] = may_match(
        files, predicate, schema, partition_columns, use_stats=False, time_zone=time_zone
    ).to_pylist()
    return matches


def _flat(predicate: Predicate) -> Predicate:
    """The same predicate with chains of AND, OR and NOT flattened: a parser may nest thousands of them."""
    if isinstance(predicate, And | Or):
        kind = type(predicate)
        children: list[Predicate] = []
        pending: list[Predicate] = list(reversed(predicate.children))
        while pending:
            node = pending.pop()
            if isinstance(node, kind):
                pending.extend(reversed(node.children))
            else:
                children.append(_flat(node))
        return kind(tuple(children))
    if isinstance(predicate, Not):
        inner, odd = predicate.child, True
        while isinstance(inner, Not):
            inner, odd = inner.child, not odd
        flat = _flat(inner)
        return Not(flat) if odd else flat
    return predicate


def _named(predicate: Predicate) -> set[Column]:
    return {node.column for node in walk(predicate) if isinstance(node, Compare | In | IsNull | IsNotNull | StartsWith)}


def _whole(column: "pa.ChunkedArray") -> "pa.Array":
    return column.combine_chunks()


def _type(schema: StructType, column: Column) -> DataType | None:
    match = find(schema, column, case_sensitive=True)
    return None if match is None else match[1].data_type


def _is_floating(schema: StructType, column: Column) -> bool:
    data_type = _type(schema, column)
    return isinstance(data_type, PrimitiveType) and data_type.is_floating


def _evaluate(files: _Files, predicate: Predicate, modes: Mapping[Column, _NanMode]) -> _May:
    import pyarrow.compute as pc

    match predicate:
        case And(children) | Or(children):
            conjunction = isinstance(predicate, And)
            true, false = files.all(conjunction), files.all(not conjunction)
            for child in children:
                child_result = _evaluate(files, child, modes)
                true = (pc.and_ if conjunction else pc.or_)(true, child_result.true)
                false = (pc.or_ if conjunction else pc.and_)(false, child_result.false)
            return _May(true, false)
        case Not(child):
            return _evaluate(files, child, modes).negated()
        case Constant(value):
            return _May(files.all(value is True), files.all(value is False))
        case Opaque():
            return files.unknown()
        case _:
            key = (id(predicate), modes.get(predicate.column))
            result = files.cache.get(key)
            if result is None:
                result = files.cache[key] = _leaf(files, predicate, modes.get(predicate.column, "number"))
            return result


def _leaf(files: _Files, node: Compare | In | IsNull | IsNotNull | StartsWith, mode: _NanMode) -> _May:
    if len(node.column) == 1 and node.column[0] in files.partitions:
        values = files.partitions[node.column[0]]
        data_type = _type(files.schema, node.column)
        assert isinstance(data_type, PrimitiveType)
        return _exact(files, values, data_type, node)
    return _by_stats(files, node, mode)


# --- partition columns: one value for the whole file --------------------------------------------------------------


def _known(result: "pa.Array") -> _May:
    """The masks for a three-valued result that is the same for every row of a file."""
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
            literal = literal_of(value, data_type)
            if literal is None:
                return files.unknown()
            if op == "<=>":
                if not literal.is_valid:
                    return _known(pc.is_null(values))
                return _known(pc.fill_null(compare(values, "=", literal), False))
            if not literal.is_valid:
                return files.never()
            return _known(compare(values, op, literal))
        case In(_, listed):
            result: pa.Array = files.all(False)
            for value in listed:
                literal = literal_of(value, data_type)
                if literal is None:
                    return files.unknown()
                equal = compare(values, "=", literal) if literal.is_valid else pa.nulls(files.rows, pa.bool_())
                result = pc.or_kleene(result, equal)
            return _known(result)


# --- data columns: bounds -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Known:
    """A data column with statistics; `bounds` is `None` for a type without bounds."""

    rows: int
    data_type: PrimitiveType
    bounds: Bounds | None
    has_null: Mask
    has_value: Mask

    def both(self, true: bool, false: bool) -> _May:
        import pyarrow as pa

        return _May(pa.repeat(pa.scalar(true), self.rows), pa.repeat(pa.scalar(false), self.rows))


def _column(files: _Files, column: Column) -> _Known | None:
    """The statistics of a data column; `None`: there are none."""
    import pyarrow.compute as pc

    if column in files.columns:
        return files.columns[column]
    data_type = _type(files.schema, column)
    leaf = files.stats.leaves.get(column) if files.stats else None
    # Writers count the nulls of an array or map in different ways.
    if leaf is None or files.stats is None or not isinstance(data_type, PrimitiveType) or leaf.null_count is None:
        return None
    known = files.columns[column] = _Known(
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
            literal = literal_of(value, known.data_type)
            if literal is None:
                return files.unknown()
            if not literal.is_valid:
                return _May(has_null, has_value) if op == "<=>" else files.never()
            result = _compared(known, "=" if op == "<=>" else op, literal, mode)
            if op == "<=>":  # FALSE of a null row, where `=` is NULL
                return _May(pc.and_(result.true, has_value), pc.or_(pc.and_(result.false, has_value), has_null))
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
    return _May(pc.and_(result.true, has_value), pc.and_(result.false, has_value))


def _compared(known: _Known, op: Operator, literal: "pa.Scalar", mode: _NanMode) -> _May:
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
        return _May(pc.or_(numbers.true, nans.true), pc.or_(numbers.false, nans.false))
    if is_nan(literal):
        holds = op in ("<", "<=", "!=")  # of any number
        return known.both(holds, not holds)
    return _May(may_hold(known.bounds, op, literal), may_hold(known.bounds, NEGATED[op], literal))


def _nan_compares(op: Operator, *, against_nan: bool) -> bool:
    return op in (("=", "<=", ">=") if against_nan else (">", ">=", "!="))


def _listed(known: _Known, literals: Sequence["pa.Scalar"], mode: _NanMode) -> _May:
    import pyarrow.compute as pc

    valid = [literal for literal in literals if literal.is_valid]
    if mode == "number" and len(valid) > _MANY_VALUES and known.bounds is not None:
        result = _May(may_be_one_of(known.bounds, valid), known.has_value)
    else:
        result = known.both(False, True)
        for literal in valid:
            equal = _compared(known, "=", literal, mode)
            result = _May(pc.or_(result.true, equal.true), pc.and_(result.false, equal.false))
    # With a NULL in the list, the result for a value that isn't in it is NULL.
    return result if len(valid) == len(literals) else _May(result.true, known.both(False, False).false)


def _prefixed(known: _Known, prefix: str) -> _May:
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
    return _May(true, unless(all_have))
