"""delta-rs, DuckDB (delta-kernel-rs) and Polars read every kind of table that we write, at every version."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable as RustTable
from deltalake import write_deltalake
from deltalake.exceptions import DeltaProtocolError
from pyspark.sql import SparkSession

from interop.engines import by_delta_rs, by_duckdb, by_polars
from interop.tables import KINDS, append, numbers
from support.rows import assert_same_rows
from tablelog.core import DeltaLog
from tablelog.spark import DeltaTable


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One table of each kind, by name."""
    root = tmp_path_factory.mktemp("kinds")
    for name, build in KINDS.items():
        build(spark, str(root / name))
    return {name: str(root / name) for name in KINDS}


def ours(spark: SparkSession, path: str, at: int) -> pa.Table:
    return spark.read.format("delta").option("versionAsOf", at).load(path).toArrow()


@pytest.mark.parametrize("name", KINDS)
def test_delta_rs_reads_every_version(spark: SparkSession, tables: dict[str, str], name: str) -> None:
    needs_engine = name.startswith(("mapped", "vectors"))
    for at in range(DeltaLog.for_path(tables[name]).snapshot().version + 1):
        path = tables[name]
        theirs = by_delta_rs(path, at) if needs_engine else RustTable(path, version=at).to_pyarrow_table()
        assert_same_rows(theirs, ours(spark, path, at))


@pytest.mark.parametrize("name", KINDS)
def test_duckdb_reads_every_version(spark: SparkSession, tables: dict[str, str], name: str) -> None:
    for at in range(DeltaLog.for_path(tables[name]).snapshot().version + 1):
        theirs = by_duckdb(tables[name], at)
        expected = ours(spark, tables[name], at)
        if name.startswith("mapped"):  # of a partition column that is mapped it has no value, in anyone's tables
            theirs, expected = theirs.drop_columns(["the p"]), expected.drop_columns(["the p"])
        assert_same_rows(theirs, expected)


@pytest.mark.parametrize("name", KINDS)
def test_polars_reads_every_version(spark: SparkSession, tables: dict[str, str], name: str) -> None:
    for at in range(DeltaLog.for_path(tables[name]).snapshot().version + 1):
        if name.startswith("mapped"):
            with pytest.raises(DeltaProtocolError, match="column mapping"):
                by_polars(tables[name], at)
        else:
            assert_same_rows(by_polars(tables[name], at), ours(spark, tables[name], at))


def test_delta_rs_and_we_take_turns_on_a_table_of_theirs(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "turns")
    first = pa.table({"id": pa.array(range(20), pa.int64()), "p": pa.array(["a", "b"] * 10)})
    write_deltalake(path, first, partition_by=["p"])
    append(spark.createDataFrame([(100, "c"), (101, "a")], "id long, p string"), path)
    DeltaTable.forPath(spark, path).delete("id < 3")
    DeltaTable.forPath(spark, path).delete("p = 'b'")
    expected = [*range(4, 20, 2), 100, 101]
    assert sorted(RustTable(path).to_pyarrow_table()["id"].to_pylist()) == expected
    RustTable(path).delete("id = 100")
    write_deltalake(path, first.slice(0, 1), mode="append")
    append(spark.createDataFrame([(102, "z")], "id long, p string"), path)
    expected = sorted([*expected, 0, 102])
    expected.remove(100)
    for rows in (
        RustTable(path).to_pyarrow_table(),
        by_duckdb(path),
        by_polars(path),
        spark.read.format("delta").load(path).toArrow(),
    ):
        assert sorted(rows["id"].to_pylist()) == expected


def test_delta_rs_continues_a_table_of_ours_past_our_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "continued")
    KINDS["with_checkpoints"](spark, path)
    before = spark.read.format("delta").load(path).count()
    write_deltalake(path, numbers(spark, 900, 905).toArrow(), mode="append")
    RustTable(path).create_checkpoint()
    append(numbers(spark, 905, 910), path)
    assert spark.read.format("delta").load(path).count() == before + 10
    assert RustTable(path).to_pyarrow_table().num_rows == before + 10
