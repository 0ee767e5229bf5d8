"""DESCRIBE, SHOW and the methods of `spark.catalog` on Delta tables answer as with delta-spark."""

import shutil

import pytest
from pyspark.errors import PySparkException

from tablelog.spark import DeltaTable


@pytest.fixture
def table(spark, tmp_path, database):
    """The managed table `t`, and the partitioned table `p` at `tmp_path / "p"`."""
    spark.sql(
        "CREATE TABLE t (id BIGINT NOT NULL COMMENT 'x', d STRING DEFAULT 'a', v VARCHAR(3), s STRUCT<a: INT>) "
        "USING delta COMMENT 'c' TBLPROPERTIES (a = 'b', 'delta.feature.allowColumnDefaults' = 'supported')"
    )
    spark.sql(
        "CREATE TABLE p (id BIGINT, p STRING COMMENT 'pp', q DATE) USING delta PARTITIONED BY (p, q) "
        f"LOCATION '{tmp_path / 'p'}' TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    rows = spark.sql("VALUES (1L, 'a', DATE'2024-01-02'), (2L, 'a', DATE'2024-01-02'), (3L, NULL, NULL)")
    rows.toDF("id", "p", "q").write.format("delta").mode("append").saveAsTable("p")
    return f"delta.`{tmp_path / 'p'}`"


def rows(spark, text):
    return [tuple(row) for row in spark.sql(text).collect()]


def condition(spark, text):
    with pytest.raises(PySparkException) as raised:
        spark.sql(text).collect()
    return raised.value.getCondition()


def test_describe_table(spark, tmp_path, table):
    columns = [("id", "bigint", "x"), ("d", "string", None), ("v", "string", None), ("s", "struct<a:int>", None)]
    assert rows(spark, "DESCRIBE t") == columns
    extended = rows(spark, "DESCRIBE TABLE EXTENDED own.t")
    assert extended[: len(columns)] == columns
    detail = {name: value for name, value, _ in extended[len(columns) :]}
    expected = {
        "Type": "MANAGED",
        "Comment": "c",
        "Location": f"file:{tmp_path / 'db' / 't'}",
        "Provider": "delta",
        "Is_managed_location": "true",
    }
    if spark.version >= "4.2":
        expected |= {"Catalog": "spark_catalog", "Database": "own", "Table": "t"}
    assert {key: detail[key] for key in expected} == expected
    assert detail["Table Properties"] == (
        "[a=b,delta.feature.allowColumnDefaults=supported,delta.feature.appendOnly=supported,"
        "delta.feature.invariants=supported,delta.minReaderVersion=1,delta.minWriterVersion=7]"
    )
    assert ("d", "string", "'a'") in extended
    partitions = [("# Partition Information", "", ""), ("# col_name", "data_type", "comment"), ("p", "string", "pp")]
    for name in ("p", table):
        described = rows(spark, f"DESCRIBE {name}")
        assert described == [("id", "bigint", None), ("p", "string", "pp"), ("q", "date", None), *partitions, (
            "q", "date", None
        )]  # fmt: skip
    assert ("Location", str(tmp_path / "p"), "") in rows(spark, f"DESCRIBE EXTENDED {table}")


def test_describe_column(spark, table):
    assert rows(spark, "DESCRIBE t v") == [("col_name", "v"), ("data_type", "varchar(3)"), ("comment", "NULL")]
    assert rows(spark, f"DESCRIBE EXTENDED {table} p")[:3] == [
        ("col_name", "p"),
        ("data_type", "string"),
        ("comment", "pp"),
    ]
    assert condition(spark, "DESCRIBE t nope").startswith(("UNRESOLVED_COLUMN", "COLUMN_NOT_FOUND"))


def test_show(spark, tmp_path, table):
    assert rows(spark, "SHOW COLUMNS IN t") == [("id",), ("d",), ("v",), ("s",)]
    assert rows(spark, f"SHOW COLUMNS IN {table}") == [("id",), ("p",), ("q",)]
    properties = dict(rows(spark, "SHOW TBLPROPERTIES t"))
    assert (properties["a"], properties["delta.minWriterVersion"]) == ("b", "7")
    assert rows(spark, "SHOW TBLPROPERTIES t (a)") == [("a", "b")]
    assert dict(rows(spark, f"SHOW TBLPROPERTIES {table}"))["delta.columnMapping.mode"] == "name"
    (shown,) = rows(spark, "SHOW TABLE EXTENDED LIKE 't'")
    assert shown[:3] == ("own", "t", False)
    assert {"Type: MANAGED", "Provider: delta", "Comment: c", f"Location: file:{tmp_path / 'db' / 't'}"} <= set(
        shown[3].splitlines()
    )
    assert sorted(row[1] for row in rows(spark, "SHOW TABLES")) == ["p", "t"]
    (statement,) = rows(spark, "SHOW CREATE TABLE p")[0]
    assert statement.startswith("CREATE TABLE spark_catalog.own.p (")
    assert {"USING delta", "PARTITIONED BY (p, q)"} <= set(statement.splitlines())


def test_show_table_extended_has_the_columns(spark, tmp_path, table):
    spark.sql("CREATE TABLE pq (id BIGINT, name STRING) USING parquet")
    spark.sql("CREATE TABLE d (id BIGINT, name STRING, s STRUCT<a: INT>) USING delta")
    spark.range(1).createOrReplaceTempView("a_view")
    found = {row.tableName: row for row in spark.sql("SHOW TABLE EXTENDED IN own LIKE '*'").collect()}
    assert set(found) == {"t", "p", "pq", "d", "a_view"}
    columns = {name: [line for line in row.information.splitlines() if " |-- " in line] for name, row in found.items()}
    own = [" |-- id: long (nullable = true)", " |-- name: string (nullable = true)"]
    assert columns["pq"] == own
    assert columns["d"] == [*own, " |-- s: struct (nullable = true)", " |    |-- a: integer (nullable = true)"]
    shutil.rmtree(tmp_path / "db" / "d")
    (row,) = spark.sql("SHOW TABLE EXTENDED LIKE 'd'").collect()
    assert " |-- " not in row.information
    spark.catalog.dropTempView("a_view")


def test_show_partitions(spark, table):
    for name in ("p", table):
        frame = spark.sql(f"SHOW PARTITIONS {name}")
        assert frame.dtypes == [("p", "string"), ("q", "date")]
        assert sorted(map(str, map(tuple, frame.collect()))) == [
            "('a', datetime.date(2024, 1, 2))",
            "(None, None)",
        ]
    assert len(rows(spark, "SHOW PARTITIONS p PARTITION (p = 'a')")) == 1
    assert rows(spark, "SHOW PARTITIONS p PARTITION (q = '2024-01-03')") == []
    assert condition(spark, "SHOW PARTITIONS t") == "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE"
    assert condition(spark, "SHOW PARTITIONS p PARTITION (id = 1)") == "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN"


def test_methods_of_the_catalog(spark, table):
    for name in ("p", table):
        columns = spark.catalog.listColumns(name)
        assert [(one.name, one.dataType, one.description, one.isPartition) for one in columns] == [
            ("id", "bigint", None, False),
            ("p", "string", "pp", True),
            ("q", "date", None, True),
        ]
        assert spark.catalog.tableExists(name)
    found = spark.catalog.getTable("t")
    assert (found.name, found.catalog, found.namespace, found.description, found.tableType) == (
        "t",
        "spark_catalog",
        ["own"],
        "c",
        "MANAGED",
    )
    assert [(one.name, one.tableType) for one in spark.catalog.listTables()] == [("p", "EXTERNAL"), ("t", "MANAGED")]
    with pytest.raises(PySparkException, match="NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"):
        spark.catalog.recoverPartitions("p")


def test_whether_a_table_without_its_files_exists(spark, table, tmp_path):
    """As with delta-spark, the entry of the catalog counts, and for a path its log."""
    gone = tmp_path / "gone"
    spark.sql(f"CREATE TABLE own.g (id INT) USING delta LOCATION '{gone}'")
    shutil.rmtree(gone)
    assert spark.catalog.tableExists("own.g")
    assert spark.catalog.tableExists("g", "own")
    assert not spark.catalog.tableExists(f"delta.`{gone}`")
    assert not spark.catalog.tableExists(str(gone), "delta")
    assert not spark.catalog.tableExists("own.nothing")
    with pytest.raises(PySparkException, match="DELTA_MISSING_DELTA_TABLE"):
        spark.catalog.listColumns("own.g")


@pytest.mark.slow
def test_the_cache(spark, table):
    for name in ("p", table):
        spark.sql(f"CACHE TABLE {name}")
        assert spark.catalog.isCached(name)
        assert spark.table(name).count() == 3
        spark.sql(f"REFRESH TABLE {name}")
        spark.sql(f"UNCACHE TABLE {name}")
        assert not spark.catalog.isCached(name)
        spark.catalog.cacheTable(name)
        spark.catalog.refreshTable(name)
        spark.catalog.uncacheTable(name)
        assert not spark.catalog.isCached(name)
    spark.sql("UNCACHE TABLE IF EXISTS p")
    spark.sql("CACHE LAZY TABLE p OPTIONS ('storageLevel' 'DISK_ONLY')")
    DeltaTable.forName(spark, "p").delete("id = 1")
    assert spark.table("p").count() == 2
    spark.catalog.clearCache()
