"""INSERT ... REPLACE USING, REPLACE ON and WITH SCHEMA EVOLUTION, which the parsers of Spark 4.2 and later know."""

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException

from tablelog.spark import DeltaTable

STATEMENTS = [
    "INSERT INTO t REPLACE USING (p) SELECT 1, 'x', 1",
    "INSERT INTO t REPLACE ON t.id = s.i (SELECT 1 AS i, 'x' AS n, 1 AS q) AS s",
    "INSERT WITH SCHEMA EVOLUTION INTO t SELECT 1, 'x', 1, 2 AS more",
]


@pytest.fixture
def grammar(spark):
    if spark.version.startswith("4.1"):
        pytest.skip("Spark's parser doesn't know these statements: see test_older_parsers")


@pytest.fixture
def table(spark, database):
    spark.sql(
        "CREATE TABLE t (id INT, name STRING, p INT) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    spark.sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2), (4, 'n', NULL)")
    return DeltaTable.forName(spark, "own.t")


def rows(spark, name="t"):
    return sorted(map(tuple, spark.table(name).collect()), key=str)


def refused(spark, text, condition, kind=AnalysisException):
    before = DeltaTable.forName(spark, "own.t").history(1).first().version
    with pytest.raises(kind) as caught:
        spark.sql(text)
    assert caught.value.getCondition() == condition, text
    assert DeltaTable.forName(spark, "own.t").history(1).first().version == before


def test_older_parsers(spark, table):
    if not spark.version.startswith("4.1"):
        pytest.skip("Spark's parser knows these statements")
    for text in STATEMENTS:
        refused(spark, text, "PARSE_SYNTAX_ERROR", ParseException)


@pytest.mark.slow
def test_values_are_cast_as_by_insert_into(spark, grammar, table, conf):
    spark.sql("INSERT INTO t REPLACE USING (id) SELECT 1 AS id, 5 AS name, '7' AS p")
    assert rows(spark)[0] == (1, "5", 7)
    spark.sql("INSERT INTO t BY NAME REPLACE USING (id) SELECT '8' AS p, 2 AS id, 6 AS name")
    spark.sql("INSERT INTO t REPLACE ON t.id = s.id (SELECT 3 AS id, 'c' AS name, '9' AS p) AS s")
    assert rows(spark) == [(1, "5", 7), (2, "6", 8), (3, "c", 9), (4, "n", None)]
    with pytest.raises(PySparkException) as caught:
        spark.sql("INSERT INTO t REPLACE USING (id) SELECT 1 AS id, 'a' AS name, 'text' AS p")
    assert caught.value.getCondition() == "CAST_INVALID_INPUT"
    conf("spark.sql.storeAssignmentPolicy", "STRICT")
    refused(
        spark,
        "INSERT INTO t REPLACE USING (id) SELECT 1 AS id, 'a' AS name, '7' AS p",
        "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST",
    )
    conf("spark.sql.storeAssignmentPolicy", "LEGACY")
    spark.sql("INSERT INTO t REPLACE USING (id) SELECT 1 AS id, 'a' AS name, 'text' AS p")
    assert rows(spark)[0] == (1, "a", None)


@pytest.mark.slow
def test_replace_using(spark, grammar, table):
    spark.sql(
        "INSERT INTO t REPLACE USING (p) SELECT * FROM VALUES (9, 'z', 1), (8, 'y', NULL), (7, 'x', 5) AS v(i, n, p)"
    )
    kept = [(3, "c", 2), (4, "n", None)]  # null is equal to nothing
    assert rows(spark) == sorted([*kept, (9, "z", 1), (8, "y", None), (7, "x", 5)], key=str)
    last = table.history(1).first()
    assert (last.operation, last.operationParameters["replaceUsingCols"]) == ("WRITE", "(p)")
    assert (last.operationMetrics["numDeletedRows"], last.version) == ("2", 2)
    kinds = spark.sql("SELECT _change_type, count(*) AS n FROM table_changes('t', 2) GROUP BY 1").collect()
    assert {row[0]: row.n for row in kinds} == {"insert": 3, "delete": 2}
    spark.sql("INSERT INTO t BY NAME REPLACE USING (P, id) SELECT 2 AS p, 3 AS id")
    assert (3, None, 2) in rows(spark)
    assert (3, "c", 2) not in rows(spark)


def test_replace_on(spark, grammar, table):
    spark.sql("INSERT INTO t AS x REPLACE ON x.id = s.i (SELECT explode(array(3, 3)) AS i, 'y' AS n, 7 AS q) AS s")
    assert rows(spark) == sorted([(1, "a", 1), (2, "b", 1), (3, "y", 7), (3, "y", 7), (4, "n", None)], key=str)
    assert "replaceOnCond" in table.history(1).first().operationParameters
    spark.sql("WITH c AS (SELECT 1 AS i, 'w' AS n, 3.7 AS q) INSERT INTO t REPLACE ON t.id <= i + 1 SELECT * FROM c")
    assert rows(spark) == sorted([(1, "w", 3), (3, "y", 7), (3, "y", 7), (4, "n", None)], key=str)
    spark.sql("INSERT INTO t AS x REPLACE ON x.p <=> s.p SELECT id + 1 AS id, name, p FROM t s WHERE p IS NULL")
    assert rows(spark) == sorted([(1, "w", 3), (3, "y", 7), (3, "y", 7), (5, "n", None)], key=str)
    spark.sql("INSERT INTO t AS x REPLACE ON x.id = r (SELECT cast(rand() * 0 AS int) + 5 AS r, 'v', :p)", {"p": 6})
    assert (5, "v", 6) in rows(spark)
    assert len(rows(spark)) == 4


