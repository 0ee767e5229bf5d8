"""MERGE INTO by SQL, and `DataFrame.mergeInto`: the same as `DeltaTable.merge`, with Delta's answer."""

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as F

from tablelog.errors import InvalidArgumentError, TablelogError

COUNTS = ["num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows"]
EVERY = """
    WHEN MATCHED AND s.id = 1 THEN DELETE
    WHEN MATCHED AND s.v > 0 THEN UPDATE SET t.v = s.v, own = 'updated'
    WHEN MATCHED THEN UPDATE SET v = -1
    WHEN NOT MATCHED AND s.id > 100 THEN INSERT (id, v) VALUES (s.id, DEFAULT)
    WHEN NOT MATCHED BY TARGET THEN INSERT (id, v, own) VALUES (s.id, s.v, 'new')
    WHEN NOT MATCHED BY SOURCE AND id = 5 THEN DELETE
    WHEN NOT MATCHED BY SOURCE THEN UPDATE SET own = 'left'
"""


def target_rows(spark):
    return spark.range(6).selectExpr("id", "id * 10 AS v", "'old' AS own")


def source_rows(spark):
    return spark.createDataFrame([(1, 1), (2, 22), (3, -3), (7, 77), (200, 1)], "id bigint, v bigint")


def by_method(table, source):
    builder = table.delta.alias("t").merge(source.alias("s"), "t.id = s.id")
    return (
        builder.whenMatchedDelete("s.id = 1")
        .whenMatchedUpdate("s.v > 0", {"v": "s.v", "own": "'updated'"})
        .whenMatchedUpdate(set={"v": "-1"})
        .whenNotMatchedInsert("s.id > 100", {"id": "s.id", "v": "null"})
        .whenNotMatchedInsert(values={"id": "s.id", "v": "s.v", "own": "'new'"})
        .whenNotMatchedBySourceDelete("t.id = 5")
        .whenNotMatchedBySourceUpdate(set={"own": "'left'"})
        .execute()
    )


def test_every_clause_by_each_route(spark, routes):
    first = routes.make(target_rows(spark))
    source = source_rows(spark)
    source.createOrReplaceTempView("v_t0")
    kept = routes.make(source)
    expected = routes.copy(first)
    counts = by_method(expected, source).collect()
    wanted = sorted(map(str, expected.rows()))
    for route, using in [
        ("path", "v_t0 AS s"),
        ("name", f"delta.`{kept.path}` s"),
        ("view", f"(SELECT * FROM {routes.name(kept, 'name')} WHERE id IN (SELECT id FROM v_t0)) AS s"),
    ]:
        table = routes.copy(first)
        answer = spark.sql(f"MERGE INTO {routes.name(table, route)} AS t USING {using} ON t.id = s.id {EVERY}")
        assert (answer.columns, answer.collect()) == (COUNTS, counts), route
        assert sorted(map(str, table.rows())) == wanted, route
        assert (table.version, table.info()["operation"]) == (1, "MERGE")
    table = routes.copy(first)
    answer = spark.sql(f"MERGE INTO delta.`{table.path}` t USING {{s}} AS s ON t.id = s.id {EVERY}", s=source)
    assert answer.collect() == counts
    assert sorted(map(str, table.rows())) == wanted


def test_names_without_alias(spark, routes):
    first = routes.make(spark.range(3).selectExpr("id", "0 AS v"))
    table = routes.copy(first)
    name, short = routes.name(table, "name"), table.root.name
    source = routes.name(routes.make(spark.range(1, 4).selectExpr("id", "1 AS v")), "name")
    spark.sql(
        f"MERGE INTO {name} USING {source} ON {short}.id = {source}.id AND spark_catalog.{name}.id > 1 "
        f"WHEN MATCHED THEN UPDATE SET {name}.v = {source}.v + {name}.v"
    )
    assert table.rows() == [(0, 0), (1, 0), (2, 1)]


def test_stars_and_schema_evolution(spark, routes):
    first = routes.make(spark.range(3).selectExpr("id", "'old' AS a"))
    source = spark.createDataFrame([(2, "n", 5), (3, "n", 6)], "id bigint, a string, extra int")
    stars = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    table = routes.copy(first)
    spark.sql(f"MERGE INTO {routes.name(table, 'name')} t USING {{s}} s ON t.id = s.id {stars}", s=source)
    assert table.rows() == [(0, "old"), (1, "old"), (2, "n"), (3, "n")]
    table, expected = routes.copy(first), routes.copy(first)
    name = routes.name(table, "path")
    spark.sql(f"MERGE WITH SCHEMA EVOLUTION INTO {name} t USING {{s}} s ON t.id = s.id {stars}", s=source)
    builder = expected.delta.alias("t").merge(source.alias("s"), "t.id = s.id").withSchemaEvolution()
    builder.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert table.read().schema == expected.read().schema
    assert sorted(table.read().collect(), key=str) == sorted(expected.read().collect(), key=str)
    table = routes.copy(first)
    name = routes.name(table, "path")
    with pytest.raises(AnalysisException) as caught:
        spark.sql(f"MERGE INTO {name} t USING (SELECT 1L AS id) s ON t.id = s.id {stars}")
    assert caught.value.getCondition() == "DELTA_MERGE_UNRESOLVED_EXPRESSION"
    assert table.version == 0


