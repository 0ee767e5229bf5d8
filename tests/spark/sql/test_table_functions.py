"""`table_changes` and `table_changes_by_path` in queries and statements."""

import pytest
from pyspark.errors import AnalysisException, PySparkException

from tablelog.spark import disable, enable

CHANGES = [
    (1, "a", "insert", 1),
    (2, "b", "insert", 1),
    (2, "b", "update_preimage", 2),
    (2, "c", "update_postimage", 2),
]


@pytest.fixture
def changed(spark, database):
    """A table with changes in the versions 1 and 2; its location."""
    spark.sql("CREATE TABLE t (id INT, name STRING) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    spark.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    spark.sql("UPDATE t SET name = 'c' WHERE id = 2")
    return spark.sql("DESCRIBE DETAIL t").first().location


def test_by_name_and_by_path(spark, changed):
    columns = "id, name, _change_type, _commit_version"
    for call, expected in {
        "table_changes('t', 0)": CHANGES,
        "TABLE_CHANGES('own.t', 1, 1)": CHANGES[:2],
        "table_changes('spark_catalog.own.t', 1L + 1L)": CHANGES[2:],
        "table_changes('t', '2001-01-01')": CHANGES,
        "table_changes('t', timestamp'2001-01-01 00:00:00', 1)": CHANGES[:2],
        "table_changes('t', now() - interval 9 days, now())": None,
        f"table_changes('delta.`{changed}`', 2)": CHANGES[2:],
        f"table_changes_by_path('{changed}', 0, 1)": CHANGES[:2],
        f"Table_Changes_By_Path('{changed}', to_timestamp('2001-01-01'))": CHANGES,
    }.items():
        query = f"SELECT {columns} FROM {call} ORDER BY _commit_version, id, name"
        if expected is None:  # the end is after the newest version
            with pytest.raises(AnalysisException) as caught:
                spark.sql(query)
            assert caught.value.getCondition() == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"
        else:
            assert list(map(tuple, spark.sql(query).collect())) == expected, call
    by_parameters = spark.sql("SELECT * FROM table_changes(:t, :start, :end)", {"t": "t", "start": 1, "end": 1})
    assert by_parameters.columns == ["id", "name", "_change_type", "_commit_version", "_commit_timestamp"]
    assert by_parameters.count() == 2
    assert spark.sql("SELECT * FROM table_changes(?, ?)", ["t", 2]).count() == 2
    spark.sql("DECLARE OR REPLACE VARIABLE first_version INT DEFAULT 2")
    assert spark.sql("SELECT * FROM table_changes('t', first_version)").count() == 2
    spark.sql("DROP TEMPORARY VARIABLE first_version")


@pytest.mark.slow
def test_in_every_place_of_a_statement(spark, changed):
    def rows(query):
        return sorted(map(tuple, spark.sql(query).collect()))

    first = "table_changes('t', 1, 1)"
    assert rows(f"SELECT a.id FROM {first} a JOIN {first} b ON a.id = b.id") == [(1,), (2,)]
    assert rows(f"WITH c AS (SELECT * FROM {first}) SELECT count(*) FROM c JOIN c d USING (id)") == [(2,)]
    assert rows(f"SELECT i FROM {first} AS x(i, n, kind, v, at) WHERE n = 'a'") == [(1,)]
    assert rows(f"SELECT id FROM t WHERE id IN (SELECT id FROM {first} WHERE name = 'b')") == [(2,)]
    assert rows(f"SELECT (SELECT max(id) FROM {first}) AS m") == [(2,)]
    spark.sql(f"CREATE TABLE copies USING delta AS SELECT id, _commit_version AS v FROM {first}")
    spark.sql("INSERT INTO copies SELECT id, _commit_version FROM table_changes('t', 2) WHERE name = 'c'")
    assert rows("SELECT * FROM copies") == [(1, 1), (2, 1), (2, 2)]
    spark.sql(
        f"MERGE INTO copies USING (SELECT id FROM {first}) s ON copies.id = s.id AND copies.v = 1 "
        "WHEN MATCHED AND s.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 9"
    )
    spark.sql("UPDATE copies SET v = (SELECT max(_commit_version) FROM table_changes('t', 0)) + 5 WHERE v = 2")
    assert rows("SELECT * FROM copies") == [(2, 7), (2, 9)]
    spark.sql(f"CREATE TABLE plain USING parquet AS SELECT id FROM {first}")
    assert rows("SELECT * FROM plain") == [(1,), (2,)]


@pytest.mark.slow
def test_a_view_means_the_database_in_which_it_was_created(spark, changed):
    spark.sql("CREATE TEMPORARY VIEW of_session AS SELECT count(*) AS n FROM table_changes('t', 2)")
    views = ["of_session"]
    if not spark.version.startswith("4.1"):  # there a stored view may not use functions of the session
        spark.sql("CREATE VIEW stored AS SELECT count(*) AS n FROM table_changes('t', 1)")
        views.append("own.stored")
    spark.catalog.setCurrentDatabase("default")
    try:
        counts = {view: spark.sql(f"SELECT n FROM {view}").first().n for view in views}
        assert counts == {"of_session": 2, "own.stored": 4} if len(views) == 2 else {"of_session": 2}
        spark.sql("INSERT INTO own.t VALUES (3, 'd')")
        assert spark.sql("SELECT n FROM of_session").first().n == 3
    finally:
        spark.catalog.setCurrentDatabase("own")
        spark.catalog.dropTempView("of_session")


@pytest.mark.parametrize(
    ("call", "condition"),
    [
        ("table_changes('t')", "INCORRECT_NUMBER_OF_ARGUMENTS"),
        ("table_changes('t', 0, 1, 2)", "INCORRECT_NUMBER_OF_ARGUMENTS"),
        ("table_changes(1, 0)", "DELTA_UNSUPPORTED_EXPRESSION"),
        ("table_changes('t', current_date())", "DELTA_UNSUPPORTED_EXPRESSION"),
        ("table_changes('t', 1.0)", "DELTA_UNSUPPORTED_EXPRESSION"),
        ("table_changes('t', NULL)", "DELTA_CDC_READ_NULL_RANGE_BOUNDARY"),
        ("table_changes('t', 0, cast(NULL AS int))", "DELTA_CDC_READ_NULL_RANGE_BOUNDARY"),
        ("table_changes('t', rand())", "DELTA_CDC_NON_CONSTANT_ARGUMENT"),
        ("(SELECT 1 AS v), LATERAL (SELECT id FROM table_changes('t', v))", "DELTA_CDC_NON_CONSTANT_ARGUMENT"),
        ("table_changes('t', id)", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION"),
        ("table_changes('nothing', 0)", "TABLE_OR_VIEW_NOT_FOUND"),
        ("table_changes('plain', 0)", "DELTA_TABLE_ONLY_OPERATION"),
        ("table_changes('of_t', 0)", "DELTA_TABLE_ONLY_OPERATION"),
        ("table_changes('a b', 0)", "PARSE_SYNTAX_ERROR"),
        ("table_changes_by_path('/nowhere', 0)", "DELTA_MISSING_DELTA_TABLE"),
        ("table_changes('silent', 0)", "DELTA_MISSING_CHANGE_DATA"),
        ("table_changes('t', 99)", "DELTA_CDC_START_VERSION_AFTER_LATEST"),
        ("table_changes('t', 2, 1)", "DELTA_INVALID_CDC_RANGE"),
        ("table_changes('t', 'abc')", "DELTA_TIMESTAMP_INVALID"),
    ],
)
def test_errors(spark, shared, call, condition):
    with pytest.raises(PySparkException) as caught:
        spark.sql(f"SELECT * FROM {call}")
    assert caught.value.getCondition() == condition


@pytest.fixture(scope="module")
def shared(spark, tmp_path_factory):
    """Tables for the errors: one with changes, one without, one of another format, and a view."""
    before = spark.catalog.currentDatabase()
    spark.sql(f"CREATE DATABASE of_errors LOCATION '{tmp_path_factory.mktemp('errors')}'")
    spark.catalog.setCurrentDatabase("of_errors")
    spark.sql("CREATE TABLE t (id INT) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    spark.sql("INSERT INTO t VALUES (1)")
    spark.sql("INSERT INTO t VALUES (2)")
    spark.sql("CREATE TABLE silent (id INT) USING delta")
    spark.sql("CREATE TABLE plain (id INT) USING parquet")
    spark.sql("CREATE TEMPORARY VIEW of_t AS SELECT * FROM t")
    yield
    spark.catalog.dropTempView("of_t")
    spark.catalog.setCurrentDatabase(before)
    spark.sql("DROP DATABASE of_errors CASCADE")


def test_arguments_have_no_names(spark, changed):
    with pytest.raises(PySparkException, match="by position, not by name"):
        spark.sql("SELECT * FROM table_changes('t', start => 0)")


def test_only_an_enabled_session_has_them(spark, changed):
    described = [row[0] for row in spark.sql("DESCRIBE FUNCTION table_changes").collect()]
    assert any("the changes of a Delta table" in line for line in described)
    disable(spark)
    try:
        with pytest.raises(AnalysisException) as caught:
            spark.sql("SELECT * FROM table_changes('t', 0)")
        assert caught.value.getCondition() == "UNRESOLVABLE_TABLE_VALUED_FUNCTION"
    finally:
        enable(spark)
    assert spark.sql("SELECT * FROM table_changes('t', 1, 1)").count() == 2
