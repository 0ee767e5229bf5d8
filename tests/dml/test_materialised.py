"""Partition columns in the data files: as Iceberg wants them, and the feature materializePartitionColumns."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from support.spark_tables import Table
from tablelog.core.protocol.paths import decode

ROWS = [(b"ab", "a", 1), (None, "b", 2), (b"ab", None, 3), (b"z", "c", 4)]


def files(table: Table, version: int | None = None) -> dict[str, list[Any]]:
    """The rows of each file of a commit, partition values as the log has them first."""
    found = {}
    for action in table.actions(version):
        if "add" in action:
            path = decode(action["add"]["path"])
            data = pq.read_table(Path(table.path, path), partitioning=None)
            found[path] = [list(action["add"]["partitionValues"].values()), data.column_names, data.to_pylist()]
    return found


@pytest.mark.one_case
@pytest.mark.parametrize("route", ["small", "native", "arrow"])
def test_files_hold_the_partition_columns_last(table: Table, conf: Any, route: str) -> None:
    if route == "arrow":
        conf("spark.tablelog.write.route", "arrow")
    options = {} if route == "small" else {"maxRecordsPerFile": "1"}
    frame = table.spark.createDataFrame(ROWS, "p binary, v string, w int")
    asked = {"delta.enableMaterializePartitionColumnsFeature": "true"}
    table.write(frame, by=("p",), **asked, **options)
    protocol = next(action["protocol"] for action in table.actions() if "protocol" in action)
    assert "materializePartitionColumns" in protocol["writerFeatures"]
    found = files(table)
    assert {tuple(names) for _, names, _ in found.values()} == {("v", "w", "p")}
    assert sorted((row["w"], row["p"]) for _, _, rows in found.values() for row in rows) == [
        (1, b"ab"), (2, None), (3, b"ab"), (4, b"z"),
    ]  # fmt: skip
    for action in table.actions():
        if "add" in action:
            assert "p" not in json.loads(action["add"]["stats"])["nullCount"]
    table.delta.delete("v = 'a'")
    assert table.read().where("p = X'6162'").select("w").collect() == [(3,)]
    assert {tuple(names) for _, names, _ in files(table).values()} <= {("v", "w", "p")}


def test_a_table_for_iceberg(table: Table) -> None:
    frame = table.spark.createDataFrame([(1, "x"), (2, "y")], "a int, p string")
    table.write(frame, by=("p",), **{"delta.enableIcebergCompatV1": "true", "delta.randomizeFilePrefixes": "true"})
    for path, (_, names, rows) in files(table).items():
        assert len(path.split("/")[0]) == 2, "a random prefix"
        assert all(name.startswith("col-") for name in names)
        assert len(rows) == 1
        assert set(rows[0].values()) in ({1, "x"}, {2, "y"})
    assert table.rows() == [(1, "x"), (2, "y")]
