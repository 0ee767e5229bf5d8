"""A report of a table with a million files."""

import time
from pathlib import Path

import pytest
from benchmarks.large_log import make

from tablelog.report import report


@pytest.mark.slow
def test_a_million_files_take_less_than_ten_seconds(tmp_path: Path) -> None:
    make(tmp_path / "table", 1_000_000, 4)
    begun = time.process_time()  # not the time on the wall, which depends on what else the machine does
    of = report(str(tmp_path / "table"))
    page = of.to_html()
    assert time.process_time() - begun < 10
    assert of.facts.files.count == 1_000_000
    assert of.facts.files.rows == 1_000_000_000
    assert of.facts.partitions.count == 365
    columns = {column.name: column.lookup for column in of.facts.skipping.columns}
    assert columns["id"] == pytest.approx(50, abs=1)  # one of 20,000 files that stand for a million
    assert columns["k"] > 300_000
    assert len(page) < 200_000
