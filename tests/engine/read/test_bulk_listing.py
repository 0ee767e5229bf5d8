"""Where the files of a listing lie."""

import pyarrow as pa
import pytest

from tablelog.core.protocol import paths
from tablelog.engine.bulk_listing import uris


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
        ["a:b"],
    ],
)
def test_the_short_cut_for_plain_names_gives_the_same(root: str, names: list[str]) -> None:
    files = pa.table({"path": pa.array(names, pa.string())})
    assert uris(root, files) == [paths.absolute_uri(root, name) for name in names]
