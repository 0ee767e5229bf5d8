"""Void columns are in the schema, hold nothing but null, are in no data file, and no command stumbles over them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from support.spark_tables import Table
from tablelog.errors import SchemaMismatchError
from tablelog.settings.declarations import READ_ROUTE, READ_SCRATCH

SCHEMA = "struct<nothing:void,id:bigint,st:struct<z:void,a:int>,v:bigint>"


def rows(spark: SparkSession, start: int, end: int) -> DataFrame:
    return spark.range(start, end).selectExpr(
        "null nothing", "id", "if(id = 1, null, named_struct('z', null, 'a', int(id))) st", "id * 10 v"
    )


def expected(number: int, v: int) -> tuple[Any, ...]:
    return (None, number, None if number == 1 else (None, number), v)


def found(table: Table) -> list[tuple[Any, ...]]:
    frame = table.read()
    assert frame.schema.simpleString() == SCHEMA
    return [tuple(row) for row in frame.orderBy("id").collect()]


@pytest.mark.slow
@pytest.mark.parametrize("features", [(), ("DeletionVectors", "ChangeDataFeed", "RowTracking")])
def test_every_command(spark: SparkSession, tmp_path: Path, conf: Any, features: tuple[str, ...]) -> None:
    table = Table(spark, tmp_path / "table")
    properties = {f"delta.enable{name}": "true" for name in features}
    properties |= {"delta.columnMapping.mode": "name"} if features else {}
    table.write(rows(spark, 0, 6).coalesce(1), **properties)
    table.write(rows(spark, 6, 8).drop("nothing").coalesce(1))
    assert found(table) == [expected(i, i * 10) for i in range(8)]
    assert table.read().where("nothing is null and st.z is null and v > 60").count() == 1
    assert table.read().where("nothing is not null").count() == 0
    table.delta.delete("id = 2 and nothing is null")
    table.delta.update("id = 3 and st.z is null", {"v": "v + 1", "nothing": "null", "st.a": "id"})
    source = rows(spark, 5, 10).where("id in (5, 9)").alias("s")
    for frame in (source, source.repartition(2).alias("s")):
        merge = table.delta.alias("t").merge(frame, "t.id = s.id and t.nothing is null")
        merge.whenMatchedUpdateAll("s.id = 5").whenMatchedDelete().whenNotMatchedInsertAll().execute()
    with pytest.raises(SchemaMismatchError, match="nothing"):
        table.delta.update("id = 3", {"nothing": "1"})
    left = [expected(i, i * 10 + (i == 3)) for i in (0, 1, 3, 4, 5, 6, 7)]
    assert found(table) == left
    table.delta.optimize().executeCompaction()
    table.delta.optimize().executeZOrderBy("v")
    table.write(rows(spark, 20, 21), mode="overwrite", replaceWhere="id > 6")
    assert found(table) == [*left[:-1], expected(20, 200)]
    for name in table.data_files():
        if name.endswith(".parquet"):
            file = pq.ParquetFile(table.root / name)
            assert {"nothing", "z"}.isdisjoint(file.schema.names)
            assert not any(pa.types.is_null(f.type) for f in file.schema_arrow)
    if features:
        changes = table.read(readChangeFeed="true", startingVersion=2).where("_change_type = 'update_postimage'")
        assert changes.where("id = 3 and nothing is null").count() == 1
    conf(READ_SCRATCH.key, str(tmp_path / "scratch"))
    for route in ("manifest", "arrow"):
        conf(READ_ROUTE.key, route)
        assert found(table) == [*left[:-1], expected(20, 200)]
