"""Which files may hold a row that a predicate accepts: partition values exactly, statistics as bounds.

For each part of the predicate two questions are answered for every file at once: may it be TRUE for a row, may it be
FALSE for one? NOT swaps the answers, so that nothing that is unknown ever becomes known by negation, and NULL is
simply neither. A file is dropped only where the whole is provably never TRUE; what isn't known may be anything.

What the bounds leave open is taken into account: the greatest timestamp may lie 999 microseconds after its bound, a
string may go on behind its bound, a decimal of many digits may have been rounded by its writer, and a NaN, which
Spark orders after every number, may be in any file of a floating column, for writers disagree whether a maximum tells
of it. So a file is judged twice for such a column, once for its numbers and once for its NaNs.
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

_SPLIT_COLUMNS = 4  # floating columns judged in every combination; beyond them each on its own
_MANY_VALUES = 32  # IN lists longer than this are searched, not compared one by one

_NanMode: TypeAlias = Literal["number", "nan", "either"]


@dataclass(frozen=True, slots=True)
class _May:
    """For each file: may the predicate be TRUE, may it be FALSE."""

    true: Mask
    false: Mask

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
    """For each row of `files`: false where the file provably holds no row for which `predicate` is TRUE.

    `files` has the protocol's column names: `partitionValues`, and `stats` (text) or `stats_parsed` (struct) or both
    where statistics are to help. Columns of the predicate bear their exact names in `schema`; literals have the
    column's own type. `time_zone` is that of partition timestamps that name none. PROTOCOL.md, "Per-file Statistics".
    """
    import pyarrow as pa

    try:
        return _may_match(files, predicate, schema, partition_columns, use_stats=use_stats, time_zone=time_zone)
    except RecursionError:
        # Too deep to judge, so nothing is known.
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
    used = [name for name in partition_columns if (name,) in named]
    typed = partition_values.typed_columns(files, schema, used, time_zone=time_zone)
    data = {column for column in named if not (len(column) == 1 and column[0] in partitions)}
    known = stats.read(files, sorted(data), schema) if use_stats and data else None
    judged = _Files(files.num_rows, schema, {name: _whole(typed[name]) for name in used}, known)

    floating = sorted(column for column in data if _is_floating(schema, column)) if known is not None else []
    modes: dict[Column, _NanMode] = dict.fromkeys(floating, "either")
    split: list[Column] = floating[:_SPLIT_COLUMNS]
    predicate = _flat(predicate)
    result: Mask | None = None
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
    time_zone: str,
) -> "pa.BooleanArray":
    """For each row of `files`: whether `predicate` is TRUE for the file's partition, and so for every row in it.

    `InvalidArgumentError` unless the predicate names partition columns only and is translated whole.
    """
    if not partition_only(predicate, partition_columns) or not translated(predicate):
        raise InvalidArgumentError("the predicate isn't decided by the partition columns alone")
    try:
        return _may_match(files, predicate, schema, partition_columns, use_stats=False, time_zone=time_zone)
    except RecursionError:
        raise InvalidArgumentError("the predicate is nested too deeply to be decided") from None


def may_match_values(
    values: Sequence[Mapping[str, str | None]],
    predicate: Predicate,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    time_zone: str,
) -> list[bool]:
    """`may_match` by partition values alone, for a few files that are in no table."""
    import pyarrow as pa

    column = pa.array([list(item.items()) for item in values], pa.map_(pa.string(), pa.string()))
    files = pa.table({"partitionValues": column})
    found: list[bool] = may_match(
        files, predicate, schema, partition_columns, use_stats=False, time_zone=time_zone
    ).to_pylist()
    return found


def _flat(predicate: Predicate) -> Predicate:
    """The same predicate with chains of ANDs, of ORs and of NOTs made flat: a parser nests thousands of them."""
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
                found = compare(values, "=", literal) if literal.is_valid else pa.nulls(files.rows, pa.bool_())
                result = pc.or_kleene(result, found)
            return _known(result)


# --- data columns: bounds -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Known:
    """A data column of which something is known; no bounds: its type has none."""

    rows: int
    data_type: PrimitiveType
    bounds: Bounds | None
    has_null: Mask
    has_value: Mask

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
        bounds_of(leaf, data_type, single=_was_float(files.schema, column)) if has_min_max(data_type) else None,
        unless(pc.equal(leaf.null_count, 0)),
        unless(pc.equal(leaf.null_count, files.stats.num_records)),
    )
    return found


def _was_float(schema: StructType, column: Column) -> bool:
    found = find(schema, column, case_sensitive=True)
    return found is not None and was_float(found[1])


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
            found = _compared(known, "=" if op == "<=>" else op, literal, mode)
            if op == "<=>":  # FALSE of a null row, where `=` is NULL
                return _May(pc.and_(found.true, has_value), pc.or_(pc.and_(found.false, has_value), has_null))
        case In(_, listed):
            literals = [literal_of(value, known.data_type) for value in listed]
            if any(literal is None for literal in literals):
                return files.unknown()
            if not literals:
                return known.both(False, True)  # FALSE even of a null
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
        found = _May(may_be_one_of(known.bounds, valid), known.has_value)
    else:
        found = known.both(False, True)
        for literal in valid:
            one = _compared(known, "=", literal, mode)
            found = _May(pc.or_(found.true, one.true), pc.and_(found.false, one.false))
    # With a NULL in the list, a value that isn't found makes the whole NULL.
    return found if len(valid) == len(literals) else _May(found.true, known.both(False, False).false)


def _prefixed(known: _Known, prefix: str) -> _May:
    import pyarrow as pa
    import pyarrow.compute as pc

    if known.data_type.name != "string" or known.bounds is None:
        return known.both(True, True)
    lower, upper = known.bounds.lower, known.bounds.upper
    first = pa.scalar(prefix.encode(), pa.binary())
    beyond = pa.scalar(prefix.encode() + b"\xff", pa.binary())  # above every text with the prefix
    true = pc.and_(unless(pc.greater_equal(lower, beyond)), unless(pc.less(upper, first)))
    # All texts between two that have the prefix have it too.
    all_have = pc.and_(pc.greater_equal(lower, first), pc.less_equal(upper, beyond))
    return _May(true, unless(all_have))
