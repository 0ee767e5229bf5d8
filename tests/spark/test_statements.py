"""Every statement of Spark's grammar that can name a view or a table, on Delta tables: served, or without effect.

What a statement may do is its own new version with the right rows, or nothing: then the table's directory is the same.
"""

import os
import shutil

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException

from support.spark_tables import Table
from tablelog.errors import InvalidArgumentError, TablelogError, UnsupportedFeatureError
from tablelog.spark import DeltaTable

ROWS = [(0, 0), (1, 1), (2, 0), (3, 1)]
ADDED = sorted([*ROWS, (9, 1)])
REPLACED = [(0, 0), (2, 0), (9, 1)]

# By Spark's name of the alternative of the grammar. {n}: the view or table, {path}: its directory.
INSERTS: dict[str, list[tuple[str, list[tuple[int, int]]]]] = {
    "InsertIntoTable": [
        ("INSERT INTO {n} VALUES (9, 1)", ADDED),
        ("INSERT INTO {n} (p, id) VALUES (1, 9)", ADDED),
        ("INSERT INTO {n} BY NAME SELECT 1 AS p, 9L AS id", ADDED),
        ("INSERT INTO {n} PARTITION (p = 1) SELECT 9", ADDED),
        ("WITH x AS (SELECT 9, 1) INSERT INTO {n} SELECT * FROM x", ADDED),
        # Both read what was there before the first of them.
        (
            "FROM {n} INSERT INTO {n} SELECT 9, 1 WHERE id = 0 INSERT INTO {n} SELECT count(*), 2",
            sorted([*ADDED, (4, 2)]),
        ),
    ],
    "InsertOverwriteTable": [
        ("INSERT OVERWRITE {n} VALUES (9, 1)", [(9, 1)]),
        ("INSERT OVERWRITE {n} PARTITION (p = 1) VALUES (9)", REPLACED),
        ("INSERT OVERWRITE {n} SELECT * FROM {n} WHERE id > 1", [(2, 0), (3, 1)]),
    ],
    "VisitExecuteImmediate": [("EXECUTE IMMEDIATE 'INSERT INTO {n} VALUES (9, 1)'", ADDED)],
    "compound": [
        ("BEGIN INSERT INTO {n} VALUES (9, 1); END", ADDED),
        ("BEGIN EXECUTE IMMEDIATE 'INSERT INTO {n} VALUES (9, 1)'; END", ADDED),
    ],
    "InsertIntoReplaceWhere": [("INSERT INTO {n} REPLACE WHERE p = 1 SELECT 9, 1", REPLACED)],
}
CHANGES: dict[str, list[tuple[str, list[tuple[int, int]]]]] = {
    "DeleteFromTable": [("DELETE FROM {n}", []), ("DELETE FROM {n} AS x WHERE x.id = 1", [(0, 0), (2, 0), (3, 1)])],
    "UpdateTable": [("UPDATE {n} SET id = 1", [(1, 0), (1, 0), (1, 1), (1, 1)])],
    "MergeIntoTable": [
        (
            "MERGE INTO {n} t USING (SELECT 1L AS k) ON t.id = k WHEN MATCHED THEN DELETE",
            [(0, 0), (2, 0), (3, 1)],
        )
    ],
}
STATEMENTS: dict[str, list[str]] = {
    "InsertIntoReplaceBooleanCond": ["INSERT INTO {n} REPLACE ON (nope) SELECT 9, 1"],
    "InsertIntoReplaceUsing": ["INSERT INTO {n} REPLACE USING (nope) SELECT 9L AS id, 1 AS p"],
    "InsertOverwriteDir": [
        "INSERT OVERWRITE DIRECTORY '{path}' USING parquet SELECT * FROM {n}",
        "INSERT OVERWRITE DIRECTORY '{path}/p=1' USING csv SELECT 1",
        "INSERT OVERWRITE DIRECTORY USING parquet OPTIONS (path '{path}') SELECT 1",
        "WITH x AS (SELECT 1 AS id) INSERT OVERWRITE DIRECTORY '{path}' USING parquet SELECT * FROM x",
        "FROM {n} INSERT OVERWRITE DIRECTORY '{path}' USING csv SELECT id INSERT INTO own.other SELECT id",
        "FROM own.other INSERT INTO own.other SELECT id INSERT OVERWRITE DIRECTORY '{path}' USING parquet SELECT id",
        "EXECUTE IMMEDIATE 'INSERT OVERWRITE DIRECTORY \"{path}\" USING parquet SELECT 1'",
        "BEGIN INSERT OVERWRITE DIRECTORY '{path}' USING parquet SELECT 1; END",
    ],
    "InsertOverwriteHiveDir": ["INSERT OVERWRITE LOCAL DIRECTORY '{path}' STORED AS parquet SELECT * FROM {n}"],
    "SingleInsertQuery": [],  # the inserts above
    "MultiInsertQuery": [],
    "CreateTable": [
        "CREATE TABLE own.x USING parquet LOCATION '{path}'",
        "CREATE TABLE own.x USING parquet OPTIONS (path '{path}') AS SELECT 1",
        "CREATE TABLE {n} (id INT) USING parquet LOCATION '{path}'",
    ],
    "CreateTableLike": ["CREATE TABLE own.x LIKE {n} USING parquet LOCATION '{path}'"],
    "ReplaceTable": ["CREATE OR REPLACE TABLE {n} USING parquet AS SELECT 1", "REPLACE TABLE {n} (id INT) USING csv"],
    "Analyze": [f"ANALYZE TABLE {{n}} COMPUTE STATISTICS{how}" for how in ("", " NOSCAN", " FOR ALL COLUMNS")],
    "AnalyzeTables": ["ANALYZE TABLES IN own COMPUTE STATISTICS"],
    "AddTableColumns": ["ALTER TABLE {n} ADD COLUMNS (z INT)"],
    "RenameTableColumn": ["ALTER TABLE {n} RENAME COLUMN id TO z"],
    "DropTableColumns": ["ALTER TABLE {n} DROP COLUMN id"],
    "SetTableProperties": ["ALTER TABLE {n} SET TBLPROPERTIES (a = 'b')", "ALTER VIEW {n} SET TBLPROPERTIES (a = 'b')"],
    "UnsetTableProperties": ["ALTER TABLE {n} UNSET TBLPROPERTIES IF EXISTS (a)"],
    "AlterTableAlterColumn": ["ALTER TABLE {n} ALTER COLUMN id COMMENT 'x'"],
    "HiveChangeColumn": ["ALTER TABLE {n} CHANGE COLUMN id id BIGINT COMMENT 'x'"],
    "HiveReplaceColumns": ["ALTER TABLE {n} REPLACE COLUMNS (z INT)"],
    "SetTableSerDe": ["ALTER TABLE {n} SET SERDEPROPERTIES (a = 'b')"],
    "AddTablePartition": [
        "ALTER TABLE {n} ADD PARTITION (p = 7)",
        "ALTER TABLE own.parts ADD PARTITION (p = 1) LOCATION '{path}'",
        "INSERT OVERWRITE own.parts PARTITION (p = 1) VALUES (7)",
        "ALTER TABLE own.parts DROP PARTITION (p = 1)",
    ],
    "RenameTablePartition": ["ALTER TABLE {n} PARTITION (p = 1) RENAME TO PARTITION (p = 7)"],
    "DropTablePartitions": ["ALTER TABLE {n} DROP PARTITION (p = 1)"],
    "SetTableLocation": [
        "ALTER TABLE {n} SET LOCATION '{path}-other'",
        "ALTER TABLE own.other SET LOCATION '{path}'",
        "INSERT OVERWRITE own.other VALUES (7)",
        "ALTER TABLE own.parts PARTITION (p = 2) SET LOCATION '{path}'",
        "INSERT OVERWRITE own.parts PARTITION (p = 2) VALUES (7)",
        "TRUNCATE TABLE own.other",
        "DROP TABLE own.other",
    ],
    "RecoverPartitions": ["ALTER TABLE {n} RECOVER PARTITIONS"],
    "AlterClusterBy": ["ALTER TABLE {n} CLUSTER BY (id)"],
    "AlterTableCollation": ["ALTER TABLE {n} DEFAULT COLLATION UTF8_LCASE"],
    "AddTableConstraint": ["ALTER TABLE {n} ADD CONSTRAINT c CHECK (id > 0)"],
    "DropTableConstraint": ["ALTER TABLE {n} DROP CONSTRAINT IF EXISTS c"],
    "CreateView": ["CREATE VIEW own.x AS SELECT * FROM {n}", "CREATE VIEW {n} AS SELECT 1"],
    "CreateTempViewUsing": ["CREATE TEMPORARY VIEW stray USING DELTA OPTIONS (path '{path}')"],
    "AlterViewSchemaBinding": ["ALTER VIEW {n} WITH SCHEMA EVOLUTION"],
    "Explain": ["EXPLAIN INSERT INTO {n} VALUES (9, 1)", "EXPLAIN EXTENDED INSERT OVERWRITE {n} VALUES (9, 1)"],
    "StatementDefault": ["TABLE {n}", "FROM {n} SELECT count(*)"],
    "DescribeRelation": ["DESCRIBE EXTENDED {n}"],
    "DescribeQuery": ["DESCRIBE QUERY SELECT * FROM {n}"],
    "ShowTableExtended": ["SHOW TABLE EXTENDED IN own LIKE '*'"],
    "ShowTblProperties": ["SHOW TBLPROPERTIES {n}"],
    "ShowColumns": ["SHOW COLUMNS IN {n}"],
    "ShowPartitions": ["SHOW PARTITIONS {n}"],
    "ShowCreateTable": ["SHOW CREATE TABLE {n}"],
    "CommentTable": ["COMMENT ON TABLE {n} IS 'x'"],
    "CommentColumn": ["COMMENT ON COLUMN {n}.id IS 'x'"],
    "RefreshTable": ["REFRESH TABLE {n}"],
    "RefreshResource": ["REFRESH '{path}'"],
    "CacheTable": ["CACHE TABLE {n}", "CACHE TABLE stray AS SELECT * FROM {n}"],
    "UncacheTable": ["UNCACHE TABLE IF EXISTS {n}"],
    "CreateNamespace": ["CREATE DATABASE inside LOCATION '{path}'", "DROP DATABASE IF EXISTS inside CASCADE"],
    "LoadData": [
        "LOAD DATA INPATH '{path}' INTO TABLE {n}",
        "LOAD DATA LOCAL INPATH '{path}' OVERWRITE INTO TABLE {n}",
    ],
    "TruncateTable": ["TRUNCATE TABLE {n} PARTITION (p = 1)"],  # the whole table: `TRUNCATE`, of a view without effect
    "RepairTable": ["MSCK REPAIR TABLE {n} SYNC PARTITIONS"],
    "CreateIndex": ["CREATE INDEX i ON TABLE {n} (id)"],
    "DropIndex": ["DROP INDEX i ON TABLE {n}"],
}
TRUNCATE = "TRUNCATE TABLE {n}"
# Served on a table of the catalog, but not on a view: they append commits, and change no data file.
SERVED = set(
    "AddTableColumns SetTableProperties UnsetTableProperties AlterTableAlterColumn HiveChangeColumn "
    "DropTableConstraint CommentTable CommentColumn".split()
)
# What gives a name to something else, or takes it away: these come last, on a name of their own.
RENAMES = {"RenameTable", "DropTable", "DropView", "AlterViewQuery"}
# Those that name no view and no table: namespaces, catalogs, functions, procedures, variables, cursors, resources,
# and pipelines, whose statements `spark.sql` refuses.
OTHERS = set(
    "Call ClearCache CloseCursorStatement CommentNamespace CreateFlowAutoCdc CreateFunction CreateMetricView "
    "CreatePipelineDataset CreatePipelineInsertIntoFlow CreateUserDefinedFunction CreateVariable "
    "DeclareCursorStatement DescribeFunction DescribeNamespace DescribeProcedure DmlStatement DropFunction "
    "DropNamespace DropVariable FailNativeCommand FetchCursorStatement ManageResource OpenCursorStatement "
    "RefreshFunction SetCatalog SetNamespaceCollation SetNamespaceLocation SetNamespaceProperties ShowCatalogs "
    "ShowCollations ShowCurrentNamespace ShowFunctions ShowNamespaces ShowProcedures ShowTables ShowViews "
    "UnsetNamespaceProperties Use UseNamespace".split()
)


