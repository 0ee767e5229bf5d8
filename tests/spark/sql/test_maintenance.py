"""Delta's own statements by SQL: by path and by name, with parameters, what they answer, and what is refused."""

import os

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions as F

from support.spark_tables import Table
from tablelog.errors import TablelogError, UnsupportedFeatureError
from tablelog.spark import DeltaTable, IdentityGenerator
from tablelog.spark.delta_table.describe import DETAIL, HISTORY
from tablelog.spark.delta_table.optimize import RESULT

RESTORED = [
    "table_size_after_restore",
    "num_of_files_after_restore",
    "num_removed_files",
    "num_restored_files",
    "removed_files_size",
    "restored_files_size",
]
CLONED = [
    "source_table_size",
    "source_num_of_files",
    "num_removed_files",
    "num_copied_files",
    "removed_files_size",
    "copied_files_size",
]


@pytest.fixture
def database(spark, tmp_path):
    spark.sql(f"CREATE DATABASE own LOCATION '{tmp_path / 'db'}'")
    yield
    spark.sql("DROP DATABASE own CASCADE")
    spark.catalog.dropTempView("v")


@pytest.fixture
def named(spark, tmp_path, database):
    """The table own.t, partitioned by p, of two versions with four files."""
    table = Table(spark, tmp_path / "t")
    rows = spark.range(0, 4, numPartitions=1).selectExpr("id", "cast(id % 2 as int) AS p")
    table.write(rows, by=("p",))
    table.write(rows)
    DeltaTable.create(spark).tableName("own.t").location(table.path).execute()
    return table


def refused(spark, text, condition, kind=TablelogError, **args):
    with pytest.raises(kind) as error:
        spark.sql(text, **args)
    assert error.value.getCondition() == condition, text
    return str(error.value)


