"""The change data feed: what commands record, and what `readChangeFeed` gives of a range of versions."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from support.spark_tables import Table
from tablelog.core import DeltaLog
from tablelog.core.log import large_commits
from tablelog.core.txn.operation import Operation
from tablelog.dml.command import change_data as changes
from tablelog.dml.command.command import Command
from tablelog.errors import (
    ChangeDataMissingError,
    ChangeFeedSchemaError,
    InvalidArgumentError,
    SchemaMismatchError,
    TimestampOutOfRangeError,
    VersionNotFoundError,
)

ON = {"delta.enableChangeDataFeed": "true"}
META = ("_change_type", "_commit_version")


def rows(spark: SparkSession, start: int, end: int) -> DataFrame:
    return spark.range(start, end).select("id", (F.col("id") % 2).alias("p"), F.lit("x").alias("name")).coalesce(1)


def feed(table: Table, start: Any = 0, end: Any = None, **options: Any) -> DataFrame:
    wanted = {"readChangeFeed": "true", "startingVersion": start, **options}
    if end is not None:
        wanted["endingVersion"] = end
    return table.read(**wanted)


def told(frame: DataFrame) -> list[tuple[Any, ...]]:
    """(id, name, change, version) in order."""
    return sorted(map(tuple, frame.select("id", "name", *META).collect()))


def of(version: int, change: str, *ids: int, name: str = "x") -> list[tuple[Any, ...]]:
    return [(one, name, change, version) for one in ids]


MAPPED = {"delta.columnMapping.mode": "id"}
VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.mark.one_case
@pytest.mark.parametrize("properties", [{}, MAPPED, VECTORS], ids=["plain", "mapped", "vectors"])
def test_all_that_commands_change(
    table: Table, conf: Callable[[str, str], None], properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = table.spark
    table.write(rows(spark, 0, 4), by=("p",), **ON, **properties)
    table.write(rows(spark, 4, 6))
    table.delta.delete("id in (1, 2)")
    table.delta.update("id = 3", {"name": "'y'"})
    table.delta.delete("p = 0")
    table.write(rows(spark, 8, 9), mode="overwrite")
    table.delta.delete("id = -1")  # nothing matches, nothing is committed
    expected = sorted(
        [
            *of(0, "insert", 0, 1, 2, 3),
            *of(1, "insert", 4, 5),
            *of(2, "delete", 1, 2),
            *of(3, "update_preimage", 3),
            *of(3, "update_postimage", 3, name="y"),
            *of(4, "delete", 0, 4),
            *of(5, "delete", 3, name="y"),
            *of(5, "delete", 5),
            *of(5, "insert", 8),
        ]
    )
    whole = feed(table)
    assert whole.columns == ["id", "p", "name", "_change_type", "_commit_version", "_commit_timestamp"]
    assert told(whole) == expected
    assert told(feed(table, 2, 3)) == [one for one in expected if one[3] in (2, 3)]
    assert told(whole.where("_commit_version < 2 and _change_type = 'insert' and p = 0")) == of(0, "insert", 0, 2) + of(
        1, "insert", 4
    )
    times = whole.select("_commit_version", "_commit_timestamp").distinct().collect()
    with monkeypatch.context() as patched:
        patched.setattr(large_commits, "LARGE_COMMIT", 0)  # so the files of each commit are in columns
        assert told(feed(table)) == expected
        assert sorted(feed(table).select("_commit_version", "_commit_timestamp").distinct().collect()) == sorted(times)
        found = feed(table).where("_commit_version < 2 and _change_type = 'insert' and p = 0")
        assert told(found) == of(0, "insert", 0, 2) + of(1, "insert", 4)
    conf("spark.tablelog.read.scratch", str(table.root.parent / "scratch"))
    for route, largest in (("arrow", None), ("arrow", 0), ("manifest", None)):
        conf("spark.tablelog.read.route", route)
        with monkeypatch.context() as patched:
            if largest is not None:
                patched.setattr(large_commits, "LARGE_COMMIT", largest)
            assert told(feed(table)) == expected
    assert table.rows("id") == [8]


def test_an_overwrite_by_condition_tells_no_row_that_stays(table: Table) -> None:
    table.write(rows(table.spark, 0, 6), **ON)
    table.write(rows(table.spark, 2, 4), mode="overwrite", replaceWhere="id >= 2 and id < 5")
    assert told(feed(table, 1)) == sorted(of(1, "delete", 2, 3, 4) + of(1, "insert", 2, 3))
    assert table.info()["operationMetrics"]["numAddedChangeFiles"] == "2"
    assert table.rows("id") == [0, 1, 2, 3, 5]


def test_rearranged_rows_are_no_change(table: Table) -> None:
    table.write(rows(table.spark, 0, 2), **ON)
    table.write(rows(table.spark, 2, 4))
    table.write(table.read().coalesce(1), mode="overwrite", dataChange="false")
    assert told(feed(table, 2)) == []
    assert told(feed(table, 1)) == of(1, "insert", 2, 3)


def test_change_files_lie_beside_the_table(table: Table) -> None:
    table.write(rows(table.spark, 0, 4), by=("p",), **ON)
    work = Command.on(table.spark, DeltaLog.for_path(table.path))
    assert changes.wanted(work)
    frame = table.read().where("id < 3").withColumn("_change_type", F.lit("delete")).withColumn("more", F.lit(1))
    with work.discarded_on_failure():
        made = changes.write(work, frame.drop("name"))
        assert [(one.partition_values, one.path.rpartition("/")[0]) for one in made] == [
            ({"p": "0"}, "_change_data/p=0"),
            ({"p": "1"}, "_change_data/p=1"),
        ]
        work.commit(made, Operation("TEST"))
    assert told(feed(table, 1)) == of(1, "delete", 0, 1, 2, name=None)  # type: ignore[arg-type]
    assert table.rows("id") == [0, 1, 2, 3]
    before = table.data_files()
    with pytest.raises(ZeroDivisionError):
        fail_after_writing(table, frame)
    assert table.data_files() == before


def fail_after_writing(table: Table, frame: DataFrame) -> None:
    work, before = Command.on(table.spark, DeltaLog.for_path(table.path)), table.data_files()
    with work.discarded_on_failure():
        changes.write(work, frame.repartition(2))
        assert table.data_files() > before
        raise ZeroDivisionError


def test_times_are_those_of_the_history(table: Table) -> None:
    for start in (0, 2):
        table.write(rows(table.spark, start, start + 2), **ON)
    times = {row.version: row.timestamp for row in table.delta.history().collect()}
    found = {row._commit_version: row._commit_timestamp for row in feed(table).collect()}
    assert found == times
    wanted = {"readChangeFeed": "true", "startingTimestamp": str(times[1]), "endingTimestamp": str(times[1])}
    assert told(table.read(**wanted)) == of(1, "insert", 2, 3)
    later = str(datetime(2100, 1, 1, tzinfo=UTC))
    with pytest.raises(TimestampOutOfRangeError):
        table.read(readChangeFeed="true", startingTimestamp=later)


def test_a_range_is_checked(table: Table, conf: Callable[[str, str], None]) -> None:
    table.write(rows(table.spark, 0, 2), **ON)
    for wrong, says in [
        ({}, "No startingVersion or startingTimestamp"),
        ({"startingVersion": 0, "startingTimestamp": "2020-01-01"}, "Multiple starting arguments"),
        ({"startingVersion": 0, "endingVersion": 0, "endingTimestamp": "2020-01-01"}, "Multiple ending arguments"),
        ({"startingVersion": "latest"}, "startingVersion needs to be a version"),
        ({"startingVersion": 0, "versionAsOf": 0}, "leave out versionAsOf"),
        ({"startingVersion": 0, "readRowIds": "true"}, "readRowIds"),
    ]:
        with pytest.raises(InvalidArgumentError, match=says):
            table.read(readChangeFeed="true", **wrong)
    with pytest.raises(VersionNotFoundError, match="newest version is 0"):
        feed(table, 1)
    conf("spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled", "true")
    assert feed(table, 1).count() == 0
    assert feed(table, 0, 9).count() == 2


def test_only_recorded_changes_are_told(table: Table) -> None:
    table.write(rows(table.spark, 0, 2))
    with pytest.raises(ChangeDataMissingError, match="version 0 has no change data"):
        feed(table)
    table.delta.setProperties(ON)
    assert feed(table, 1).count() == 0
    table.write(rows(table.spark, 2, 3))
    assert told(feed(table, 1)) == of(2, "insert", 2)
    with pytest.raises(ChangeDataMissingError, match="from version 0 to 2"):
        feed(table)


def test_schemas_of_the_range(table: Table) -> None:
    table.write(rows(table.spark, 0, 1).drop("p"), **ON, **{"delta.columnMapping.mode": "name"})
    wider = rows(table.spark, 1, 2).drop("p").withColumn("more", F.lit(7))
    table.write(wider, mergeSchema="true")
    assert sorted(map(tuple, feed(table).select("id", "more").collect())) == [(0, None), (1, 7)]
    assert feed(table, 0, 0).columns[:2] == ["id", "name"]
    assert "more" not in feed(table, 0, 0).columns  # mapped: with the columns of the range's last version
    table.delta.renameColumn("more", "other")
    assert told(feed(table, 0, 1)) == of(0, "insert", 0) + of(1, "insert", 1)
    assert feed(table, 2).count() == 0
    with pytest.raises(ChangeFeedSchemaError, match="the column more was renamed to other"):
        feed(table, 1)


@pytest.mark.parametrize("layout", ["", "PARTITIONED BY (v)"])
def test_a_range_begins_where_rows_of_another_type_are_removed(table: Table, layout: str) -> None:
    spark, name = table.spark, f"delta.`{table.path}`"
    properties = "'delta.enableTypeWidening' = 'true', 'delta.enableChangeDataFeed' = 'true'"
    spark.sql(f"CREATE TABLE {name} (id INT, v SMALLINT) USING delta {layout} TBLPROPERTIES ({properties})")
    spark.sql(f"INSERT INTO {name} VALUES (1, 1)")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN v TYPE BIGINT")
    spark.sql(f"INSERT INTO {name} VALUES (2, 9999999999)")
    spark.sql(f"RESTORE {name} TO VERSION AS OF 1")
    with pytest.raises(ChangeFeedSchemaError, match="version 4 removes rows of other types: the column v changed from"):
        feed(table, 4)
    spark.sql(f"INSERT INTO {name} VALUES (3, 3)")
    assert [row.id for row in feed(table, 5).collect()] == [3]


def test_a_table_may_have_no_columns_of_the_feed(table: Table) -> None:
    taken = rows(table.spark, 0, 1).withColumn("_Commit_version", F.lit(1))
    with pytest.raises(SchemaMismatchError, match="columns _commit_version"):
        table.write(taken, **ON)
    table.write(taken)
    with pytest.raises(SchemaMismatchError, match="columns _commit_version"):
        table.delta.setProperties(ON)
