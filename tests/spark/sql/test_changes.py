"""DELETE, UPDATE and TRUNCATE TABLE by SQL: the same as the methods of `DeltaTable`, with the answers of Delta."""

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from tablelog.errors import InvalidArgumentError, TablelogError, TableNotFoundError
from tablelog.spark import DeltaTable

ROUTES = ["path", "name", "view"]


def rows_of(spark, count=6):
    return spark.range(count).selectExpr("id", "cast(id % 2 as int) AS p", "named_struct('a', id, 'b', 'x') AS s")


def test_delete_by_each_route(spark, routes):
    first = routes.make(rows_of(spark), by=("p",))
    for route in [*ROUTES, "full name"]:
        table = routes.copy(first)
        name = routes.name(table, route)
        answer = spark.sql(f"DELETE FROM {name} WHERE id > 3")
        assert (answer.columns, [tuple(row) for row in answer.collect()]) == (["num_affected_rows"], [(2,)]), route
        assert table.rows("id") == [0, 1, 2, 3]
        assert (table.info()["operation"], table.version) == ("DELETE", 1)
        assert spark.sql(f"DELETE FROM {name} WHERE id > 3").first()[0] == 0
        assert spark.sql(f"DELETE FROM {name} WHERE p = 1").first()[0] == 2  # whole partitions, by statistics
        assert spark.sql(f"DELETE FROM {name}").first()[0] == 2
        assert (table.rows(), table.version) == ([], 3)


@pytest.mark.slow
def test_names_in_conditions(spark, routes):
    first = routes.make(rows_of(spark))
    for alias, condition, assigned in [
        (" AS x", "x.id = 1", "x.s.b"),
        (" x", "X.s.a = 1", "X.s.b"),
        ("", "{short}.id = 1", "{short}.s.b"),
        ("", "own.{short}.s.a = 1", "own.{short}.s.b"),
        ("", "spark_catalog.own.{short}.id = 1", "spark_catalog.own.{short}.s.b"),
        ("", "ID = 1", "s.B"),
    ]:
        table = routes.copy(first)
        name, short = routes.name(table, "name"), table.root.name
        assert spark.sql(f"DELETE FROM {name}{alias} WHERE {condition.format(short=short)}").first()[0] == 1, condition
        assert table.rows("id") == [0, 2, 3, 4, 5]
        updated = spark.sql(f"UPDATE {name}{alias} SET {assigned.format(short=short)} = 'y' WHERE id = 2")
        assert updated.first()[0] == 1, assigned
        assert [row.id for row in table.read().where("s.b = 'y'").collect()] == [2]
    table = routes.copy(first)
    view = routes.name(table, "view")
    assert spark.sql(f"DELETE FROM {view} WHERE {view}.id = 1").first()[0] == 1
    path = routes.name(table, "path")
    assert spark.sql(f"DELETE FROM {path} WHERE {path}.id = 2").first()[0] == 1
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN") as caught:
        spark.sql(f"DELETE FROM {path} AS x WHERE {path}.id = 3")
    assert caught.value.getCondition() == "UNRESOLVED_COLUMN.WITH_SUGGESTION"
    assert table.version == 2


@pytest.mark.slow
def test_a_condition_names_a_column_in_several_spellings(spark, routes):
    first = routes.make(rows_of(spark), by=("p",))
    condition = "(id = 1 AND p = 1) OR (ID = 2 AND P = 0) OR (Id = 3 AND S.a = 3 AND s.A = 3)"
    for form in (condition, F.expr(condition)):
        table = routes.copy(first)
        DeltaTable.forPath(spark, table.path).delete(form)
        assert table.rows("id") == [0, 4, 5]
    table = routes.copy(first)
    spark.sql(f"UPDATE {routes.name(table, 'path')} SET id = ID + Id + 10 WHERE {condition}")
    assert table.rows("id") == [0, 4, 5, 12, 14, 16]
    table = routes.copy(first)
    new = "SELECT 2L AS id, 0 AS p, named_struct('a', 9L, 'b', 'y') AS s"
    spark.sql(f"INSERT INTO {routes.name(table, 'path')} REPLACE WHERE {condition} {new}")
    assert table.rows("id") == [0, 2, 4, 5]
    table = routes.copy(first)
    spark.sql(new).writeTo(routes.name(table, "path")).overwrite((F.col("id") == 2) | (F.col("ID") == 3))
    assert table.rows("id") == [0, 1, 2, 4, 5]


