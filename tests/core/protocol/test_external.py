"""Which files outside of a table's directory may be read."""

from pathlib import Path

import pyarrow as pa
import pytest

from tablelog.core.protocol.external_paths import odd, one_of_each_store, refused

CASES = [
    # (table, path in the log, read under sameStore, read under refuse)
    ("s3://bucket/t", "p=1/a.parquet", True, True),
    ("s3://bucket/t", "s3a://bucket/t/a.parquet", True, True),
    ("s3a://bucket/t", "s3a://bucket/other/a.parquet", True, False),
    ("s3a://bucket/t", "/other/a.parquet", True, False),
    ("s3a://bucket/t", "../other/a.parquet", True, False),
    ("s3a://bucket/t", "%2e%2e/other/a.parquet", True, False),
    ("s3a://bucket/t", "x/../a.parquet", True, True),
    ("s3a://bucket/t", "s3a://else/t/a.parquet", False, False),
    ("s3a://bucket/t", "s3a://bucket.else/t/a.parquet", False, False),
    ("s3a://bucket/t", "s3a://key:secret@else/t/a.parquet", False, False),
    ("s3a://bucket/t", "file:///etc/passwd", False, False),
    ("s3a://bucket/t", "file:/etc/passwd", False, False),
    ("s3a://bucket/t", "FILE:///etc/passwd", False, False),
    ("s3a://bucket/t", "http://169.254.169.254/latest/meta-data", False, False),
    ("/data/t", "http://169.254.169.254/latest/meta-data", False, False),
    ("/data/t", "hdfs:///data/t/a.parquet", False, False),
    ("/data/t", "/data/t/a.parquet", True, True),
    ("file:///data/t", "file:/data/t/a.parquet", True, True),
    ("file:///data/t", "file://localhost/data/t/a.parquet", True, True),
    ("file:///data/t", "file://elsewhere/data/t/a.parquet", False, False),
    ("/data/t", "/data/t2/a.parquet", True, False),
    ("/data/t", "/data/t/../../etc/passwd", True, False),
    ("/data/t", "..%2F..%2Fetc/passwd", True, False),
    ("abfss://c@a.dfs.core.windows.net/t", "abfs://c@a.dfs.core.windows.net/x", True, False),
    ("abfss://c@a.dfs.core.windows.net/t", "abfss://d@a.dfs.core.windows.net/x", False, False),
    ("hdfs://nn:8020/t", "hdfs://NN/t/a.parquet", True, True),
    ("hdfs://user@nn/t", "hdfs://nn:8020/t/a.parquet", True, True),
    ("hdfs://nn/t", "hdfs://nn:9000/t/a.parquet", False, False),
    ("hdfs://nn/t", "webhdfs://nn/t/a.parquet", False, False),
    ("gs://b/t", "gcs://b/x", True, False),
]


@pytest.mark.parametrize(("table", "path", "same_store", "inside"), CASES)
def test_what_each_policy_allows(table: str, path: str, same_store: bool, inside: bool) -> None:
    assert refused(table, [path], "allow") is None
    assert (refused(table, ["a.parquet", path], "sameStore") is None) == same_store
    assert (refused(table, ["a.parquet", path], "refuse") is None) == inside


def test_columns_are_narrowed_to_what_may_be_refused() -> None:
    """What is left out of a column is never refused."""
    for table, path, same_store, inside in CASES:
        column = pa.chunked_array([["a.parquet", "p=1/b.parquet"], [path, path]], pa.string())
        assert (refused(table, odd(column), "refuse") is None) == inside
        assert len(one_of_each_store(column)) <= 1
        assert (refused(table, one_of_each_store(column), "sameStore") is None) == same_store
    assert odd(pa.chunked_array([["a b.parquet"]], pa.string())) == []
    assert one_of_each_store(pa.chunked_array([["s3:/x\ny", "s3:/z"]], pa.string())) == ["s3:/x\ny"]


def test_links_lead_out_of_a_table(tmp_path: Path) -> None:
    table = tmp_path / "t"
    table.mkdir()
    (tmp_path / "outside.parquet").touch()
    (table / "link.parquet").symlink_to(tmp_path / "outside.parquet")
    (table / "directory").symlink_to(tmp_path)
    (tmp_path / "other name").symlink_to(table)
    for path in ("link.parquet", "directory/outside.parquet"):
        assert refused(str(table), [path], "refuse") == path
        assert refused(str(table), [path], "sameStore") is None
    assert refused(str(tmp_path / "other name"), ["a.parquet", f"{table}/a.parquet"], "refuse") is None
