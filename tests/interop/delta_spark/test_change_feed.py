"""The change data feed and row ids: delta-spark reads what ours record, and we what it records (`make interop`)."""

from pathlib import Path
from typing import Any

import pytest
from benchmarks.worker import Worker
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tablelog.errors import TablelogError
from tablelog.spark import DeltaTable

FEED = "delta.enableChangeDataFeed"
KINDS: dict[str, dict[str, str]] = {
    "plain": {},
    "vectors": {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"},
}
THEIR_FEED = """
frame = spark.read.format("delta").option("readChangeFeed", "true").options(**{options}).load(path)
names = ("id", "p", "name", "_change_type", "_commit_version", "_commit_timestamp")
result = sorted([*row[:5], str(row[5])] for row in frame.select(*names).collect())
"""
WORK = """
table = DeltaTable.forPath(spark, path)
table.delete("id in (1, 2)")
table.update("id = 3", {"name": "'y'"})
source = spark.createDataFrame([(3, "z"), (5, "z"), (20, "new")], "id long, name string")
clauses = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate("s.id = 3", {"name": "s.name"})
clauses.whenMatchedDelete().whenNotMatchedInsert(values={"id": "s.id", "p": "0L", "name": "s.name"}).execute()
table.delete("p = 1")
spark.range(30, 32).selectExpr("id", "0L p", "'o' name").write.format("delta").mode("overwrite").option(
    "replaceWhere", "id >= 20").save(path)
table.restoreToVersion(2)
"""


def rows(spark: SparkSession, start: int, end: int) -> DataFrame:
    return spark.range(start, end).select("id", (F.col("id") % 2).alias("p"), F.lit("x").alias("name")).coalesce(1)


def create(spark: SparkSession, path: str, properties: dict[str, str]) -> None:
    writer = rows(spark, 0, 8).write.format("delta").partitionBy("p").option(FEED, "true")
    writer.options(**properties).save(path)


def work(spark: SparkSession, path: str) -> None:
    exec(WORK, {"spark": spark, "path": path, "DeltaTable": DeltaTable})


def our_feed(spark: SparkSession, path: str, **options: Any) -> list[list[Any]]:
    frame = spark.read.format("delta").options(readChangeFeed="true", **options).load(path)
    names = ("id", "p", "name", "_change_type", "_commit_version", "_commit_timestamp")
    return sorted([*row[:5], str(row[5])] for row in frame.select(*names).collect())


def their_feed(peer: Worker, path: str, **options: Any) -> list[list[Any]]:
    found: list[list[Any]] = peer("run", code=THEIR_FEED.replace("{options}", repr(options)), path=path)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_work_is_told_the_same(spark: SparkSession, peer: Worker, tmp_path: Path, kind: str) -> None:
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    for path in (ours, theirs):
        create(spark, path, KINDS[kind])
    work(spark, ours)
    peer("run", code=WORK, path=theirs)
    ours_by_us = our_feed(spark, ours, startingVersion=0)
    assert their_feed(peer, ours, startingVersion=0) == ours_by_us
    theirs_by_them = their_feed(peer, theirs, startingVersion=0)
    assert our_feed(spark, theirs, startingVersion=0) == theirs_by_them
    assert [one[:5] for one in ours_by_us] == [one[:5] for one in theirs_by_them]
    assert our_feed(spark, theirs, startingVersion=2, endingVersion=3) == their_feed(
        peer, theirs, startingVersion=2, endingVersion=3
    )


RANGES: list[dict[str, Any]] = [
    {"startingVersion": 3},
    {"startingVersion": 1, "endingVersion": 99},
    {"startingVersion": 2, "endingVersion": 1},
    {"startingVersion": 9},
    {"startingVersion": 0},
    {"startingTimestamp": "{first}", "endingTimestamp": "{last}"},
    {"startingTimestamp": "2000-01-01"},
    {"startingTimestamp": "{first}", "endingTimestamp": "2000-01-01"},
    {"startingTimestamp": "2100-01-01"},
    {"startingVersion": 1, "endingTimestamp": "2100-01-01"},
    {"endingVersion": 2},
]


def test_ranges_are_judged_the_same(spark: SparkSession, peer: Worker, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    rows(spark, 0, 2).write.format("delta").save(path)
    DeltaTable.forPath(spark, path).setProperties({FEED: "true"})
    for start in (2, 4):
        rows(spark, start, start + 2).write.format("delta").mode("append").save(path)
    times = {row.version: str(row.timestamp) for row in DeltaTable.forPath(spark, path).history().collect()}
    for options in RANGES:
        given = {k: v.format(first=times[1], last=times[3]) if isinstance(v, str) else v for k, v in options.items()}
        try:
            expected: Any = their_feed(peer, path, **given)
        except Exception:
            expected = None
        try:
            found: Any = our_feed(spark, path, **given)
        except TablelogError:
            found = None
        assert found == expected, given


THEIR_IDS = """
frame = spark.read.format("delta").load(path).select("id", "_metadata.row_id", "_metadata.row_commit_version")
result = sorted(list(row) for row in frame.collect())
"""


def test_row_ids(spark: SparkSession, peer: Worker, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    create(spark, path, {"delta.columnMapping.mode": "name", "delta.enableRowTracking": "true"})
    change = 'DeltaTable.forPath(spark, path).update("id = {id}", {{"name": "\'y\'"}})\n'
    delete = 'DeltaTable.forPath(spark, path).delete("id = {id}")\n'

    def ours() -> list[list[Any]]:
        frame = spark.read.format("delta").option("readRowIds", "true").load(path)
        return sorted(list(row) for row in frame.select("id", "_row_id", "_row_commit_version").collect())

    before = {row[0]: row[1] for row in ours()}
    scope = {"spark": spark, "path": path, "DeltaTable": DeltaTable}
    exec(change.format(id=1) + delete.format(id=2), scope)
    assert peer("run", code=THEIR_IDS, path=path) == ours()
    peer("run", code=change.format(id=3) + delete.format(id=4), path=path)
    exec(change.format(id=5), scope)
    found = ours()
    assert peer("run", code=THEIR_IDS, path=path) == found
    assert {row[0]: row[1] for row in found} == {key: value for key, value in before.items() if key not in (2, 4)}
    assert {row[0]: row[2] for row in found} == {0: 0, 1: 1, 3: 3, 5: 5, 6: 0, 7: 0}
