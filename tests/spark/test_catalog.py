"""Tables by their names in Spark's catalog."""

import os

import pytest
from pyspark.errors import AnalysisException

from support.spark_tables import Table
from tablelog.engine.jvm.catalog import SessionCatalog
from tablelog.errors import (
    InvalidArgumentError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from tablelog.spark import DeltaTable


@pytest.fixture
def database(spark, tmp_path):
    """A database of this test's own, whose tables lie below `tmp_path / "db"`."""
    spark.sql(f"CREATE DATABASE own LOCATION '{tmp_path / 'db'}'")
    yield "own"
    spark.sql("DROP DATABASE own CASCADE")


def ids(frame):
    return sorted(row.id for row in frame.select("id").collect())


def provider(spark, name):
    return SessionCatalog(spark).find(name).provider


# --- convertToDelta ----------------------------------------------------------------------------------------------


def test_a_partitioned_table_is_converted_where_it_lies(spark, tmp_path, database):
    rows = spark.createDataFrame([(1, "a b", 3), (2, "c/d=e", 4), (3, None, 4)], "id long, p string, q int")
    rows.write.partitionBy("p", "q").option("path", str(tmp_path / "a table")).saveAsTable("own.t", format="parquet")
    before = spark.table("own.t").collect()
    made = DeltaTable.convertToDelta(spark, "own.t")
    table = Table(spark, tmp_path / "a table")
    assert table.info()["operationParameters"]["partitionedBy"] == '["p","q"]'
    assert provider(spark, "own.t") == "delta"
    assert sorted(spark.table("own.t").collect(), key=str) == sorted(before, key=str)
    assert spark.read.table("own.t").where("t.q = 4").count() == 2
    made.delete("id = 1")
    assert ids(spark.table("spark_catalog.own.t")) == [2, 3]
    assert ids(spark.read.option("versionAsOf", 0).table("`own`.`t`")) == [1, 2, 3]
    DeltaTable.convertToDelta(spark, "own.t")
    assert table.version == 1
    spark.sql("DROP TABLE own.t")
    assert table.rows("id") == [2, 3]


def test_a_managed_table_is_converted_and_goes_with_its_files(spark, tmp_path, database):
    spark.range(3).write.saveAsTable("own.m", format="parquet")
    assert ids(DeltaTable.convertToDelta(spark, "own.m").toDF()) == [0, 1, 2]
    assert (tmp_path / "db" / "m" / "_delta_log").is_dir()
    spark.sql("DROP TABLE own.m")
    assert not (tmp_path / "db" / "m").exists()


def test_an_entry_left_by_a_conversion_that_was_killed_is_mended(spark, tmp_path, database):
    spark.range(3).write.option("path", str(tmp_path / "t")).saveAsTable("own.t", format="parquet")
    DeltaTable.convertToDelta(spark, f"parquet.`{tmp_path / 't'}`")  # all but the change of the catalog
    assert provider(spark, "own.t") == "parquet"
    DeltaTable.convertToDelta(spark, "own.t")
    assert provider(spark, "own.t") == "delta"


def test_only_what_the_catalog_shows_is_converted(spark, tmp_path, database):
    path = tmp_path / "t"
    rows = spark.range(4).selectExpr("id", "id % 2 as p")
    rows.write.partitionBy("p").option("path", str(path)).saveAsTable("own.t", format="parquet")
    os.rename(path / "p=1", path / "p=7")
    assert "p=7" in os.listdir(path)
    with pytest.raises(InvalidArgumentError, match=r"p=7 .*catalog doesn't list them"):
        DeltaTable.convertToDelta(spark, "own.t")
    assert (provider(spark, "own.t"), (path / "_delta_log").exists()) == ("parquet", False)
    spark.sql("MSCK REPAIR TABLE own.t")
    DeltaTable.convertToDelta(spark, "own.t", "p bigint")
    assert sorted(row.p for row in spark.table("own.t").collect()) == [0, 0, 7, 7]


def test_what_cannot_be_converted(spark, tmp_path, database):
    spark.sql("CREATE TABLE own.j (id BIGINT) USING json")
    spark.sql("CREATE VIEW own.v AS SELECT 1 AS id")
    spark.range(3).write.bucketBy(2, "id").saveAsTable("own.b", format="parquet")
    rows = spark.range(2).selectExpr("id", "id % 2 as p")
    rows.write.partitionBy("p").saveAsTable("own.p", format="parquet")
    for name, error, match in [
        ("own.j", InvalidArgumentError, "provider is json"),
        ("own.v", InvalidArgumentError, "is a view"),
        ("own.b", UnsupportedFeatureError, "bucketed"),
        ("own.nothing", TableNotFoundError, "no table own.nothing"),
        ("elsewhere.own.t", UnsupportedFeatureError, "of the catalog elsewhere"),
    ]:
        with pytest.raises(error, match=match):
            DeltaTable.convertToDelta(spark, name)
    with pytest.raises(InvalidArgumentError, match="has other names or types"):
        DeltaTable.convertToDelta(spark, "own.p", "p string")
    spark.sql(f"ALTER TABLE own.p ADD PARTITION (p=9) LOCATION '{tmp_path / 'far'}'")
    with pytest.raises(UnsupportedFeatureError, match="outside of its directory"):
        DeltaTable.convertToDelta(spark, "own.p")
    assert not (tmp_path / "db" / "p" / "_delta_log").exists()


# --- create, forName, saveAsTable, clone -------------------------------------------------------------------------


def test_a_builder_makes_a_managed_table_by_its_name(spark, tmp_path, database):
    made = DeltaTable.create(spark).tableName("own.t").addColumn("id", "bigint").execute()
    table = Table(spark, tmp_path / "db" / "t")
    assert table.info()["operationParameters"]["isManaged"] == "true"
    table.write(spark.range(3))
    assert ids(spark.table("own.t")) == ids(DeltaTable.forName(spark, "own.t").toDF()) == ids(made.toDF()) == [0, 1, 2]
    with pytest.raises(TableAlreadyExistsError):
        DeltaTable.create(spark).tableName("own.t").addColumn("id", "bigint").execute()
    DeltaTable.createIfNotExists(spark).tableName("own.t").addColumn("other", "int").execute()
    assert spark.table("own.t").columns == ["id"]
    DeltaTable.replace(spark).tableName("own.t").addColumn("other", "int").execute()
    assert spark.table("own.t").columns == ["other"]
    with pytest.raises(InvalidArgumentError, match="has the location"):
        DeltaTable.replace(spark).tableName("own.t").location(str(tmp_path / "x")).addColumn("a", "int").execute()
    with pytest.raises(TableNotFoundError, match=r"own\.nothing"):
        DeltaTable.replace(spark).tableName("own.nothing").addColumn("id", "int").execute()
    spark.sql("DROP TABLE own.t")
    assert not (tmp_path / "db" / "t").exists()
    with pytest.raises(TableNotFoundError):
        DeltaTable.forName(spark, "own.t")


def test_a_table_that_lies_there_gets_the_name(spark, table, database):
    table.write(spark.range(3))
    with pytest.raises(SchemaMismatchError, match="its columns are"):
        DeltaTable.create(spark).tableName("own.t").location(table.path).addColumn("id", "int").execute()
    with pytest.raises(SchemaMismatchError, match=r"delta\.appendOnly is None"):
        DeltaTable.create(spark).tableName("own.t").location(table.path).property("delta.appendOnly", "true").execute()
    assert SessionCatalog(spark).find("own.t") is None
    DeltaTable.create(spark).tableName("own.t").location(table.path).addColumn("id", "bigint").execute()
    assert (ids(spark.table("own.t")), table.version) == ([0, 1, 2], 0)
    DeltaTable.create(spark).tableName("own.u").location(table.path).execute()
    assert ids(spark.table("own.u")) == [0, 1, 2]
    spark.sql("DROP TABLE own.t")
    assert table.rows() == [0, 1, 2]


def test_a_name_means_the_very_directory_that_it_was_given(spark, tmp_path, database, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, directory in enumerate(["a%20b", "a b", "ü #?", f"file:{tmp_path}/a%2520c"]):
        builder = DeltaTable.create(spark).tableName(f"own.t{number}").location(directory)
        builder.addColumn(f"c{number}", "int").execute()
        made = DeltaTable.forName(spark, f"own.t{number}")
        assert made.toDF().columns == [f"c{number}"]
        assert DeltaTable.forPath(spark, made.detail().first().location).toDF().columns == [f"c{number}"]
    assert {entry.name for entry in tmp_path.iterdir()} == {"a%20b", "a b", "ü #?", "a%20c", "db"}


def test_another_session_enters_the_table_first(spark, table, database, monkeypatch):
    register = SessionCatalog.register

    def raced(self, name, location, **rest):
        register(self, name, location, **rest)
        register(self, name, location, **rest)

    monkeypatch.setattr(SessionCatalog, "register", raced)
    DeltaTable.create(spark).tableName("own.t").location(table.path).addColumn("id", "bigint").execute()
    assert provider(spark, "own.t") == "delta"


def test_what_has_the_name_is_not_replaced(spark, tmp_path, database):
    spark.sql("CREATE TABLE own.j (id BIGINT) USING json")
    spark.sql("CREATE VIEW own.v AS SELECT 1 AS id")
    for name in ("own.j", "own.v"):
        with pytest.raises(InvalidArgumentError, match="can't become a Delta table"):
            DeltaTable.createOrReplace(spark).tableName(name).addColumn("id", "bigint").execute()
        with pytest.raises(InvalidArgumentError, match="can't become a Delta table"):
            spark.range(1).write.format("delta").mode("overwrite").saveAsTable(name)
        with pytest.raises(TableNotFoundError, match="is not a Delta table"):
            DeltaTable.forName(spark, name)
    with pytest.raises(InvalidArgumentError, match="delta"):
        DeltaTable.create(spark).tableName(f"parquet.`{tmp_path}`").addColumn("id", "bigint").execute()
    assert spark.table("own.v").first().id == 1


def test_save_as_table(spark, tmp_path, database):
    spark.range(3).write.saveAsTable("own.t", format="delta")
    with pytest.raises(TableAlreadyExistsError):
        spark.range(3).write.format("delta").saveAsTable("own.t")
    spark.range(9).write.format("delta").mode("ignore").saveAsTable("own.t")
    spark.range(3, 5).write.format("delta").mode("append").saveAsTable("own.t")
    assert ids(spark.table("own.t")) == [0, 1, 2, 3, 4]
    spark.range(1).write.format("delta").mode("overwrite").saveAsTable("own.t")
    assert ids(spark.table("own.t")) == [0]
    assert (tmp_path / "db" / "t" / "_delta_log").is_dir()
    spark.range(2).write.format("delta").option("path", str(tmp_path / "x")).saveAsTable("own.x")
    halves = spark.range(2).selectExpr("id", "id % 2 as p")
    halves.write.partitionBy("p").saveAsTable("own.y", format="delta", path=str(tmp_path / "y"))
    assert DeltaTable.forName(spark, "own.y").detail().first().partitionColumns == ["p"]
    assert Table(spark, tmp_path / "x").rows() == ids(spark.table("own.y")) == [0, 1]
    spark.range(2).write.saveAsTable("own.z", format="parquet")
    assert provider(spark, "own.z") == "parquet"


def test_save_as_table_with_delta_as_the_default_format(spark, tmp_path, database, conf):
    conf("spark.sql.sources.default", "delta")
    spark.range(3).write.saveAsTable("own.t")
    spark.range(3, 4).write.mode("append").saveAsTable("own.t")
    assert (provider(spark, "own.t"), ids(spark.table("own.t"))) == ("delta", [0, 1, 2, 3])


def test_names_that_the_catalog_cannot_have_are_refused_before_anything_is_written(spark, tmp_path, database):
    for name, match in [
        ("nowhere.t", "The database nowhere"),
        ("own.`a b`", "'a b' isn't a valid table name"),
        ("own.`é`", "isn't a valid table name"),
    ]:
        with pytest.raises(InvalidArgumentError, match=match):
            spark.range(2).write.format("delta").saveAsTable(name, path=str(tmp_path / "x"))
        with pytest.raises(InvalidArgumentError, match=match):
            DeltaTable.create(spark).tableName(name).addColumn("id", "int").execute()
    assert not (tmp_path / "x").exists()


def test_a_clone_by_name(spark, table, database):
    table.write(spark.range(3))
    table.delta.clone("own.c", isShallow=True)
    assert ids(spark.table("own.c")) == [0, 1, 2]
    with pytest.raises(TableAlreadyExistsError):
        table.delta.clone("own.c", isShallow=True)
    table.write(spark.range(3, 4))
    table.delta.clone("own.c", isShallow=True, replace=True)
    assert ids(spark.table("own.c")) == [0, 1, 2, 3]


# --- spark.table -------------------------------------------------------------------------------------------------


def test_reading_by_name_sees_new_versions_and_joins(spark, table, database):
    table.write(spark.range(3))
    DeltaTable.create(spark).tableName("own.t").location(table.path).execute()
    frame = spark.table("own.t")
    table.write(spark.range(3, 4))
    assert ids(frame) == [0, 1, 2, 3]
    assert frame.join(spark.range(2).alias("u"), "id").count() == 2
    assert spark.table("own.t").where("t.id > 1").count() == 2
    assert ids(spark.table(f"delta.`{table.path}`")) == ids(DeltaTable.forName(spark, f"delta.`{table.path}`").toDF())


def test_errors_of_names_are_spark_s_own_or_say_what_is_wrong(spark, table, database):
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("own.nothing")
    with pytest.raises(AnalysisException, match="PARSE_SYNTAX_ERROR"):
        DeltaTable.forName(spark, "own..t")
    table.write(spark.range(3))
    DeltaTable.create(spark).tableName("own.t").location(table.path).execute()
    assert spark.catalog.tableExists("own.t")
    assert not spark.catalog.tableExists("own.nothing")
    stream = spark.readStream.format("rate").load().writeStream.option("checkpointLocation", f"{table.path}-stream")
    for by_spark, what, instead in (
        (lambda: spark.range(1).write.mode("append").saveAsTable("own.t", format="csv"), "saveAsTable", '"delta"'),
    ):
        with pytest.raises(UnsupportedFeatureError, match="not supported for Delta tables yet") as refused:
            by_spark()
        assert what in str(refused.value)
        assert instead in str(refused.value)
    with pytest.raises(InvalidArgumentError, match=r'writeStream.format\("delta"\)'):
        stream.toTable("own.t")
    os.rename(table.path, f"{table.path}-gone")
    with pytest.raises(TableNotFoundError):
        spark.table("own.t")
    with pytest.raises(TableNotFoundError, match="where there is no Delta table"):
        DeltaTable.forName(spark, "own.t")
