"""INSERT by SQL and by the writers that name a table: by path, by name and by a temporary view."""

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from tablelog.errors import InvalidArgumentError, UnsupportedFeatureError
from tablelog.spark import DeltaTable

ROUTES = ["path", "name", "view"]
ROWS = [(0, 0), (1, 1), (2, 0), (3, 1)]
ADDED = sorted([*ROWS, (9, 1)])
INSERTS = [
    ("INSERT INTO {n} VALUES (9, 1)", ADDED),
    ("INSERT INTO TABLE {n} (p, id) VALUES (1, 9)", ADDED),
    ("INSERT INTO {n} BY NAME SELECT 1 AS p, 9L AS id", ADDED),
    ("INSERT INTO {n} PARTITION (p = 1) SELECT 9", ADDED),
    ("INSERT INTO {n} PARTITION (p) SELECT 9, 1", ADDED),
    ("INSERT INTO {n} (id) VALUES (9)", sorted([*ROWS, (9, None)])),
    ("WITH x AS (SELECT max(id) + 6, 1 FROM {n}) INSERT INTO {n} SELECT * FROM x", ADDED),
    ("INSERT OVERWRITE {n} VALUES (9, 1)", [(9, 1)]),
    ("INSERT OVERWRITE {n} PARTITION (p = 1) VALUES (9)", [(0, 0), (2, 0), (9, 1)]),
    ("INSERT OVERWRITE {n} SELECT * FROM {n} WHERE id > 1", [(2, 0), (3, 1)]),
    ("INSERT INTO {n} REPLACE WHERE id > 2 AND p = 1 SELECT 9, 1", [(0, 0), (1, 1), (2, 0), (9, 1)]),
    ("FROM one INSERT INTO {n} SELECT * INSERT INTO {n} SELECT id + 1, p", sorted([*ADDED, (10, 1)])),
]


def partitioned(spark):
    return spark.range(4).selectExpr("id", "cast(id % 2 as int) AS p")


@pytest.fixture
def one(spark):
    spark.sql("SELECT 9L AS id, 1 AS p").createOrReplaceTempView("one")
    yield "one"
    spark.catalog.dropTempView("one")


def rows(table):
    return sorted(map(tuple, table.read().collect()), key=lambda row: (row[0], str(row[1])))


def test_inserts_by_name_and_path(spark, routes, one):
    first = routes.make(partitioned(spark), by=("p",))
    for number, (text, expected) in enumerate(INSERTS):
        table = routes.copy(first)
        route = ROUTES[number % 2]
        answer = spark.sql(text.format(n=routes.name(table, route)))
        assert (answer.columns, answer.collect()) == ([], []), text
        assert rows(table) == expected, (text, route)
        assert table.version == text.count("INSERT"), text


def test_options_that_an_insert_cant_follow_are_refused(spark, routes, conf):
    """They would replace other rows than the statement says, or the columns and partitions of the table."""
    table = routes.make(partitioned(spark), by=("p",))
    name = routes.name(table, "name")
    one = spark.sql("SELECT 9L AS id, 1 AS p")
    by_name = f"INSERT OVERWRITE {name} WITH ('overwriteSchema' = 'true') SELECT 9L, 1"
    conf("spark.sql.sources.partitionOverwriteMode", "dynamic")
    for word, run in [
        ("overwriteSchema", lambda: one.writeTo(name).option("overwriteSchema", "true").overwritePartitions()),
        ("overwriteSchema", lambda: one.writeTo(name).option("OVERWRITEschema", "True").overwrite(F.lit(True))),
        ("overwriteSchema", lambda: one.write.option("overwriteSchema", "true").insertInto(name, overwrite=True)),
        ("overwriteSchema", lambda: spark.sql(by_name)),
        ("partitionOverwriteMode", lambda: one.write.option("partitionOverwriteMode", "STATIC").insertInto(name, True)),
        ("replaceWhere", lambda: one.write.option("replaceWhere", "p = 1").insertInto(name)),
        ("replaceWhere", lambda: one.writeTo(name).option("replaceWhere", "p = 0").overwritePartitions()),
        ("replaceWhere", lambda: one.writeTo(name).option("replaceWhere", "p = 0").overwrite(F.lit(True))),
        ("replaceWhere", lambda: one.writeTo(name).option("replaceWhere", "p = 0").append()),
    ]:
        with pytest.raises(InvalidArgumentError, match=f"for option '{word}'") as error:
            run()
        assert error.value.getCondition() == "DELTA_ILLEGAL_OPTION"
    assert rows(table) == ROWS
    one.write.option("overwriteSchema", "false").insertInto(name, overwrite=True)
    assert rows(table) == [(0, 0), (2, 0), (9, 1)]
    assert table.log.snapshot().partition_columns == ("p",)


