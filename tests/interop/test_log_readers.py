"""DuckDB (by delta-kernel-rs), delta-rs and Polars read a table through the files that we put beside the commits."""

from pathlib import Path

import pyarrow.compute as pc
import pytest

from .engines import by_delta_rs, by_duckdb, by_polars
from .log_tables import EXPECTED, KINDS, table, without_commits


@pytest.mark.parametrize("kind", KINDS)
def test_others_read_through_ours(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "table"
    path.mkdir()
    table(path, *KINDS[kind])
    if kind != "compacted":  # neither reads compactions yet, nor minds them
        without_commits(path, kind)
    readers = [by_duckdb]
    if not kind.startswith("v2"):  # neither has a reader of its own for these
        readers += [by_delta_rs, by_polars]
    for read in readers:
        rows = read(str(path))
        assert [rows.num_rows, pc.sum(rows["id"]).as_py()] == EXPECTED, read.__name__
