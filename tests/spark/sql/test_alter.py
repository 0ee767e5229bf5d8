"""ALTER TABLE and COMMENT ON of Delta tables by SQL: the same commits as by `DeltaTable`."""

import json
import re
import shutil

import pytest
from pyspark.errors import PySparkException

from support.spark_tables import Table
from tablelog.engine.jvm.catalog import SessionCatalog
from tablelog.errors import InvalidArgumentError
from tablelog.spark import DeltaTable

COLUMNS = "(id BIGINT NOT NULL, d STRING, s STRUCT<a: INT, b: STRING>, m ARRAY<STRUCT<x: INT>>, n INT)"
PROPERTIES = (
    "'delta.columnMapping.mode' = 'name', 'delta.feature.allowColumnDefaults' = 'supported', "
    "'delta.enableTypeWidening' = 'true'"
)


@pytest.fixture
def table(spark, tmp_path, database):
    """The table `t`, at `tmp_path / "t"`."""
    spark.sql(f"CREATE TABLE t {COLUMNS} USING delta LOCATION '{tmp_path / 't'}' TBLPROPERTIES ({PROPERTIES})")
    return Table(spark, tmp_path / "t")


def condition(spark, text):
    """The condition of the error of a statement."""
    with pytest.raises(PySparkException) as raised:
        spark.sql(text)
    return raised.value.getCondition()


def said(table, version):
    """The actions, the operation and its parameters of a commit, without times and random names of new columns."""
    text = re.sub(r"col-[0-9a-f-]{36}", "col", json.dumps(table.actions(version)))
    actions = {kind: value for action in json.loads(text) for kind, value in action.items()}
    info = actions.pop("commitInfo")
    return actions, info["operation"], info["operationParameters"]


# A statement, and what does the same by `DeltaTable`.
SAME = [
    ("ALTER TABLE {n} SET TBLPROPERTIES (a = 'b', 'delta.appendOnly' = true)",
     lambda t: t.setProperties({"a": "b", "delta.appendOnly": "true"})),
    ("ALTER TABLE {n} UNSET TBLPROPERTIES (a)", lambda t: t.unsetProperties("a", ifExists=True)),
    ("COMMENT ON TABLE {n} IS 'it'", lambda t: t.setProperties({"comment": "it"})),
    ("ALTER TABLE {n} ADD COLUMN (s.c INT COMMENT 'q' FIRST)",
     lambda t: t.addColumns("`s.c` INT COMMENT 'q'", position="FIRST")),
    ("ALTER TABLE {n} ADD COLUMNS (e STRING AFTER d)", lambda t: t.addColumns("e STRING", position="AFTER d")),
    ("ALTER TABLE {n} RENAME COLUMN e TO ee", lambda t: t.renameColumn("e", "ee")),
    ("ALTER TABLE {n} DROP COLUMNS (ee, s.c)", lambda t: t.dropColumn("ee", "s.c")),
    ("ALTER TABLE {n} ALTER COLUMN d COMMENT 'dd'", lambda t: t.alterColumn("d", comment="dd")),
    ("ALTER TABLE {n} ALTER COLUMN id DROP NOT NULL", lambda t: t.alterColumn("id", nullable=True)),
    ("ALTER TABLE {n} ALTER COLUMN s.b FIRST", lambda t: t.alterColumn("s.b", position="FIRST")),
    ("ALTER TABLE {n} ALTER COLUMN s.a TYPE BIGINT", lambda t: t.alterColumn("s.a", dataType="bigint")),
    ("ALTER TABLE {n} ALTER COLUMN d SET DEFAULT 'k'", lambda t: t.alterColumn("d", default="'k'")),
    ("ALTER TABLE {n} ALTER COLUMN d DROP DEFAULT", lambda t: t.alterColumn("d", dropDefault=True)),
    ("ALTER TABLE {n} ALTER COLUMN m.element.x COMMENT 'e'", lambda t: t.alterColumn("m.element.x", comment="e")),
    ("ALTER TABLE {n} CHANGE COLUMN d d STRING COMMENT 'b' AFTER s",
     lambda t: t.alterColumn("d", comment="b", position="AFTER s")),
    ("ALTER TABLE {n} ADD CONSTRAINT c CHECK (id > 0 AND id < 9)", lambda t: t.addConstraint("c", "id > 0 AND id < 9")),
    ("ALTER TABLE {n} DROP CONSTRAINT IF EXISTS nope", lambda t: t.dropConstraint("nope", ifExists=True)),
    ("ALTER TABLE {n} DROP CONSTRAINT c", lambda t: t.dropConstraint("c")),
    ("ALTER TABLE {n} CLUSTER BY (id, s.a)", lambda t: t.clusterBy("id", "s.a")),
    ("ALTER TABLE {n} CLUSTER BY NONE", lambda t: t.clusterBy()),
]  # fmt: skip


