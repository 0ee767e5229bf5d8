"""Finds the files that may have a row which satisfies a predicate, from exact partition values and statistics.

For each part of the predicate, two masks over all files are computed: may it be TRUE for a row, and may it be FALSE for
a row? NOT swaps the masks, so an unknown result stays unknown, and NULL is neither. A file is excluded only if the
whole predicate is certainly never TRUE. Each condition on one column is evaluated by the files' partition values
(`partition_conditions`) or by their statistics (`stats_conditions`).
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

from ..protocol import partition_values
from ..protocol.schema import Column, PrimitiveType, StructType
from . import stats
from .bounds import Mask
from .file_masks import FilesToPrune, Leaf, MayMatch, NanMode, column_type
from .partition_conditions import by_partition_value
from .predicates import And, Constant, Not, Opaque, Or, Predicate, walk
from .stats_conditions import by_statistics

if TYPE_CHECKING:
    import pyarrow as pa

_SPLIT_COLUMNS = 4  # floating-point columns evaluated in every combination; more columns are evaluated separately


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
    evaluated = FilesToPrune(
        files.num_rows, schema, {name: _whole(typed[name]) for name in used_partitions}, file_stats
    )

    floating = sorted(column for column in data if _is_floating(schema, column)) if file_stats is not None else []
    modes: dict[Column, NanMode] = dict.fromkeys(floating, "either")
    split: list[Column] = floating[:_SPLIT_COLUMNS]
    predicate = _flat(predicate)
    result: Mask | None = None
    choices: tuple[NanMode, NanMode] = ("number", "nan")
    for combination in product(choices, repeat=len(split)):
        modes.update(zip(split, combination, strict=True))
        mask = _evaluate(evaluated, predicate, modes).true
        result = mask if result is None else pc.or_(result, mask)
    assert result is not None
    return result


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
    return {node.column for node in walk(predicate) if isinstance(node, Leaf)}


def _whole(column: "pa.ChunkedArray") -> "pa.Array":
    return column.combine_chunks()


def _is_floating(schema: StructType, column: Column) -> bool:
    data_type = column_type(schema, column)
    return isinstance(data_type, PrimitiveType) and data_type.is_floating


def _evaluate(files: FilesToPrune, predicate: Predicate, modes: Mapping[Column, NanMode]) -> MayMatch:
    import pyarrow.compute as pc

    match predicate:
        case And(children) | Or(children):
            conjunction = isinstance(predicate, And)
            true, false = files.all(conjunction), files.all(not conjunction)
            for child in children:
                child_result = _evaluate(files, child, modes)
                true = (pc.and_ if conjunction else pc.or_)(true, child_result.true)
                false = (pc.or_ if conjunction else pc.and_)(false, child_result.false)
            return MayMatch(true, false)
        case Not(child):
            return _evaluate(files, child, modes).negated()
        case Constant(value):
            return MayMatch(files.all(value is True), files.all(value is False))
        case Opaque():
            return files.unknown()
        case _:
            key = (id(predicate), modes.get(predicate.column))
            result = files.cache.get(key)
            if result is None:
                result = files.cache[key] = _leaf(files, predicate, modes.get(predicate.column, "number"))
            return result


def _leaf(files: FilesToPrune, node: Leaf, mode: NanMode) -> MayMatch:
    if len(node.column) == 1 and node.column[0] in files.partitions:
        values = files.partitions[node.column[0]]
        data_type = column_type(files.schema, node.column)
        assert isinstance(data_type, PrimitiveType)
        return by_partition_value(files, values, data_type, node)
    return by_statistics(files, node, mode)
