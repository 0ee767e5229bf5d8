"""delta-spark 4.4.0 on Spark 4.2 reads, checks and continues what we write, and we what it writes (`make interop`)."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from benchmarks.worker import Worker
from pyspark.sql import SparkSession

from interop.tables import KINDS, append, numbers
from support.rows import assert_same_rows
from tablelog.core import DeltaLog
from tablelog.spark import DeltaTable


def assert_both_read_the_same(spark: SparkSession, peer: Worker, path: str, at: int, out: Path) -> None:
    peer("read", path=path, version=at, out=str(out))
    assert_same_rows(pq.read_table(out), spark.read.format("delta").option("versionAsOf", at).load(path).toArrow())


def totals(crc: dict[str, Any]) -> dict[str, Any]:
    """What two writers must agree on of a version checksum."""
    histogram = crc.get("fileSizeHistogram")
    return {
        "numFiles": crc["numFiles"],
        "tableSizeBytes": crc["tableSizeBytes"],
        "metadata": crc["metadata"]["id"],
        "protocol": crc["protocol"],
        "files": sum(histogram["fileCounts"]) if histogram else None,
    }


@pytest.mark.parametrize("name", KINDS)
def test_it_reads_what_we_wrote_at_every_version(spark: SparkSession, peer: Worker, tmp_path: Path, name: str) -> None:
    path = str(tmp_path / "table")
    KINDS[name](spark, path)
    for at in range(DeltaLog.for_path(path).snapshot().version + 1):
        assert_both_read_the_same(spark, peer, path, at, tmp_path / "rows")


@pytest.mark.parametrize("name", ["flat", "partitioned", "with_checkpoints", "widened_schema"])
def test_it_continues_our_table_and_we_continue_it_again(
    spark: SparkSession, peer: Worker, tmp_path: Path, name: str
) -> None:
    path = str(tmp_path / "table")
    KINDS[name](spark, path)
    again = tmp_path / "again"
    spark.read.format("delta").load(path).limit(5).write.parquet(str(again))
    peer("append", path=path, rows=str(again))
    append(spark.read.parquet(str(again)), path)
    column = spark.read.format("delta").load(path).columns[0]
    peer("delete", path=path, condition=f"{column} = 2")
    DeltaTable.forPath(spark, path).delete(f"{column} = 1")
    newest = DeltaLog.for_path(path).snapshot().version
    for at in range(newest - 3, newest + 1):
        assert_both_read_the_same(spark, peer, path, at, tmp_path / "rows")
    assert [commit["version"] for commit in peer("history", path=path)] == list(range(newest, -1, -1))


THEIRS = {
    "append_and_delete": """
for i in range(13):
    rows = spark.range(i * 10, i * 10 + 10).selectExpr("id", "id % 3 p", "cast(id as string) s")
    rows.write.format("delta").partitionBy("p").mode("append").save(path)
DeltaTable.forPath(spark, path).delete("p = 1")
DeltaTable.forPath(spark, path).delete("id < 20")
""",
    "update_merge_optimize": """
spark.range(100).selectExpr("id", "id * 2 v").repartition(4).write.format("delta").save(path)
t = DeltaTable.forPath(spark, path)
t.update("id % 2 = 0", {"v": "v + 1000"})
source = spark.range(90, 110).selectExpr("id", "-1L v").alias("s")
t.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
t.optimize().executeCompaction()
""",
    "schema_and_properties": """
table = f"delta.`{path}`"
spark.sql(f"create table {table} (id long not null, name string comment 'who', d date) using delta "
          "partitioned by (d) tblproperties ('delta.checkpointInterval' = '3', 'delta.appendOnly' = 'false')")
spark.sql(f"insert into {table} values (1, 'a', date'2024-01-01'), (2, null, null)")
spark.sql(f"alter table {table} add columns (extra array<struct<x: int>>)")
spark.sql(f"insert into {table} values (3, 'c', date'1500-01-01', array(named_struct('x', 1)))")
spark.sql(f"insert into {table} values (4, 'd', date'9999-12-31', null)")
""",
    "timestamps": """
spark.sql("select timestamp'1500-01-01 00:00:00' ts, 1 id union all select null, 3 union all "
          "select timestamp'9999-12-31 23:59:59.999999', 2").write.format("delta").save(path)
spark.sql("select timestamp'2024-06-01 12:00:00.123456' ts, 4 id").write.format("delta").mode("append").save(path)
""",
    "deletion_vectors": """
table = f"delta.`{path}`"
spark.sql(f"create table {table} (id bigint, k int, s string) using delta partitioned by (k) tblproperties ("
          "'delta.enableDeletionVectors' = 'true', 'delta.randomizeFilePrefixes' = 'true')")
rows = spark.range(0, 20000, 1, 2).selectExpr("id", "cast(id % 3 as int) k", "concat('s', id) s")
rows.write.format("delta").mode("append").save(path)
spark.sql(f"delete from {table} where id % 7 = 0")
spark.sql(f"delete from {table} where id between 1000 and 6000")
spark.sql(f"update {table} set s = 'x' where id = 10001")
spark.sql(f"optimize {table} where k = 1")
""",
    **{
        f"mapped_by_{mode}": f"""