@pytest.mark.parametrize("layout", ["partitionBy", "bucketBy", "clusterBy"])
def test_insert_into_takes_no_layout(spark, routes, layout):
    table = routes.make(partitioned(spark), by=("p",))
    writer = spark.sql("SELECT 9L AS id, 1 AS p").write
    writer = writer.bucketBy(2, "p") if layout == "bucketBy" else getattr(writer, layout)("p")
    with pytest.raises(AnalysisException):
        writer.insertInto(routes.name(table, "name"))
    assert rows(table) == ROWS


def test_parameters_and_dynamic_overwrite(spark, routes, conf):
    first = routes.make(partitioned(spark), by=("p",))
    table = routes.copy(first)
    name = routes.name(table, "name")
    spark.sql(f"INSERT INTO {name} PARTITION (p = :p) VALUES (:id)", {"p": 1, "id": 9})
    spark.sql(f"INSERT INTO {name} VALUES (?, ?)", [10, None])
    by_parameter = name if spark.version.startswith("4.1.") else "IDENTIFIER(:t)"  # 4.1 resolves it in the analyzer
    spark.sql(f"INSERT INTO {by_parameter} SELECT * FROM {{d}} WHERE id = :id", {"t": name, "id": 9}, d=table.read())
    assert rows(table) == [*sorted([*ROWS, (9, 1), (9, 1)]), (10, None)]
    with pytest.raises(AnalysisException, match="UNBOUND_SQL_PARAMETER"):
        spark.sql(f"INSERT INTO {name} VALUES (:id, 1)")
    conf("spark.sql.sources.partitionOverwriteMode", "dynamic")
    spark.sql(f"INSERT OVERWRITE {name} VALUES (7, 1)")
    assert rows(table) == [(0, 0), (2, 0), (7, 1), (10, None)]
    spark.sql(f"INSERT OVERWRITE {name} PARTITION (p) SELECT 6, 0")
    assert rows(table) == [(6, 0), (7, 1), (10, None)]


def test_defaults(spark, routes, table):
    builder = DeltaTable.create(spark).location(table.path).property("delta.feature.allowColumnDefaults", "supported")
    builder.addColumn("id", "bigint").addColumn("n", "int").execute()
    table.delta.alterColumn("n", default="40 + 2")
    name = f"delta.`{table.path}`"
    spark.sql(f"INSERT INTO {name} VALUES (1, DEFAULT)")
    spark.sql(f"INSERT INTO {name} (id) VALUES (2)")
    spark.sql(f"INSERT INTO {name} (n, id) VALUES (DEFAULT, 3)")
    assert table.rows() == [(1, 42), (2, 42), (3, 42)]


def test_options_of_an_insert(spark, routes):
    table = routes.make(partitioned(spark))
    spark.sql(f"INSERT INTO {routes.name(table, 'name')} WITH (userMetadata = 'by hand') VALUES (9, 1)")
    assert (rows(table), table.info()["userMetadata"]) == (ADDED, "by hand")


