"""Tables made and replaced by a builder: what is there afterwards, and what of it is new."""

from typing import Any

import pytest
from pyspark.sql.types import CharType, StructField, StructType, VarcharType

from support.spark_tables import Table
from tablelog.core import DeltaLog
from tablelog.errors import (
    AppendOnlyTableError,
    ConstraintViolationError,
    InvalidArgumentError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from tablelog.spark import DeltaTable, IdentityGenerator


def test_a_table_that_is_replaced_keeps_nothing_but_its_history(spark: Any, table: Table) -> None:
    first = DeltaTable.createOrReplace(spark).location(table.path).comment("the first")
    first = (
        first.addColumn("id", "bigint", generatedAlwaysAs=IdentityGenerator())
        .addColumn("v", "int")
        .addColumn("p", "int")
    )
    first = first.partitionedBy("p").property("delta.constraints.positive", "v > 0").property("mine", "1")
    first.property("delta.enableChangeDataFeed", "true").execute()
    table.write(spark.sql("select 5 v, 1 p"))
    before = DeltaLog.for_path(table.path).snapshot()
    frame = table.read()

    second = DeltaTable.createOrReplace(spark).location(table.path).addColumn("v", "string").addColumn("w", "date")
    made = second.partitionedBy("w").property("delta.appendOnly", "false").execute()
    after = DeltaLog.for_path(table.path).snapshot()
    assert [f.name for f in after.schema] == ["v", "w"]
    assert after.partition_columns == ("w",)
    assert dict(after.metadata.configuration) == {"delta.appendOnly": "false"}
    assert after.metadata.description is None
    assert after.metadata.id != before.metadata.id
    assert made.toDF().isEmpty()
    assert made.toDF().dtypes == [("v", "string"), ("w", "date")]
    assert sorted(kind for action in table.actions() for kind in action) == ["commitInfo", "metaData", "remove"]
    history = made.history().select("version", "operation").collect()
    assert [tuple(row) for row in history] == [
        (2, "CREATE OR REPLACE TABLE"),
        (1, "WRITE"),
        (0, "CREATE OR REPLACE TABLE"),
    ]
    assert [tuple(row) for row in table.read(versionAsOf=1).collect()] == [(1, 5, 1)]
    with pytest.raises(Exception, match="schema"):
        frame.collect()
    table.write(
        spark.sql("select 'minus one' v, date'2024-05-01' w")
    )  # neither the constraint nor the numbers are left
    assert len(table.rows()) == 1

    DeltaTable.replace(spark).location(table.path).addColumn("a", "int").clusterBy("a").execute()
    assert table.last().operation == "REPLACE TABLE"
    assert table.delta.detail().first().clusteringColumns == ["a"]
    DeltaTable.createOrReplace(spark).location(table.path).addColumn("b", "int").execute()
    assert table.delta.detail().first().clusteringColumns == []
    assert table.rows() == []


def test_what_is_there_decides(spark: Any, table: Table) -> None:
    def builder(kind: str) -> Any:
        return getattr(DeltaTable, kind)(spark).location(table.path).addColumn("id", "bigint")

    with pytest.raises(TableNotFoundError):
        builder("replace").execute()
    builder("createIfNotExists").property("delta.appendOnly", "true").execute()
    builder("createIfNotExists").addColumn("more", "int").execute()
    assert (table.version, [f.name for f in table.read().schema]) == (0, ["id"])
    with pytest.raises(TableAlreadyExistsError):
        builder("create").execute()
    with pytest.raises(AppendOnlyTableError):
        builder("createOrReplace").execute()
    table.delta.setProperties({"delta.appendOnly": "false"})
    with pytest.raises(SchemaMismatchError, match="define the columns"):
        DeltaTable.createOrReplace(spark).location(table.path).execute()
    with pytest.raises(InvalidArgumentError, match="location"):
        builder("create").tableName("delta.`/elsewhere`").execute()
    assert table.version == 1


def test_columns_of_a_bounded_length(spark: Any, table: Table) -> None:
    inside = StructType([StructField("short", VarcharType(3))])
    columns = StructType([StructField("code", CharType(2)), StructField("s", inside)])
    DeltaTable.create(spark).location(table.path).addColumns(columns).addColumn("name", "varchar(4)").execute()
    for wrong in ("'abc' code", "named_struct('short', 'long') s", "'a name' name"):
        with pytest.raises(ConstraintViolationError, match="longer"):
            table.write(spark.sql(f"select {wrong}"))
    table.write(spark.sql("select 'a' code, named_struct('short', 'abc') s, 'name' name"))
    assert table.rows("code", "s.short", "name") == [("a ", "abc", "name")]