def test_update_by_each_route_is_that_of_the_method(spark, routes):
    first = routes.make(rows_of(spark), by=("p",))
    for route in ROUTES:
        table, other = routes.copy(first), routes.copy(first)
        name = routes.name(table, route)
        answer = spark.sql(f"UPDATE {name} AS t SET t.p = p + 10, s.b = concat(s.b, id) WHERE t.id % 2 = 1 AND id > 1")
        other.delta.update("id % 2 = 1 AND id > 1", {"p": "p + 10", "s.b": "concat(s.b, id)"})
        assert (answer.columns, [tuple(row) for row in answer.collect()]) == (["num_affected_rows"], [(2,)])
        assert table.rows() == other.rows()
        assert spark.sql(f"UPDATE {name} SET p = 0").first()[0] == 6
        assert spark.sql(f"UPDATE {name} SET p = 0 WHERE false").first()[0] == 0
        assert set(table.rows("p")) == {0}
        assert table.info()["operation"] == "UPDATE"


def test_default_in_update(spark, routes, table):
    builder = DeltaTable.create(spark).location(table.path).property("delta.feature.allowColumnDefaults", "supported")
    builder.addColumn("id", "bigint").addColumn("n", "int").execute()
    table.write(spark.range(2).selectExpr("id", "7 AS n"))
    table.delta.alterColumn("n", default="40 + 2")
    spark.sql(f"UPDATE delta.`{table.path}` SET n = DEFAULT, id = default WHERE id = 1")
    assert sorted(map(tuple, table.read().collect()), key=str) == [(0, 7), (None, 42)]


def test_a_column_named_default_is_no_keyword(spark, table, conf):
    table.write(spark.sql("SELECT 1 id, 10 v, 7 `default`"))
    name = f"delta.`{table.path}`"
    spark.sql(f"UPDATE {name} SET v = `default`")
    assert table.rows("v") == [7]
    spark.sql(f"UPDATE {name} SET v = DEFAULT + 1")
    assert table.rows("v") == [8]
    spark.sql(f"UPDATE {name} SET v = DEFAULT")
    assert table.rows("v") == [7]
    source = "(SELECT 1 id UNION ALL SELECT 5) s ON t.id = s.id"
    spark.sql(
        f"MERGE INTO {name} t USING {source} WHEN MATCHED THEN UPDATE SET v = default, `default` = 8 "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, default)"
    )
    assert sorted(map(tuple, table.read().collect()), key=str) == [(1, 7, 8), (5, None, None)]
    source = "(SELECT 1 id, 9 DEFAULT UNION ALL SELECT 6, 60) s ON t.id = s.id"
    spark.sql(
        f"MERGE INTO {name} t USING {source} WHEN MATCHED THEN UPDATE SET v = s.`default` "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, default) "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = default, id = 50"
    )
    assert sorted(map(tuple, table.read().collect()), key=str) == [(1, 9, 8), (50, None, None), (6, 60, None)]
    conf("spark.sql.caseSensitive", "true")
    spark.sql(f"UPDATE {name} SET v = DEFAULT WHERE id = 1")
    assert table.read().where("id = 1").first().v is None
    spark.sql(f"UPDATE {name} SET v = default WHERE id = 1")
    assert table.read().where("id = 1").first().v == 8


CHANGES = [
    "UPDATE {t} {options} SET n = n + 1",
    "DELETE FROM {t} {options} WHERE id = n",
    "MERGE INTO {t} {options} USING (SELECT 1 AS k) ON id = k WHEN MATCHED THEN UPDATE SET n = n + 1",
]


