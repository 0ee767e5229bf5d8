"""Columns whose strings are compared by a collation: every command keeps the collation, and compares by it."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.spark_tables import Table
from tablelog.errors import InvalidArgumentError


@pytest.fixture
def collated(spark: SparkSession, tmp_path: Path) -> Table:
    found = Table(spark, tmp_path / "collated")
    spark.sql(
        f"CREATE TABLE delta.`{found.path}` (k INT, s STRING COLLATE UTF8_LCASE) USING delta "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    spark.sql(f"INSERT INTO delta.`{found.path}` VALUES (1, 'abc'), (2, 'XYZ'), (3, 'ABC'), (4, null)")
    return found


def keys(table: Table, condition: str) -> list[int]:
    return sorted(row.k for row in table.read().where(condition).collect())


def test_commands_compare_by_the_collation(collated: Table) -> None:
    spark, name = collated.spark, f"delta.`{collated.path}`"
    assert keys(collated, "s = 'aBc'") == [1, 3]
    assert keys(collated, "s in ('Abc', 'xyz')") == [1, 2, 3]
    assert keys(collated, "s > 'abd'") == [2]
    spark.sql(f"DELETE FROM {name} WHERE s = 'XyZ'")
    assert collated.rows("k") == [1, 3, 4]
    spark.sql(f"UPDATE {name} SET s = 'Def' WHERE s = 'aBC' AND k = 3")
    assert keys(collated, "s = 'dEF'") == [3]
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT id k FROM range(4, 6)) s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET k = 40 WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k)"
    )
    assert collated.rows("k") == [1, 3, 5, 40]
    spark.sql(f"INSERT INTO {name} REPLACE WHERE s = 'ABC' VALUES (9, 'aBc')")
    assert sorted(collated.rows("k", "s")) == [(3, "Def"), (5, None), (9, "aBc"), (40, None)]
    reader = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 2)
    changes = reader.load(collated.path).where("s = 'DEF' AND _change_type = 'update_postimage'")
    assert [row.k for row in changes.collect()] == [3]


def test_the_collation_stays_in_the_log(collated: Table) -> None:
    """PySpark changes the metadata of fields from which it makes a type."""
    spark = collated.spark
    stored = {"__COLLATIONS": {"s": "spark.UTF8_LCASE"}}
    assert keys(collated, "s = 'aBc'") == [1, 3]
    spark.sql(f"SELECT * FROM delta.`{collated.path}` ORDER BY s").collect()
    spark.sql(f"ALTER TABLE delta.`{collated.path}` ADD COLUMNS (z INT)")
    field = collated.log.snapshot().schema.get("s")
    assert field is not None
    assert field.metadata == stored
    assert keys(collated, "s = 'aBc' AND z IS NULL") == [1, 3]


def test_it_is_no_column_to_partition_by(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's writer of files refuses it, and equal values would be in several partitions."""
    path = tmp_path / "partitioned"
    with pytest.raises(InvalidArgumentError, match="string with a collation") as raised:
        spark.sql(f"CREATE TABLE delta.`{path}` (k INT, s STRING COLLATE UTF8_LCASE) USING delta PARTITIONED BY (s)")
    assert raised.value.condition == "DELTA_INVALID_PARTITION_COLUMN_TYPE"
    assert not path.exists()
