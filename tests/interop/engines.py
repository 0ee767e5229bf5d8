"""Other engines that read a table with no Spark: each gives its rows as Arrow, or raises."""

from functools import cache
from importlib.metadata import version as version_of
from importlib.resources import files

import duckdb
import polars
import pyarrow as pa
from deltalake import DeltaTable as RustTable
from deltalake import QueryBuilder


@cache
def duck() -> duckdb.DuckDBPyConnection:
    """DuckDB with its Delta extension (delta-kernel-rs), which a package of its own carries: nothing is fetched."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    extension = files("duckdb_extension_delta") / "extensions" / f"v{version_of('duckdb')}" / "delta.duckdb_extension"
    connection.execute(f"LOAD '{extension}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def by_duckdb(path: str, at: int | None = None) -> pa.Table:
    version = "" if at is None else f", version = {at}"
    return duck().sql(f"select * from delta_scan('{path}'{version})").to_arrow_table()


def by_delta_rs(path: str, at: int | None = None) -> pa.Table:
    """By delta-rs's own engine: its Arrow data sets know neither mapped columns (all null) nor deletion vectors."""
    found = QueryBuilder().register("t", RustTable(path, version=at)).execute("select * from t").read_all()
    return pa.table(found)


def by_polars(path: str, at: int | None = None) -> pa.Table:
    """By Polars's own reader over delta-rs's log."""
    return polars.read_delta(path, version=at).to_arrow()


ENGINES = {"delta-rs": by_delta_rs, "DuckDB": by_duckdb, "Polars": by_polars}
