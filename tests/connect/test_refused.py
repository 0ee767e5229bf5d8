"""What isn't supported on Spark Connect is refused by name, before anything is written; and `enable` itself."""

import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from support.spark_tables import Table
from tablelog.engine.connect import client
from tablelog.errors import UnsupportedEnvironmentError, UnsupportedFeatureError
from tablelog.spark import DeltaTable, disable, enable, is_enabled


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM delta.`{path}`",
        "DELETE FROM delta.`{path}` WHERE id = 1",
        "CREATE TABLE t (id INT) USING delta",
        "CREATE TABLE t USING DELTA LOCATION '{path}'",
        "OPTIMIZE delta.`{path}`",
        "SELECT * FROM `delta`.`{path}`",
        "SELECT * FROM Delta /* a comment */ . -- and another\n `{path}`",
        "CREATE TABLE t USING `Delta` LOCATION '{path}'",
        "SELECT 'it''s', r'\\', \"'\" FROM delta.`{path}`",
        "EXECUTE IMMEDIATE 'SELECT * FROM delta.`{path}`'",
        "SELECT * FROM IDENTIFIER('delta.`{path}`')",
        "BEGIN EXECUTE IMMEDIATE 'SELECT * FROM delta.`{path}`'; END",
        "/* a /* b */ it's */ SELECT * FROM delta.`{path}` WHERE x = 'a'",
        "-- c\rSELECT * FROM delta.`{path}`",
    ],
)
def test_statements(spark: Any, table: Table, statement: str) -> None:
    table.write(spark.range(1))
    with pytest.raises(UnsupportedFeatureError, match=r"SQL statement on a Delta table.*DeltaTable\.forPath"):
        spark.sql(statement.format(path=table.path))
    assert spark.sql("SELECT 1 AS one").collect()[0].one == 1


@pytest.mark.parametrize(
    ("statement", "name", "method"),
    [
        ("VACUUM '{path}'", "VACUUM", "vacuum"),
        ("/* all */ optimize '{path}' ZORDER BY (id)", "OPTIMIZE", "optimize"),
        ("DESCRIBE HISTORY '{path}'", "DESCRIBE HISTORY", "history"),
        ("DESC DETAIL '{path}'", "DESC DETAIL", "detail"),
        ("DESCRIBE HISTORY t", "DESCRIBE HISTORY", "history"),
        ("RESTORE TABLE t TO VERSION AS OF 0", "RESTORE", "restoreToVersion"),
        ("GENERATE symlink_format_manifest FOR TABLE t", "GENERATE", "generate"),
        ("CONVERT TO DELTA parquet.`{path}`", "CONVERT", "convertToDelta"),
        ("REORG TABLE t APPLY (PURGE)", "REORG", "reorg"),
        ("CREATE TABLE t SHALLOW CLONE u", r"CREATE \.\.\. CLONE", "clone"),
        ("ALTER TABLE t DROP FEATURE deletionVectors", r"ALTER \.\.\. FEATURE", "dropFeatureSupport"),
    ],
)
def test_statements_that_only_delta_has(spark: Any, table: Table, statement: str, name: str, method: str) -> None:
    table.write(spark.range(1))
    before = table.version
    with pytest.raises(UnsupportedFeatureError, match=rf"The SQL statement {name} .*DeltaTable\.{method},") as raised:
        spark.sql(statement.format(path=table.path))
    assert raised.value.__cause__ is not None  # the server's error
    assert table.version == before


def test_statements_that_look_like_those(spark: Any) -> None:
    """They are Spark's: the server's answer stays."""
    assert spark.sql("SELECT 1 AS vacuum, 'optimize delta' AS text").count() == 1
    strings = spark.sql("SELECT 'USING delta' a, r'\\' b, \"delta.`x`\" c -- USING delta\n, /* delta.`x` */ 1 d")
    assert tuple(strings.collect()[0]) == ("USING delta", "\\", "delta.`x`", 1)
    spark.sql("CREATE TEMPORARY VIEW history AS SELECT 1 AS t")
    assert spark.sql("DESCRIBE history t").count()
    spark.sql("DROP VIEW history")
    for statement in ("SELECT * FROM no_such_table", "CREATE TABLE t AS SELECT clone FROM no_such_table"):
        with pytest.raises(AnalysisException):
            spark.sql(statement)


