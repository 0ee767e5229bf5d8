"""What `enable` changes of PySpark, for whom, and that `disable` leaves nothing behind."""

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter

from tablelog.engine.jvm import builders
from tablelog.engine.jvm.connection.gateway import Gateway
from tablelog.engine.jvm.registry import patching
from tablelog.engine.jvm.registry.python_internals import PATCHES
from tablelog.errors import InvalidArgumentError, UnsupportedEnvironmentError, UnsupportedFeatureError
from tablelog.spark import disable, enable, is_enabled


@pytest.fixture
def other(spark):
    """A second session of the same JVM, not enabled."""
    session = spark.newSession()
    yield session
    disable(session)


def test_a_new_session_is_not_enabled_and_a_cloned_one_is(spark, other):
    assert is_enabled(spark)
    assert not is_enabled(other)
    assert is_enabled(SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession()))


def test_other_sessions_fail_as_spark_does(table, other):
    table.write(table.spark.range(1))
    with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
        other.read.format("delta").load(table.path)
    with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
        other.range(1).write.format("delta").save(table.path)
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        other.sql(f"SELECT * FROM delta.`{table.path}`")
    enable(other)
    assert other.read.format("delta").load(table.path).count() == 1


def test_disabling_the_last_session_gives_pyspark_its_methods_back(spark):
    patched = DataFrameReader.load, DataFrameWriter.save, SparkSession.sql
    assert all(hasattr(method, "__wrapped__") for method in patched)
    disable(spark)
    try:
        assert DataFrameReader.load is patched[0].__wrapped__
        assert DataFrameWriter.save is patched[1].__wrapped__
        assert SparkSession.sql is patched[2].__wrapped__
        assert not is_enabled(spark)
    finally:
        enable(spark)
    assert is_enabled(spark)


def test_disabling_restores_exactly_what_enabling_changed(spark):
    patches = [patch for patch in PATCHES if not patch.on_instances and patch.by != "spark/sessions/new_sessions"]

    def attributes():
        return {(patch.module, patch.owner): dict(vars(patching._owner(patch))) for patch in patches}

    disable(spark)
    try:
        before = attributes()
        enable(spark)
        enabled = attributes()
        changed = {owner for owner in before if before[owner] != enabled[owner]}
        assert changed == set(before), "each owner in the registry is patched"
        for patch in patches:
            if patch.attribute != "*":
                owner = (patch.module, patch.owner)
                assert before[owner][patch.attribute] is not enabled[owner][patch.attribute], patch.name
        disable(spark)
        assert attributes() == before
    finally:
        enable(spark)


def test_enabling_twice_wraps_once(spark):
    load = DataFrameReader.load
    assert enable(spark) is spark
    assert DataFrameReader.load is load


def test_disabling_one_session_leaves_the_other_enabled(spark, other):
    enable(other)
    disable(other)
    assert is_enabled(spark)
    assert not is_enabled(other)
    assert hasattr(DataFrameReader.load, "__wrapped__")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.extensions", "a.B,io.delta.sql.DeltaSparkSessionExtension"),
        ("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"),
    ],
)
def test_refused_where_delta_spark_is_active(other, monkeypatch, key, value):
    monkeypatch.setattr(builders, "session_conf", lambda session: {key: value})
    monkeypatch.setattr(Gateway, "has_class", lambda gateway, name: name in value)
    with pytest.raises(UnsupportedEnvironmentError, match="delta-spark is active"):
        enable(other)
    assert not is_enabled(other)


