"""Estimates how many files a lookup of one value reads; a measure for the layout of a table."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Lookup:
    """The average number of files and bytes that a filter for one value of a column reads."""

    files: float
    bytes: float


def lookup(values: pa.Array, lows: pa.Array, highs: pa.Array, sizes: pa.Array) -> Lookup:
    """The average cost of looking up each of `values`, by the bounds of each file; files without bounds are read."""
    weights = np.asarray(sizes.to_pylist(), dtype=np.float64)
    known = np.asarray([low is not None and high is not None for low, high in _pairs(lows, highs)], dtype=bool)
    always = Lookup(float((~known).sum()), float(weights[~known].sum()))
    if not len(values):
        return always
    wanted = _array(values.to_pylist())
    begun = _summed(_array(lows.to_pylist(), known), weights[known], wanted, side="right")
    ended = _summed(_array(highs.to_pylist(), known), weights[known], wanted, side="left")
    files, size = (begun[0] - ended[0]).mean(), (begun[1] - ended[1]).mean()
    return Lookup(always.files + float(files), always.bytes + float(size))


def _pairs(lows: pa.Array, highs: pa.Array) -> "zip[tuple[Any, Any]]":
    return zip(lows.to_pylist(), highs.to_pylist(), strict=True)


def _array(values: list[Any], known: Any = None) -> Any:
    if known is not None:
        values = [value for value, keep in zip(values, known, strict=True) if keep]
    if values and isinstance(values[0], str | bytes):
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array
    return np.asarray(values)


def _summed(bounds: Any, weights: Any, wanted: Any, *, side: Any) -> tuple[Any, Any]:
    """For each wanted value, the count and total weight of the bounds <= the value (< if `side` is "left")."""
    order = np.argsort(bounds, kind="stable")
    at = np.searchsorted(bounds[order], wanted, side=side)
    return at, np.concatenate([[0.0], np.cumsum(weights[order])])[at]