def test_statements_commit_what_the_methods_commit(spark, tmp_path, table):
    shutil.copytree(table.path, tmp_path / "other")
    other = Table(spark, tmp_path / "other")
    for number, (text, method) in enumerate(SAME):
        answer = spark.sql(text.format(n=f"delta.`{table.path}`" if number % 2 else "t"))
        method(DeltaTable.forPath(spark, other.path))
        assert (answer.columns, table.version) == ([], number + 1), text
        assert said(table, number + 1) == said(other, number + 1), text


def test_several_columns_are_changed_by_one_commit(spark, table):
    spark.sql("ALTER TABLE t ALTER COLUMN d COMMENT 'a', n TYPE BIGINT, id DROP NOT NULL")
    _, operation, parameters = said(table, 1)
    assert (operation, [one["name"] for one in json.loads(parameters["columns"])]) == (
        "CHANGE COLUMNS",
        ["d", "n", "id"],
    )
    spark.sql("ALTER TABLE t CHANGE COLUMN d d STRING")  # nothing changes
    spark.sql("ALTER TABLE t DROP COLUMNS IF EXISTS (nope, s.nope)")
    assert table.version == 1
    assert condition(spark, "ALTER TABLE t ALTER COLUMN s.a COMMENT 'a', s COMMENT 'b'") == (
        "NOT_SUPPORTED_CHANGE_SAME_COLUMN"
    )


def test_replace_columns(spark, tmp_path, database):
    spark.sql("CREATE TABLE r (id INT NOT NULL, s STRUCT<a: INT> COMMENT 'kept') USING delta")
    table = Table(spark, tmp_path / "db" / "r")
    table.write(spark.sql("SELECT 1 AS id, struct(2 AS a) AS s"))
    spark.sql("ALTER TABLE r REPLACE COLUMNS (s STRUCT<b: INT, a: INT>, id INT COMMENT 'n', z STRING)")
    _, operation, parameters = said(table, 2)
    assert (operation, [one["name"] for one in json.loads(parameters["columns"])]) == (
        "REPLACE COLUMNS",
        ["s", "id", "z"],
    )
    schema = spark.table("r").schema
    assert [(f.name, f.nullable, f.metadata.get("comment")) for f in schema] == [
        ("s", True, "kept"),
        ("id", True, "n"),
        ("z", True, None),
    ]
    assert [tuple(row) for row in spark.table("r").collect()] == [((None, 2), 1, None)]
    for columns in (
        "(id INT)",
        "(id STRING, s STRUCT<a: INT, b: INT>, z STRING)",
        "(id INT, s STRUCT<a: INT>, z STRING)",
    ):
        assert condition(spark, f"ALTER TABLE r REPLACE COLUMNS {columns}") == (
            "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"
        )
    assert table.version == 2


