"""Commands on a damaged or missing data file, in a session whose settings let Spark skip such files."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from support.spark_tables import Table
from tablelog.errors import MissingDataFileError, UnreadableDataFileError

ROWS = 200_000
COMMANDS: dict[str, Callable[[Table], Any]] = {
    "delete": lambda table: table.delta.delete("id = 5"),
    "update": lambda table: table.delta.update("id = 5", {"v": "1"}),
    "merge": lambda table: (
        table.delta.alias("t").merge(table.spark.range(5, 6).alias("s"), "t.id = s.id").whenMatchedDelete().execute()
    ),
    "merge by source": lambda table: (
        table.delta.alias("t")
        .merge(table.spark.range(5, 6).alias("s"), "t.id = s.id")
        .whenNotMatchedBySourceUpdate("t.id = 7", {"v": "0"})
        .execute()
    ),
    "compaction": lambda table: table.delta.optimize().executeCompaction(),
    "Z-order": lambda table: table.delta.optimize().executeZOrderBy("id"),
    "replaceWhere": lambda table: table.write(
        table.spark.range(5, 6).selectExpr("id", "0L AS v"), "overwrite", replaceWhere="id = 5"
    ),
    "CHECK": lambda table: table.delta.addConstraint("positive", "v >= 0"),
}


@pytest.fixture
def skipping(conf: Any) -> None:
    """Settings that let Spark leave out what it can't read."""
    conf("spark.sql.files.ignoreCorruptFiles", "true")
    conf("spark.sql.files.ignoreMissingFiles", "true")


def data_file(table: Table) -> Path:
    (path,) = table.root.glob("*.parquet")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("tracked", ["false", "true"])
def test_a_file_whose_last_rows_are_damaged(spark: SparkSession, tmp_path: Path, skipping: None, tracked: str) -> None:
    for number, (name, command) in enumerate(COMMANDS.items()):
        if tracked == "true" and name not in ("delete", "update", "compaction"):
            continue
        table = Table(spark, tmp_path / f"t{number}")
        rows = spark.range(ROWS).selectExpr("id", "id * 7919 % 1000003 AS v")
        table.write(rows.coalesce(1), **{"delta.enableRowTracking": tracked})
        path = data_file(table)
        if name == "compaction":  # of two files
            table.write(spark.range(1).selectExpr("id", "0L AS v"))
        content = bytearray(path.read_bytes())
        middle = len(content) * 6 // 10
        content[middle : middle + 20_000] = b"\xff" * 20_000
        path.write_bytes(content)
        (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
        assert pq.read_metadata(path).num_rows == ROWS
        version = table.version
        with pytest.raises(UnreadableDataFileError):
            command(table)
        assert table.version == version, name


@pytest.mark.parametrize("name", ["delete", "update", "merge", "compaction", "CHECK"])
def test_a_missing_file(spark: SparkSession, table: Table, skipping: None, name: str) -> None:
    table.write(spark.range(10).selectExpr("id", "id AS v").coalesce(1))
    os.remove(data_file(table))
    table.write(spark.range(10).selectExpr("id", "id AS v").coalesce(1))
    version = table.version
    with pytest.raises(MissingDataFileError):
        COMMANDS[name](table)
    assert table.version == version


def test_a_read_goes_by_the_session(spark: SparkSession, table: Table, skipping: None) -> None:
    table.write(spark.range(10).coalesce(1))
    os.remove(data_file(table))
    assert table.rows() == []
