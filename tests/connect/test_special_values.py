"""Names, values and types at the edges, through writes, commands and reads on Spark Connect."""

from typing import Any

import pytest
from pyspark.sql import functions as F

from connect.reading import by_core
from support.rows import assert_same_rows
from support.spark_tables import Table
from tablelog.errors import UnsupportedFeatureError
from tablelog.spark import DeltaTable

MAPPED = {"delta.columnMapping.mode": "name"}


def same_as_core(table: Table) -> None:
    assert_same_rows(table.read().toArrow(), by_core(table.path))


def test_partitions_by_time_in_several_zones(spark: Any, table: Table, conf: Any) -> None:
    conf("spark.sql.session.timeZone", "America/New_York")
    first = "timestamp'2024-03-10 03:30:00.123'"
    table.write(spark.sql(f"select 1 id, {first} t union all select 2, timestamp'1969-12-31 23:59:59'"), by=("t",))
    assert table.read().where(f"t = {first}").count() == 1
    conf("spark.sql.session.timeZone", "Asia/Tokyo")
    same_as_core(table)
    table.delta.delete("t < timestamp'2000-01-01 00:00:00'")
    assert table.rows("id") == [1]


def test_collations_stay_and_compare(spark: Any, table: Table) -> None:
    """The values of commands get the collation of their column, in structs too."""
    lower = "collate UTF8_LCASE"
    frame = spark.sql(
        f"select id, 'abc' {lower} s, named_struct('x', 'abc' {lower}, 'y', id) n, array('ABC' {lower}) a, 'p' p "
        "from range(3)"
    )
    table.write(frame)

    def ids(condition: str) -> list[int]:
        return sorted(row.id for row in table.read().where(condition).collect())

    assert ids("s = 'ABC' and n.x = 'ABC' and array_contains(a, 'abc')") == [0, 1, 2]
    table.delta.update("s = 'ABC' and id = 0", {"s": "upper(s) || 'd'", "n.x": F.lit("New"), "p": "s"})
    assert ids("s = 'abcD' and n.x = 'nEW' and p = 'abc'") == [0]
    assert ids("p = 'ABC'") == [], "a column without a collation"
    merge = table.delta.alias("t").merge(spark.sql("select 1l id, 'Def' v, 'G' w").alias("q"), "t.id = q.id")
    merge.whenMatchedUpdate(set={"s": "q.v", "n.x": "q.w", "p": "t.s"}).execute()
    assert ids("s = 'dEF' and n.x = 'g' and p = 'abc'") == [1]
    table.delta.delete("s = 'ABC'")
    assert ids("true") == [0, 1]


def test_names_that_need_quotes(spark: Any, table: Table) -> None:
    frame = spark.sql("select 1 `a.b`, 2 `select`, 3 `x y`, 4 `_metadata`, 5 `a``c`, 'p' `p.q`")
    table.write(frame, by=("p.q",), **{"delta.columnMapping.mode": "name"})
    same_as_core(table)
    table.delta.update("`a.b` = 1 and `select` = 2", {"`x y`": "`x y` + `_metadata`", "`a``c`": F.col("`a.b`")})
    assert tuple(table.read().first()) == (1, 2, 7, 4, 1, "p")
    merge = table.delta.alias("t").merge(table.read().alias("s"), "t.`a.b` = s.`a.b` and t.`p.q` = s.`p.q`")
    merge.whenMatchedUpdate(set={"`_metadata`": "s.`select` * 10"}).execute()
    assert tuple(table.read().first()) == (1, 2, 7, 20, 1, "p")
    same_as_core(table)


def test_columns_whose_names_need_quotes_in_text(spark: Any, table: Table) -> None:
    """Spark divides the name of a Column at dots only."""
    names = ("select", "x y", "not", "null", "date", "päß", "a-b", "f(x)", "1")
    frame = spark.range(2).select(*((F.col("id") + number).alias(name) for number, name in enumerate(names)))
    table.write(frame.withColumn("s t", F.struct(F.col("select").alias("from it"))), **MAPPED)
    for name in names:
        table.delta.update(F.col(name) == 100, {f"`{name}`": F.lit(0).cast("bigint")})
        table.delta.alias("t").update(F.col(f"t.{name}") >= 0, {f"`{name}`": F.col(name) + F.col("not")})
    table.delta.update(F.col("s t.from it") == 1, {"`x y`": F.col("`s t`.`from it`") + 1000})
    expected = [[0, 1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 7, 8, 9]]
    for row in expected:
        for place in range(len(names)):
            row[place] += row[2]
    expected[1][1] = 1001
    assert sorted([list(row)[:-1] for row in table.read().collect()]) == expected
    with pytest.raises(UnsupportedFeatureError, match="no column"):
        table.delta.delete(F.col("x z") == 1)
    with pytest.raises(UnsupportedFeatureError, match="not the name of a column"):
        table.delta.delete(F.col("x`y") == 1)