def test_refused(spark, routes, one):
    table = routes.make(partitioned(spark))
    name = routes.name(table, "name")
    spark.range(1).selectExpr("id", "1 AS p").write.saveAsTable("own.other", format="parquet")
    with pytest.raises(UnsupportedFeatureError, match="must not mix"):
        spark.sql(f"FROM one INSERT INTO {name} SELECT * INSERT INTO own.other SELECT *")
    for text, condition in [
        (f"INSERT INTO {name} VALUES (1)", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
        (f"INSERT INTO {name} VALUES (1, 2, 3)", "INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS"),
        (f"INSERT INTO {name} BY NAME SELECT 1L AS id, 2L AS id", "DELTA_DUPLICATE_COLUMNS_FOUND.READ_SCHEMA"),
        (f"INSERT INTO {name} BY NAME SELECT 1L AS id, 2 AS nope", "DELTA_METADATA_MISMATCH"),
        (f"INSERT INTO {name} BY NAME SELECT 1 AS nope", "DELTA_METADATA_MISMATCH"),
        (f"INSERT INTO {name} VALUES (array(1), 1)", "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"),
    ]:
        with pytest.raises(AnalysisException) as caught:
            spark.sql(text)
        assert caught.value.getCondition() == condition
    assert (table.version, spark.table("own.other").count()) == (0, 1)
    spark.sql("INSERT INTO own.other VALUES (5, 5)")
    assert spark.table("own.other").count() == 2


@pytest.mark.slow
def test_views_by_sql_that_show_the_whole_table(spark, routes):
    table = routes.make(partitioned(spark))
    name = routes.name(table, "name")
    spark.sql(f"CREATE OR REPLACE TEMP VIEW v_t0 AS SELECT * FROM {name}")
    spark.sql("INSERT INTO v_t0 VALUES (9, 1)")
    assert spark.sql("DELETE FROM v_t0 WHERE v_t0.id = 0").first()[0] == 1
    assert rows(table) == ADDED[1:]
    for query in (f"SELECT p, id FROM {name}", f"SELECT id AS x, p FROM {name}", f"SELECT * FROM {name} WHERE id > 1"):
        spark.sql(f"CREATE OR REPLACE TEMP VIEW v_t0 AS {query}")
        with pytest.raises((AnalysisException, UnsupportedFeatureError)):
            spark.sql("INSERT INTO v_t0 VALUES (9, 1)")
        for text in (
            "DELETE FROM v_t0",
            "UPDATE v_t0 SET p = 1",
            "MERGE INTO v_t0 USING (SELECT 1) ON true WHEN MATCHED THEN DELETE",
        ):
            with pytest.raises(AnalysisException) as caught:
                spark.sql(text)
            expected = "DELTA_UNEXPECTED_PARTIAL_SCAN" if "WHERE" in query else "DELTA_NOT_A_DELTA_TABLE"
            assert caught.value.getCondition() == expected
    assert table.version == 2


# --- writers ------------------------------------------------------------------------------------------------------


def test_write_to(spark, routes):
    first = routes.make(partitioned(spark), by=("p",))
    added = spark.createDataFrame([(1, 9)], "p int, id bigint")  # columns go by their names
    for route in ROUTES:
        table = routes.copy(first)
        name = routes.name(table, route)
        assert added.writeTo(name).option("userMetadata", "x").append() is None
        assert (rows(table), table.info()["userMetadata"]) == (ADDED, "x")
    added.writeTo(name).overwritePartitions()
    assert rows(table) == [(0, 0), (2, 0), (9, 1)]
    other = spark.createDataFrame([(8, 0)], "id bigint, p int")
    other.writeTo(name).overwrite((F.col("p") == 0) & (F.col("id") > 1))
    assert rows(table) == [(0, 0), (8, 0), (9, 1)]
    with pytest.raises(AnalysisException) as caught:
        added.writeTo(name).overwrite(F.col("p") == 0)
    assert caught.value.getCondition() == "DELTA_REPLACE_WHERE_MISMATCH"
    wider = added.withColumn("z", F.lit(1))
    with pytest.raises(AnalysisException):
        wider.writeTo(name).append()
    wider.writeTo(name).option("mergeSchema", "true").append()
    assert table.read().columns == ["id", "p", "z"]


def test_write_to_other_tables_and_versions(spark, routes):
    spark.range(1).write.saveAsTable("own.other", format="parquet")
    with pytest.raises(AnalysisException):
        spark.range(1).writeTo("own.other").append()  # Spark's own tables have no such writer
    table = routes.make(partitioned(spark))
    table.delta.delete("id = 0")
    table.read(versionAsOf=0).createOrReplaceTempView("v_t0")
    with pytest.raises(InvalidArgumentError, match="shows version 0"):
        partitioned(spark).writeTo("v_t0").append()
    assert table.version == 1


def test_insert_into(spark, routes):
    first = routes.make(partitioned(spark), by=("p",))
    added = spark.createDataFrame([(9, 1)], "a bigint, b int")  # columns go by their places
    for route in ("path", "name"):  # by a view: tests/spark/test_statements.py
        table = routes.copy(first)
        name = routes.name(table, route)
        added.write.insertInto(name)
        assert rows(table) == ADDED
        added.write.option("partitionOverwriteMode", "dynamic").insertInto(name, overwrite=True)
        assert rows(table) == [(0, 0), (2, 0), (9, 1)]
        added.write.mode("overwrite").insertInto(name)
        assert rows(table) == [(9, 1)]


def test_a_condition_keeps_the_offset_of_a_timestamp_in_a_repeated_hour(spark, routes, conf):
    conf("spark.sql.session.timeZone", "Europe/Berlin")  # 02:30 of this day was twice, an hour apart
    first, second = (f"TIMESTAMP'2024-10-27 0{hour}:30:00Z'" for hour in (0, 1))
    for by in ((), ("t",)):
        made = routes.make(spark.sql(f"SELECT 1 AS id, {first} AS t UNION ALL SELECT 2, {second}"), by=by)
        new, where = f"SELECT 3 AS id, {second} AS t", f"t >= {second}"
        table = routes.copy(made)
        spark.sql(f"INSERT INTO {routes.name(table, 'path')} REPLACE WHERE {where} {new}")
        assert [row[0] for row in rows(table)] == [1, 3]
        table = routes.copy(made)
        spark.sql(new).writeTo(routes.name(table, "path")).overwrite(F.expr(where))
        assert [row[0] for row in rows(table)] == [1, 3]


def test_a_condition_keeps_a_backslash_of_a_session_without_escapes(spark, routes, conf):
    conf("spark.sql.parser.escapedStringLiterals", "true")
    made = routes.make(spark.createDataFrame([("a\\d",), ("b",)], "s string"))
    spark.sql(rf"INSERT INTO {routes.name(made, 'path')} REPLACE WHERE s = 'a\d' SELECT 'a\d'")
    assert sorted(row.s for row in made.read().collect()) == ["a\\d", "b"]
