"""SELECT from Delta tables: by path, by name, in views and subqueries, with time travel."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from support.spark_tables import Table
from tablelog.engine.read import explain
from tablelog.errors import InvalidArgumentError, TablelogError, TableNotFoundError, UnsupportedFeatureError
from tablelog.spark import DeltaTable, disable, enable

ROWS = [(0, 0), (1, 1), (2, 0), (3, 1)]


def made(spark: SparkSession, path: Path) -> Table:
    """A partitioned table with the rows of version 0, ROWS, and one more in version 1."""
    table = Table(spark, path)
    table.write(spark.range(4).selectExpr("id", "cast(id % 2 as int) AS p"), by=("p",))
    table.write(spark.sql("SELECT 9L AS id, 1 AS p"))
    return table


@pytest.fixture
def named(spark, tmp_path):
    """The table `own.t`, also at its path."""
    spark.sql("CREATE DATABASE own")
    table = made(spark, tmp_path / "a table")
    DeltaTable.create(spark).tableName("own.t").location(table.path).execute()
    yield table
    spark.sql("DROP DATABASE own CASCADE")
    spark.catalog.dropTempView("v")
    spark.catalog.clearCache()


def rows(spark: SparkSession, text: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in spark.sql(text).collect())


def queries(table: str, name: str) -> dict[str, list[tuple[object, ...]]]:
    """Queries of a table, with their rows; `name` is how a column may be qualified."""
    return {
        f"SELECT * FROM {table}": [*ROWS, (9, 1)],
        f"SELECT {name}.id FROM {table} WHERE {name}.p = 0": [(0,), (2,)],
        f"SELECT x.id FROM {table} AS x WHERE x.p = 0 AND x.id > 1": [(2,)],
        f"WITH c AS (SELECT * FROM {table}) SELECT count(*) FROM c WHERE id IN (SELECT id FROM {table} WHERE p = 1)": [
            (3,)
        ],
        f"SELECT a.id, b.id FROM {table} a JOIN {table} b ON a.id = b.id + 1 WHERE a.p = 0": [(2, 1)],
        f"SELECT id FROM {table} EXCEPT SELECT id FROM {table} VERSION AS OF 0": [(9,)],
        f"SELECT count(*) FROM {table} VERSION AS OF 0": [(4,)],
        f"SELECT {name}.id FROM {table} VERSION AS OF 0 WHERE {name}.id > 2": [(3,)],
        f"SELECT a.id FROM {table} a JOIN {table} VERSION AS OF 0 b ON a.id = b.id WHERE a.id > 2": [(3,)],
        f"SELECT (SELECT max(id) FROM {table}) - (SELECT max(id) FROM {table} VERSION AS OF 0)": [(6,)],
        f"TABLE {table}": [*ROWS, (9, 1)],
        f"SELECT _metadata.file_size > 0 FROM {table} WHERE id = 9": [(True,)],
        f"SELECT count(*) FROM {table} TABLESAMPLE (100 PERCENT)": [(5,)],
    }


@pytest.mark.slow
def test_by_path(spark, tmp_path):
    table = made(spark, tmp_path / "a table")
    for text, expected in queries(f"delta.`{table.path}`", f"delta.`{table.path}`").items():
        assert rows(spark, text) == expected, text
    assert rows(spark, f"SELECT count(*) FROM DELTA.`file://{tmp_path}/a table`") == [(5,)]


def test_a_path_with_the_catalog_in_front(spark, tmp_path):
    path = made(spark, tmp_path / "t").path
    name = f"spark_catalog.delta.`{path}`"
    spark.sql(f"DELETE FROM {name} WHERE id = 9")
    spark.sql(f"INSERT INTO {name} VALUES (8, 0)")
    spark.sql(f"MERGE INTO {name} t USING (SELECT 8 id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET p = 2")
    assert rows(spark, f"SELECT * FROM {name}") == [*ROWS, (8, 2)]
    with pytest.raises(TableNotFoundError, match="doesn't exist"):
        spark.sql(f"DELETE FROM spark_catalog.delta.`{path}/none`")


@pytest.mark.parametrize("end", ["", " PURGE"])
def test_a_path_is_not_dropped(spark, tmp_path, end):
    path = made(spark, tmp_path / "t").path
    for start in ("DROP TABLE", "DROP TABLE IF EXISTS"):
        with pytest.raises(PySparkException, match="has no entry in the catalog: nothing was dropped"):
            spark.sql(f"{start} delta.`{path}`{end}")
    assert rows(spark, f"SELECT * FROM delta.`{path}`") == [*ROWS, (9, 1)]


def test_by_name(spark, named):
    for text, expected in queries("own.t", "t").items():
        assert rows(spark, text) == expected, text
    assert rows(spark, "SELECT own.t.id, spark_catalog.own.t.p FROM spark_catalog.own.t WHERE own.t.id = 9") == [(9, 1)]
    assert rows(spark, "SELECT count(*) FROM OWN.T") == [(5,)]
    spark.sql("USE own")
    try:
        assert rows(spark, "SELECT t.id FROM t WHERE own.t.p = 0") == [(0,), (2,)]
    finally:
        spark.sql("USE default")


def test_a_view_shows_the_newest_version(spark, named):
    spark.sql("CREATE VIEW own.stored AS SELECT id FROM own.t WHERE p = 1")
    spark.sql("CREATE TEMPORARY VIEW v AS SELECT id FROM own.t VERSION AS OF 0 WHERE p = 1")
    frame = spark.sql("SELECT id FROM own.t WHERE p = 1")
    for ids in ([1, 3, 9], [1, 3, 9, 11]):
        assert sorted(row.id for row in spark.table("own.stored").collect()) == ids
        assert sorted(row.id for row in spark.sql("SELECT * FROM own.stored").collect()) == ids
        assert sorted(row.id for row in spark.sql("SELECT * FROM v").collect()) == [1, 3]
        assert sorted(row.id for row in frame.select("id").collect()) == ids
        named.write(spark.sql("SELECT 11L AS id, 1 AS p"))


def test_timestamps_are_those_of_the_session(spark, named, conf):
    at = named.delta.history().where("version = 0").first().timestamp + timedelta(milliseconds=1)
    for zone in ("UTC", "America/New_York", "Asia/Kolkata"):
        conf("spark.sql.session.timeZone", zone)
        local = spark.sql(f"SELECT from_utc_timestamp(TIMESTAMP '{at.isoformat()}Z', 'UTC') AS t").first().t
        text = spark.sql(f"SELECT CAST(TIMESTAMP '{at.isoformat()}Z' AS STRING) AS t").first().t
        assert isinstance(local, datetime)
        assert rows(spark, f"SELECT count(*) FROM own.t TIMESTAMP AS OF '{text}'") == [(4,)], zone
        assert rows(spark, f"SELECT count(*) FROM own.t TIMESTAMP AS OF TIMESTAMP '{at.isoformat()}Z'") == [(4,)], zone


def test_files_are_skipped(spark, named):
    assert explain.describe(spark.sql("SELECT id FROM own.t WHERE p = 1 AND id > 5")) == explain.describe(
        named.read().where("p = 1 AND id > 5").select("id")
    )
    assert "1 of 3 files" in explain.describe(spark.sql("SELECT id FROM own.t WHERE p = 0"))


def test_a_schema_that_changes_is_seen(spark, named):
    assert spark.sql("SELECT * FROM own.t").columns == ["id", "p"]
    named.write(spark.sql("SELECT 10L AS id, 1 AS p, 'x' AS s"), mergeSchema="true")
    assert spark.sql("SELECT * FROM own.t").columns == ["id", "p", "s"]
    assert spark.sql("SELECT * FROM own.t VERSION AS OF 1").columns == ["id", "p"]


CHANGES = {"readChangeFeed": "true", "startingVersion": "2"}


@pytest.fixture
def fed(spark, named):
    """The table own.t, whose version 3 deletes a row, with a change data feed."""
    spark.sql("ALTER TABLE own.t SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    spark.sql("DELETE FROM own.t WHERE id = 9")
    return named


def test_options_of_the_reader_reach_a_table_by_its_name(spark, fed):
    read = spark.read.format("delta").options(**CHANGES)
    for name in ("own.t", f"delta.`{fed.path}`"):
        assert [(row.id, row._change_type) for row in read.table(name).collect()] == [(9, "delete")]
    spark.range(1).createOrReplaceTempView("v")
    assert read.table("v").columns == ["id"]  # a view has no options
    assert spark.read.option("versionAsOf", 0).table("own.t").count() == 4
    for name in ("nosuch.t", "own.nosuch", "a b", "other.own.t"):
        with pytest.raises(AnalysisException):
            read.table(name)
    with pytest.raises(InvalidArgumentError, match="row tracking is not enabled"):
        spark.read.option("readRowIds", "true").table("own.t")


def test_options_of_a_table_in_a_query(spark, fed):
    options = ", ".join(f"'{key}' = '{value}'" for key, value in CHANGES.items())
    feed = f"SELECT id, _change_type FROM own.t WITH ({options})"
    queries = [feed, f"WITH c AS ({feed}) SELECT * FROM c", feed.replace("own.t", f"delta.`{fed.path}`")]
    if spark.version < "4.3":
        for query in queries:
            with pytest.raises(UnsupportedFeatureError, match=r"readChangeFeed.*table_changes"):
                spark.sql(query)
        return
    for query in queries:
        assert rows(spark, query) == [(9, "delete")]
    other = options.replace("'2'", "'3'").replace("readChangeFeed", "READCHANGEFEED")
    counts = f"SELECT (SELECT count(*) FROM own.t), (SELECT min(_commit_version) FROM own.t WITH ({other}))"
    assert rows(spark, counts) == [(4, 3)]
    assert rows(spark, "SELECT count(*) FROM own.t WITH ('versionAsOf' = '1')") == [(5,)]


def test_what_is_not_there(spark, named, tmp_path):
    with pytest.raises(TableNotFoundError, match="is not a Delta table"):
        spark.sql(f"SELECT * FROM delta.`{tmp_path}/nothing`")
    with pytest.raises(AnalysisException) as missing:
        spark.sql("SELECT * FROM own.missing")
    assert missing.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    with pytest.raises(AnalysisException) as column:
        spark.sql("SELECT missing FROM own.t")
    assert column.value.getCondition() == "UNRESOLVED_COLUMN.WITH_SUGGESTION"
    with pytest.raises(Exception, match="7") as version:
        spark.sql("SELECT * FROM own.t VERSION AS OF 7")
    assert type(version.value).__name__ == "VersionNotFoundError"


def test_a_database_named_delta_is_one_like_any_other(spark, tmp_path):
    spark.sql("CREATE DATABASE delta")
    try:
        spark.sql("CREATE TABLE delta.plain USING parquet AS SELECT 1 AS id")
        assert rows(spark, "SELECT * FROM delta.plain") == [(1,)]
        with pytest.raises(AnalysisException) as missing:
            spark.sql("SELECT * FROM delta.missing")
        assert missing.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    finally:
        spark.sql("DROP DATABASE delta CASCADE")


def test_other_tables_are_read_beside_ours(spark, named):
    spark.sql("CREATE TABLE own.plain USING parquet AS SELECT 3L AS id, 'x' AS s")
    assert rows(spark, "SELECT t.id, s FROM own.t JOIN own.plain ON t.id = plain.id") == [(3, "x")]
    with pytest.raises(AnalysisException) as refused:
        spark.sql("SELECT * FROM own.plain VERSION AS OF 1")
    assert refused.value.getCondition() == "UNSUPPORTED_FEATURE.TIME_TRAVEL"


def test_a_cached_table_shows_what_is_committed(spark, named):
    spark.sql("CACHE TABLE c AS SELECT * FROM own.t")
    assert rows(spark, "SELECT count(*) FROM c") == [(5,)]
    spark.sql("UNCACHE TABLE c")


def test_a_session_that_is_disabled_has_its_own_catalog_back(spark, named):
    disable(spark)
    try:
        with pytest.raises(Py4JError, match="DATA_SOURCE_NOT_FOUND"):
            spark.sql("SELECT * FROM own.t")
    finally:
        enable(spark)
    assert rows(spark, "SELECT count(*) FROM own.t") == [(5,)]


def test_no_other_session_asks_for_tables(spark, named):
    other = spark.newSession()
    with pytest.raises(Py4JError, match="DATA_SOURCE_NOT_FOUND"):
        other.sql("SELECT * FROM own.t")


def test_foreach_batch_reads_tables_by_sql(spark, named, tmp_path):
    counts = []

    def batch(frame, _):
        frame.createOrReplaceTempView("batch")
        counts.append(frame.sparkSession.sql("SELECT count(*) FROM own.t JOIN batch ON id = value").first()[0])

    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 3).load()
    query = source.writeStream.foreachBatch(batch).trigger(once=True).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()
    assert counts == [3]


def test_the_jvm_itself_cannot_touch_the_files(spark, named):
    """What goes past `spark.sql` of Python: the session of the JVM."""
    before = {path for path in named.root.rglob("*") if path.is_file()}
    for text in (
        "TRUNCATE TABLE own.t",
        "INSERT OVERWRITE own.t VALUES (1, 1)",
        "DELETE FROM own.t",
        "ALTER TABLE own.t SET TBLPROPERTIES (a = 'b')",
        "INSERT INTO own.t VALUES (1, 1)",
        "MSCK REPAIR TABLE own.t",
        "ANALYZE TABLE own.t COMPUTE STATISTICS",
        "EXECUTE IMMEDIATE 'TRUNCATE TABLE own.t'",
        "BEGIN TRUNCATE TABLE own.t; END",
        "BEGIN INSERT OVERWRITE own.t VALUES (1, 1); END",
    ):
        with pytest.raises((TablelogError, PySparkException)):
            spark._jsparkSession.sql(text)
    assert {path for path in named.root.rglob("*") if path.is_file()} == before
