"""Files of a table that maps its columns: physical names, field ids, statistics and partition values by them."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from tablelog.core import DeltaLog
from tablelog.core.protocol import column_mapping as mapping
from tablelog.core.protocol import schema as schemas
from tablelog.core.protocol.actions import Metadata
from tablelog.core.protocol.paths import absolute
from tablelog.core.schema_evolution import changes as schema_evolution
from tablelog.core.txn.operation import Operation
from tablelog.errors import ConstraintViolationError, InvalidArgumentError
from tablelog.settings.declarations import WRITE_ROUTE
from tablelog.spark import DeltaTable

NESTED = [
    "id",
    "concat('v', id) `a b`",
    "named_struct('x', cast(id as int), 'y,z', named_struct('q', concat('q', id))) st",
    "array(named_struct('u', cast(id as int), 'v', 'e')) arr",
    "map('k', named_struct('w', cast(id as int))) m",
    "case when id % 3 = 0 then null else concat('p=', id % 3) end `the p`",
    "date'2024-01-01' + cast(id % 2 as int) d",
]


def rows(spark: SparkSession, start: int, stop: int) -> DataFrame:
    return spark.range(start, stop, 1, 2).selectExpr(*NESTED)


@pytest.fixture(params=["small", "spark", "workers"])
def way(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """How files come about: made by the driver, by Spark's writer or by Python workers."""
    if request.param == "workers":
        spark.conf.set(WRITE_ROUTE.key, "arrow")
    yield request.param
    spark.conf.unset(WRITE_ROUTE.key)


def of(frame: DataFrame, way: str) -> DataFrame:
    return frame if way == "small" else frame.repartition(2)


def field_ids(kind: "pa.DataType | pa.Schema") -> Iterator[tuple[str, int]]:
    """(name, field id) of every column in a file, at every depth; those that have none left out."""
    fields = list(kind) if isinstance(kind, pa.Schema) else [kind.field(i) for i in range(kind.num_fields)]
    for f in fields:
        number = (f.metadata or {}).get(b"PARQUET:field_id")
        if number is not None:
            yield f.name, int(number)
        if pa.types.is_nested(f.type):
            yield from field_ids(f.type)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_a_table_is_written_by_physical_names(spark: SparkSession, tmp_path: Path, mode: str, way: str) -> None:
    path = str(tmp_path / "t")
    of(rows(spark, 0, 12), way).write.format("delta").partitionBy("the p", "d").option(
        "delta.columnMapping.mode", mode
    ).save(path)
    of(rows(spark, 12, 20), way).write.format("delta").mode("append").save(path)
    snapshot = DeltaLog.for_path(path).snapshot()
    assert snapshot.metadata.configuration == {mapping.MODE: mode, mapping.MAX_ID: "13"}
    assert "columnMapping" in (snapshot.protocol.writer_features or ())
    told = snapshot.mapping
    known = {mapping.physical_name(f): mapping.field_id(f) for _, f in schemas.all_fields(told.logical)}
    partition = set(told.physical_partition_columns)
    for add in snapshot.add_files():
        assert set(add.partition_values) == partition
        found = dict(field_ids(pq.read_schema(absolute(path, add.path))))
        assert found == {name: number for name, number in known.items() if name not in partition}
        stats = json.loads(add.stats or "")
        low, _, st = (told.to_physical((name,))[0] for name in ("id", "a b", "st"))
        assert stats["minValues"][low] <= stats["maxValues"][low]
        assert stats["minValues"][st][told.to_physical(("st", "x"))[1]] == stats["minValues"][low]
    frame = spark.read.format("delta").load(path)
    assert sorted(frame.collect(), key=lambda row: row.id) == rows(spark, 0, 20).collect()
    assert frame.where("`the p` = 'p=2' and st.x > 7").count() == 4


@pytest.mark.one_case
def test_delete_and_overwrite_by_condition_and_partition(spark: SparkSession, tmp_path: Path, way: str) -> None:
    path = str(tmp_path / "t")
    of(rows(spark, 0, 30), way).write.format("delta").partitionBy("the p").option(
        "delta.columnMapping.mode", "name"
    ).save(path)
    DeltaTable.forPath(spark, path).delete("id % 4 = 1 and `a b` < 'v3'")
    DeltaTable.forPath(spark, path).delete("`the p` = 'p=1'")
    live = {i for i in range(30) if not (i % 4 == 1 and f"v{i}" < "v3") and i % 3 != 1}
    assert ids(spark, path) == live
    rows(spark, 100, 103).write.format("delta").mode("overwrite").option("replaceWhere", "id >= 100").save(path)
    rows(spark, 2, 3).write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic").save(path)
    assert ids(spark, path) == {i for i in live | {100, 101, 102} if i % 3 == 0} | {2, 100}


