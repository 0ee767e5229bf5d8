"""Where the files of a listing lie, and how many of their deletion bitmaps it keeps."""

from typing import Any

import pyarrow as pa
import pytest

from tablelog.core.protocol import paths
from tablelog.engine.read.bulk_listing import NO_VECTORS, Vectors, uris
from tablelog.errors import CorruptLogError


@pytest.mark.parametrize("root", ["file:///data/t", "file:///data/a%20t", "s3://bucket/t", "file:///"])
@pytest.mark.parametrize(
    "names",
    [
        [],
        ["part-0.parquet", "p=1/part-1.c000.snappy.parquet", "a_b/c=d/e"],
        ["plain.parquet", "p=a%2520b/x.parquet"],
        ["plain.parquet", "file:/elsewhere/x.parquet"],
        ["plain.parquet", "/elsewhere/x.parquet"],
        ["a//b", "./c", "d/../e", "d/./e", ".hidden", "d/.hidden", "x/"],
        ["ü.parquet"],
    ],
)
def test_the_short_cut_for_plain_names_gives_the_same(root: str, names: list[str]) -> None:
    files = pa.table({"path": pa.array(names, pa.string())})
    assert uris(root, files) == [paths.absolute_uri(root, name) for name in names]


def test_a_relative_path_with_a_scheme_is_refused() -> None:
    with pytest.raises(CorruptLogError, match="isn't a URI: after its scheme it is relative"):
        uris("file:///data/t", pa.table({"path": ["plain.parquet", "a:b"]}))


class Lists:
    """A gateway whose `Object[]` are lists of Python's."""

    def picked(self, values: list[Any], indices: pa.Array) -> list[Any]:
        return [values[i] for i in indices.to_pylist()]

    def joined(self, first: list[Any], second: list[Any]) -> list[Any]:
        return first + second


GATEWAY: Any = Lists()


def numbers(*values: int) -> pa.Array:
    return pa.array(values, pa.int32())


def held(kept: Vectors) -> list[tuple[str, int, int]]:
    found = [] if kept.directories is None else kept.directories
    return list(zip(found, kept.files.to_pylist(), kept.sizes.to_pylist(), strict=True))


def test_bitmaps_that_were_used_longest_ago_go_first() -> None:
    kept = NO_VECTORS.with_more(GATEWAY, ["a", "b"], numbers(3, 1), numbers(40, 50))
    kept = kept.with_more(GATEWAY, ["c"], numbers(7), numbers(30))
    assert held(kept) == [("a", 3, 40), ("b", 1, 50), ("c", 7, 30)]
    assert kept.trimmed(GATEWAY, numbers(3), 120) is kept, "there is room for all"
    assert held(kept.trimmed(GATEWAY, numbers(3), 100)) == [("c", 7, 30), ("a", 3, 40)]
    assert held(kept.trimmed(GATEWAY, numbers(7, 1), 80)) == [("b", 1, 50), ("c", 7, 30)]
    assert held(kept.trimmed(GATEWAY, numbers(1), 49)) == []
    assert held(kept.trimmed(GATEWAY, numbers(1), 49).with_more(GATEWAY, ["d"], numbers(3), numbers(1))) == [
        ("d", 3, 1)
    ]
