"""Lays out rows along a Z-order curve, so that a filter on any of several columns needs few files.

The values of each column are ranked by a sample (one job, over those columns only). The bits of the ranks are
interleaved (Z-order), and intervals of the curve with equally many sampled rows become files. Spark computes the rank
of a value by a binary search tree per column, and shuffles once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...core.protocol import schema as schemas
from ...errors import InvalidArgumentError
from ..sql.hidden_names import free_prefix

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import Column, DataFrame

_SAMPLES_PER_FILE = 512
_FEWEST_SAMPLES, _MOST_SAMPLES = 10_000, 500_000
_MOST_BITS = 14
_SPARE_BITS = 5  # the curve has 2 ** 5 times as many cells as there are files
_SEED = 20
_PREFIX = "__tablelog_curve_"


@dataclass(frozen=True)
class LaidOut:
    """A frame with one partition per output file, and the sampled values of each column."""

    frame: "DataFrame"
    sample: Mapping[schemas.Column, pa.Array]


def lay_out(
    frame: "DataFrame",
    by: Sequence[tuple[schemas.Column, schemas.DataType]],
    *,
    file_number: str,
    groups: Sequence[Sequence[int]],
    files: Sequence[int],
    rows: int | None,
) -> LaidOut:
    """The rows of `frame`, partitioned into the output files, without the column `file_number`.

    `file_number` is the source file of a row; `groups` has the numbers of the files that are laid out together, and
    `files[g]` is the number of output files of group g. `rows` is the approximate row count (`None`: unknown). Raises
    InvalidArgumentError for a column whose type has no order.
    """
    from pyspark.sql import functions as F

    kept = [schemas.quoted(name) for name in frame.columns if name != file_number]
    prefix = free_prefix(_PREFIX, frame.columns)
    group_name = f"{prefix}group"

    def step(kind: str, column: int, level: int = 0) -> str:
        return f"{prefix}{kind}_{column}_{level}"

    group_of = np.zeros(max(number for group in groups for number in group) + 1, np.int64)
    for index, group in enumerate(groups):
        group_of[list(group)] = index
    keys = {step("key", i): key(_column(frame, column), data_type, column) for i, (column, data_type) in enumerate(by)}
    keyed = frame.withColumns({**keys, group_name: _looked_up(group_of, F.col(file_number))})

    wanted = min(_MOST_SAMPLES, max(_FEWEST_SAMPLES, _SAMPLES_PER_FILE * sum(files)))
    fraction = 1.0 if rows is None or rows <= wanted else wanted / rows
    sampled = keyed.select(group_name, *keys)
    seen = (sampled if fraction == 1.0 else sampled.sample(fraction, _SEED)).toArrow()

    bits = _shares(max(files), len(by))
    ranks, places = [], np.zeros(seen.num_rows, np.int64)
    for i, (count, spread) in enumerate(zip(bits, _spreads(bits), strict=True)):
        bounds = _bounds(seen.column(step("key", i)), count)
        ranks.append((bounds, spread))
        places += spread[_ranked(seen.column(step("key", i)), bounds)]
    cells = 1 << sum(bits)
    parts = _parts(seen.column(group_name).to_numpy(), places, files, cells)

    for level in range(max(bits)):
        keyed = keyed.withColumns(
            {
                step("at", i, level + 1): _descended(step("key", i), step("at", i, level), level, bounds)
                for i, (bounds, _) in enumerate(ranks)
                if level < bits[i]
            }
        )
    place = F.lit(0)
    for i, (_, spread) in enumerate(ranks):
        place = place + _looked_up(spread, F.col(step("at", i, bits[i])) - (1 << bits[i]))
    part = _looked_up(parts, F.col(group_name) * cells + place)
    laid = keyed.repartitionById(sum(files), part).select(*kept)
    return LaidOut(laid, {column: _values(seen.column(step("key", i))) for i, (column, _) in enumerate(by)})


def key(column: "Column", data_type: schemas.DataType, name: schemas.Column) -> "Column":
    """The column converted to one of four types, in an order that is close enough to its own for a layout."""
    from pyspark.sql import functions as F

    if data_type == schemas.STRING:
        return F.make_valid_utf8(column)  # Spark strings may contain invalid UTF-8, Python strings may not
    if data_type == schemas.BINARY:
        return column
    if data_type == schemas.TIMESTAMP:
        return F.unix_micros(column)
    if data_type == schemas.TIMESTAMP_NTZ:
        return F.unix_micros(column.cast("timestamp"))
    if data_type == schemas.DATE:
        return F.unix_date(column).cast("long")
    if data_type in (schemas.BOOLEAN, schemas.BYTE, schemas.SHORT, schemas.INTEGER, schemas.LONG):
        return column.cast("long")
    if data_type in (schemas.FLOAT, schemas.DOUBLE) or schemas.type_text(data_type).startswith("decimal"):
        return column.cast("double")
    raise InvalidArgumentError(
        f"rows can't be laid out by {schemas.dotted(name)}: the type {schemas.type_text(data_type)} has no order"
    )


def comparable(values: pa.Array) -> pa.Array:
    """Convert values of the log's statistics like `key` converts those of rows; null if unknown."""
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    if pa.types.is_date(values.type):
        return values.cast(pa.int32()).cast(pa.int64())
    if pa.types.is_decimal(values.type) or pa.types.is_floating(values.type):
        return values.cast(pa.float64())
    if pa.types.is_boolean(values.type) or pa.types.is_integer(values.type):
        return values.cast(pa.int64())
    return values