def directory(path):
    return sorted((name, os.path.getsize(os.path.join(at, name))) for at, _, names in os.walk(path) for name in names)


@pytest.fixture
def database(spark, tmp_path):
    spark.sql(f"CREATE DATABASE own LOCATION '{tmp_path / 'db'}'")
    spark.sql("CREATE TABLE own.other (id BIGINT) USING parquet")
    spark.sql("CREATE TABLE own.parts (id BIGINT, p INT) USING parquet PARTITIONED BY (p)")
    spark.sql("ALTER TABLE own.parts ADD PARTITION (p = 2)")
    yield
    spark.sql("DROP DATABASE own CASCADE")
    for view in ("v", "stray"):
        spark.catalog.dropTempView(view)
    spark.catalog.dropGlobalTempView("v")
    spark.catalog.clearCache()


def made(spark, path, *, vectors=False):
    """A table of ROWS, partitioned; with `vectors` one more row is deleted by a deletion vector."""
    frame = spark.range(5 if vectors else 4).selectExpr("id", "cast(id % 2 as int) AS p")
    table = Table(spark, path)
    table.write(frame, by=("p",), **({"delta.enableDeletionVectors": "true"} if vectors else {}))
    if vectors:
        table.delta.delete("id = 4")
    return table


def run(spark, text):
    """The error of a statement, None where there was none. It has to be typed."""
    try:
        spark.sql(text).collect()
    except Py4JError as error:
        pytest.fail(f"{text}: a raw Java error, {error}")
    except (TablelogError, PySparkException) as error:
        return error
    return None


