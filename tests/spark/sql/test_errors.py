"""Errors of statements: the conditions of Spark and Delta, with the position in the text."""

import pytest
from pyspark.errors import AnalysisException

from tablelog.errors import InvalidArgumentError

ROUTES = ["path", "name"]


@pytest.fixture
def table(spark, routes):
    return routes.make(spark.sql("SELECT 1L AS id, 1 AS p, named_struct('a', 1) AS st"))


def error(spark, text):
    with pytest.raises(AnalysisException) as raised:
        spark.sql(text).collect()
    return raised.value


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    ("text", "condition", "at"),
    [
        ("UPDATE {n} SET nope = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "nope = 1"),
        ("UPDATE {n} x SET x.p = 1,\n x.nope = 2", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "x.p = 1,\n x.nope = 2"),
        ("UPDATE {n} SET st.nope = 1", "FIELD_NOT_FOUND", "st.nope = 1"),
        ("INSERT INTO {n} (id, nope) VALUES (1, 2)", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "INSERT INTO {n} (id, nope)"),
        ("ALTER TABLE {n} ADD COLUMN p INT", "FIELD_ALREADY_EXISTS", "ALTER TABLE {n} ADD COLUMN p INT"),
        ("ALTER TABLE {n} ADD COLUMN nope.a INT", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "nope.a INT"),
        ("ALTER TABLE {n} DROP COLUMN nope", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "ALTER TABLE {n} DROP COLUMN nope"),
        ("ALTER TABLE {n} RENAME COLUMN id TO p", "FIELD_ALREADY_EXISTS", "ALTER TABLE {n} RENAME COLUMN id TO p"),
        ("ALTER TABLE {n} ALTER COLUMN p TYPE DATE", "NOT_SUPPORTED_CHANGE_COLUMN",
         "ALTER TABLE {n} ALTER COLUMN p TYPE DATE"),
        ("ALTER TABLE {n} ALTER COLUMN no TYPE INT", "UNRESOLVED_COLUMN.WITH_SUGGESTION",
         "ALTER TABLE {n} ALTER COLUMN no TYPE INT"),
        ("MERGE INTO {n} t USING (SELECT 1 AS k) ON t.id = k WHEN MATCHED THEN UPDATE SET p = k,\n t.nope = 1",
         "DELTA_MERGE_UNRESOLVED_EXPRESSION", "p = k,\n t.nope = 1"),
        ("MERGE INTO {n} t USING (SELECT 1 AS k) ON t.id = k WHEN NOT MATCHED THEN INSERT (id, nope) VALUES (k, 1)",
         "DELTA_MERGE_UNRESOLVED_EXPRESSION", "MERGE INTO {n} t USING (SELECT 1 AS k) ON t.id = k WHEN NOT MATCHED "
         "THEN INSERT (id, nope) VALUES (k, 1)"),
        ("MERGE INTO {n} t USING (SELECT 1 AS k) ON t.id = k WHEN MATCHED AND nope > 1 THEN DELETE",
         "UNRESOLVED_COLUMN.WITH_SUGGESTION", "nope"),
        ("MERGE INTO {n} t USING (SELECT 1 AS k) ON t.id = nope WHEN MATCHED THEN UPDATE SET p = 1",
         "UNRESOLVED_COLUMN.WITH_SUGGESTION", "nope"),
    ],
)  # fmt: skip
def test_an_error_about_a_column_has_its_place(spark, routes, table, text, condition, at, route):
    name = routes.name(table, route)
    raised = error(spark, text.format(n=name))
    (context,) = raised.getQueryContext()
    assert (raised.getCondition(), context.fragment()) == (condition, at.format(n=name))
    assert table.version == 0


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("ALTER TABLE {n} ALTER COLUMN p TYPE BIGINT", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
        ("ALTER TABLE {n} DROP COLUMN p", "DELTA_UNSUPPORTED_DROP_COLUMN"),
        ("UPDATE {n} SET p = 1, P = 2", "DELTA_CONFLICT_SET_COLUMN"),
    ],
)
def test_what_only_delta_refuses_has_the_condition_of_delta(spark, routes, table, text, condition):
    assert error(spark, text.format(n=routes.name(table, "name"))).getCondition() == condition


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM {n}",
        "INSERT INTO {n} VALUES (1)",
        "DELETE FROM {n}",
        "UPDATE {n} SET a = 1",
        "MERGE INTO {n} t USING (SELECT 1 AS a) s ON t.a = s.a WHEN MATCHED THEN DELETE",
    ],
)
def test_a_path_without_a_table_where_rows_are_read_or_written(spark, tmp_path, text):
    assert error(spark, text.format(n=f"delta.`{tmp_path}/none`")).getCondition() == "PATH_NOT_FOUND"
    assert error(spark, text.format(n=f"delta.`{tmp_path}`")).getCondition() == "DELTA_TABLE_NOT_FOUND"


def test_a_null_character_in_a_path_is_refused(spark, table):
    for text in ("SELECT * FROM {n}", "DESCRIBE {n}", "DELETE FROM {n}", "INSERT INTO {n} VALUES (1)"):
        with pytest.raises(InvalidArgumentError, match="contains a null character"):
            spark.sql(text.format(n=f"delta.`/nothing\0{table.path}`"))


def test_a_path_without_a_table_where_a_table_is_described_or_altered(spark, tmp_path):
    name = f"delta.`{tmp_path}/none`"
    for text in ("DESCRIBE {n}", "ALTER TABLE {n} ADD COLUMN x INT", "OPTIMIZE {n}", "SHOW PARTITIONS {n}"):
        assert error(spark, text.format(n=name)).getCondition() == "DELTA_MISSING_DELTA_TABLE"
    assert error(spark, f"DESCRIBE HISTORY {name}").getCondition() == "DELTA_TABLE_ONLY_OPERATION"
