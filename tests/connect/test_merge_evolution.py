"""MERGE with schema evolution on Spark Connect."""

from typing import Any

import pytest
from pyspark.sql import functions as F

from support.rows import assert_same_rows
from support.spark_tables import Table
from tablelog.core import DeltaLog
from tablelog.errors import InvalidArgumentError, SchemaMismatchError

from .reading import by_core


@pytest.fixture
def people(spark: Any, table: Table) -> Table:
    """Rows 0 to 5 with a struct, an array of structs and a void column, in two partitions."""
    rows = spark.range(6).selectExpr(
        "cast(id as int) id",
        "concat('n', id) name",
        "named_struct('a', id, 'b', concat('b', id)) s",
        "array(named_struct('x', id)) l",
        "null v",
        "id % 2 p",
    )
    feed = {"delta.enableChangeDataFeed": "true", "delta.enableTypeWidening": "true"}
    table.write(rows, by=("p",), **feed)
    return table


def merge_of(table: Table, source: Any) -> Any:
    return table.delta.alias("t").merge(source.alias("s"), "t.id = s.id").withSchemaEvolution()


def rows_of(table: Table, *columns: str) -> dict[int, tuple[Any, ...]]:
    found = {row[0]: tuple(row[1:]) for row in table.read().select("id", *columns).collect()}
    assert_same_rows(table.read().toArrow(), by_core(table.path))
    return found


def test_new_columns_and_fields_and_wider_types(spark: Any, people: Table) -> None:
    source = spark.sql(
        "select * from values (1L, named_struct('c', 10L, 'a', 1.5D), array(named_struct('y', 'l')), 'void', 1L, 'x'),"
        " (3000000000L, named_struct('c', 20L, 'a', 2.5D), null, null, 0L, 'y') as s(id, s, l, v, p, more)"
    )
    result = merge_of(people, source).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute().first()
    assert tuple(result) == (2, 1, 0, 1)
    schema = people.read().schema
    assert schema.names == ["id", "name", "s", "l", "v", "p", "more"]
    assert schema["id"].dataType.simpleString() == "bigint"
    assert schema["v"].dataType.simpleString() == "string"
    assert schema["l"].dataType.simpleString() == "array<struct<x:bigint,y:string>>"
    assert schema["s"].dataType.names == ["a", "b", "c"]
    found = rows_of(people, "name", "s.b", "s.c", "l", "v", "p", "more")
    assert found[0] == ("n0", "b0", None, [(0, None)], None, 0, None)
    assert found[1] == ("n1", "b1", 10, [(None, "l")], "void", 1, "x"), "what the source lacks stays"
    assert found[3000000000] == (None, None, 20, None, None, 0, "y")
    changes = people.read(readChangeFeed="true", startingVersion=1).select("id", "_change_type", "more", "s.c")
    assert {tuple(row) for row in changes.collect()} == {
        (1, "update_preimage", None, None),
        (1, "update_postimage", "x", 10),
        (3000000000, "insert", "y", 20),
    }


def test_only_assigned_columns_are_added(spark: Any, people: Table) -> None:
    source = spark.sql(
        "select 1 id, 'x' more, 'z' unused, named_struct('c', 7, 'd', 8) s union all select 9, 'y', 'z', null"
    )
    (
        merge_of(people, source)
        .whenMatchedUpdate("t.name = 'n1'", {"t.more": "s.more", "s.c": F.col("s.s.c"), "name": "upper(t.name)"})
        .whenNotMatchedInsert(values={"id": "s.id", "more": "concat(s.more, '!')", "p": "0"})
        .whenNotMatchedBySourceUpdate("t.id = 4", {"name": "'four'"})
        .whenNotMatchedBySourceDelete("t.id = 5")
        .execute()
    )
    assert people.read().columns == ["id", "name", "s", "l", "v", "p", "more"]
    assert people.read().select("s.*").columns == ["a", "b", "c"]
    found = rows_of(people, "name", "s", "more")
    assert found == {
        **{i: (f"n{i}", (i, f"b{i}", None), None) for i in (0, 2, 3)},
        1: ("N1", (1, "b1", 7), "x"),
        4: ("four", (4, "b4", None), None),
        9: (None, None, "y!"),
    }


def test_the_setting_of_the_session_and_a_merge_that_changes_no_row(spark: Any, people: Table, conf: Any) -> None:
    conf("spark.databricks.delta.schema.autoMerge.enabled", "true")
    source = spark.sql("select 77 id, 1.5D score")
    people.delta.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdateAll().execute()
    assert people.version == 1
    assert people.read().columns[-1] == "score"
    assert DeltaLog.for_path(people.path).snapshot().files.num_rows > 0
    assert rows_of(people, "score") == dict.fromkeys(range(6), (None,))


def test_the_columns_keep_their_rules_and_a_failure_keeps_the_schema(spark: Any, people: Table) -> None:
    people.delta.addConstraint("small", "id < 100")
    before = people.version, people.read().schema
    source = spark.sql("select 500 id, 0L p, 'x' more")
    for clauses, error, message in (
        (merge_of(people, source).whenNotMatchedInsertAll(), Exception, "small"),
        (merge_of(people, source).whenNotMatchedInsert(values={"other": "s.more"}), SchemaMismatchError, "other"),
        (merge_of(people, source).whenMatchedUpdate(set={"a.": "s.more"}), InvalidArgumentError, "isn't the name"),
    ):
        with pytest.raises(error, match=message):
            clauses.execute()
        assert (people.version, people.read().schema) == before


def test_mapped_names_and_case(spark: Any, table: Table) -> None:
    table.write(spark.sql("select 1 `Id`, 'a' `na me`"), **{"delta.columnMapping.mode": "name"})
    source = spark.sql("select 1 id, 'b' `NA ME`, 5 `ne.w` union all select 2, 'c', 6")
    merge_of(table, source).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert table.read().columns == ["Id", "na me", "ne.w"]
    assert table.rows() == [(1, "b", 5), (2, "c", 6)]
    assert_same_rows(table.read().toArrow(), by_core(table.path))