def without_effect(spark, path, name, texts):
    """Run statements that may answer or be refused, and change nothing."""
    before = directory(path)
    for text in texts:
        run(spark, text.format(n=name, path=path))
        assert directory(path) == before, text


def every(*, served=True):
    return [text for kind, texts in STATEMENTS.items() if served or kind not in SERVED for text in texts]


def test_the_lists_have_every_alternative_of_the_grammar(spark):
    parser = spark._jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.parser.SqlBaseParser")
    found: dict[str, set[str]] = {}
    for kind in parser.getDeclaredClasses():
        rule = str(kind.getSuperclass().getSimpleName()).removesuffix("Context")
        found.setdefault(rule, set()).add(str(kind.getSimpleName()).removesuffix("Context"))
    known = {*INSERTS, *CHANGES, *STATEMENTS, *RENAMES, *OTHERS}
    assert found["Statement"] | found["InsertInto"] | found["DmlStatementNoWith"] <= known


@pytest.mark.one_case
@pytest.mark.parametrize("kind", ["view", "vectors", "global"])
def test_changes_of_a_view_are_changes_of_the_table(spark, tmp_path, database, kind):
    first = made(spark, tmp_path / "t", vectors=kind == "vectors")
    cases = [one for cases in (INSERTS | CHANGES).values() for one in cases]
    for number, (text, rows) in enumerate(cases if kind == "view" else cases[-3:-1]):
        table = Table(spark, tmp_path / f"t{number}")
        shutil.copytree(first.path, table.path)
        frame, name = table.read(), "global_temp.v" if kind == "global" else "v"
        (frame.createOrReplaceGlobalTempView if kind == "global" else frame.createOrReplaceTempView)("v")
        answer = spark.sql(text.format(n=name))
        assert (answer.columns == []) == ("INSERT" in text)
        assert table.version == first.version + max(text.count("INSERT"), 1), text
        assert sorted(map(tuple, spark.table(name).collect())) == rows, text
    assert table.rows() == rows


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["view", "vectors", "global"])
def test_other_statements_on_a_view_change_no_file(spark, tmp_path, database, kind):
    table = made(spark, tmp_path / "t", vectors=kind == "vectors")
    table.read().createOrReplaceTempView("v")
    table.read().createOrReplaceGlobalTempView("v")
    texts = [TRUNCATE, *every()] if kind == "view" else [TRUNCATE, *STATEMENTS["TruncateTable"]]
    without_effect(spark, table.path, "global_temp.v" if kind == "global" else "v", texts)
    assert table.rows() == ROWS
    if kind == "view":
        before = directory(table.path)
        for text in ("ALTER VIEW v RENAME TO w", "ALTER VIEW w AS SELECT 1", "DROP VIEW w", "DROP TABLE IF EXISTS w"):
            run(spark, text)
            assert directory(table.path) == before, text


