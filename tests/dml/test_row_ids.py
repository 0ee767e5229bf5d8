"""Row ids through commands that write rows again, and how a reader gets them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from support.spark_tables import Table
from tablelog.core import DeltaLog
from tablelog.errors import InvalidArgumentError

ON = {"delta.enableRowTracking": "true"}
IDS = ("_row_id", "_row_commit_version")


@pytest.fixture
def table(spark: SparkSession, tmp_path: Any) -> Table:
    return Table(spark, tmp_path / "table")


def rows(spark: SparkSession, start: int, end: int) -> DataFrame:
    return spark.range(start, end).select("id", F.lit("x").alias("name")).coalesce(1)


def ids(table: Table, **options: Any) -> dict[int, tuple[int, int]]:
    """Each row's id and commit version, by its column `id`."""
    found = table.read(readRowIds="true", **options)
    assert found.columns == ["id", "name", *IDS]
    collected = found.select("id", *IDS).collect()
    assert len({row[1] for row in collected}) == len(collected), "two rows with one id"
    return {row[0]: (row[1], row[2]) for row in collected}


@pytest.mark.one_case
@pytest.mark.parametrize(
    "properties",
    [{}, {"delta.columnMapping.mode": "id"}, {"delta.enableDeletionVectors": "true"}],
    ids=["plain", "mapped", "vectors"],
)
def test_rows_keep_their_ids(table: Table, conf: Callable[[str, str], None], properties: dict[str, str]) -> None:
    table.write(rows(table.spark, 0, 4), **ON, **properties)
    table.write(rows(table.spark, 4, 6))
    first = {0: (0, 0), 1: (1, 0), 2: (2, 0), 3: (3, 0), 4: (4, 1), 5: (5, 1)}
    assert ids(table) == first
    table.delta.delete("id in (1, 4)")
    left = {key: value for key, value in first.items() if key not in (1, 4)}
    assert ids(table) == left
    table.delta.update("id = 2", {"name": "'y'"})
    changed = {**left, 2: (2, 3)}
    assert ids(table) == changed
    source = table.spark.createDataFrame([(3, "z"), (7, "new")], "id long, name string")
    merged = table.delta.alias("t").merge(source.alias("s"), "t.id = s.id")
    merged.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    now = ids(table)
    new = now.pop(7)
    assert now == {**changed, 3: (3, 4)}
    assert new[0] > 5
    assert new[1] == 4
    table.delta.optimize().executeCompaction()
    assert len(table.logged_files()) > 3
    assert ids(table) == {**now, 7: new}
    conf("spark.tablelog.read.route", "arrow")
    assert ids(table) == {**now, 7: new}
    assert ids(table, versionAsOf=1) == first
    assert table.info()["tags"] == {"delta.rowTracking.preserved": "true"}


def test_new_rows_bring_no_hidden_columns(table: Table) -> None:
    table.write(rows(table.spark, 0, 2), **ON)
    table.write(rows(table.spark, 2, 4))
    stored = table.spark.read.parquet(str(table.root / "part-*.parquet"))
    assert stored.columns == ["id", "name"]
    table.delta.delete("id = 0")
    add = next(a["add"] for a in table.actions() if "add" in a)
    columns = table.spark.read.parquet(str(table.root / add["path"])).columns
    configuration = DeltaLog.for_path(table.path).snapshot().metadata.configuration
    assert columns == [
        "id",
        "name",
        configuration["delta.rowTracking.materializedRowIdColumnName"],
        configuration["delta.rowTracking.materializedRowCommitVersionColumnName"],
    ]
    assert set(json.loads(add["stats"])["minValues"]) == {"id", "name"}
    assert table.read().columns == ["id", "name"]


def test_ids_of_a_frame_follow_the_table_and_its_filters(table: Table) -> None:
    table.write(rows(table.spark, 0, 3), **ON)
    frame = table.read(readRowIds="true").where("_row_id > 0 and id < 9")
    assert frame.count() == 2
    table.write(rows(table.spark, 3, 4))
    assert frame.where("_row_commit_version = 1").count() == 1


def test_a_table_that_does_not_track_its_rows_has_no_ids(table: Table) -> None:
    table.write(rows(table.spark, 0, 1))
    with pytest.raises(InvalidArgumentError, match="row tracking is not enabled"):
        table.read(readRowIds="true")


def test_ids_of_a_table_that_begins_to_track_its_rows(table: Table) -> None:
    table.write(rows(table.spark, 0, 2))
    table.delta.setProperties(ON)
    before = ids(table)
    assert sorted(row_id for row_id, _ in before.values()) == [0, 1]
    table.delta.delete("id = 0")
    assert ids(table) == {1: before[1]}
