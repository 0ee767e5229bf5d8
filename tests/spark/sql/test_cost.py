"""What `spark.sql` costs in an enabled session, in calls to the JVM."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from support.jvm_calls import calls_to_the_jvm
from tablelog.spark import disable, enable


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