@pytest.mark.parametrize("kind", [pytest.param("managed", marks=pytest.mark.slow), "external"])
def test_statements_on_a_table_of_the_catalog(spark, tmp_path, database, kind):
    table = made(spark, tmp_path / "db" / "m" if kind == "managed" else tmp_path / "t")
    if kind == "managed":
        table.read().write.format("delta").mode("overwrite").saveAsTable("own.m")
    else:
        DeltaTable.create(spark).tableName("own.m").location(table.path).execute()
    without_effect(spark, table.path, "own.m", every(served=False) if kind == "managed" else every(served=False)[:5])
    assert table.rows() == ROWS
    changes = [(text, rows) for cases in (INSERTS | CHANGES).values() for text, rows in cases]
    for text, rows in [*(changes if kind == "managed" else changes[::6]), (TRUNCATE, [])]:
        before = table.version
        spark.sql(text.format(n="own.m"))
        assert table.version == before + max(text.count("INSERT"), 1), text
        assert sorted(map(tuple, spark.table("own.m").collect())) == rows, text
        table.delta.restoreToVersion(before)
    files = table.data_files()
    for text in [text for name in sorted(SERVED) for text in STATEMENTS[name]]:
        run(spark, text.format(n="own.m", path=table.path))
        assert table.data_files() == files, text
    assert table.rows("id", "p") == ROWS
    spark.sql("ALTER TABLE own.m RENAME TO own.w")
    assert sorted(map(tuple, spark.table("own.w").select("id", "p").collect())) == ROWS