def test_names(spark: Any, table: Table) -> None:
    table.write(spark.range(1))
    for operation, message in (
        (lambda: spark.range(1).write.format("delta").insertInto("t"), "insertInto"),
        (lambda: spark.range(1).writeTo("t").using("delta").create(), "create of a Delta table"),
        (lambda: spark.range(1).writeTo("t").using("delta").createOrReplace(), "createOrReplace of a Delta table"),
        (lambda: spark.catalog.createTable("t", table.path, "delta"), "createTable of a Delta table"),
        (lambda: DeltaTable.forName(spark, "other.default.t"), "another catalog"),
    ):
        with pytest.raises(UnsupportedFeatureError, match=message):
            operation()


def test_methods_of_the_table(spark: Any, table: Table) -> None:
    table.write(spark.range(1))
    version = table.version
    of_table = table.delta
    for operation, message in (
        (lambda: DeltaTable.convertToDelta(spark, "t"), "name t in the catalog"),
        (lambda: DeltaTable.create(spark).tableName("t").addColumn("a", "int").execute(), "name t in the catalog"),
        (lambda: of_table.clone("t", isShallow=True), "name t in the catalog"),
        (lambda: of_table.vacuum(inventory=spark.range(1)), "inventory"),
    ):
        with pytest.raises(UnsupportedFeatureError, match=message):
            operation()
    assert table.version == version


def test_routes(spark: Any, table: Table, conf: Any) -> None:
    table.write(spark.range(1))
    conf("spark.tablelog.read.route", "native")
    with pytest.raises(UnsupportedEnvironmentError, match="native"):
        table.read()


def test_a_client_without_a_replaced_method(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql.connect.session import SparkSession

    monkeypatch.setattr(client, "PATCHES", {**client.PATCHES, "SparkSession.other": "pyspark.sql.connect.session"})
    before = vars(SparkSession)["sql"]
    with pytest.raises(UnsupportedEnvironmentError, match=r"no SparkSession\.other in pyspark\.sql\.connect\.session"):
        client.Applied({"SparkSession.sql": lambda original: original, "SparkSession.other": lambda original: original})
    assert vars(SparkSession)["sql"] is before


def test_enable_and_disable(spark: Any, table: Table) -> None:
    from pyspark.sql.connect.readwriter import DataFrameReader

    assert is_enabled(spark)
    assert enable(spark) is spark
    replaced = DataFrameReader.load
    disable(spark)
    assert not is_enabled(spark)
    assert DataFrameReader.load is not replaced
    with pytest.raises(Exception, match="delta"):
        spark.read.format("delta").load(table.path).collect()
    enable(spark)
    table.write(spark.range(1))
    other = spark.newSession() if hasattr(spark, "newSession") else None
    if other is not None:
        assert not is_enabled(other)


def test_what_is_used_of_the_client_exists(spark: Any) -> None:
    from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry

    stream = spark.readStream.format("rate").load()
    objects = {
        "Catalog": spark.catalog,
        "DataFrameReader": spark.read,
        "DataFrameWriter": spark.range(1).write,
        "DataFrameWriterV2": spark.range(1).writeTo("t"),
        "DataStreamReader": spark.readStream,
        "DataStreamWriter": stream.writeStream,
        "WriteStreamOperation": stream.writeStream._write_stream,
        "DataFrame": spark.range(1),
        "SparkConnectGraphElementRegistry": SparkConnectGraphElementRegistry(spark, "no graph"),
    }
    for name, attributes in client.INTERNALS.items():
        module, _, kind = name.rpartition(".")
        assert type(objects[kind]) is getattr(import_module(module), kind)
        assert all(hasattr(objects[kind], attribute) for attribute in attributes)
    for name, module in client.PATCHES.items():
        if name == "Catalog.dropDatabase" and not client.has_drop_database():
            continue
        owner, _, attribute = name.partition(".")
        assert attribute in vars(getattr(import_module(module), owner))


PROGRAM = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "py4j" or name == "pyspark.core" or name.startswith("pyspark.core."):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())
from pyspark.sql import SparkSession
from tablelog.spark import DeltaTable, enable

spark = enable(SparkSession.builder.remote(sys.argv[1]).getOrCreate())
path = sys.argv[2]
spark.range(5).write.format("delta").save(path)
DeltaTable.forPath(spark, path).delete("id = 3")
assert sorted(row.id for row in spark.read.format("delta").load(path).collect()) == [0, 1, 2, 4]
try:
    spark.read.format("delta").load(path + "-nothing")
except Exception as error:
    assert type(error).__name__ == "TableNotFoundError", error
assert not [name for name in sys.modules if name.startswith("py4j")]
"""


def test_a_client_without_py4j(remote: str, table: Table) -> None:
    """As with the package pyspark-client, which has neither Py4J nor `pyspark.core`."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, remote, table.path], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