@pytest.mark.parametrize("text", CHANGES)
def test_options_of_the_table_are_those_of_the_commit(spark, table, text):
    if spark.version < "4.3":
        pytest.skip("only the tables of an INSERT have options")
    table.write(spark.sql("SELECT 1 AS id, 1 AS n UNION ALL SELECT 2, 3"))

    def run(options):
        return spark.sql(text.format(t=f"delta.`{table.path}`", options=f"WITH ({options})"))

    for option, value in {"versionAsOf": "0", "mergeSchema": "true", "nothing": "x", "txnVersion": "-1"}.items():
        with pytest.raises(InvalidArgumentError, match=f"Invalid value '{value}' for option '{option}'"):
            run(f"'txnAppId' = 'job', '{option}' = '{value}'")
    assert table.version == 0
    for _ in range(2):  # the second is skipped
        run("'txnAppId' = 'job', 'TXNVERSION' = '7', userMetadata = 'note'")
        assert (table.version, table.info()["userMetadata"]) == (1, "note")


@pytest.mark.parametrize("text", CHANGES)
def test_a_stored_view_is_refused_by_its_name(spark, database, table, text):
    table.write(spark.sql("SELECT 1 AS id, 1 AS n"))
    spark.sql(f"CREATE TABLE own.stored USING delta LOCATION '{table.path}'")
    spark.sql("CREATE VIEW own.shown AS SELECT * FROM own.stored")
    with pytest.raises(InvalidArgumentError, match=r"own\.shown is a stored view"):
        spark.sql(text.format(t="own.shown", options=""))
    assert table.version == 0


def test_common_tables_and_subqueries(spark, routes):
    table = routes.make(rows_of(spark))
    name = routes.name(table, "name")
    text = f"WITH x AS (SELECT max(id) AS m FROM {name}) UPDATE {name} SET p = (SELECT m FROM x) WHERE id = 0"
    assert spark.sql(text).first()[0] == 1
    assert table.read().where("id = 0").first().p == 5
    before = table.version
    for text in (
        f"DELETE FROM {name} WHERE id IN (SELECT id FROM {name})",
        f"WITH x AS (SELECT 1 AS id) DELETE FROM {name} WHERE id IN (SELECT id FROM x)",
        f"UPDATE {name} SET p = 1 WHERE EXISTS (SELECT 1)",
        f"DELETE FROM {name} WHERE id = (SELECT max(id) FROM {name})",
    ):
        with pytest.raises(TablelogError) as caught:
            spark.sql(text)
        assert caught.value.getCondition() == "DELTA_UNSUPPORTED_SUBQUERY", text
    assert table.version == before


def test_parameters_variables_and_frames(spark, routes, conf):
    table = routes.make(rows_of(spark, 12), by=("p",))
    name = routes.name(table, "path")
    assert spark.sql(f"DELETE FROM {name} WHERE id = :id", {"id": 1}).first()[0] == 1
    assert spark.sql(f"DELETE FROM {name} WHERE id = ? AND s.b = ?", [2, "x"]).first()[0] == 1
    assert spark.sql(f"UPDATE {name} SET s.b = :text WHERE id = 3", {"text": "it's"}).first()[0] == 1
    assert spark.sql("DELETE FROM {t} WHERE id = {n}", t=table.read(), n=4).first()[0] == 1
    assert (
        spark.sql(f"DELETE FROM {name} WHERE array_contains(:ids, id)", {"ids": F.array(F.lit(5), F.lit(6))}).first()[0]
        == 2
    )
    by_parameter = name if spark.version.startswith("4.1.") else "IDENTIFIER(:t)"  # 4.1 resolves it in the analyzer
    assert spark.sql(f"DELETE FROM {by_parameter} WHERE id = 7", {"t": name}).first()[0] == 1
    spark.sql("DECLARE OR REPLACE VARIABLE wanted BIGINT DEFAULT 8")
    try:
        assert spark.sql(f"DELETE FROM {name} WHERE id = wanted").first()[0] == 1
        assert spark.sql(f"UPDATE {name} SET p = wanted WHERE id = session.wanted + 1").first()[0] == 1
    finally:
        spark.sql("DROP TEMPORARY VARIABLE wanted")
    assert table.rows("id", "p", "s.b") == [(0, 0, "x"), (3, 1, "it's"), (9, 8, "x"), (10, 0, "x"), (11, 1, "x")]
    before = table.version
    with pytest.raises(AnalysisException, match="UNBOUND_SQL_PARAMETER"):
        spark.sql(f"DELETE FROM {name} WHERE id = :other", {"id": 1})
    with pytest.raises(AnalysisException, match="UNBOUND_SQL_PARAMETER"):
        spark.sql(f"DELETE FROM {name} WHERE id = :other")
    with pytest.raises(AnalysisException, match="INVALID_SQL_ARG"):
        spark.sql(f"DELETE FROM {name} WHERE id = :id", {"id": F.rand()})
    conf("spark.sql.legacy.parameterSubstitution.constantsOnly", "true")
    with pytest.raises(AnalysisException, match="UNBOUND_SQL_PARAMETER"):
        spark.sql(f"DELETE FROM {name} WHERE id = :id", {"id": 3})
    assert table.version == before


