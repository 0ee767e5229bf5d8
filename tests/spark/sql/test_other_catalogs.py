"""A second catalog beside tablelog's: Spark's catalog of a database by JDBC, here Derby in memory."""

import pytest
from pyspark.errors import AnalysisException


@pytest.fixture
def second(spark, database, tmp_path):
    """A catalog named `second`, with the table second.app.numbers of the ids 1 and 2."""
    spark._jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    settings = {
        "": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        ".url": "jdbc:derby:memory:second;create=true",
        ".driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
    }
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.second{key}", value)
    spark.sql("CREATE TABLE second.app.numbers (id INT)")
    spark.sql("INSERT INTO second.app.numbers VALUES (1), (2)")
    yield "second"
    spark.sql("USE spark_catalog.own")
    spark.sql("DROP TABLE second.app.numbers")
    for key in settings:
        spark.conf.unset(f"spark.sql.catalog.second{key}")


def ids(spark, name):
    return sorted(row.id for row in spark.sql(f"SELECT id FROM {name}").collect())


@pytest.mark.slow
def test_statements_name_tables_of_both(spark, second):
    spark.sql("CREATE TABLE t (id INT, p INT) USING delta")
    spark.sql("INSERT INTO t SELECT id, id FROM second.app.numbers")
    spark.sql("INSERT INTO second.app.numbers SELECT id + 10 FROM t")
    assert (ids(spark, "t"), ids(spark, "second.app.numbers")) == ([1, 2], [1, 2, 11, 12])
    assert spark.sql("SELECT * FROM t JOIN second.app.numbers n ON t.id = n.id").count() == 2
    spark.sql("MERGE INTO t USING second.app.numbers s ON t.id = s.id WHEN MATCHED AND t.id = 1 THEN DELETE")
    spark.sql("ALTER TABLE second.app.numbers ADD COLUMN more INT")
    assert (ids(spark, "t"), spark.table("second.app.numbers").columns) == ([2], ["id", "more"])
    spark.sql("CREATE TABLE c USING delta AS SELECT id FROM second.app.numbers")
    assert ids(spark, "c") == [1, 2, 11, 12]
    with pytest.raises(AnalysisException, match="does not support deletes"):
        spark.sql("DELETE FROM second.app.numbers")


def test_it_is_the_current_catalog(spark, second, tmp_path):
    spark.sql("CREATE TABLE t (id INT) USING delta")
    spark.sql("USE second.app")
    assert ids(spark, "numbers") == [1, 2]
    spark.sql("INSERT INTO spark_catalog.own.t SELECT id FROM numbers")
    spark.sql("UPDATE spark_catalog.own.t SET id = 3 WHERE id = 2")
    assert ids(spark, "spark_catalog.own.t") == [1, 3]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("INSERT INTO t VALUES (1)")