def test_texts_of_partitions(spark: Any, table: Table) -> None:
    texts = "__HIVE_DEFAULT_PARTITION__|a\0b||x/y|..|.|a.|é%2F|a=b| lead|trail |*|[a]|{b}|\\|'|\"|#|?|+|\n|\t|😀".split(
        "|"
    )
    frame = spark.createDataFrame(list(enumerate(texts)), "id int, p string")
    table.write(frame, by=("p",))
    assert {row.id: row.p for row in table.read().collect()} == {i: text or None for i, text in enumerate(texts)}
    same_as_core(table)
    table.delta.delete("id % 2 = 0")
    same_as_core(table)
    assert len(table.rows()) == len(texts) // 2


def test_void_columns(spark: Any, table: Table) -> None:
    table.write(spark.sql("select 1 id, null v"))
    assert tuple(table.read().first()) == (1, None)
    table.delta.update(set={"id": "2"})
    table.delta.delete("id = 3")
    assert tuple(table.read().first()) == (2, None)


def test_new_columns_and_wider_types(spark: Any, table: Table) -> None:
    table.write(spark.sql("select 1 id, 'a' v"), **{"delta.enableTypeWidening": "true"})
    table.write(spark.sql("select 3000000000 id, 'b' v, 1.5D w"), mergeSchema="true")
    same_as_core(table)
    assert table.read().schema["id"].dataType.simpleString() == "bigint"
    table.delta.update("id = 1", {"w": "2"})
    same_as_core(table)
    assert table.rows("id", "w") == [(1, 2.0), (3000000000, 1.5)]


def test_old_dates(spark: Any, table: Table) -> None:
    table.write(spark.sql("select date'0001-01-01' d, timestamp'1582-10-10 00:00:00' t, date'-0005-01-01' o"))
    row = table.read().selectExpr("cast(d as string)", "cast(t as string)", "cast(o as string)").first()
    assert tuple(row) == ("0001-01-01", "1582-10-10 00:00:00", "-0005-01-01")


def test_merge_of_nested_values(spark: Any, table: Table) -> None:
    table.write(spark.sql("select id, named_struct('a', id, 'b', array(id)) s, map('k', id) m from range(5)"))
    source = spark.sql("select id + 3 id, named_struct('b', array(9L), 'a', 7L) s, map('z', 1L) m from range(4)")
    merge = table.delta.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    same_as_core(table)
    rows = {row.id: row for row in table.read().collect()}
    assert (rows[3].s.a, rows[3].s.b, rows[6].m, rows[2].s.a) == (7, [9], {"z": 1}, 2)
    merge.whenMatchedUpdate(set={"s.a": "s.id"}).execute()
    assert {row.id: (row.s.a, row.s.b) for row in table.read().where("id > 2").collect()} == {
        i: (i, [9]) for i in range(3, 7)
    }


def test_merge_by_other_names(spark: Any, table: Table) -> None:
    table.write(spark.range(5))
    source = spark.range(3).alias("s").where("s.id > 0")  # the alias is inside
    table.delta.alias("t").merge(source, "t.id = s.id").whenMatchedDelete().execute()
    assert table.rows() == [0, 3, 4]
    source = spark.range(1).toDF("k")  # no alias
    merge = table.delta.merge(source, "id = k").whenMatchedDelete()
    merge.whenNotMatchedBySourceUpdate(set={"id": "id + 100"}).execute()
    assert table.rows() == [103, 104]
    merge = table.delta.merge(spark.range(3).toDF("k"), F.col("id") == F.col("k") + 103)
    merge.whenMatchedUpdate(set={"id": F.col("k")}).whenNotMatchedInsert(values={"id": F.col("k")}).execute()
    assert table.rows() == [0, 1, 2]


@pytest.mark.parametrize("way", ["delete", "merge"])
def test_rows_with_negative_zero_stay(spark: Any, table: Table, way: str) -> None:
    """Parquet's dictionary filter for `c = 0.0` skips them."""
    spark.sql("select id, if(id % 5 = 1, double('-0.0'), 1D) c from range(0, 25, 1, 1)").write.parquet(table.path)
    DeltaTable.convertToDelta(spark, f"parquet.`{table.path}`")
    if way == "delete":
        table.delta.delete("not (c <=> 0)")
    else:
        merge = table.delta.alias("t").merge(spark.range(0).alias("s"), "t.id = s.id")
        merge.whenNotMatchedBySourceDelete("not (t.c <=> 0)").execute()
    assert table.rows("id") == [1, 6, 11, 16, 21]