def test_errors_of_replacing(spark, grammar, table):
    misaligned = "INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS"
    refused(spark, "INSERT INTO t REPLACE USING (id) SELECT 1 AS p, 'x' AS name, 3 AS id", misaligned)
    unresolved = "UNRESOLVED_INSERT_REPLACE_USING_COLUMN"
    refused(spark, "INSERT INTO t REPLACE USING (nope) SELECT 1 AS nope, 'x', 3", unresolved)
    refused(spark, "INSERT INTO t REPLACE USING (id) SELECT 1 AS i, 'x', 3", unresolved)
    ambiguous = "DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION"
    refused(spark, "INSERT INTO t REPLACE ON id = 1 SELECT 1 AS id, 'x', 3", ambiguous)
    missing = "DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION"
    refused(spark, "INSERT INTO t AS x REPLACE ON x.nope = 1 SELECT 1 AS id, 'w', 3", missing)
    spark.sql("ALTER TABLE t ADD CONSTRAINT positive CHECK (id > 0)")
    broken = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    refused(spark, "INSERT INTO t REPLACE USING (p) SELECT -1 AS id, 'x' AS name, 1 AS p", broken, PySparkException)


@pytest.mark.slow
def test_schema_evolution(spark, grammar, table):
    spark.sql("INSERT WITH SCHEMA EVOLUTION INTO t SELECT 5, 'e', 5, 50 AS more")
    assert (5, "e", 5, 50) in rows(spark)
    assert (1, "a", 1, None) in rows(spark)
    spark.sql("INSERT WITH SCHEMA EVOLUTION INTO t BY NAME SELECT 'text' AS other, 6 AS ID")
    assert (6, None, None, None, "text") in rows(spark)
    spark.sql("INSERT WITH SCHEMA EVOLUTION INTO t REPLACE WHERE id > 4 SELECT 7, 'g', 7, 70, 'o', struct(1 AS a) AS s")
    assert len(rows(spark)) == 5
    assert spark.table("t").columns == ["id", "name", "p", "more", "other", "s"]
    spark.sql(
        "INSERT WITH SCHEMA EVOLUTION INTO t BY NAME REPLACE USING (id) SELECT 7 AS id, struct(2 AS a, 3 AS b) AS s"
    )
    assert [row.s.asDict() for row in spark.table("t").where("id = 7").collect()] == [{"a": 2, "b": 3}]
    spark.sql("INSERT WITH SCHEMA EVOLUTION OVERWRITE t BY NAME SELECT 1 AS id, 2 AS last")
    assert spark.table("t").columns == ["id", "name", "p", "more", "other", "s", "last"]
    assert len(rows(spark)) == 1
    refused(spark, "INSERT WITH SCHEMA EVOLUTION INTO t (id, new) SELECT 1, 2", "UNRESOLVED_COLUMN.WITH_SUGGESTION")
    few = "DELTA_INSERT_COLUMN_ARITY_MISMATCH"
    refused(spark, "INSERT WITH SCHEMA EVOLUTION INTO t SELECT 1", few)


def test_evolution_widens_types(spark, grammar, database):
    spark.sql("CREATE TABLE w (id INT, s STRUCT<a: INT>) USING delta TBLPROPERTIES (delta.enableTypeWidening = true)")
    spark.sql("INSERT WITH SCHEMA EVOLUTION INTO w SELECT 5L, named_struct('a', 1L, 'b', 2)")
    assert spark.table("w").schema.simpleString() == "struct<id:bigint,s:struct<a:bigint,b:int>>"
    spark.sql("INSERT INTO w SELECT 6, named_struct('a', 1, 'b', 2)")
    assert [row.id for row in spark.table("w").orderBy("id").collect()] == [5, 6]


def test_evolution_keeps_small_integers_without_type_widening(spark, grammar, database):
    spark.sql("CREATE TABLE t (id TINYINT, s STRUCT<a: SMALLINT>) USING delta")
    spark.sql("INSERT WITH SCHEMA EVOLUTION INTO t SELECT 5, named_struct('a', 1, 'b', 2)")
    assert spark.table("t").schema.simpleString() == "struct<id:tinyint,s:struct<a:smallint,b:int>>"
    refused(
        spark,
        "INSERT WITH SCHEMA EVOLUTION INTO t SELECT 500, NULL",
        "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
        PySparkException,
    )


def test_evolution_by_the_session_and_by_options(spark, table, conf):
    conf("spark.databricks.delta.schema.autoMerge.enabled", "true")
    spark.sql("INSERT INTO t SELECT 5, 'e', 5, 50 AS more")
    conf("spark.databricks.delta.schema.autoMerge.enabled", "false")
    frame = spark.sql("SELECT 6, 'f', 6, 60, 61 AS most")
    frame.write.option("mergeSchema", "true").insertInto("t")
    assert spark.table("t").columns == ["id", "name", "p", "more", "most"]
    assert (6, "f", 6, 60, 61) in rows(spark)


def test_versions_in_names(spark, table):
    path = spark.sql("DESCRIBE DETAIL t").first().location
    assert spark.sql(f"SELECT * FROM delta.`{path}@v0`").count() == 0
    assert spark.sql(f"SELECT * FROM delta.`{path}@v1`").count() == 4
    assert spark.read.format("delta").load(f"{path}@v1").count() == 4
    name = "SELECT * FROM t@v0"
    if spark.version < "4.3":
        with pytest.raises(ParseException):
            spark.sql(name)
    else:
        assert spark.sql(name).count() == 0
        assert spark.sql("SELECT * FROM own.t@v1 x JOIN t@v0 y USING (id)").count() == 0
