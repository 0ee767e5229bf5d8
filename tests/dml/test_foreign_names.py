"""Column names that Delta allows only with column mapping, in a table of an engine without that rule."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.foreign_table import data_file, field, foreign_table
from tablelog.errors import InvalidArgumentError

INSIDE = {"type": "struct", "fields": [field("x;y", "long")]}


@pytest.mark.parametrize("mode", ["none", "name"])
def test_commands_on_columns_with_spaces(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    added = data_file(
        tmp_path / "t" / "f.parquet", {"a b": [1, 2, 3], "c": [1, 2, 3], "n": [{"x;y": 1}, {"x;y": 2}, None]}
    )
    added["add"]["partitionValues"] = {"p q": "one"}
    fields = [field("a b", "long"), field("c", "long"), {**field("n", "x"), "type": INSIDE}, field("p q", "string")]
    table = foreign_table(
        spark, tmp_path / "t", fields, added, partition_by=["p q"], features=["invariants", "appendOnly"]
    )
    name = f"delta.`{table.path}`"
    if mode != "none":
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}')")
    spark.sql(f"INSERT INTO {name} VALUES (4, 4, named_struct('x;y', 4), 'two')")
    spark.sql(f"DELETE FROM {name} WHERE `a b` = 1")
    spark.sql(f"UPDATE {name} SET `a b` = 20, n = named_struct('x;y', `n`.`x;y` + 1) WHERE c = 2")
    spark.sql(f"MERGE INTO {name} t USING (SELECT 3 AS k) s ON t.`a b` = s.k WHEN MATCHED THEN UPDATE SET c = 30")
    spark.sql(f"OPTIMIZE {name} WHERE `p q` = 'one'")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('a' = 'b')")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN z INT")
    rows = sorted((row[0], row[1], row[2] and row[2][0], row[3]) for row in table.read().drop("z").collect())
    assert rows == [(3, 30, None, "one"), (4, 4, 4, "two"), (20, 2, 3, "one")]
    assert table.read().where("`a b` = 20").count() == 1
    if mode == "none":
        with pytest.raises(InvalidArgumentError, match="the column `y z` has ' '"):
            spark.sql(f"ALTER TABLE {name} ADD COLUMN `y z` INT")
    spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF 0")
    assert sorted(row["a b"] for row in table.read().collect()) == [1, 2, 3]