@pytest.mark.slow
def test_common_tables_parameters_and_variables(spark, routes):
    table = routes.make(spark.range(3).selectExpr("id", "0 AS v"))
    name = routes.name(table, "name")
    text = (
        f"WITH s AS (SELECT id, 9 AS v FROM {name} WHERE id > :from) MERGE INTO {name} t USING s ON t.id = s.id "
        "WHEN MATCHED AND s.id = :id THEN UPDATE SET v = s.v + :more "
        "WHEN MATCHED THEN UPDATE SET v = (SELECT max(v) FROM s)"
    )
    spark.sql(text, {"from": 0, "id": 2, "more": 1})
    assert table.rows() == [(0, 0), (1, 9), (2, 10)]
    spark.sql(f"MERGE INTO {name} t USING (SELECT ? AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = ?", [0, 5])
    spark.sql("DECLARE OR REPLACE VARIABLE doomed BIGINT DEFAULT 1")
    try:
        spark.sql(f"MERGE INTO {name} t USING (SELECT doomed AS k) ON t.id = k WHEN MATCHED AND k = doomed THEN DELETE")
    finally:
        spark.sql("DROP TEMPORARY VARIABLE doomed")
    assert table.rows() == [(0, 5), (2, 10)]


def test_refused(spark, routes):
    table = routes.make(spark.range(3).selectExpr("id", "0 AS v"))
    name = routes.name(table, "name")
    merge = f"MERGE INTO {name} t USING (SELECT 1L AS k, 2 AS w) s ON "
    for text, condition in [
        (f"{merge} t.id = (SELECT 1) WHEN MATCHED THEN DELETE", "DELTA_UNSUPPORTED_SUBQUERY"),
        (f"{merge} t.id = k WHEN MATCHED AND k IN (SELECT 1) THEN DELETE", "DELTA_UNSUPPORTED_SUBQUERY"),
        (f"{merge} t.id = k AND rand() > 0 WHEN MATCHED THEN DELETE", "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED"),
        (f"{merge} t.id = k WHEN MATCHED THEN UPDATE SET v = 1, v = 2", "DELTA_CONFLICT_SET_COLUMN"),
        (f"{merge} t.id = k WHEN MATCHED THEN UPDATE SET other = 1", "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
    ]:
        with pytest.raises((TablelogError, AnalysisException)) as caught:
            spark.sql(text)
        assert caught.value.getCondition() == condition, text
    source = "(SELECT 1L AS k UNION ALL SELECT 1L)"
    with pytest.raises(TablelogError, match="matches several rows of the source"):
        spark.sql(f"MERGE INTO {name} t USING {source} ON id = k WHEN MATCHED THEN UPDATE SET v = k")
    table.write(spark.range(1).selectExpr("id", "0 AS v"))
    table.read(versionAsOf=0).createOrReplaceTempView("v_t0")
    with pytest.raises(InvalidArgumentError, match="shows version 0"):
        spark.sql("MERGE INTO v_t0 t USING (SELECT 1L AS k) ON t.id = k WHEN MATCHED THEN DELETE")
    assert table.version == 1


@pytest.mark.slow
def test_merge_into_of_a_frame(spark, routes):
    first = routes.make(target_rows(spark))
    source = source_rows(spark)
    expected = routes.copy(first)
    by_method(expected, source)
    for route in ("path", "view"):
        table = routes.copy(first)
        name = routes.name(table, route)
        named = name if route == "view" else name.rpartition(".")[2]
        writer = source.alias("s").mergeInto(name, F.expr(f"{named}.id = s.id"))
        writer = writer.whenMatched(F.expr("s.id = 1")).delete()
        writer = writer.whenMatched(F.col("s.v") > 0).update({"v": F.col("s.v"), "own": F.lit("updated")})
        writer = writer.whenMatched().update({"v": F.lit(-1)})
        writer = writer.whenNotMatched(F.expr("s.id > 100")).insert({"id": F.col("s.id"), "v": F.expr("null")})
        writer = writer.whenNotMatched().insert({"id": F.col("s.id"), "v": F.col("s.v"), "own": F.lit("new")})
        writer = writer.whenNotMatchedBySource(F.expr(f"{named}.id = 5")).delete()
        assert writer.whenNotMatchedBySource().update({"own": F.lit("left")}).merge() is None
        assert sorted(map(str, table.rows())) == sorted(map(str, expected.rows())), route
    table = routes.copy(first)
    wider = source.withColumns({"own": F.lit("s"), "extra": F.lit(1)})
    writer = wider.alias("s").mergeInto(routes.name(table, "name"), F.expr(f"{table.root.name}.id = s.id"))
    writer.whenMatched().updateAll().whenNotMatched().insertAll().withSchemaEvolution().merge()
    assert table.read().columns == ["id", "v", "own", "extra"]
    assert table.read().where("extra = 1").count() == 5
    before = table.version
    writer = wider.mergeInto(routes.name(table, "name"), F.lit(True))
    with pytest.raises(InvalidArgumentError, match="no source row"):
        writer.whenNotMatchedBySource().updateAll().merge()
    assert table.version == before


def test_merge_into_another_table_is_for_spark(spark, routes):
    spark.range(3).write.saveAsTable("own.p", format="parquet")
    for run in (
        lambda: spark.range(1).mergeInto("own.p", F.lit(True)).whenMatched().delete().merge(),
        lambda: spark.sql("MERGE INTO own.p USING (SELECT 1 AS k) ON id = k WHEN MATCHED THEN DELETE"),
    ):
        with pytest.raises(PySparkException) as caught:
            run()
        assert caught.value.getCondition() == "UNSUPPORTED_FEATURE.TABLE_OPERATION"
    assert spark.table("own.p").count() == 3