def test_a_view_of_a_version_takes_no_rows(spark, table, database):
    table.write(spark.range(4).selectExpr("id", "1 AS p"))
    table.write(spark.range(1).selectExpr("id", "1 AS p"))
    table.read(versionAsOf=0).createOrReplaceTempView("v")
    before = directory(table.path)
    for text in ("INSERT INTO v VALUES (9, 1)", "INSERT OVERWRITE v VALUES (9, 1)"):
        with pytest.raises(InvalidArgumentError, match=r"shows version 0 of .*nothing was written"):
            spark.sql(text)
    with pytest.raises(InvalidArgumentError, match="shows version 0"):
        spark.range(1).selectExpr("id", "1").write.insertInto("v", overwrite=True)
    with pytest.raises(InvalidArgumentError, match="shows version 0"):
        spark.sql("INSERT INTO {d} VALUES (9, 1)", d=table.read(versionAsOf=0))
    assert directory(table.path) == before


@pytest.mark.parametrize("options", [{}, {"versionAsOf": 0}, {"readChangeFeed": "true", "startingVersion": 0}])
def test_a_view_that_is_not_the_whole_table_is_refused_as_spark_does(spark, table, database, options):
    table.write(spark.range(4), **{"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"})
    frames = [table.read(**options).where("id > 0"), table.read(**options).selectExpr("id + 1 AS id")]
    if "readChangeFeed" in options:
        frames += [table.read(**options), table.read(readRowIds="true")]
    before = directory(table.path)
    for frame in frames:
        frame.createOrReplaceTempView("v")
        values = ", ".join(["DEFAULT"] * len(frame.columns))
        for text in (f"INSERT INTO v VALUES ({values})", f"INSERT OVERWRITE v VALUES ({values})"):
            with pytest.raises((AnalysisException, UnsupportedFeatureError)):
                spark.sql(text)
    assert directory(table.path) == before