def test_names_and_locations(spark, tmp_path, table):
    spark.sql(f"CREATE TABLE same {COLUMNS} USING delta LOCATION '{tmp_path / 's'}' TBLPROPERTIES ({PROPERTIES})")
    spark.sql("CREATE TABLE other (id INT) USING delta")
    Table(spark, tmp_path / "s").write(spark.sql("SELECT 1L AS id"))
    spark.sql(f"ALTER TABLE t SET LOCATION '{tmp_path / 's'}'")
    assert [row.id for row in spark.table("t").collect()] == [1]
    for text, expected in [
        (f"ALTER TABLE t SET LOCATION '{tmp_path / 'db' / 'other'}'", "DELTA_SET_LOCATION_SCHEMA_MISMATCH"),
        (f"ALTER TABLE t SET LOCATION '{tmp_path / 'nothing'}'", "DELTA_MISSING_DELTA_TABLE"),
        (f"ALTER TABLE delta.`{table.path}` SET LOCATION '{tmp_path / 's'}'",
         "DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER"),
        ("ALTER TABLE t PARTITION (id = 1) SET LOCATION '/x'", "DELTA_OPERATION_NOT_ALLOWED"),
        ("ALTER TABLE t RENAME TO other", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        (f"ALTER TABLE delta.`{table.path}` RENAME TO own.u", "DELTA_OPERATION_NOT_ALLOWED"),
    ]:  # fmt: skip
        assert condition(spark, text) == expected
    assert SessionCatalog(spark).find("t").location == str(tmp_path / "s")
    spark.sql("ALTER TABLE t RENAME TO own.u")
    assert ([row.id for row in spark.table("u").collect()], SessionCatalog(spark).find("t")) == ([1], None)
    spark.sql("ALTER TABLE other RENAME TO another")
    assert spark.table("another").columns == ["id"]
    assert (tmp_path / "db" / "another" / "_delta_log").is_dir()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ALTER TABLE {n} SET TBLPROPERTIES ('delta.nope' = '1')", "DELTA_UNKNOWN_CONFIGURATION"),
        ("ALTER TABLE {n} ADD COLUMN f INT NOT NULL", "DELTA_OPERATION_NOT_ALLOWED"),
        ("ALTER TABLE {n} ADD COLUMN f INT DEFAULT 3",
         "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED"),
        ("ALTER TABLE {n} DROP COLUMN nope", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("ALTER TABLE {n} ALTER COLUMN d SET NOT NULL", "NOT_SUPPORTED_CHANGE_COLUMN"),
        ("ALTER TABLE {n} ALTER COLUMN n TYPE STRING", "NOT_SUPPORTED_CHANGE_COLUMN"),
        ("ALTER TABLE {n} ADD CONSTRAINT pk PRIMARY KEY (id)", "UNSUPPORTED_FEATURE.TABLE_OPERATION"),
        ("ALTER TABLE {n} DROP CONSTRAINT nope", "DELTA_CONSTRAINT_DOES_NOT_EXIST"),
        ("ALTER TABLE {n} DROP CONSTRAINT IF EXISTS c CASCADE", "UNSUPPORTED_FEATURE.TABLE_OPERATION"),
        ("ALTER TABLE {n} DEFAULT COLLATION UTF8_LCASE", "DELTA_OPERATION_NOT_ALLOWED"),
        # Spark's analyzer has these errors:
        ("ALTER TABLE {n} ADD PARTITION (d = 'x')", "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED"),
        ("ALTER TABLE {n} DROP PARTITION (d = 'x')", "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED"),
        ("ALTER TABLE {n} RECOVER PARTITIONS", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"),
        ("ALTER TABLE {n} SET SERDEPROPERTIES (a = 'b')", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"),
        ("MSCK REPAIR TABLE {n}", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"),
        ("LOAD DATA INPATH '{path}-other' INTO TABLE {n}", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"),
        ("ANALYZE TABLE {n} COMPUTE STATISTICS", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"),
        ("ANALYZE TABLE {n} COMPUTE STATISTICS FOR ALL COLUMNS", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"),
    ],
)  # fmt: skip
def test_what_delta_does_not_support(spark, table, text, expected):
    for name in ("t", f"delta.`{table.path}`"):
        assert condition(spark, text.format(n=name, path=table.path)) == expected
    assert table.version == 0


def test_other_tables_and_views_are_left_to_spark(spark, table):
    table.read().createOrReplaceTempView("v")
    assert condition(spark, "ALTER TABLE v ADD COLUMN z INT").startswith("EXPECT_TABLE_NOT_VIEW")
    assert condition(spark, "ALTER TABLE nothing ADD COLUMN z INT") == "TABLE_OR_VIEW_NOT_FOUND"
    assert condition(spark, "ALTER TABLE delta.`/nothing/here` ADD COLUMN z INT") == "DELTA_MISSING_DELTA_TABLE"
    spark.sql("CREATE TABLE p (id INT) USING parquet")
    spark.sql("ALTER TABLE p ADD COLUMN z INT")
    assert (spark.table("p").columns, table.version) == (["id", "z"], 0)
    spark.catalog.dropTempView("v")


def test_comment_on_column(spark, table):
    if spark.version < "4.3":
        pytest.skip("COMMENT ON COLUMN is new in Spark 4.3")
    spark.sql("COMMENT ON COLUMN t.d IS 'x'")
    spark.sql(f"COMMENT ON COLUMN delta.`{table.path}`.s.a IS 'y'")
    spark.sql("COMMENT ON COLUMN own.t.s.b IS 'z'")
    schema = spark.table("t").schema
    assert [schema["d"].metadata["comment"], *(f.metadata["comment"] for f in schema["s"].dataType)] == ["x", "y", "z"]
    spark.sql("COMMENT ON COLUMN t.d IS NULL")
    spark.sql("COMMENT ON COLUMN t.s.a IS ''")
    schema = spark.table("t").schema
    assert [f.metadata.get("comment") for f in (schema["d"], *schema["s"].dataType)] == [None, "", "z"]


def test_a_check_needs_a_name(spark, table):
    if spark.version < "4.1":
        pytest.skip("ADD CHECK without a name is no statement")
    with pytest.raises(InvalidArgumentError, match=r"ADD CONSTRAINT name CHECK \(d > 0\)"):
        spark.sql("ALTER TABLE t ADD CHECK (d > 0)")
    assert table.version == 0
