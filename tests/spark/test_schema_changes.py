"""addColumns, renameColumn, dropColumn, alterColumn: what is read afterwards, what is told, and what is refused."""

import pytest
from pyspark.sql.types import IntegerType, StringType, StructField

from tablelog.core import DeltaLog
from tablelog.core.txn.operation import Operation
from tablelog.errors import InvalidArgumentError, MetadataChangedException, SchemaChangedError, SchemaMismatchError

MAPPED = {"delta.columnMapping.mode": "name"}


def test_columns_are_added_with_no_data_read_or_written(spark, table):
    table.write(spark.sql("select 1 id, named_struct('x', 1) s, array(named_struct('y', 1)) a"))
    files = table.data_files()
    table.delta.addColumns("note varchar(3) COMMENT 'why', `s.z` long")
    table.delta.addColumns(
        [StructField("n1", IntegerType()), StructField("n2", StringType(), metadata={"comment": "two"})], "after ID"
    )
    table.delta.addColumns("`a.element.w` array<string>", "FIRST")
    assert table.data_files() == files
    assert table.read().schema.simpleString() == (
        "struct<id:int,n1:int,n2:string,s:struct<x:int,z:bigint>,a:array<struct<w:array<string>,y:int>>,note:string>"
    )
    assert table.rows("id", "n1", "n2", "s", "note") == [(1, None, None, (1, None), None)]
    info = [table.info(version) for version in (1, 2, 3)]
    assert [one["operation"] for one in info] == ["ADD COLUMNS"] * 3
    assert info[1]["operationParameters"]["columns"] == (
        '[{"column":{"name":"n1","type":"integer","nullable":true,"metadata":{}},"position":"AFTER ID"},'
        '{"column":{"name":"n2","type":"string","nullable":true,"metadata":{"comment":"two"}},"position":"AFTER n1"}]'
    )
    with pytest.raises(Exception, match="longer than the 3 characters"):
        table.write(spark.sql("select 2 id, 'long' note"), mergeSchema="true")
    with pytest.raises(SchemaMismatchError, match="occurs twice"):
        table.delta.addColumns("ID long")
    for wrong in ("n int not null", "id", "n", "x y z", "`s.` int"):
        with pytest.raises(InvalidArgumentError):
            table.delta.addColumns(wrong)
    assert table.version == 3


def test_renaming_and_dropping_rewrites_nothing(spark, table):
    frame = spark.sql("select 1 id, 'a' p, named_struct('x', 1, 'y', 2) s, 'gone' old")
    table.write(frame, by=("p",), **MAPPED)
    files, before = table.data_files(), table.read()
    t = table.delta
    t.renameColumn("p", "part")
    t.renameColumn("s.y", "`y y`")
    t.dropColumn("old", "S.X")
    assert table.data_files() == files
    assert table.read().columns == ["id", "part", "s"]
    assert table.rows() == [(1, "a", (2,))]
    assert [table.info(v)["operation"] for v in (1, 2, 3)] == ["RENAME COLUMN", "RENAME COLUMN", "DROP COLUMNS"]
    assert table.info(2)["operationParameters"] == {"oldColumnPath": "s.y", "newColumnPath": "s.y y"}
    assert table.info(3)["operationParameters"] == {"columns": '["old","S.X"]'}
    t.addColumns("old string")  # of the same name, and another column
    table.write(spark.sql("select 2 id, 'b' part, named_struct('y y', 3) s, 'new' old"))
    assert table.rows() == [(1, "a", (2,), None), (2, "b", (3,), "new")]
    assert table.read().where("part = 'b'").count() == 1
    assert table.read(versionAsOf=0).columns == ["id", "p", "s", "old"]
    with pytest.raises(SchemaChangedError):
        before.collect()
    for wrong, reason in (
        (lambda: t.dropColumn("part"), "partition column"),
        (lambda: t.dropColumn("s.`y y`"), "only column"),
        (lambda: t.renameColumn("id", "s.id"), "use only the last one"),
        (t.dropColumn, "no column to drop"),
        (lambda: t.dropColumn("zz"), "no column zz"),
    ):
        with pytest.raises(InvalidArgumentError, match=reason):
            wrong()