def test_vacuum(spark, named, conf):
    conf("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql(f"OPTIMIZE '{named.path}'")
    files = named.data_files()
    uri = f"file:{named.path}"
    for text, args in [
        ("VACUUM own.t DRY RUN RETAIN 0 HOURS", None),
        ("VACUUM :path RETAIN :hours HOURS DRY RUN", {"path": named.path, "hours": 0.0}),
        (f"VACUUM delta.`{named.path}` LITE RETAIN ? HOURS DRY RUN", [0]),
    ]:
        found = spark.sql(text, args=args)
        assert found.columns == ["path"]
        gone = {row.path.removeprefix(f"{named.path}/") for row in found.collect()}
        assert len(gone) == 4, text
        assert gone < files, text
    columns = "path string, length long, isDir boolean, modificationTime long"
    listing = spark.createDataFrame([(f"{named.path}/gone", 1, False, 0)], columns)
    text = "VACUUM own.t USING INVENTORY (SELECT * FROM {files} WHERE length = :n) DRY RUN"
    assert [row.path for row in spark.sql(text, {"n": 1}, files=listing).collect()] == [f"{named.path}/gone"]
    text = "VACUUM own.t RETAIN ? HOURS USING INVENTORY (SELECT * FROM {files} WHERE length > ?) DRY RUN"
    assert spark.sql(text, [0, 1], files=listing).collect() == []
    assert named.data_files() == files
    answer = spark.sql("VACUUM spark_catalog.own.t RETAIN 0 HOURS")
    assert (answer.columns, [row.path for row in answer.collect()]) == (["path"], [uri])
    assert len(named.data_files()) == 2
    refused(spark, "VACUUM own.t USING INVENTORY (DROP TABLE own.t)", "PARSE_SYNTAX_ERROR", ParseException)
    refused(spark, f"VACUUM '{named.path}/p=1'", "DELTA_TABLE_ONLY_OPERATION", AnalysisException)
    refused(spark, f"VACUUM delta.`{named.path}/p=1`", "DELTA_TABLE_ONLY_OPERATION", AnalysisException)
    assert len(named.rows()) == 8


def test_optimize_and_reorg(spark, named):
    answer = spark.sql("OPTIMIZE own.t WHERE p = 1")
    assert answer.schema == RESULT
    assert [(row.metrics.numFilesAdded, row.metrics.numFilesRemoved) for row in answer.collect()] == [(1, 2)]
    row = spark.sql(f"OPTIMIZE '{named.path}' WHERE p = :p ZORDER BY (id)", {"p": 0}).first()
    assert (row.path, row.metrics.numFilesRemoved) == (f"file://{named.path}", 2)
    assert named.info()["operationParameters"]["zOrderBy"] == '["id"]'
    assert named.info()["operationParameters"]["predicate"] == '["(p = 0)"]'
    assert spark.sql("OPTIMIZE own.t WHERE p = ? AND p < ?", [7, 8]).first().metrics.numFilesRemoved == 0
    named.delta.setProperties({"delta.enableDeletionVectors": "true"})
    named.delta.delete("id = 0")
    assert spark.sql("REORG TABLE own.t WHERE p = 0 APPLY (PURGE)").first().metrics.numFilesRemoved == 1
    version = named.version
    refused(spark, "OPTIMIZE own.t WHERE id = 1", "DELTA_NON_PARTITION_COLUMN_REFERENCE", AnalysisException)
    refused(spark, "OPTIMIZE own.t FULL", "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED")
    message = refused(spark, "OPTIMIZE own.t\n  WHERE p = = 1", "PARSE_SYNTAX_ERROR", ParseException)
    assert "(line 2, pos 12)" in message
    refused(spark, "OPTIMIZE own.t WHERE p = :p", "UNBOUND_SQL_PARAMETER", AnalysisException)
    apply = "UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 3)"
    with pytest.raises(UnsupportedFeatureError, match="UPGRADE UNIFORM"):
        spark.sql(f"REORG TABLE own.t APPLY ({apply})")
    assert named.version == version


def test_restore(spark, named):
    answer = spark.sql("RESTORE own.t VERSION AS OF 0")
    assert answer.columns == RESTORED
    assert (answer.first().num_removed_files, answer.first().num_of_files_after_restore) == (2, 2)
    assert len(named.rows()) == 4
    spark.sql(f"RESTORE TABLE delta.`{named.path}` TO VERSION AS OF :v", {"v": 1})
    assert len(named.rows()) == 8
    first = named.delta.history().where("version = 0").select(F.col("timestamp").cast("string")).first()
    spark.sql("RESTORE own.t TO TIMESTAMP AS OF ?", [first.timestamp])
    assert len(named.rows()) == 4
    version = named.version
    refused(spark, "RESTORE own.t VERSION AS OF 99", "DELTA_CANNOT_RESTORE_TABLE_VERSION", AnalysisException)
    later = "RESTORE own.t TO TIMESTAMP AS OF '2999-01-01'"
    refused(spark, later, "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER", AnalysisException)
    refused(spark, "RESTORE own.t TIMESTAMP AS OF 'x'", "DELTA_TIMESTAMP_INVALID", AnalysisException)
    message = refused(spark, "RESTORE own.t VERSION AS OF :v", "PARSE_SYNTAX_ERROR", ParseException, args={"v": "x"})
    assert "':v': expected a whole number, not a value of the type string (line 1, pos 28)" in message
    assert named.version == version


def test_describe(spark, named, tmp_path):
    history = spark.sql("DESCRIBE HISTORY own.t")
    assert (history.schema, [row.version for row in history.collect()]) == (HISTORY, [1, 0])
    assert [row.version for row in spark.sql(f"DESC HISTORY '{named.path}' LIMIT :n", {"n": 1}).collect()] == [1]
    assert spark.sql("DESC HISTORY own.t LIMIT 0").collect() == []
    (row,) = spark.sql("DESCRIBE DETAIL own.t").collect()
    assert (row.format, row.name, row.numFiles, row.partitionColumns) == ("delta", "spark_catalog.own.t", 4, ["p"])
    assert spark.sql(f"DESC DETAIL delta.`{named.path}`").first().name is None
    spark.range(1).write.option("path", str(tmp_path / "pq")).saveAsTable("own.pq", format="parquet")
    (row,) = spark.sql("DESCRIBE DETAIL own.pq").collect()
    assert (row.format, row.name, row.location) == ("parquet", "spark_catalog.own.pq", f"file:{tmp_path}/pq")
    detail = spark.sql("DESCRIBE DETAIL ?", [str(tmp_path / "pq")])
    assert detail.schema == DETAIL
    assert (detail.first().format, detail.first().location) == (None, str(tmp_path / "pq"))
    refused(spark, f"DESCRIBE DETAIL '{tmp_path}/none'", "DELTA_PATH_DOES_NOT_EXIST", AnalysisException)


def test_history_of_what_was_converted_or_cloned(spark, database):
    spark.sql("CREATE TABLE own.pq (id BIGINT, d INT) USING parquet PARTITIONED BY (d)")
    spark.sql("INSERT INTO own.pq VALUES (1, 1)")
    spark.sql("CONVERT TO DELTA own.pq")
    spark.sql("CREATE TABLE own.a SHALLOW CLONE own.pq")
    location = spark.sql("DESCRIBE DETAIL own.pq").first().location
    spark.sql(f"CREATE TABLE own.b SHALLOW CLONE delta.`{location}`")
    spark.sql("CREATE OR REPLACE TABLE own.b SHALLOW CLONE own.pq VERSION AS OF 0")
    found = {}
    for name in ("pq", "a", "b"):
        for row in spark.sql(f"DESCRIBE HISTORY own.{name}").collect():
            found[name, row.version] = (row.operation, row.operationParameters, row.readVersion)
    by_name = {"source": "spark_catalog.own.pq", "sourceVersion": "0"}
    assert found == {
        ("pq", 0): (
            "CONVERT",
            {
                "numFiles": "1",
                "partitionedBy": '["d"]',
                "collectStats": "true",
                "catalogTable": "`spark_catalog`.`own`.`pq`",
                "sourceFormat": "parquet",
            },
            -1,
        ),
        ("a", 0): ("CLONE", by_name, -1),
        ("b", 0): ("CLONE", {**by_name, "source": f"delta.`{location}`"}, -1),
        ("b", 1): ("CLONE", by_name, 0),
    }


def test_tables_named_history_and_detail_stay_spark_s(spark, database):
    spark.range(1).write.saveAsTable("own.history", format="parquet")
    spark.sql("USE own")
    try:
        assert [row.col_name for row in spark.sql("DESCRIBE history").collect()] == ["id"]
        assert [row.col_name for row in spark.sql("DESCRIBE TABLE history").collect()] == ["id"]
        # Delta's parser takes this for the history of a table named id, and so does tablelog.
        refused(spark, "DESCRIBE history id", "TABLE_OR_VIEW_NOT_FOUND", AnalysisException)
        refused(spark, "DESCRIBE HISTORY t LIMIT x", "PARSE_SYNTAX_ERROR", ParseException)
    finally:
        spark.sql("USE default")


def test_generate_and_convert(spark, named, tmp_path):
    assert spark.sql("GENERATE symlink_format_manifest FOR TABLE own.t").columns == []
    assert os.path.exists(f"{named.path}/_symlink_format_manifest/p=0/manifest")
    refused(spark, "GENERATE x FOR TABLE own.t", "DELTA_MODE_NOT_SUPPORTED")
    rows = spark.range(4).selectExpr("id", "id % 2 AS p")
    for place in ("a", "b"):
        rows.write.partitionBy("p").parquet(str(tmp_path / place))
    answer = spark.sql(f"CONVERT TO DELTA parquet.`{tmp_path}/a` NO STATISTICS PARTITIONED BY (p INT)")
    assert answer.columns == []
    converted = Table(spark, tmp_path / "a")
    assert converted.rows() == [(0, 0), (1, 1), (2, 0), (3, 1)]
    assert converted.read().schema["p"].dataType.simpleString() == "int"
    rows.write.partitionBy("p").saveAsTable("own.pq", format="parquet")
    spark.sql("CONVERT TO DELTA own.pq")
    assert spark.sql("DESCRIBE DETAIL own.pq").first().format == "delta"
    message = refused(
        spark, f"CONVERT TO DELTA parquet.`{tmp_path}/b` PARTITIONED BY (p)", "PARSE_SYNTAX_ERROR", ParseException
    )
    assert f"(line 1, pos {len(f'CONVERT TO DELTA parquet.`{tmp_path}/b` PARTITIONED BY (p')})" in message
    assert not os.path.exists(tmp_path / "b" / "_delta_log")


def test_alter_table(spark, tmp_path, database):
    path = str(tmp_path / "i")
    builder = DeltaTable.create(spark).tableName("own.i").location(path).addColumn("x", "int")
    builder.addColumn("id", "bigint", generatedByDefaultAs=IdentityGenerator(1, 10)).execute()
    table = Table(spark, tmp_path / "i")
    table.write(spark.range(1).selectExpr("1 AS x", "34L AS id"))
    assert spark.sql("ALTER TABLE own.i ALTER COLUMN ID SYNC IDENTITY").columns == []
    assert (table.version, table.info()["operation"]) == (2, "CHANGE COLUMN")
    (metadata,) = (action["metaData"] for action in table.actions() if "metaData" in action)
    assert '"delta.identity.highWaterMark":41' in metadata["schemaString"]
    table.write(spark.range(0, 1, numPartitions=1).selectExpr("2 AS x"))
    assert table.rows("id") == [34, 51]
    version = table.version
    condition = "DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN"
    refused(spark, "ALTER TABLE own.i CHANGE x SYNC IDENTITY", condition, AnalysisException)
    refused(spark, "ALTER TABLE own.i CHANGE y SYNC IDENTITY", "UNRESOLVED_COLUMN.WITH_SUGGESTION", AnalysisException)
    assert table.version == version
    table.delta.addFeatureSupport("vacuumProtocolCheck")
    assert spark.sql(f"ALTER TABLE delta.`{path}` DROP FEATURE :f", {"f": "vacuumProtocolCheck"}).columns == []
    assert "vacuumProtocolCheck" not in table.delta.detail().first().tableFeatures
    refused(
        spark, "ALTER TABLE own.i DROP FEATURE appendOnly TRUNCATE HISTORY", "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"
    )


def test_clone(spark, named, tmp_path):
    answer = spark.sql("CREATE TABLE own.c SHALLOW CLONE own.t VERSION AS OF 0 TBLPROPERTIES (a.b = 'x', 'c' = 1)")
    assert answer.columns == CLONED
    assert (answer.first().source_num_of_files, answer.first().num_copied_files) == (2, 0)
    assert sorted(spark.table("own.c").select("id").toPandas()["id"]) == [0, 1, 2, 3]
    properties = spark.sql("DESCRIBE DETAIL own.c").first().properties
    assert (properties["a.b"], properties["c"]) == ("x", "1")
    assert spark.sql("CREATE TABLE IF NOT EXISTS own.c SHALLOW CLONE own.t").collect() == []
    assert spark.table("own.c").count() == 4
    row = spark.sql("CREATE OR REPLACE TABLE own.c SHALLOW CLONE own.t").first()
    assert (row.source_num_of_files, spark.table("own.c").count()) == (4, 8)
    spark.sql("CREATE TABLE own.d SHALLOW CLONE own.t LOCATION :l", {"l": str(tmp_path / "d")})
    spark.sql(f"CREATE TABLE delta.`{tmp_path}/e` SHALLOW CLONE delta.`{named.path}`")
    assert [len(Table(spark, tmp_path / name).rows()) for name in "de"] == [8, 8]
    for text, condition in [
        ("CREATE TABLE own.c SHALLOW CLONE own.t", "DELTA_TABLE_ALREADY_EXISTS"),
        (f"CREATE TABLE delta.`{tmp_path}/e` SHALLOW CLONE own.t", "DELTA_TABLE_ALREADY_EXISTS"),
        ("REPLACE TABLE own.x SHALLOW CLONE own.t", "DELTA_CANNOT_REPLACE_MISSING_TABLE"),
        ("CREATE TABLE own.x DEEP CLONE own.t", "DELTA_UNSUPPORTED_DEEP_CLONE"),
        ("CREATE TABLE own.x CLONE own.t", "DELTA_UNSUPPORTED_DEEP_CLONE"),
        ("CREATE TABLE own.x SHALLOW CLONE own.nothing", "TABLE_OR_VIEW_NOT_FOUND"),
        ("CREATE TABLE own.x SHALLOW CLONE parquet.`/p`", "DELTA_CLONE_UNSUPPORTED_SOURCE"),
        ("CREATE TABLE own.x SHALLOW CLONE own.t TBLPROPERTIES (a = 1, 'a' = 2)", "DUPLICATE_KEY"),
        ("CREATE TABLE own.x SHALLOW CLONE own.t VERSION AS OF 9", "DELTA_VERSION_NOT_FOUND"),
    ]:
        refused(spark, text, condition)
    assert not spark.catalog.tableExists("own.x")


EVERY = {
    "VACUUM": "VACUUM {} DRY RUN",
    "OPTIMIZE": "OPTIMIZE {}",
    "REORG": "REORG TABLE {} APPLY (PURGE)",
    "DESCRIBE HISTORY": "DESCRIBE HISTORY {}",
    "DESCRIBE DETAIL": "DESCRIBE DETAIL {}",
    "GENERATE": "GENERATE symlink_format_manifest FOR TABLE {}",
    "ALTER TABLE ... DROP FEATURE": "ALTER TABLE {} DROP FEATURE f",
    "ALTER TABLE ... ALTER COLUMN": "ALTER TABLE {} ALTER COLUMN id SYNC IDENTITY",
    "RESTORE": "RESTORE {} VERSION AS OF 0",
}


def test_views_and_what_is_no_delta_table(spark, named):
    named.read().createOrReplaceTempView("v")
    spark.sql("CREATE VIEW own.sv AS SELECT 1 AS id")
    spark.range(1).write.saveAsTable("own.pq", format="parquet")
    before = (named.version, named.data_files())
    for operation, text in EVERY.items():
        view = "DELTA_ONLY_OPERATION" if operation == "RESTORE" else "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"
        assert operation in refused(spark, text.format("v"), view, AnalysisException)
        refused(spark, text.format("own.sv"), "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", AnalysisException)
        refused(spark, text.format("own.nothing"), "TABLE_OR_VIEW_NOT_FOUND", AnalysisException)
        refused(spark, text.format("a.b.c.d"), "TABLE_OR_VIEW_NOT_FOUND", AnalysisException)
        missing = "DELTA_TABLE_ONLY_OPERATION" if operation == "DESCRIBE HISTORY" else "DELTA_MISSING_DELTA_TABLE"
        refused(spark, text.format("delta.`/nothing`"), missing, AnalysisException)
        if operation != "DESCRIBE DETAIL":
            assert operation in refused(spark, text.format("own.pq"), "DELTA_ONLY_OPERATION", AnalysisException)
    for text in ("VACUUM '/nothing'", "OPTIMIZE '/nothing'", "DESCRIBE HISTORY '/nothing'"):
        refused(spark, text, "DELTA_TABLE_ONLY_OPERATION", AnalysisException)
    refused(spark, "CONVERT TO DELTA own.nothing", "TABLE_OR_VIEW_NOT_FOUND", AnalysisException)
    refused(spark, "CONVERT TO DELTA v", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", AnalysisException)
    refused(spark, "CREATE TABLE own.x SHALLOW CLONE v", "DELTA_CLONE_UNSUPPORTED_SOURCE", AnalysisException)
    refused(spark, "CREATE TABLE v SHALLOW CLONE own.t", "DELTA_ONLY_OPERATION", AnalysisException)
    assert (named.version, named.data_files()) == before


def test_parameters_that_are_missing_or_of_another_kind(spark, named):
    refused(spark, "VACUUM :path DRY RUN", "UNBOUND_SQL_PARAMETER", AnalysisException)
    refused(spark, "VACUUM own.t RETAIN ? HOURS", "UNBOUND_SQL_PARAMETER", AnalysisException, args={"x": 1})
    for value in ("7", None, F.col("x"), True):
        message = refused(
            spark, "VACUUM own.t RETAIN :h HOURS", "PARSE_SYNTAX_ERROR", ParseException, args={"h": value}
        )
        assert "':h': expected a" in message
    refused(spark, "VACUUM ? DRY RUN", "PARSE_SYNTAX_ERROR", ParseException, args=[7])
    # A table's name is no value.
    refused(spark, "REORG TABLE :t APPLY (PURGE)", "PARSE_SYNTAX_ERROR", ParseException, args={"t": "own.t"})


def test_names_by_expressions(spark, named, tmp_path):
    """IDENTIFIER takes a literal, an expression, parameters of both kinds and variables, in each of the statements."""
    spark.sql("DECLARE OR REPLACE VARIABLE name STRING = 'own.t'")
    assert spark.sql("DESCRIBE HISTORY IDENTIFIER('own.t') LIMIT 1").first().version == 1
    assert spark.sql("DESC DETAIL IDENTIFIER('own' || '.' || :t)", {"t": "t"}).first().numFiles == 4
    assert spark.sql("VACUUM IDENTIFIER(name) DRY RUN").count() == 0
    spark.sql("OPTIMIZE IDENTIFIER(?) WHERE p = ?", args=["own.t", 1])
    spark.sql("EXECUTE IMMEDIATE 'OPTIMIZE IDENTIFIER(:t) WHERE p = 0' USING 'own.t' AS t")
    assert named.log.snapshot().num_files == 2
    spark.sql("REORG TABLE IDENTIFIER(name) APPLY (PURGE)")
    spark.sql("CREATE TABLE IDENTIFIER(:c) SHALLOW CLONE IDENTIFIER(name)", {"c": "own.c"})
    spark.sql("RESTORE TABLE IDENTIFIER(upper('OWN.t')) TO VERSION AS OF ?", args=[0])
    assert (spark.table("own.t").count(), spark.table("own.c").count()) == (4, 8)
    spark.sql("GENERATE symlink_format_manifest FOR TABLE IDENTIFIER(name)")
    for wrong, args in (("IDENTIFIER(rand())", None), ("IDENTIFIER(1)", None), ("IDENTIFIER(:n)", {"n": None})):
        refused(spark, f"OPTIMIZE {wrong}", "PARSE_SYNTAX_ERROR", args=args)
    assert "expected the name of a table as a string" in refused(spark, "VACUUM IDENTIFIER()", "PARSE_SYNTAX_ERROR")
    spark.sql("DROP TEMPORARY VARIABLE name")


def test_variables_are_put_in_before_the_statement_is_read(spark, named, conf):
    conf("own.limit", "1")
    assert len(spark.sql("DESCRIBE HISTORY own.t LIMIT ${own.limit}").collect()) == 1


def test_other_statements_are_left_to_spark(spark, named):
    for text in ("ALTER TABLE own.t DROP", "CREATE TABLE own.x (a INT", "REPLACE own.t"):
        with pytest.raises(ParseException) as error:
            spark.sql(text)
        assert not isinstance(error.value, TablelogError), text
    message = refused(spark, "ALTER TABLE own.t\n DROP FEATURE f TRUNCATE", "PARSE_SYNTAX_ERROR", ParseException)
    assert "end of input: expected HISTORY (line 2, pos 24)" in message
