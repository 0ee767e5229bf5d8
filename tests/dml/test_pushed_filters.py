"""Commands that write files again keep the rows that a filter, pushed down to Parquet, would skip."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from tablelog.errors import ConstraintViolationError
from tablelog.spark import DeltaTable

ZERO = "double('-0.0')"  # the literal -0.0D is 0.0


def create(spark, conf, path, columns, values, **properties):
    """A table of one file that Spark's own writer writes, with dictionaries: the ids count from 0."""
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id LONG, {columns}) USING delta"
        + (f" TBLPROPERTIES ({listed})" if listed else "")
    )
    rows = ", ".join(f"({number}L, {value})" for number, value in enumerate(values))
    conf("spark.tablelog.write.route", "native")
    frame = spark.sql(f"SELECT * FROM VALUES {rows} AS v(id, c)")
    frame.repartition(1).sortWithinPartitions("id").write.format("delta").mode("append").save(path)


def ids(spark, path, condition="true"):
    return sorted(row.id for row in spark.read.format("delta").load(path).where(condition).collect())


def remove(spark, path, way, condition, column):
    table = DeltaTable.forPath(spark, path)
    if way == "delete":
        table.delete(condition)
    elif way == "delete by a Column":
        table.delete(column(F.col("c")))
    elif way == "SQL":
        spark.sql(f"DELETE FROM delta.`{path}` WHERE {condition}")
    elif way == "replaceWhere":
        none = spark.read.format("delta").load(path).limit(0)
        none.write.format("delta").mode("overwrite").option("replaceWhere", condition).save(path)
    else:
        merge = table.alias("t").merge(spark.range(0).alias("s"), "t.id = s.id")
        if way == "merge and update":
            merge = merge.whenNotMatchedBySourceUpdate("t.id < 0", {"c": "t.c"})
        merge.whenNotMatchedBySourceDelete(condition).execute()


@pytest.mark.parametrize("way", ["delete", "delete by a Column", "SQL", "replaceWhere", "merge", "merge and update"])
@pytest.mark.parametrize("column", ["c DOUBLE NOT NULL", "c FLOAT NOT NULL", "c DOUBLE"])
def test_rows_with_negative_zero_stay(spark, tmp_path, conf, column, way):
    """Parquet's dictionary filter for `c = 0.0` skips them."""
    path = str(tmp_path / "zeros")
    kind = column.split()[1]
    create(spark, conf, path, column, [f"CAST({ZERO if n % 5 == 1 else '1D'} AS {kind})" for n in range(25)])
    remove(spark, path, way, "NOT (c <=> 0)", lambda c: ~c.eqNullSafe(0))
    assert ids(spark, path) == [1, 6, 11, 16, 21]


@pytest.mark.parametrize("way", ["delete", "merge"])
def test_rows_of_a_day_that_the_julian_calendar_lacks_stay(spark, tmp_path, conf, way):
    """Spark gives Parquet another day."""
    path = str(tmp_path / "days")
    create(spark, conf, path, "c DATE NOT NULL", ["date'1500-01-01'", "date'1582-10-10'"])
    remove(spark, path, way, "c <> date'1582-10-10'", None)
    assert ids(spark, path) == [1]


@pytest.mark.parametrize("way", ["delete", "merge"])
def test_rows_with_nan_of_other_writers_stay(spark, tmp_path, way):
    """The footers of pyarrow leave NaN out of the bounds."""
    path = str(tmp_path / "foreign")
    columns = {"id": pa.array([0, 1, 2], pa.int64()), "c": pa.array([1.0, float("nan"), 2.0])}
    (tmp_path / "foreign").mkdir()
    pq.write_table(pa.table(columns), f"{path}/0.parquet", use_dictionary=False)
    DeltaTable.convertToDelta(spark, f"parquet.`{path}`")
    remove(spark, path, way, "NOT (c > 5)", None)
    assert ids(spark, path) == [1]


@pytest.mark.parametrize("command", ["merge", "update"])
@pytest.mark.parametrize("recorded", ["false", "true"])
def test_no_row_of_another_row_group_is_lost(spark, tmp_path, conf, command, recorded):
    """The search finds only the first row group, whose dictionary has 0.0; the file is written again as a whole."""
    path = str(tmp_path / "groups")
    spark.sparkContext._jsc.hadoopConfiguration().set("parquet.block.size", "1024")
    try:
        half = [f"CAST({'0.0' if n < 2000 else ZERO} AS DOUBLE)" if n % 2 else "1D" for n in range(4000)]
        create(spark, conf, path, "c DOUBLE NOT NULL", half, **{"delta.enableChangeDataFeed": recorded})
    finally:
        spark.sparkContext._jsc.hadoopConfiguration().unset("parquet.block.size")
    assert pq.ParquetFile(next((tmp_path / "groups").glob("*.parquet"))).num_row_groups > 1
    table = DeltaTable.forPath(spark, path)
    if command == "update":
        table.update("c = 0.0D", {"c": "7D"})
    else:
        merge = table.alias("t").merge(spark.range(0).alias("s"), "t.id = s.id")
        merge.whenNotMatchedBySourceUpdate("t.c = 0.0D", {"c": "7D"}).execute()
    assert ids(spark, path) == list(range(4000))
    assert ids(spark, path, "c = 7") == list(range(1, 4000, 2))
    if recorded == "true":
        feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 2).load(path)
        assert feed.where("_change_type = 'update_postimage'").count() == 2000


def test_a_new_constraint_sees_negative_zero(spark, tmp_path, conf):
    path = str(tmp_path / "checked")
    create(spark, conf, path, "c DOUBLE NOT NULL", [ZERO, "1D"] * 10)
    with pytest.raises(ConstraintViolationError, match="10 rows"):
        spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT positive CHECK (c <> 0.0D)")