def test_a_catalog_of_delta_spark_without_its_jar_is_replaced(other, tmp_path):
    other.conf.set("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    enable(other)
    other.sql(f"CREATE TABLE delta.`{tmp_path}/t` USING delta AS SELECT 1 AS id")
    assert other.sql(f"SELECT * FROM delta.`{tmp_path}/t`").collect() == [(1,)]
    assert other.conf.get("spark.sql.catalog.spark_catalog") == "builtin"
    disable(other)


def test_what_is_no_session_is_refused():
    with pytest.raises(UnsupportedEnvironmentError, match="Spark Connect"):
        enable(object())


def test_other_formats_pass_through(spark, tmp_path):
    path = str(tmp_path / "parquet")
    spark.range(3).write.format("parquet").mode("overwrite").save(path)
    assert spark.read.format("parquet").load(path).count() == 3
    assert spark.read.load(path, format="parquet", schema="id bigint").count() == 3
    assert spark.read.parquet(path).count() == 3
    spark.range(3).write.save(path, format="json", mode="overwrite")
    assert spark.read.load(path, format="json").count() == 3


def test_the_format_may_be_an_argument_and_have_any_case(spark, table):
    frame = spark.range(3).selectExpr("id", "id as k")
    frame.write.save(table.path, format="DELTA", mode="append", partitionBy="k", userMetadata="mine")
    assert spark.read.load(table.path, format="Delta").count() == 3
    assert table.info()["userMetadata"] == "mine"
    assert table.info()["operationParameters"] == {"mode": "Append", "partitionBy": '["k"]'}


def test_the_path_may_be_an_option(spark, table):
    spark.range(3).write.format("delta").option("path", table.path).save()
    assert spark.read.format("delta").option("path", table.path).load().count() == 3
    with pytest.raises(InvalidArgumentError, match="twice"):
        spark.read.format("delta").option("path", table.path).load(table.path)
    with pytest.raises(InvalidArgumentError, match="'path' is not specified"):
        spark.read.format("delta").load()
    with pytest.raises(InvalidArgumentError, match="'path' is not specified"):
        spark.range(1).write.format("delta").save()
    with pytest.raises(InvalidArgumentError, match="one path"):
        spark.read.format("delta").load([table.path, table.path])
    assert spark.read.format("delta").load([table.path]).count() == 3


def test_delta_as_the_default_format(spark, table, conf):
    conf("spark.sql.sources.default", "delta")
    spark.range(2).write.save(table.path)
    assert spark.read.load(table.path).count() == 2


def test_a_name_that_is_not_in_the_catalog(spark):
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.range(1).write.format("delta").insertInto("t")


@pytest.mark.parametrize(
    ("sql", "what", "instead"),
    [
        ("CREATE TEMPORARY VIEW t USING DELTA OPTIONS (path '{}')", "TEMPORARY VIEW", "createOrReplaceTempView"),
        ("INSERT OVERWRITE DIRECTORY '{}' USING DELTA SELECT 1", "INSERT OVERWRITE DIRECTORY", "overwrite"),
        ("EXPLAIN OPTIMIZE delta.`{}`", "OPTIMIZE inside another statement", "optimize()"),
    ],
)
def test_sql_on_delta_says_what_comes_later_and_what_to_use(spark, table, sql, what, instead):
    table.write(spark.range(1))
    with pytest.raises(UnsupportedFeatureError, match="not supported") as refused:
        spark.sql(sql.format(table.path))
    assert what in str(refused.value)
    assert instead in str(refused.value)


def test_other_sql_errors_are_spark_s_own(spark):
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM nowhere")
    assert spark.sql("SELECT 1 AS one").first().one == 1


def test_streams_are_sparks_own_in_a_session_that_is_disabled(spark, table, tmp_path):
    table.write(spark.range(1))
    assert spark.readStream.load(table.path, format="DELTA").isStreaming
    stream = spark.readStream.format("rate").load()
    disable(spark)
    try:
        with pytest.raises(Py4JJavaError, match="DATA_SOURCE_NOT_FOUND"):
            spark.readStream.format("delta").load(table.path)
        writer = stream.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "c"))
        with pytest.raises(Py4JJavaError, match="DATA_SOURCE_NOT_FOUND"):
            writer.start(table.path)
    finally:
        enable(spark)


def test_a_schema_and_layouts_that_delta_does_not_take(spark, table):
    table.write(spark.range(1))
    with pytest.raises(InvalidArgumentError, match="own schema"):
        spark.read.format("delta").schema("id bigint").load(table.path)
    with pytest.raises(InvalidArgumentError, match="own schema"):
        spark.read.load(table.path, format="delta", schema="id bigint")
    with pytest.raises(InvalidArgumentError, match="bucket"):
        spark.range(1).write.format("delta").bucketBy(2, "id").save(table.path)
    with pytest.raises(InvalidArgumentError, match="bucketBy and sortBy"):
        spark.range(1).write.format("delta").sortBy("id").mode("append").save(table.path)
    with pytest.raises(InvalidArgumentError, match="luster"):
        spark.range(1).write.format("delta").clusterBy("id").mode("append").save(table.path)
