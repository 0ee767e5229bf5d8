"""delta-rs and DuckDB (delta-kernel-rs) read every kind of table that we write, at every version."""

from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable as RustTable
from deltalake import QueryBuilder, write_deltalake
from pyspark.sql import SparkSession

from interop.tables import KINDS, append, numbers
from support.rows import assert_same_rows
from tablelog.core import DeltaLog
from tablelog.spark import DeltaTable


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    """DuckDB with its Delta extension, which its own package carries: nothing is fetched."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    extension = files("duckdb_extension_delta") / "extensions" / f"v{version('duckdb')}" / "delta.duckdb_extension"
    connection.execute(f"LOAD '{extension}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One table of each kind, by name."""
    root = tmp_path_factory.mktemp("kinds")
    for name, build in KINDS.items():
        build(spark, str(root / name))
    return {name: str(root / name) for name in KINDS}


def ours(spark: SparkSession, path: str, at: int) -> pa.Table:
    return spark.read.format("delta").option("versionAsOf", at).load(path).toArrow()


def by_query(path: str, at: int) -> pa.Table:
    """By delta-rs's own engine: its Arrow data sets know neither mapped columns (all null) nor deletion vectors."""
    found = QueryBuilder().register("t", RustTable(path, version=at)).execute("select * from t").read_all()
    return pa.table(found)


@pytest.mark.parametrize("name", KINDS)
def test_delta_rs_reads_every_version(spark: SparkSession, tables: dict[str, str], name: str) -> None:
    needs_engine = name.startswith(("mapped", "vectors"))
    for at in range(DeltaLog.for_path(tables[name]).snapshot().version + 1):
        path = tables[name]
        theirs = by_query(path, at) if needs_engine else RustTable(path, version=at).to_pyarrow_table()
        assert_same_rows(theirs, ours(spark, path, at))


@pytest.mark.parametrize("name", KINDS)
def test_duckdb_reads_every_version(
    spark: SparkSession, duck: duckdb.DuckDBPyConnection, tables: dict[str, str], name: str
) -> None:
    for at in range(DeltaLog.for_path(tables[name]).snapshot().version + 1):
        theirs = duck.sql(f"select * from delta_scan('{tables[name]}', version = {at})").to_arrow_table()
        expected = ours(spark, tables[name], at)
        if name.startswith("mapped"):  # of a partition column that is mapped it has no value, in anyone's tables
            theirs, expected = theirs.drop_columns(["the p"]), expected.drop_columns(["the p"])
        assert_same_rows(theirs, expected)


def test_delta_rs_and_we_take_turns_on_a_table_of_theirs(
    spark: SparkSession, duck: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
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
        duck.sql(f"select * from delta_scan('{path}')").to_arrow_table(),
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
