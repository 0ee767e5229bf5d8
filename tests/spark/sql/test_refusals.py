"""What Spark can't do with Delta tables: each refusal names the statement and an alternative."""

import pytest
from pyspark.errors import AnalysisException

from tablelog.errors import UnsupportedFeatureError


@pytest.fixture
def table(spark, database):
    spark.sql("CREATE TABLE t (id BIGINT) USING delta")
    spark.sql("CREATE TEMPORARY VIEW of_t AS SELECT * FROM t")
    yield "t"
    spark.catalog.dropTempView("of_t")


@pytest.mark.parametrize(
    ("text", "named", "instead"),
    [
        ("CREATE TEMPORARY VIEW v USING delta OPTIONS (path '/x')", "CREATE TEMPORARY VIEW", "createOrReplaceTempView"),
        ("INSERT OVERWRITE DIRECTORY '/x' USING delta SELECT 1", "INSERT OVERWRITE DIRECTORY", "df.write"),
        ("ALTER TABLE of_t ADD CONSTRAINT c CHECK (id > 0)", "ADD CONSTRAINT by a temporary view", "addConstraint"),
        ("EXPLAIN VACUUM t", "VACUUM inside another statement", "vacuum()"),
        ("EXPLAIN OPTIMIZE t", "OPTIMIZE inside another statement", "optimize()"),
        ("EXPLAIN RESTORE t TO VERSION AS OF 0", "RESTORE inside another statement", "restoreToVersion"),
        ("EXPLAIN GENERATE symlink_format_manifest FOR TABLE t", "GENERATE inside another statement", "generate"),
        ("EXPLAIN CONVERT TO DELTA t", "CONVERT inside another statement", "convertToDelta"),
        ("EXPLAIN REORG TABLE t APPLY (PURGE)", "REORG inside another statement", "reorg()"),
    ],
)
def test_statements(spark, table, text, named, instead):
    with pytest.raises(UnsupportedFeatureError, match="not supported for Delta tables") as refused:
        spark.sql(text)
    assert named in str(refused.value)
    assert instead in str(refused.value)


@pytest.mark.parametrize("word", ["HISTORY", "DETAIL"])
def test_a_description_of_nothing_is_one_of_a_table_with_that_name(spark, table, word):
    with pytest.raises(AnalysisException) as caught:
        spark.sql(f"DESCRIBE {word}")
    assert caught.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"


def test_a_writer_of_another_format(spark, table):
    with pytest.raises(UnsupportedFeatureError, match=r"df.write.saveAsTable is not supported.*format\(\"delta\"\)"):
        spark.range(1).write.format("parquet").mode("append").saveAsTable("t")


def test_a_method_of_the_catalog(spark, table):
    if not hasattr(spark.catalog, "dropTable"):
        pytest.skip("this version of PySpark has no such method")
    with pytest.raises(UnsupportedFeatureError, match=r"spark.catalog.dropTable is not supported.*Use DROP TABLE"):
        spark.catalog.dropTable("t")
