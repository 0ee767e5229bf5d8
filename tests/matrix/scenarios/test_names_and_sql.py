"""Tables by name and SQL, in the session's own catalog or Hive's metastore; on Spark Connect, by name only."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from matrix.cells import CLASSIC, CONNECT
from support.spark_tables import Table
from tablelog.errors import UnsupportedFeatureError
from tablelog.spark import DeltaTable, disable, enable


@pytest.fixture
def database(spark: Any, tmp_path: Path) -> Iterator[Path]:
    """The directory of a database that is the current one."""
    spark.sql(f"CREATE DATABASE own LOCATION '{tmp_path / 'own'}'")
    spark.sql("USE own")
    yield tmp_path / "own"
    spark.sql("USE default")
    spark.sql("DROP DATABASE own CASCADE")


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


@pytest.mark.only(CLASSIC)
def test_statements(spark: Any, database: Path) -> None:
    spark.sql("CREATE TABLE t (id BIGINT NOT NULL, name STRING, day DATE) USING delta PARTITIONED BY (day)")
    spark.sql("INSERT INTO t VALUES (1, 'one', DATE'2024-05-01'), (2, 'two', DATE'2024-05-02')")
    spark.sql("INSERT INTO t BY NAME SELECT DATE'2024-05-02' AS day, 3L AS id, 'three' AS name")
    spark.sql("UPDATE t SET name = upper(name) WHERE id = 2")
    spark.sql("CREATE OR REPLACE TEMP VIEW s AS SELECT * FROM VALUES (1L, 'uno'), (4L, 'four') v(id, name)")
    counts = spark.sql(
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name "
        "WHEN NOT MATCHED THEN INSERT (id, name, day) VALUES (s.id, s.name, DATE'2024-05-03')"
    )
    assert rows(counts) == [(2, 1, 0, 1)]
    spark.sql("DELETE FROM t WHERE day = DATE'2024-05-02' AND id > 2")
    found = [(row.id, row.name, str(row.day)) for row in spark.sql("SELECT * FROM t ORDER BY id").collect()]
    assert found == [(1, "uno", "2024-05-01"), (2, "TWO", "2024-05-02"), (4, "four", "2024-05-03")]
    assert rows(spark.sql("SELECT id FROM t VERSION AS OF 1")) == [(1,), (2,)]
    operations = [row.operation for row in spark.sql("DESCRIBE HISTORY t").collect()]
    assert operations == ["DELETE", "MERGE", "UPDATE", "WRITE", "WRITE", "CREATE TABLE"]
    spark.sql("ALTER TABLE t ADD COLUMNS (more INT)")
    spark.sql("OPTIMIZE t")
    assert spark.sql("VACUUM t DRY RUN").columns == ["path"]
    assert spark.table("t").columns == ["id", "name", "day", "more"]
    with pytest.raises(AnalysisException):
        spark.sql("SELECT nothing FROM t")
    assert Table(spark, database / "t").rows("id") == [1, 2, 4]


@pytest.mark.only(CLASSIC)
def test_dataframes_by_name(spark: Any, database: Path) -> None:
    spark.range(3).write.format("delta").saveAsTable("m")
    spark.range(3, 5).write.format("delta").mode("append").saveAsTable("own.m")
    spark.range(5, 6).write.insertInto("m")
    DeltaTable.forName(spark, "own.m").delete("id = 1")
    assert rows(spark.table("own.m")) == [(0,), (2,), (3,), (4,), (5,)]
    assert rows(spark.sql("SELECT count(*) FROM own.m a JOIN m b ON a.id = b.id")) == [(5,)]
    assert [row.tableName for row in spark.sql("SHOW TABLES IN own").collect() if not row.isTemporary] == ["m"]
    spark.sql("DROP TABLE m")
    assert not (database / "m").exists()


@pytest.mark.hive
def test_the_hive_metastore_has_managed_and_external_tables(
    spark: Any, database: Path, tmp_path: Path, scratch: Path
) -> None:
    assert (scratch / "metastore" / "service.properties").exists(), "Derby's database"
    spark.sql("CREATE TABLE managed (id BIGINT, p STRING) USING delta PARTITIONED BY (p)")
    spark.sql(f"CREATE TABLE own.external USING delta LOCATION '{tmp_path}/ext' AS SELECT 7L AS id")
    other = enable(spark.newSession())
    try:
        other.sql("INSERT INTO own.managed VALUES (1, 'a'), (2, 'b')")
        other.sql("UPDATE own.external SET id = id + 1")
        assert rows(other.table("own.external")) == [(8,)]
        other.catalog.refreshTable("own.managed")
    finally:
        disable(other)
    assert rows(spark.table("managed").where("p = 'b'")) == [(2, "b")]
    described = {row.col_name: row.data_type for row in spark.sql("DESCRIBE EXTENDED managed").collect()}
    assert described["Provider"] == "delta"
    assert described["Type"] == "MANAGED"
    spark.sql("CREATE TABLE plain (id BIGINT) STORED AS PARQUET")  # Hive's own table beside them
    spark.sql("INSERT INTO plain SELECT id FROM managed")
    assert rows(spark.table("plain")) == [(1,), (2,)]
    spark.sql("ALTER TABLE managed RENAME TO renamed")
    assert rows(spark.table("renamed")) == [(1, "a"), (2, "b")]
    spark.sql("DROP TABLE renamed")
    spark.sql("DROP TABLE external")
    assert not (database / "renamed").exists()
    assert not (database / "managed").exists()
    assert Table(spark, tmp_path / "ext").rows() == [8]


@pytest.mark.only(CONNECT)
def test_names_work_and_sql_is_refused_on_connect(spark: Any, table: Table) -> None:
    table.write(spark.range(2))
    spark.range(2, 3).write.format("delta").mode("append").option("path", table.path).saveAsTable("t")
    try:
        assert rows(spark.table("t")) == [(0,), (1,), (2,)]
        assert DeltaTable.forName(spark, "t").history().count() == 2
        for statement in (
            f"SELECT * FROM delta.`{table.path}`",
            f"DELETE FROM delta.`{table.path}`",
            "SELECT * FROM t",
        ):
            with pytest.raises(UnsupportedFeatureError):
                spark.sql(statement).collect()
    finally:
        spark.sql("DROP TABLE t")
    assert spark.sql("SELECT 1 + 1 AS two").first().two == 2
    assert table.rows() == [0, 1, 2]
