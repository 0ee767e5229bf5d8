"""Symlink manifests: where Hive looks for them, what they name, and that they follow the table."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.spark_tables import Table
from tablelog.core.table.manifest import PROPERTY
from tablelog.errors import InvalidArgumentError, UnsupportedFeatureError

MODE = "symlink_format_manifest"


def manifests(table: Table) -> dict[str, str]:
    """The text of each manifest by its directory."""
    root = table.root / "_symlink_format_manifest"
    found = {path.parent.relative_to(root).as_posix(): path.read_text() for path in root.rglob("manifest")}
    assert {path.name for path in root.rglob("*") if path.is_file()} <= {"manifest"}
    return found


def read(table: Table) -> list[int]:
    """The ids that a reader has which knows nothing but the manifests."""
    lines = [line for text in manifests(table).values() for line in text.splitlines()]
    assert all(line.startswith("file:/") for line in lines)
    parts = [pq.ParquetFile(Path(line.removeprefix("file:"))).read() for line in lines]
    return sorted(pa.concat_tables(parts)["id"].to_pylist()) if parts else []


def test_a_whole_table_and_each_partition_where_hive_looks(spark, tmp_path):
    table = Table(spark, tmp_path / "a table")
    rows = spark.createDataFrame([(1, "x y", None), (2, "a/b=c", None), (3, None, 0)], "id long, p string, s int")
    rows = rows.selectExpr("id", "p", "timestamp_seconds(s) t")
    table.write(rows, by=("p", "t"))
    table.delta.generate(MODE)
    null = "__HIVE_DEFAULT_PARTITION__"
    assert set(manifests(table)) == {
        *(f"p=x y/t={null}", f"p=a%2Fb%3Dc/t={null}", f"p={null}/t=1970-01-01 00%3A00%3A00")
    }
    assert read(table) == [1, 2, 3]
    table.delta.delete("id = 1")
    assert read(table) == [1, 2, 3]  # until it is asked for again
    table.delta.generate(MODE.upper())
    assert read(table) == [2, 3]
    assert len(manifests(table)) == 2


def test_it_follows_each_commit_where_the_table_wants_it(spark, tmp_path):
    table = Table(spark, tmp_path / "table")
    table.write(spark.range(6).selectExpr("id", "id % 3 p").coalesce(1), by=("p",), **{PROPERTY: "true"})
    assert read(table) == [0, 1, 2, 3, 4, 5]
    untouched = table.root / "_symlink_format_manifest/p=2/manifest"
    before = untouched.stat().st_mtime_ns
    table.write(spark.range(6, 8).selectExpr("id", "id % 3 p").coalesce(1))
    table.delta.delete("p = 1")
    assert read(table) == [0, 2, 3, 5, 6]
    assert set(manifests(table)) == {"p=0", "p=2"}
    assert untouched.stat().st_mtime_ns == before
    flat = Table(spark, tmp_path / "flat")
    flat.write(spark.range(2).coalesce(1), **{PROPERTY: "true"})
    flat.delta.delete()
    assert manifests(flat) == {".": ""}


def test_what_readers_would_misread_is_refused(spark, tmp_path):
    table = Table(spark, tmp_path / "mapped")
    table.write(spark.range(2), **{"delta.columnMapping.mode": "name"})
    with pytest.raises(UnsupportedFeatureError, match="has column mapping"):
        table.delta.generate(MODE)
    with pytest.raises(InvalidArgumentError, match="hudi"):
        table.delta.generate("hudi")
    with pytest.raises(InvalidArgumentError, match="deletion vectors"):
        Table(spark, tmp_path / "both").write(
            spark.range(2), **{PROPERTY: "true", "delta.enableDeletionVectors": "true"}
        )
    assert not (table.root / "_symlink_format_manifest").exists()