def test_truncate(spark, routes):
    first = routes.make(rows_of(spark), by=("p",))
    for route in ("path", "name"):
        table = routes.copy(first)
        name = routes.name(table, route)
        with pytest.raises(AnalysisException) as caught:
            spark.sql(f"TRUNCATE TABLE {name} PARTITION (p = 1)")
        assert caught.value.getCondition() == "DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED"
        answer = spark.sql(f"TRUNCATE TABLE {name}")
        assert (answer.columns, answer.collect(), table.rows(), table.version) == ([], [], [], 1)
        info = table.info()
        assert (info["operation"], info["operationParameters"]) == ("TRUNCATE", {})
        assert info["operationMetrics"]["numRemovedFiles"] == str(len(first.data_files()))
        spark.sql(f"TRUNCATE TABLE {name}")
        assert table.version == 1
    table = routes.copy(first)
    view = routes.name(table, "view")
    for text in (f"TRUNCATE TABLE {view}", f"TRUNCATE TABLE {view} PARTITION (p = 1)"):
        with pytest.raises(AnalysisException, match="EXPECT_TABLE_NOT_VIEW"):
            spark.sql(text)
    assert table.version == 0


def test_refused(spark, routes):
    table = routes.make(rows_of(spark))
    table.delta.delete("id = 0")
    name = routes.name(table, "path")
    table.read(versionAsOf=0).createOrReplaceTempView("v_t0")
    for text in ("DELETE FROM v_t0", "UPDATE v_t0 SET p = 1"):
        with pytest.raises(InvalidArgumentError, match="shows version 0"):
            spark.sql(text)
    for text, condition in [
        (f"UPDATE {name} SET p = 1, P = 2", "DELTA_CONFLICT_SET_COLUMN"),
        (f"DELETE FROM {name} WHERE rand() > 0.5", "INVALID_NON_DETERMINISTIC_EXPRESSIONS"),
        (f"DELETE FROM {name} WHERE nothing = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        (f"UPDATE {name} SET nothing = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ]:
        with pytest.raises(AnalysisException) as caught:
            spark.sql(text)
        assert caught.value.getCondition() == condition, text
    with pytest.raises(TableNotFoundError):
        spark.sql(f"DELETE FROM delta.`{routes.root}/none`")
    table.delta.setProperties({"delta.appendOnly": "true"})
    for text in (f"DELETE FROM {name}", f"UPDATE {name} SET p = 1", f"TRUNCATE TABLE {name}"):
        with pytest.raises(TablelogError) as caught:
            spark.sql(text)
        assert caught.value.getCondition() == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
    assert table.version == 2


def test_other_tables_are_for_spark(spark, routes):
    spark.range(3).write.saveAsTable("own.p", format="parquet")
    with pytest.raises(AnalysisException, match="UNSUPPORTED_FEATURE"):
        spark.sql("DELETE FROM own.p WHERE id = 1")
    spark.sql("TRUNCATE TABLE own.p")
    assert spark.table("own.p").count() == 0
