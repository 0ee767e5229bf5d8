"""DuckDB (by delta-kernel-rs) and delta-rs read a table through the files that we put beside the commits."""

from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import duckdb
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable as RustTable

from .log_tables import EXPECTED, KINDS, table, without_commits


@pytest.mark.parametrize("kind", KINDS)
def test_others_read_through_ours(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "table"
    path.mkdir()
    table(path, *KINDS[kind])
    if kind != "compacted":  # neither reads compactions yet, nor minds them
        without_commits(path, kind)
    duck = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    extension = files("duckdb_extension_delta") / "extensions" / f"v{version('duckdb')}" / "delta.duckdb_extension"
    duck.execute(f"LOAD '{extension}'")
    assert list(duck.sql(f"select count(*), sum(id) from delta_scan('{path}')").fetchall()[0]) == EXPECTED
    if not kind.startswith("v2"):  # delta-rs has no reader of its own for these
        rows = RustTable(str(path)).to_pyarrow_table()
        assert [rows.num_rows, pc.sum(rows["id"]).as_py()] == EXPECTED