def ids(spark: SparkSession, path: str) -> set[int]:
    return {row.id for row in spark.read.format("delta").load(path).select("id").collect()}


def test_columns_added_and_the_schema_replaced(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(3).selectExpr("id", "'x' s").write.format("delta").option("delta.columnMapping.mode", "name").save(path)
    old = DeltaLog.for_path(path).snapshot().mapping
    spark.range(3, 4).selectExpr("id", "'y' s", "named_struct('n,n', 1) more").write.format("delta").mode(
        "append"
    ).option("mergeSchema", "true").save(path)
    new = DeltaLog.for_path(path).snapshot()
    assert new.mapping.to_physical(("s",)) == old.to_physical(("s",))
    assert new.metadata.configuration[mapping.MAX_ID] == "4"
    assert spark.read.format("delta").load(path).where("more.`n,n` = 1").count() == 1
    spark.range(2).selectExpr("id", "1.5D s").write.format("delta").mode("overwrite").option(
        "overwriteSchema", "true"
    ).save(path)
    replaced = DeltaLog.for_path(path).snapshot().mapping
    assert replaced.to_physical(("id",)) == old.to_physical(("id",))
    assert replaced.to_physical(("s",)) != old.to_physical(("s",))
    assert [row.s for row in spark.read.format("delta").load(path).collect()] == [1.5, 1.5]


def test_a_table_that_begins_to_map(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    frame = spark.range(5).selectExpr("id a", "-id b", "named_struct('c', id, 'd', -id) s", "id % 2 p")
    frame.write.format("delta").partitionBy("p").save(path)
    log = DeltaLog.for_path(path)

    def change(to: Metadata) -> None:
        txn = log.transaction()
        txn.set_metadata(to)
        txn.commit([], Operation("SET TBLPROPERTIES"))

    old = log.snapshot().metadata
    change(replace(old, configuration={mapping.MODE: "name"}))
    swapped = log.snapshot().metadata
    for before, after in ((("a",), "t"), (("b",), "a"), (("t",), "b"), (("s", "c"), "e"), (("p",), "part")):
        swapped = schema_evolution.renamed(swapped, before, after)
    change(swapped)
    more = spark.range(5, 6).selectExpr("-id a", "id b", "named_struct('e', id, 'd', -id) s", "id % 2 part")
    more.write.format("delta").mode("append").save(path)
    found = spark.read.format("delta").load(path)
    assert found.columns == ["b", "a", "s", "part"]
    assert sorted(map(tuple, found.selectExpr("b", "a", "s.e", "s.d", "part").collect())) == [
        (i, -i, i, -i, i % 2) for i in range(6)
    ]
    assert [row.b for row in found.where("a = -4").collect()] == [4]
    change(schema_evolution.dropped(log.snapshot().metadata, ("b",)))
    assert spark.read.format("delta").load(path).columns == ["a", "s", "part"]


def test_messages_name_logical_columns(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(1).selectExpr("id", "'x' `the p`").write.format("delta").partitionBy("the p").option(
        "delta.columnMapping.mode", "name"
    ).save(path)
    with pytest.raises(ConstraintViolationError, match="one of the partition column the p\\."):
        spark.range(1).selectExpr("id", "string(X'FF') `the p`").repartition(1).write.format("delta").mode(
            "append"
        ).save(path)
    with pytest.raises(InvalidArgumentError, match="maxColumnId"):
        spark.range(1).write.format("delta").option("delta.columnMapping.maxColumnId", "7").save(str(tmp_path / "u"))


def test_files_of_deletion_vectors_are_written_without_them(spark: SparkSession, tmp_path: Path, conf: Any) -> None:
    path = str(tmp_path / "t")
    spark.range(10).write.format("delta").option("delta.enableDeletionVectors", "true").save(path)
    assert "deletionVectors" in (DeltaLog.for_path(path).snapshot().protocol.reader_features or ())
    conf("spark.databricks.delta.delete.deletionVectors.persistent", "false")
    DeltaTable.forPath(spark, path).delete("id = 3")
    (add,) = {one.path: one for one in DeltaLog.for_path(path).snapshot().add_files() if one.stats}.values()
    assert add.deletion_vector is None
    assert ids(spark, path) == set(range(10)) - {3}
