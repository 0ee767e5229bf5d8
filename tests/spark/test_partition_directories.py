"""The path of a partition directory shows the rows of the partition; nothing that is named by it changes the table."""

import pytest

from tablelog.errors import InvalidArgumentError, TableNotFoundError
from tablelog.spark import DeltaTable

STATEMENTS = [
    "DELETE FROM delta.`{path}/p=1`",
    "DELETE FROM delta.`{path}/p=77`",
    "DELETE FROM delta.`{path}/id=1`",
    "DELETE FROM delta.`{path}/p=1/q=2`",
    "DELETE FROM delta.`{path}/p=1@v0`",
    "UPDATE delta.`{path}/p=1` SET id = 0",
    "MERGE INTO delta.`{path}/p=1` t USING (SELECT 1 id) s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "INSERT INTO delta.`{path}/p=1` VALUES (9, 1)",
    "INSERT OVERWRITE delta.`{path}/p=1` VALUES (9, 1)",
    "INSERT INTO delta.`{path}/p=1` REPLACE WHERE p = 1 VALUES (9, 1)",
    "TRUNCATE TABLE delta.`{path}/p=1`",
    "RESTORE TABLE delta.`{path}/p=1` TO VERSION AS OF 0",
    "OPTIMIZE delta.`{path}/p=1`",
    "OPTIMIZE '{path}/p=1'",
    "REORG TABLE delta.`{path}/p=1` APPLY (PURGE)",
    "ALTER TABLE delta.`{path}/p=1` ADD COLUMN z INT",
    "CREATE TABLE delta.`{path}/p=5` (id INT) USING delta",
    "CREATE TABLE delta.`{path}/p=5/q=1` USING delta AS SELECT 1 id",
    "CREATE TABLE delta.`{path}/p=6` SHALLOW CLONE delta.`{path}`",
    "CREATE TABLE delta.`{path}-clone` SHALLOW CLONE delta.`{path}/p=1`",
    "CONVERT TO DELTA parquet.`{path}/p=1`",
    "SELECT * FROM table_changes_by_path('{path}/p=1', 0)",
]

CALLS = {
    "forPath": lambda spark, rows, path: DeltaTable.forPath(spark, path).delete(),
    "forName": lambda spark, rows, path: DeltaTable.forName(spark, f"delta.`{path}`").toDF(),
    "append": lambda spark, rows, path: rows.write.format("delta").mode("append").save(path),
    "overwrite": lambda spark, rows, path: rows.write.format("delta").mode("overwrite").save(path),
    "ignore": lambda spark, rows, path: rows.write.format("delta").mode("ignore").save(path),
    "saveAsTable": lambda spark, rows, path: rows.write.format("delta").mode("append").saveAsTable(f"delta.`{path}`"),
    "insertInto": lambda spark, rows, path: rows.write.insertInto(f"delta.`{path}`", overwrite=True),
    "writeTo": lambda spark, rows, path: rows.writeTo(f"delta.`{path}`").append(),
    "createOrReplace": lambda spark, rows, path: rows.writeTo(f"delta.`{path}`").using("delta").createOrReplace(),
    "create": lambda spark, rows, path: DeltaTable.create(spark).location(path).addColumn("id", "int").execute(),
    "convertToDelta": lambda spark, rows, path: DeltaTable.convertToDelta(spark, f"parquet.`{path}`"),
}


@pytest.fixture
def partitioned(spark, table):
    table.write(spark.sql("SELECT * FROM VALUES (1, 1), (2, 1), (3, 2) AS rows(id, p)"), by=("p",))
    return table


def _is_as_it_was(table):
    assert sorted(map(tuple, table.read().collect())) == [(1, 1), (2, 1), (3, 2)]
    assert [log.parent for log in table.root.rglob("_delta_log")] == [table.root]
    assert len(list(table.root.rglob("_delta_log/*.json"))) == 1


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_refuse_it(spark, partitioned, statement):
    with pytest.raises(InvalidArgumentError, match="partition directory") as caught:
        spark.sql(statement.format(path=partitioned.path))
    assert caught.value.getCondition() == "DELTA_UNEXPECTED_PARTIAL_SCAN"
    _is_as_it_was(partitioned)


@pytest.mark.parametrize("call", CALLS)
def test_methods_refuse_it(spark, partitioned, call):
    rows = spark.sql("SELECT 9 id, 1 p")
    with pytest.raises(InvalidArgumentError, match="partition directory"):
        CALLS[call](spark, rows, partitioned.path + "/p=1")
    _is_as_it_was(partitioned)


def test_reads_show_its_rows(spark, partitioned):
    path = partitioned.path + "/p=1"
    assert spark.read.format("delta").load(path).count() == 2
    assert spark.sql(f"SELECT * FROM delta.`{path}`").count() == 2
    assert DeltaTable.isDeltaTable(spark, path)


def test_it_may_be_the_source_of_a_change(spark, partitioned):
    spark.sql(
        f"MERGE INTO delta.`{partitioned.path}` t USING delta.`{partitioned.path}/p=1` s ON t.id = s.id "
        "WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    assert sorted(map(tuple, partitioned.read().collect())) == [(1, 1), (2, 1)]


def test_a_table_in_a_directory_with_such_a_name_is_a_table(spark, tmp_path):
    path = f"{tmp_path}/day=1/table=2"
    spark.range(3).write.format("delta").save(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 0")
    DeltaTable.forPath(spark, path).delete("id = 1")
    assert spark.read.format("delta").load(path).count() == 1
    with pytest.raises(TableNotFoundError):
        DeltaTable.forPath(spark, f"{tmp_path}/day=1")