mode = "{mode}"
table = f"delta.`{{path}}`"
spark.sql(f"create table {{table}} (id bigint, `a b` string, st struct<x int, `y,z` struct<q string>>, "
          f"arr array<struct<u int>>, m map<string, struct<w int>>, p string) using delta partitioned by (p) "
          f"tblproperties ('delta.columnMapping.mode' = '{{mode}}', 'delta.enableDeletionVectors' = 'true')")
spark.range(0, 20, 1, 1).selectExpr(
    "id", "concat('v', id) `a b`", "named_struct('x', cast(id as int), 'y,z', named_struct('q', 'q')) st",
    "array(named_struct('u', cast(id as int))) arr", "map('k', named_struct('w', cast(id as int))) m",
    "case when id % 3 = 0 then null else concat('p=', id % 3) end p",
).write.format("delta").mode("append").save(path)
for old, new in (("`a b`", "ab"), ("st.x", "xx"), ("arr.element.u", "`u u`"), ("p", "`part col`")):
    spark.sql(f"alter table {{table}} rename column {{old}} to {{new}}")
spark.sql(f"delete from {{table}} where id % 5 = 0")
spark.sql(f"alter table {{table}} drop column ab")
spark.sql(f"alter table {{table}} add columns (ab int)")
"""
        for mode in ("name", "id")
    },
    "mapped_later": """
table = f"delta.`{path}`"
spark.range(0, 10, 1, 1).selectExpr("id", "id * 2 b", "named_struct('c', id, 'd', id * 2) s").write.format(
    "delta").save(path)
spark.sql(f"alter table {table} set tblproperties ('delta.columnMapping.mode' = 'name')")
for old, new in (("id", "t"), ("b", "id"), ("t", "b"), ("s.c", "t"), ("s.d", "c"), ("s.t", "d")):
    spark.sql(f"alter table {table} rename column {old} to {new}")
""",
}
ONE_MORE = """
spark.range(600, 601).selectExpr("id", "id % 3 p", "'y' s").write.format("delta").mode("append").save(path)
"""


@pytest.mark.parametrize("name", THEIRS)
def test_we_read_and_continue_what_it_wrote(spark: SparkSession, peer: Worker, tmp_path: Path, name: str) -> None:
    path = str(tmp_path / "table")
    peer("run", code=THEIRS[name], path=path)
    newest = DeltaLog.for_path(path).snapshot().version
    for at in range(newest + 1):
        assert_both_read_the_same(spark, peer, path, at, tmp_path / "rows")
    again = spark.read.format("delta").load(path).where("id >= 4").toArrow()
    append(spark.createDataFrame(again, spark.read.format("delta").load(path).schema), path)
    DeltaTable.forPath(spark, path).delete("id in (2, 26)")
    assert DeltaLog.for_path(path).snapshot().version == newest + 2
    for at in range(newest + 1, newest + 3):
        assert_both_read_the_same(spark, peer, path, at, tmp_path / "rows")


def test_version_checksums_agree_both_ways(spark: SparkSession, peer: Worker, tmp_path: Path) -> None:
    """Its `.crc` agrees with our replay, and ours with what it computes when it continues the table."""
    path = str(tmp_path / "table")
    peer("run", code=THEIRS["append_and_delete"], path=path)
    log = DeltaLog.for_path(path)
    for at in range(log.snapshot().version + 1):
        crc = json.loads((tmp_path / "table/_delta_log" / f"{at:020}.crc").read_text())
        snapshot = log.snapshot(at)
        assert (crc["numFiles"], crc["tableSizeBytes"]) == (snapshot.num_files, snapshot.size_in_bytes)
    append(spark.range(500, 510).selectExpr("id", "id % 3 p", "'x' s"), path)
    ours = json.loads((tmp_path / "table/_delta_log" / f"{log.snapshot().version:020}.crc").read_text())
    peer("run", code=ONE_MORE, path=path)
    theirs = json.loads((tmp_path / "table/_delta_log" / f"{log.snapshot().version:020}.crc").read_text())
    assert totals(theirs)["numFiles"] == totals(ours)["numFiles"] + 1
    assert {**totals(theirs), "numFiles": 0, "tableSizeBytes": 0, "files": 0} == {
        **totals(ours),
        "numFiles": 0,
        "tableSizeBytes": 0,
        "files": 0,
    }
    assert totals(ours)["files"] == ours["numFiles"]


def test_it_starts_from_our_checkpoint_and_we_from_its(spark: SparkSession, peer: Worker, tmp_path: Path) -> None:
    path = tmp_path / "table"
    KINDS["with_checkpoints"](spark, str(path))
    log = path / "_delta_log"
    assert (log / f"{10:020}.checkpoint.parquet").exists()
    for version in range(10):
        (log / f"{version:020}.json").unlink()
    assert_both_read_the_same(spark, peer, str(path), 13, tmp_path / "rows")
    peer("checkpoint", path=str(path))
    newest = DeltaLog.for_path(str(path)).snapshot().version
    for version in range(10, newest + 1):
        (log / f"{version:020}.json").unlink(missing_ok=version < newest)
    append(numbers(spark, 1000, 1010), str(path))
    assert_both_read_the_same(spark, peer, str(path), newest + 1, tmp_path / "rows")
