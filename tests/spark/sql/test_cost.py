"""What `spark.sql` costs in an enabled session, in calls to the JVM."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from py4j.java_gateway import GatewayClient
from pyspark.sql import SparkSession

from tablelog.spark import disable, enable


@contextmanager
def calls_to_the_jvm() -> Iterator[list[str]]:
    """The commands that this thread sends to the JVM."""
    ours, send, commands = threading.current_thread(), GatewayClient.send_command, []

    def noted(self, command, *args, **kwargs):
        if threading.current_thread() is ours and not command.startswith("m\n"):  # objects that Python has released
            commands.append(command)
        return send(self, command, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GatewayClient, "send_command", noted)
        yield commands


@pytest.fixture
def plain(spark: SparkSession) -> Iterator[str]:
    spark.sql("CREATE TABLE plain USING parquet AS SELECT 1 AS id")
    yield "plain"
    spark.sql("DROP TABLE plain")


def cost(spark: SparkSession, text: str) -> int:
    spark.sql(text)
    with calls_to_the_jvm() as commands:
        spark.sql(text)
    return len(commands)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM {}",
        " values (1)",
        "WITH c AS (SELECT * FROM {}) SELECT * FROM c",
        "INSERT INTO {} VALUES (2)",
        "WITH c AS (SELECT 1) FROM c INSERT INTO {} SELECT * INSERT OVERWRITE {} SELECT *",
        "DESCRIBE TABLE {}",
        "SET spark.sql.shuffle.partitions",
        "SHOW TBLPROPERTIES {}",
        "CREATE TABLE IF NOT EXISTS {} (id INT) USING parquet",
        "CREATE TABLE IF NOT EXISTS {} USING CSV LOCATION '/no/such/directory'",
        "CREATE TABLE IF NOT EXISTS {} USING parquet AS SELECT 1 AS id",
    ],
)
def test_a_statement_without_a_delta_table(spark: SparkSession, plain: str, text: str) -> None:
    enabled = cost(spark, text.replace("{}", plain))
    disable(spark)
    try:
        alone = cost(spark, text.replace("{}", plain))
    finally:
        enable(spark)
    assert alone < enabled <= alone + 2  # whether the session is enabled, and the kinds of the statements


def test_a_query_of_a_delta_table_by_its_name(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE counted USING delta AS SELECT 1 AS id")
    try:
        assert cost(spark, "SELECT * FROM counted WHERE id = 1") <= 50
    finally:
        spark.sql("DROP TABLE counted")