@pytest.mark.parametrize("route", ["manifest", "arrow"])
def test_views_on_the_other_routes(spark, table, database, conf, tmp_path, route):
    table.write(spark.range(3))
    conf("spark.tablelog.read.scratch", str(tmp_path / "scratch"))
    conf("spark.tablelog.read.route", route)
    os.makedirs(tmp_path / "scratch")
    table.read().createOrReplaceTempView("v")
    before = directory(tmp_path / "scratch")
    spark.sql("INSERT INTO v VALUES (9)")
    assert (table.rows(), table.version) == ([0, 1, 2, 9], 1)
    table.read(versionAsOf=0).createOrReplaceTempView("v")
    with pytest.raises(InvalidArgumentError, match="shows version 0"):
        spark.sql("INSERT OVERWRITE v VALUES (9)")
    if route == "arrow":
        assert directory(tmp_path / "scratch") == before


# --- by DataFrames ------------------------------------------------------------------------------------------------


def test_insert_into_by_a_writer(spark, table, database):
    table.write(spark.range(3).selectExpr("id", "cast(id AS string) AS s"))
    table.read().createOrReplaceTempView("v")
    rows = spark.createDataFrame([(7, "x")], "other int, name string")  # columns go by their places
    rows.write.insertInto("v")
    rows.write.format("delta").mode("append").insertInto("v")
    assert table.rows("id") == [0, 1, 2, 7, 7]
    rows.write.mode("overwrite").insertInto("v")
    assert table.rows() == [(7, "x")]
    spark.range(1).selectExpr("id", "'y'").write.insertInto("v", overwrite=True)
    assert table.rows() == [(0, "y")]
    table.delta.toDF().createOrReplaceTempView("v")
    rows.write.insertInto("v", overwrite=False)
    assert table.rows() == [(0, "y"), (7, "x")]
    with pytest.raises(AnalysisException, match="ARITY_MISMATCH"):
        spark.range(1).write.insertInto("v")
    rows.toDF("id", "s").writeTo("v").append()
    assert table.rows() == [(0, "y"), (7, "x"), (7, "x")]


def test_insert_into_goes_by_the_format_of_the_table(spark, database, conf):
    spark.range(1).write.saveAsTable("own.p", format="parquet")
    conf("spark.sql.sources.default", "delta")
    spark.range(1, 2).write.insertInto("own.p")
    assert sorted(row.id for row in spark.table("own.p").collect()) == [0, 1]


def test_frames_and_values_as_parameters(spark, table, database):
    table.write(spark.range(1).selectExpr("id", "'a' AS s"))
    table.read().createOrReplaceTempView("v")
    frame = table.read()
    spark.sql("INSERT INTO {d} VALUES (1, 'b')", d=frame)
    spark.sql("INSERT INTO v VALUES (:id, :s)", {"id": 2, "s": "c'"})
    spark.sql("INSERT INTO v VALUES (?, ?)", [3, "d"])
    spark.sql("INSERT INTO v BY NAME SELECT :s AS s, id + 4 AS id FROM {d} WHERE id = 0", {"s": "e"}, d=frame)
    assert table.rows() == [(0, "a"), (1, "b"), (2, "c'"), (3, "d"), (4, "e")]


