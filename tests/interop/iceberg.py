"""pyiceberg and DuckDB read a table by its Iceberg metadata, found by the table's path alone."""

from functools import cache
from importlib.metadata import version as version_of
from importlib.resources import files

import duckdb
import pyarrow as pa
from pyiceberg.table import StaticTable


def table_at(path: str) -> StaticTable:
    return StaticTable.from_metadata(path)


def snapshot_of(path: str, at: int) -> int:
    """The id of the snapshot of a version of the log."""
    found = [
        s.snapshot_id for s in table_at(path).metadata.snapshots if s.summary and s.summary["delta-version"] == str(at)
    ]
    return found[-1]


def by_pyiceberg(path: str, at: int | None = None, where: str = "true") -> pa.Table:
    snapshot = None if at is None else snapshot_of(path, at)
    return table_at(path).scan(row_filter=where, snapshot_id=snapshot).to_arrow()


@cache
def duck() -> duckdb.DuckDBPyConnection:
    """DuckDB with its Iceberg extension, which a package of its own carries: nothing is fetched."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in ("avro", "iceberg"):
        folder = files(f"duckdb_extension_{name}") / "extensions" / f"v{version_of('duckdb')}"
        connection.execute(f"LOAD '{folder / f'{name}.duckdb_extension'}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def by_duckdb(path: str, at: int | None = None, where: str = "true") -> pa.Table:
    snapshot = "" if at is None else f", snapshot_from_id = {snapshot_of(path, at)}"
    return duck().sql(f"select * from iceberg_scan('{path}'{snapshot}) where {where}").to_arrow_table()


READERS = {"pyiceberg": by_pyiceberg, "DuckDB": by_duckdb}
