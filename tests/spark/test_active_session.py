"""Statements and commands use the settings of their own session, also if another one is the thread's active session."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.spark_tables import Table
from tablelog.spark import DeltaTable, enable

TIME = "timestamp'2024-01-02 05:00:00'"
"""In UTC that is the time of the second row; in Tokyo, of the first."""


@pytest.fixture
def tokyo(spark: SparkSession) -> SparkSession:
    """Another session, in which times are those of Tokyo. The first one is made active: PySpark leaves it so."""
    session = enable(spark.newSession())
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    return session


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Table:
    made = Table(spark, tmp_path / "times")
    times = "VALUES (1, timestamp'2024-01-01 20:00:00Z'), (2, timestamp'2024-01-02 05:00:00Z')"
    spark.sql(f"SELECT * FROM {times} AS t(id, ts)").coalesce(1).write.format("delta").save(made.path)
    return made


def active_first(spark: SparkSession) -> None:
    """An ordinary use of the first session."""
    spark.createDataFrame([(1,)], "a int").collect()


COMMANDS: dict[str, Callable[[SparkSession, str], object]] = {
    "sql delete": lambda session, path: session.sql(f"DELETE FROM delta.`{path}` WHERE ts = {TIME}"),
    "sql parameters": lambda session, path: session.sql(
        f"DELETE FROM delta.`{path}` WHERE ts = {TIME} AND id > :least", {"least": 0}
    ),
    "sql update": lambda session, path: session.sql(f"UPDATE delta.`{path}` SET id = 2 WHERE ts = {TIME}"),
    "sql merge": lambda session, path: session.sql(
        f"MERGE INTO delta.`{path}` t USING (SELECT {TIME} x) s ON t.ts = s.x WHEN MATCHED THEN DELETE"
    ),
    "delete": lambda session, path: DeltaTable.forPath(session, path).delete(f"ts = {TIME}"),
    "update": lambda session, path: DeltaTable.forPath(session, path).update(f"ts = {TIME}", {"id": "2"}),
    "replaceWhere": lambda session, path: (
        session.sql(f"SELECT 2 id, {TIME} ts")
        .write.format("delta")
        .mode("overwrite")
        .option("replaceWhere", f"ts = {TIME}")
        .save(path)
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_finds_the_rows_of_its_own_time_zone(
    name: str, spark: SparkSession, tokyo: SparkSession, table: Table
) -> None:
    active_first(spark)
    COMMANDS[name](tokyo, table.path)
    assert set(table.rows("id")) == {2}


def test_values_are_stored_by_the_time_zone_of_the_session(
    spark: SparkSession, tokyo: SparkSession, table: Table
) -> None:
    active_first(spark)
    tokyo.sql(f"INSERT INTO delta.`{table.path}` VALUES (3, {TIME})")
    active_first(spark)
    tokyo.sql(f"UPDATE delta.`{table.path}` SET ts = {TIME} WHERE id = 2")
    stored = table.read().selectExpr("id", "unix_seconds(ts) s").collect()
    assert {row.s for row in stored} == {1704139200}, "2024-01-01T20:00:00Z"
