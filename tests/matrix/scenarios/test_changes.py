"""Changing a table: DELETE, UPDATE and MERGE by text and by Columns, deletion vectors, the change feed, maintenance."""

import os
import time
from typing import Any

import pytest
from pyspark.sql import functions as F

from connect.reading import by_core
from matrix.cells import CLASSIC, CONNECT
from support.rows import assert_same_rows
from support.spark_tables import Table

FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture(params=["plain", "vectors"])
def numbers(request: pytest.FixtureRequest, spark: Any, table: Table) -> Table:
    """The ids 0 to 7 with a name, in two partitions `p`, with and without deletion vectors."""
    frame = spark.range(8).selectExpr("id", "concat('n', id) name", "if(id < 4, 'low', 'high') p")
    table.write(frame.coalesce(1), by=("p",), **FEED, **(VECTORS if request.param == "vectors" else {}))
    return table


def changes(table: Table) -> list[tuple[Any, ...]]:
    """The change feed from version 1 on."""
    frame = table.read(readChangeFeed="true", startingVersion=1)
    return sorted(tuple(row) for row in frame.select("_commit_version", "id", "name", "_change_type").collect())


def test_by_text(spark: Any, numbers: Table) -> None:
    numbers.delta.delete("id = 1 or p = 'high' and name like '%7'")
    numbers.delta.update("id in (2, 6)", {"name": "concat(name, '!')"})
    source = spark.sql(
        "select * from values (3L, 'three', 'low'), (4L, 'four', 'high'), (9L, 'nine', 'new') s(id, name, p)"
    )
    merge = numbers.delta.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge = merge.whenMatchedDelete("s.id = 4").whenMatchedUpdate(set={"name": "s.name"}).whenNotMatchedInsertAll()
    merge.whenNotMatchedBySourceUpdate("t.id = 0", {"t.p": "'moved'"}).execute()
    assert numbers.rows() == [
        (0, "n0", "moved"),
        (2, "n2!", "low"),
        (3, "three", "low"),
        (5, "n5", "high"),
        (6, "n6!", "high"),
        (9, "nine", "new"),
    ]
    assert changes(numbers) == [
        (1, 1, "n1", "delete"),
        (1, 7, "n7", "delete"),
        (2, 2, "n2", "update_preimage"),
        (2, 2, "n2!", "update_postimage"),
        (2, 6, "n6", "update_preimage"),
        (2, 6, "n6!", "update_postimage"),
        (3, 0, "n0", "update_postimage"),
        (3, 0, "n0", "update_preimage"),
        (3, 3, "n3", "update_preimage"),
        (3, 3, "three", "update_postimage"),
        (3, 4, "n4", "delete"),
        (3, 9, "nine", "insert"),
    ]
    assert_same_rows(numbers.read().toArrow(), by_core(numbers.path))
    assert numbers.rows("id", versionAsOf=1) == [0, 2, 3, 4, 5, 6]


def test_by_columns(spark: Any, numbers: Table) -> None:
    numbers.delta.delete((F.col("p") == "high") & F.col("id").isin(5, 7))
    numbers.delta.update(F.col("id") == 6, {"name": F.upper(F.col("name")), "p": F.lit("six")})
    source = spark.range(2, 4).withColumnRenamed("id", "k")
    merge = numbers.delta.alias("t").merge(source.alias("s"), F.col("t.id") == F.col("s.k") + 1)
    merge = merge.whenMatchedUpdate(F.col("s.k") == 3, {"name": F.concat(F.col("t.name"), F.col("s.k").cast("string"))})
    merge.whenMatchedDelete().execute()
    assert numbers.rows() == [
        (0, "n0", "low"),
        (1, "n1", "low"),
        (2, "n2", "low"),
        (4, "n43", "high"),
        (6, "N6", "six"),
    ]
    assert [row[1:] for row in changes(numbers) if row[0] == 3] == [
        (3, "n3", "delete"),
        (4, "n4", "update_preimage"),
        (4, "n43", "update_postimage"),
    ]


@pytest.mark.only(CLASSIC)
def test_a_delete_marks_rows_in_a_deletion_vector(spark: Any, table: Table) -> None:
    table.write(spark.range(1000).coalesce(1), **VECTORS)
    before = table.data_files()
    table.delta.delete("id % 3 = 0")
    (added,) = [action["add"] for action in table.actions() if "add" in action]
    assert added["deletionVector"]["cardinality"] == 334
    assert {name for name in table.data_files() - before if name.endswith(".parquet")} == set()
    assert table.read().selectExpr("count(*)", "sum(id)").first() == (666, 332667)
    table.delta.delete("id < 10")
    assert table.read().where("id < 20").count() == 7
    assert table.read().count() == 660
    table.delta.restoreToVersion(1)
    assert table.read().count() == 666


@pytest.mark.only(CONNECT)
def test_a_delete_rewrites_files_on_connect(spark: Any, table: Table) -> None:
    table.write(spark.range(1000), **VECTORS)
    table.delta.delete("id % 3 = 0")
    assert not [a for a in table.actions() if "deletionVector" in a.get("add", {})]
    assert tuple(table.read().selectExpr("count(*)", "sum(id)").first()) == (666, 332667)


def test_optimize_and_vacuum(spark: Any, table: Table) -> None:
    for number in range(3):
        table.write(spark.range(number * 2, number * 2 + 2).coalesce(1))
    old = table.data_files()
    metrics = table.delta.optimize().executeCompaction().select("metrics.numFilesAdded", "metrics.numFilesRemoved")
    assert [tuple(row) for row in metrics.collect()] == [(1, 3)]
    (compacted,) = table.data_files() - old
    stray = table.root / "part-stray.parquet"
    stray.write_bytes(b"left by a writer that died")
    month_ago = time.time() - 30 * 86400
    os.utime(stray, (month_ago, month_ago))
    listed = [row.path for row in table.delta.vacuum(dryRun=True).collect()]
    assert [path.rpartition("/")[2] for path in listed] == [stray.name]
    assert stray.exists()
    table.delta.vacuum()
    assert table.data_files() == {compacted, *old}
    assert table.rows() == [0, 1, 2, 3, 4, 5]
    assert table.rows(versionAsOf=0) == [0, 1]