def test_a_table_begins_to_map_its_columns_where_it_is(spark, table):
    table.write(spark.sql("select 1 id, 2 v"))
    with pytest.raises(InvalidArgumentError, match=r"delta\.columnMapping\.mode"):
        table.delta.renameColumn("v", "w")
    table.delta.setProperties(MAPPED)
    assert any("protocol" in action for action in table.actions())
    table.delta.renameColumn("v", "w w")
    table.write(spark.sql("select 3 id, 4 `w w`"))
    assert table.rows() == [(1, 2), (3, 4)]


def test_a_column_is_altered(spark, table):
    table.write(spark.sql("select 1 id, 'a' t, array(1) a"))
    t = table.delta
    t.alterColumn("id", comment="the key", position="AFTER t")
    assert table.read().columns == ["t", "id", "a"]
    assert table.read().schema["id"].metadata == {"comment": "the key"}
    assert table.info()["operation"] == "CHANGE COLUMN"
    assert table.info()["operationParameters"] == {
        "column": '{"name":"id","type":"integer","nullable":true,"metadata":{"comment":"the key"}}',
        "position": "AFTER t",
    }
    for wrong, reason in (
        ({"nullable": False}, "CHECK constraint"),
        ({"dataType": "bigint"}, "enableTypeWidening"),
        ({"dataType": StringType()}, "from int to string"),
        ({"dataType": "nonsense"}, "is not a list of columns"),
        ({"position": "AFTER zz"}, "after zz"),
        ({}, "at least one change"),
        ({"default": " "}, "empty"),
        ({"default": "1", "dropDefault": True}, "at the same time"),
    ):
        with pytest.raises(InvalidArgumentError, match=reason):
            t.alterColumn("id", **wrong)
    with pytest.raises(Exception, match="allowColumnDefaults"):
        t.alterColumn("id", default="1")
    assert table.rows() == [("a", 1, [1])]


def test_the_default_of_a_column(spark, table):
    table.write(spark.sql("select 1 id, 'a' t"), **{"delta.feature.allowColumnDefaults": "supported"})
    t = table.delta
    for wrong, reason in (
        ("id + 1", "without columns and subqueries"),
        ("'x", "not a valid SQL expression"),
        ("array(1)", "can't be stored"),
    ):
        with pytest.raises(InvalidArgumentError, match=reason):
            t.alterColumn("t", default=wrong)
    t.alterColumn("t", default="upper('x')")
    table.write(spark.sql("select 2 id"))
    t.alterColumn("t", dropDefault=True)
    table.write(spark.sql("select 3 id"))
    assert table.rows() == [(1, "a"), (2, "X"), (3, None)]


def test_what_rules_depend_on_stays_as_it_is(spark, table):
    table.write(spark.sql("select 1 a, named_struct('x', 1, 'y', 1) s, 1 free, 1 `b.c`"), **MAPPED)
    t = table.delta
    t.addConstraint("small", "A < 10 and S.x > 0 and exists(array(`b.c`), v -> v > 0)")
    for wrong in (
        lambda: t.renameColumn("a", "aa"),
        lambda: t.dropColumn("s"),
        lambda: t.renameColumn("s.x", "xx"),
        lambda: t.dropColumn("`b.c`"),
    ):
        with pytest.raises(InvalidArgumentError, match="the CHECK constraint small"):
            wrong()
    t.renameColumn("free", "v")
    t.dropColumn("s.y")


def test_of_two_changes_at_once_one_is_a_conflict(spark, table):
    table.write(spark.range(1))
    losing = DeltaLog.for_path(table.path).transaction()
    table.delta.addColumns("n int")
    losing.read_whole_table()
    losing.set_metadata(losing.metadata)
    with pytest.raises(MetadataChangedException):
        losing.commit([], Operation("CHANGE COLUMN"))
