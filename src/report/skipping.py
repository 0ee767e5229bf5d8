"""How many files a search for one value must read, from the overlap of the files' bounds; pure functions."""

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from ..core.protocol.partition_values import column_of
from ..core.protocol.schema import PrimitiveType
from ..core.skipping.bounds import bounds_of

if TYPE_CHECKING:
    import pyarrow as pa

    from ..core.skipping.stats import LeafStats

MOST_COMPARED = 20_000
"""The most files whose bounds are compared; of a larger table, evenly chosen ones stand for all."""
_DIGITS = 6
"""The bytes of a string, after the part that all bounds share, that decide its place between two others."""


def sample(count: int) -> Sequence[int] | None:
    """The rows of the files to compare; `None`: all of them."""
    if count <= MOST_COMPARED:
        return None
    return [row * count // MOST_COMPARED for row in range(MOST_COMPARED)]


def overlap(leaf: "LeafStats", data_type: PrimitiveType) -> tuple[float, float]:
    """The share of the files with bounds, and the share of all files that a search for one value reads.

    A file without bounds is read by each search.
    """
    bounds = bounds_of(leaf, data_type)
    pairs = list(zip(bounds.lower.to_pylist(), bounds.upper.to_pylist(), strict=True))
    known = [(low, high) for low, high in pairs if low is not None and high is not None]
    if known and isinstance(known[0][0], bytes):
        ranges = _of_strings(known)
    else:
        ranges = [(float(low), float(high)) for low, high in known]
    ranges = [(low, high) for low, high in ranges if math.isfinite(low) and math.isfinite(high) and low <= high]
    if not pairs:
        return 0.0, 0.0
    unknown = len(pairs) - len(ranges)
    return len(ranges) / len(pairs), (mean_depth(ranges) + unknown) / len(pairs)


def _of_strings(known: Sequence[tuple[bytes, bytes]]) -> list[tuple[float, float]]:
    """The bounds of strings as numbers in the same order, by the first bytes in which they differ."""
    sides = [side for pair in known for side in pair]
    first, last = min(sides), max(sides)
    skipped = next((i for i, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))

    def place(value: bytes) -> float:
        return float(int.from_bytes(value[skipped : skipped + _DIGITS].ljust(_DIGITS, b"\0"), "big"))

    # The upper bound ends with the byte 0xFF (see `bounds_of`), which would make a range of a single value.
    return [(place(low), place(high.removesuffix(b"\xff"))) for low, high in known]


def mean_depth(ranges: Sequence[tuple[float, float]]) -> float:
    """The mean number of ranges that contain a value; 0 if there is no range.

    The values are those of the rows: as many in each file, evenly spread between its bounds.
    """
    if not ranges:
        return 0.0
    points = sorted({side for pair in ranges for side in pair})
    place = {point: i for i, point in enumerate(points)}
    opened, closed = [0] * len(points), [0] * len(points)
    for low, high in ranges:
        opened[place[low]] += 1
        closed[place[high]] += 1
    begun, ended = list(accumulate(opened)), list(accumulate(closed))
    # Between two neighbouring points the number of ranges is constant.
    areas = ((begun[i] - ended[i]) * (after - before) for i, (before, after) in enumerate(pairwise(points)))
    integral = list(accumulate(areas, initial=0.0))
    total = 0.0
    for low, high in ranges:
        first, last = place[low], place[high]
        if first == last:
            total += begun[first] - ended[first] + closed[first]
        else:
            total += (integral[last] - integral[first]) / (high - low)
    return total / len(ranges)


def partition_lookup(files: "pa.Table", physical: str) -> float:
    """The number of files that a search for one value of a partition column reads, if each file is as likely."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = column_of(files.column("partitionValues"), physical)
    if len(values) == 0:
        return 0.0
    counts = pc.struct_field(pc.value_counts(values), "counts").cast(pa.float64())
    return (pc.sum(pc.multiply(counts, counts)).as_py() or 0.0) / len(values)
