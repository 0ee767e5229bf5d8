"""INSERT of values that Spark's store assignment refuses and Delta casts; EXPLAIN of statements about Delta tables."""

import pytest
from pyspark.errors import AnalysisException, NumberFormatException

from tablelog.errors import InvalidArgumentError
from tablelog.spark import DeltaTable


@pytest.fixture
def typed(spark, routes):
    frame = spark.createDataFrame([], "id bigint, p int, s struct<a: int, b: string>, l array<struct<n: int>>")
    return routes.make(frame)


def rows(table):
    return sorted((r.id, r.p, r.s and tuple(r.s), r.l and [x.n for x in r.l]) for r in table.read().collect())


@pytest.mark.slow
def test_text_is_cast_by_each_route(spark, routes, typed):
    for route in ("path", "name", "view"):
        table = routes.copy(typed)
        name = routes.name(table, route)
        spark.sql(f"INSERT INTO {name} VALUES ('1', '5', struct('6', 7), array(struct('8')))")
        spark.sql(f"INSERT INTO {name} (p, id) VALUES ('5', '2')")
        spark.sql(f"INSERT INTO {name} BY NAME SELECT '5' AS p, '3' AS ID")
        whole = (1, 5, (6, "7"), [8])
        assert rows(table) == [whole, (2, 5, None, None), (3, 5, None, None)]
        with pytest.raises(NumberFormatException) as caught:
            spark.sql(f"INSERT INTO {name} (id, p) VALUES (1, 'text')")
        assert caught.value.getCondition() == "CAST_INVALID_INPUT"
        assert len(rows(table)) == 3
        spark.sql(f"INSERT OVERWRITE {name} SELECT '4', '5', NULL, NULL")
        spark.createDataFrame([("5", "6")], "a string, b string").selectExpr(
            "a", "b", "NULL AS c", "NULL AS d"
        ).write.insertInto(name)
        assert rows(table) == [(4, 5, None, None), (5, 6, None, None)]


def test_cast_with_a_partition_and_a_default(spark, table):
    builder = DeltaTable.create(spark).location(table.path).property("delta.feature.allowColumnDefaults", "supported")
    builder.addColumn("id", "int").addColumn("n", "int").addColumn("p", "int").partitionedBy("p").execute()
    table.delta.alterColumn("n", default="40 + 2")
    name = f"delta.`{table.path}`"
    spark.sql(f"INSERT INTO {name} VALUES ('1', DEFAULT, '7')")
    spark.sql(f"INSERT INTO {name} PARTITION (p = '8') VALUES ('2', DEFAULT)")
    spark.sql(f"INSERT OVERWRITE {name} PARTITION (p = 7) SELECT '3', '4'")
    assert table.rows() == [(2, 42, 8), (3, 4, 7)]


def test_other_policies(spark, routes, typed, conf):
    name = routes.name(typed, "path")
    conf("spark.sql.storeAssignmentPolicy", "STRICT")
    with pytest.raises(AnalysisException):
        spark.sql(f"INSERT INTO {name} (id, p) VALUES (1L, '5')")
    conf("spark.sql.storeAssignmentPolicy", "LEGACY")
    spark.sql(f"INSERT INTO {name} (id, p) VALUES ('1', 'text')")
    assert rows(typed) == [(1, None, None, None)]
    with pytest.raises(AnalysisException) as caught:
        spark.sql(f"INSERT INTO {name} VALUES (1)")
    assert caught.value.getCondition() == "DELTA_INSERT_COLUMN_ARITY_MISMATCH"


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("UPDATE {n} SET p = array(1)", "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"),
        (
            "MERGE INTO {n} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET p = array(1)",
            "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION",
        ),
        (
            "MERGE INTO {n} t USING (SELECT 1L AS id) s ON max(t.id) = s.id WHEN MATCHED THEN DELETE",
            "DELTA_AGGREGATION_NOT_SUPPORTED",
        ),
    ],
    ids=["update", "merge", "aggregate"],
)
def test_refused_changes(spark, routes, text, condition):
    table = routes.make(spark.range(3).selectExpr("id", "1 AS p"))
    with pytest.raises(AnalysisException) as caught:
        spark.sql(text.format(n=routes.name(table, "path")))
    assert caught.value.getCondition() == condition
    assert table.version == 0


def test_default_that_names_a_column(spark, database, tmp_path):
    with_defaults = "USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    with pytest.raises(InvalidArgumentError) as caught:
        spark.sql(f"CREATE TABLE d (a INT, b INT DEFAULT a) {with_defaults}")
    assert caught.value.getCondition() == "INVALID_DEFAULT_VALUE.NOT_CONSTANT"
    assert not spark.catalog.tableExists("d")
    spark.sql(f"CREATE TABLE d (a INT, b DATE DEFAULT current_date) {with_defaults}")


def test_explain_changes_nothing(spark, routes, typed):
    name = routes.name(typed, "name")
    for text, operation in [
        (f"DELETE FROM {name} WHERE id = 1", "DELETE"),
        (f"UPDATE {name} SET p = 1", "UPDATE"),
        (f"INSERT INTO {name} (id) VALUES (1)", "INSERT"),
        (f"MERGE INTO {name} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE", "MERGE"),
    ]:
        answer = spark.sql(f"EXPLAIN {text}")
        ((plan,),) = answer.collect()
        assert answer.columns == ["plan"]
        assert f"tablelog {operation} [table: " in plan
        assert "Parsed Logical Plan" in plan
        assert "Traceback" not in plan
    assert typed.version == 0