def _column(frame: "DataFrame", name: schemas.Column) -> "Column":
    return frame[schemas.quoted(*name)]


def _looked_up(table: "NDArray[np.int64]", index: "Column") -> "Column":
    """The entry at `index`, from 0; the table is one text, because a list literal costs a Py4J call per item."""
    from pyspark.sql import functions as F

    return F.get(F.split(F.lit(",".join(map(str, table.tolist()))), ",").cast("array<int>"), index.cast("int"))


def _shares(files: int, columns: int) -> list[int]:
    """The number of bits of the curve for each column: at least one, more for the first ones."""
    total = max(columns, min(_MOST_BITS, (files - 1).bit_length() + _SPARE_BITS))
    return [total // columns + (i < total % columns) for i in range(columns)]


def _spreads(bits: Sequence[int]) -> "list[NDArray[np.int64]]":
    """For each column and rank, the bits of the rank at their positions on the curve: interleaved, highest first."""
    owners = [(level, i) for level in range(max(bits)) for i, count in enumerate(bits) if level < count]
    spreads = [np.zeros(1 << count, np.int64) for count in bits]
    for position, (level, i) in enumerate(owners):
        ranks = np.arange(1 << bits[i])
        spreads[i] += ((ranks >> (bits[i] - 1 - level)) & 1) << (len(owners) - 1 - position)
    return spreads


def _values(column: pa.ChunkedArray) -> pa.Array:
    values = column.drop_null().combine_chunks()
    return values if isinstance(values, pa.Array) else pa.concat_arrays(values.chunks)


def _bounds(column: pa.ChunkedArray, bits: int) -> list[Any]:
    """The bounds that divide the values into 2 ** bits equal ranks: one fewer than ranks; empty without values."""
    values = _values(column)
    if not len(values):
        return []
    ordered = values.take(pc.sort_indices(values))
    count = 1 << bits
    places = pa.array([len(ordered) * i // count for i in range(1, count)], pa.int64())
    bounds: list[Any] = ordered.take(places).to_pylist()
    return bounds


def _ranked(column: pa.ChunkedArray, bounds: Sequence[Any]) -> "NDArray[np.int64]":
    """The number of bounds at or below each value; 0 for null."""
    ranks = np.zeros(len(column), np.int64)
    if bounds:
        valid = pc.is_valid(column).to_numpy().astype(bool)
        kind = object if isinstance(bounds[0], str | bytes) else None
        ranks[valid] = np.searchsorted(
            np.array(bounds, dtype=kind), np.array(_values(column).to_pylist(), dtype=kind), side="right"
        )
    return ranks


def _descended(key_name: str, at: str, level: int, bounds: Sequence[Any]) -> "Column":
    """One step down the search tree over the bounds: to the right if the value is at or above the node's bound."""
    from pyspark.sql import functions as F

    node_number = F.lit(1) if level == 0 else F.col(at)
    if not bounds:
        return node_number * 2
    # The nodes of this level, from left to right; nodes are numbered as in a binary heap.
    step = (len(bounds) + 1) >> (level + 1)
    nodes = [bounds[step - 1 + i * 2 * step] for i in range(1 << level)]
    node = F.get(F.lit(nodes), node_number - (1 << level)) if level else F.lit(nodes[0])
    return node_number * 2 + F.when(F.col(key_name) >= node, 1).otherwise(0)


def _parts(
    groups: "NDArray[Any]", places: "NDArray[np.int64]", files: Sequence[int], cells: int
) -> "NDArray[np.int64]":
    """The output partition of each cell of each group: intervals of the curve with equally many sampled rows."""
    parts = np.zeros(len(files) * cells, np.int64)
    first = 0
    for group, count in enumerate(files):
        weights = np.bincount(places[groups == group], minlength=cells)
        before = np.cumsum(weights) - weights
        total = max(1, int(weights.sum()))
        parts[group * cells : (group + 1) * cells] = first + np.minimum(count - 1, before * count // total)
        first += count
    return parts