def test_rules_and_types_of_the_table(spark, table, database, conf):
    builder = DeltaTable.create(spark).location(table.path).property("delta.feature.allowColumnDefaults", "supported")
    builder = builder.addColumn("id", "bigint", nullable=False).addColumn(
        "n", "int", generatedAlwaysAs="CAST(id AS INT)"
    )
    builder.addColumn("d", "date").partitionedBy("d").execute()
    table.read().createOrReplaceTempView("v")
    spark.sql("INSERT INTO v (id, d) VALUES (1, DATE'2024-05-01'), (2, NULL)")
    spark.sql("INSERT INTO v BY NAME SELECT DATE'2024-05-02' AS d, 3 AS id")
    assert [tuple(map(str, row)) for row in table.rows("id", "n", "d")] == [
        ("1", "1", "2024-05-01"),
        ("2", "2", "None"),
        ("3", "3", "2024-05-02"),
    ]
    spark.sql("INSERT OVERWRITE v PARTITION (d = '2024-05-01') (id) VALUES (4)")
    assert sorted(table.rows("id")) == [2, 3, 4]
    spark.sql("INSERT OVERWRITE v PARTITION (d = NULL) (id) VALUES (5)")
    assert sorted(table.rows("id")) == [3, 4, 5]
    conf("spark.sql.sources.partitionOverwriteMode", "dynamic")
    spark.sql("INSERT OVERWRITE v SELECT 6, 6, DATE'2024-05-02'")
    assert sorted(table.rows("id")) == [4, 5, 6]
    version = table.version
    for text, match in [
        ("INSERT INTO v (d) VALUES (NULL)", "NOT NULL"),
        ("INSERT INTO v VALUES (1, 7, NULL)", "n"),
        ("INSERT INTO v VALUES ('x', 1, NULL)", "CAST_INVALID_INPUT"),
        ("INSERT INTO v (id, nothing) VALUES (1, 2)", "UNRESOLVED_COLUMN"),
        ("INSERT INTO v VALUES (1)", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
    ]:
        with pytest.raises((PySparkException, TablelogError), match=match):
            spark.sql(text)
    assert table.version == version


def test_other_writers_stay_out_of_the_directory_of_a_table(spark, table, tmp_path, conf):
    table.write(spark.range(3))
    frame = table.read()
    before = directory(table.path)
    for write in (
        lambda: frame.write.mode("overwrite").parquet(table.path),
        lambda: frame.write.format("csv").mode("append").save(f"{table.path}/p=1"),
        lambda: frame.write.json(f"file:{table.path}", mode="overwrite"),
        lambda: frame.write.option("path", table.path).mode("overwrite").save(format="orc"),
        lambda: spark.readStream.format("rate").load().writeStream.format("parquet").start(table.path),
    ):
        with pytest.raises(InvalidArgumentError, match=r"There is a Delta table at .*Nothing was written"):
            write()
        assert directory(table.path) == before
    conf("spark.databricks.delta.formatCheck.enabled", "false")
    frame.write.mode("append").parquet(table.path)
    assert table.rows() == [0, 1, 2]


def test_what_else_spark_does_by_root_paths(spark, table):
    table.write(spark.range(3))
    frame = table.read().cache()
    assert frame.count() == 3
    table.write(spark.range(3, 5))  # has Spark refresh by the path
    assert frame.count() == 5
    assert len(table.read().inputFiles()) == len(table.data_files()) > 0
    assert table.path in spark.sql("EXPLAIN FORMATTED SELECT * FROM {d}", d=table.read()).first().plan
    frame.unpersist()
