"""TPC-H and TPC-DS: tables and texts of the queries, from DuckDB's extensions, which two packages of PyPI carry."""

from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import duckdb

GENERATORS = {"tpch": "dbgen", "tpcds": "dsdgen"}


def generator(benchmark: str) -> duckdb.DuckDBPyConnection:
    """A database in memory with the extension `tpch` or `tpcds`; nothing is fetched."""
    connection = duckdb.connect()
    packaged = files(f"duckdb_extension_{benchmark}") / "extensions" / f"v{version('duckdb')}"
    connection.execute(f"LOAD '{packaged / f'{benchmark}.duckdb_extension'}'")
    return connection


def generate(connection: duckdb.DuckDBPyConnection, benchmark: str, scale: float) -> list[str]:
    """Fill the tables of the benchmark, and return their names. At scale 1 the data are 1 GB of text."""
    connection.execute(f"CALL {GENERATORS[benchmark]}(sf = {scale})")
    names = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY table_name").fetchall()
    return [name for (name,) in names]


def write_parquet(connection: duckdb.DuckDBPyConnection, names: list[str], directory: Path) -> None:
    """Write each table as `<directory>/<name>.parquet`."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        connection.execute(f"COPY {name} TO '{directory / name}.parquet' (FORMAT parquet)")


def queries(benchmark: str) -> dict[int, str]:
    """The texts of the queries by their numbers. Double quotes in them are around names of columns."""
    found = generator(benchmark).execute(f"FROM {benchmark}_queries()").fetchall()
    return {number: text.strip().rstrip(";").rstrip() for number, text in found}
