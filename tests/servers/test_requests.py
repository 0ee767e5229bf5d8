"""The requests of each command on S3, of the log and of the data files, are those of the formulas in docs/stores.md.

The other commands are in test_requests_of_changes.py and test_requests_of_maintenance.py; see counted.py.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from .counted import COMMIT, SIZES, Counted
from .programs import run_program
from .stream_requests import BATCHES


@SIZES
def test_an_append_writes_its_files_and_two_of_the_log(counted: Counted, f: int) -> None:
    counted.table(f)
    assert counted.cost(lambda: counted.append(f)) == {**COMMIT, "data PUT": f}


@SIZES
def test_a_delete_of_partitions_touches_only_the_log(counted: Counted, f: int) -> None:
    table = counted.table(f)
    assert counted.cost(lambda: table.delete("p >= 1")) == COMMIT


@SIZES
def test_an_update_reads_each_file_twice_and_writes_it_once(counted: Counted, f: int) -> None:
    table = counted.table(f)
    expected = {**COMMIT, "data GET": 2 * f, "data PUT": f, "data LIST": 1}
    assert counted.cost(lambda: table.update("x >= 0", {"x": "x + 1"})) == expected
    expected = {"log LIST": 2, "log GET": 2, "log PUT": 2, "data HEAD": f}
    assert counted.cost(lambda: table.restoreToVersion(0)) == expected


@SIZES
def test_a_merge_costs_what_an_update_does(counted: Counted, f: int) -> None:
    table = counted.table(f)
    source = counted.spark.createDataFrame([(number,) for number in range(f)], "id long")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"x": "t.x + 1"})
    expected = {**COMMIT, "data GET": 2 * f, "data PUT": f, "data LIST": 1}
    assert counted.cost(merge.execute) == expected


@SIZES
def test_optimize_reads_each_file_once(counted: Counted, f: int) -> None:
    table = counted.table(1)
    for _ in range(f - 1):
        counted.append(1)
    expected = {**COMMIT, "data GET": f, "data PUT": 1, "data LIST": 1}
    assert counted.cost(lambda: table.optimize().executeCompaction()) == expected


@SIZES
def test_a_read_is_a_request_for_each_file(counted: Counted, f: int) -> None:
    table = counted.table(f)
    assert counted.cost(lambda: table.toDF().collect()) == {"log LIST": 1, "data GET": f}


@pytest.mark.timeout(600)
def test_batches_of_streams(minio: Any, tmp_path: Path, jars: str) -> None:
    """From a table of `b` commits of a file each, one file in a batch: no more with more batches. And into a table."""
    found = json.loads(run_program(minio, tmp_path, "servers.stream_requests", jars, str(tmp_path)))
    assert found["source"] == [[b, {"log LIST": 6}] for b in BATCHES]
    assert found["sink"] == [[b, {"log LIST": b, "log PUT": 2 * b}] for b in BATCHES]
