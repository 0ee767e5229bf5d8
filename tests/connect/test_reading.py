"""Reads on Spark Connect: files, partition values, versions, changes, and what is refused by name."""

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from connect.reading import by_core
from support.rows import assert_same_rows
from support.spark_tables import Table
from tablelog.core import DeltaLog
from tablelog.engine.read.routes import listed
from tablelog.errors import (
    InvalidArgumentError,
    TableNotFoundError,
    UnsupportedEnvironmentError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from tablelog.spark import DeltaTable

ICEBERG = {"delta.columnMapping.mode": "name", "delta.enableIcebergCompatV2": "true"}


def same_as_core(table: Table, version: int | None = None) -> None:
    options = {} if version is None else {"versionAsOf": version}
    assert_same_rows(table.read(**options).toArrow(), by_core(table.path, version))


def test_partition_values_of_each_type(spark: Any, table: Table) -> None:
    frame = spark.createDataFrame(
        [
            (1, "a b/c=d%é", dt.date(2024, 2, 29), True, Decimal("1.50"), dt.datetime(2024, 1, 1, 1, 2, 3), 1.5, b"x"),
            (2, None, None, None, None, None, None, None),
            (3, "", dt.date(1, 1, 1), False, Decimal("-2.25"), dt.datetime(1999, 1, 1), -0.5, b"\x01"),
        ],
        "id int, s string, d date, b boolean, n decimal(10,2), t timestamp, f double, y binary",
    )
    table.write(frame, by=("s", "d", "b", "n", "t", "f", "y"))
    same_as_core(table)
    assert table.rows("id") == [1, 2, 3]
    assert [row.id for row in table.read().where("s is null").collect()] in ([2, 3], [3, 2])
    assert [row.id for row in table.read().where("d = date'2024-02-29' and n = 1.5").collect()] == [1]


def test_filters_on_partitions_skip_files(spark: Any, table: Table) -> None:
    table.write(spark.range(30).selectExpr("id", "id % 3 as part", "cast(id % 2 as string) name"), by=("part", "name"))
    assert len(table.read().inputFiles()) >= 6
    plan = table.read().where("part = 1 and name = '0'")._explain_string(extended=False)
    assert "PartitionFilters: [isnotnull(part" in plan
    assert sorted(row.id for row in table.read().where("part = 1 and name = '0'").collect()) == [4, 10, 16, 22, 28]


def test_partition_values_that_directories_do_not_say(spark: Any, table: Table) -> None:
    table.write(spark.range(6).selectExpr("id", "id % 2 as part"), by=("part",))
    for file in list(table.root.rglob("part=*/*.parquet")):  # another writer's layout
        moved = f"{file.parent.name[-1]}-{file.name}"
        log = table.root / "_delta_log" / f"{0:020}.json"
        name = file.relative_to(table.root).as_posix()
        assert name in log.read_text()
        log.write_text(log.read_text().replace(name, f"x y/{moved}".replace(" ", "%20")))
        (table.root / "x y").mkdir(exist_ok=True)
        file.rename(table.root / "x y" / moved)
    (table.root / "_delta_log" / f"{0:020}.crc").unlink(missing_ok=True)
    same_as_core(table)
    assert sorted(row.id for row in table.read().where("part = 1").collect()) == [1, 3, 5]


@pytest.mark.parametrize("name", ["a b", "100%", "a+b", "[x]*", "ü{1}", "p=q"])
def test_paths_with_special_characters(spark: Any, tmp_path: Path, name: str) -> None:
    table = Table(spark, tmp_path / name / "t")
    table.write(spark.range(3).selectExpr("id", "concat('v:', id, '*[]{}') p"), by=("p",))
    same_as_core(table)
    assert table.rows() == [(0, "v:0*[]{}"), (1, "v:1*[]{}"), (2, "v:2*[]{}")]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns(spark: Any, table: Table, mode: str) -> None:
    frame = spark.sql("select 1 id, named_struct('x', 2, 'y y', array(named_struct('z', 3))) s, 'p' p")
    table.write(frame, by=("p",), **{"delta.columnMapping.mode": mode})
    table.delta.renameColumn("id", "number")
    table.delta.renameColumn("s.x", "first")
    table.write(spark.sql("select 5 number, named_struct('first', 6, 'y y', null) s, 'q' p"))
    same_as_core(table)
    assert table.read().schema["number"].dataType.simpleString() == "int"
    assert sorted(row.first for row in table.read().select("s.first").collect()) == [2, 6]
    table.delta.dropColumn("number")
    same_as_core(table)


@pytest.mark.parametrize("by", [(), ("s",), ("k", "s"), ("k",)])
@pytest.mark.parametrize("configuration", [{"delta.columnMapping.mode": "id"}, ICEBERG], ids=["id", "iceberg"])
def test_every_column_of_a_file_has_its_id(
    spark: Any, table: Table, configuration: dict[str, str], by: tuple[str, ...]
) -> None:
    """Also the first one, whose values carry the checks of each row."""
    rows = spark.range(3).selectExpr("id", "id + 1 AS n", "'a' AS s", "CAST(id % 2 AS INT) AS k")
    table.write(rows.coalesce(1), by=by, **configuration)
    table.delta.addConstraint("positive", "n > 0")
    table.delta.update("n = 1", {"n": "n + 10"})
    fields = json.loads(table.log.snapshot().metadata.schema_string)["fields"]
    ids = {
        field["metadata"]["delta.columnMapping.physicalName"]: field["metadata"]["delta.columnMapping.id"]
        for field in fields
        if field["name"] not in by or configuration is ICEBERG  # Iceberg wants the partition columns in the files
    }
    for name in table.data_files():
        assert _field_ids(table.root / name) == ids
    assert sorted(tuple(row) for row in table.read().select("id", "n", "s", "k").collect()) == [
        (0, 11, "a", 0),
        (1, 2, "a", 1),
        (2, 3, "a", 0),
    ]


def _field_ids(file: Path) -> dict[str, int]:
    return {field.name: int((field.metadata or {}).get(b"PARQUET:field_id", b"-1")) for field in pq.read_schema(file)}


@pytest.mark.parametrize("kind", ["data", "partition", "mapped partition"])
def test_a_char_is_compared_without_its_spaces(spark: Any, table: Table, kind: str) -> None:
    """As in a classic session, by a query and by a command."""
    builder = DeltaTable.create(spark).location(table.path).addColumn("c", "char(3)").addColumn("k", "int")
    if kind != "data":
        builder = builder.partitionedBy("c")
    if kind == "mapped partition":
        builder = builder.property("delta.columnMapping.mode", "name")
    builder.execute()
    table.write(spark.sql("SELECT 'a' AS c, 1 AS k UNION ALL SELECT 'abc', 2"))
    for condition in ("c = 'a'", "c = 'a  '", "c IN ('a')", "c < 'aa'", F.col("c") == "a"):
        assert [row.k for row in table.read().where(condition).collect()] == [1], condition
    for condition in ("c = 'a'", "c IN ('a', 'b')", F.col("c") == "a"):
        table.delta.update(condition, {"k": "k + 1"})
    assert sorted((row.c, row.k) for row in table.read().collect()) == [("a  ", 4), ("abc", 2)]
    if kind != "data":
        table.write(spark.sql("SELECT 'a' AS c, 7 AS k"))
        assert table.delta.optimize().where("c = 'a'").executeCompaction().first().metrics.numFilesRemoved == 2
        table.delta.delete("c = 'a' AND k = 7")
        table.write(spark.sql("SELECT 'a' AS c, 8 AS k"), "overwrite", replaceWhere="c = 'a'")
        table.delta.addConstraint("known", "c IN ('a', 'abc')")
        table.delta.update("c = 'abc'", {"k": "k"})
        assert sorted((row.c, row.k) for row in table.read().collect()) == [("a  ", 8), ("abc", 2)]


def test_versions_and_timestamps(spark: Any, table: Table) -> None:
    for i in range(3):
        table.write(spark.range(i, i + 1))
    assert table.rows(versionAsOf=1) == [0, 1]
    assert [row.id for row in spark.read.format("delta").load(f"{table.path}@v0").collect()] == [0]
    at = DeltaLog.for_path(table.path).snapshot(1).timestamp_ms
    text = dt.datetime.fromtimestamp(at / 1000, dt.UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    assert table.rows(timestampAsOf=text) == [0, 1]
    with pytest.raises(VersionNotFoundError):
        table.read(versionAsOf=9)
    with pytest.raises(InvalidArgumentError):
        table.read(timestampAsOf="never")


def test_a_frame_keeps_its_version(spark: Any, table: Table) -> None:
    table.write(spark.range(2))
    frame = table.read()
    table.write(spark.range(2, 4))
    assert frame.count() == 2
    assert table.read().count() == 4


def test_the_change_feed(spark: Any, table: Table) -> None:
    table.write(spark.range(4).selectExpr("id", "id % 2 p"), by=("p",), **{"delta.enableChangeDataFeed": "true"})
    table.delta.update("id = 1", {"id": "id + 10"})
    table.delta.delete("id = 2")
    changes = table.read(readChangeFeed="true", startingVersion=0)
    found = sorted((row.id, row.p, row._change_type, row._commit_version) for row in changes.collect())
    assert found == sorted(
        [(i, i % 2, "insert", 0) for i in range(4)]
        + [(1, 1, "update_preimage", 1), (11, 1, "update_postimage", 1), (2, 0, "delete", 2)]
    )
    latest = table.read(readChangeFeed="true", startingVersion=2)
    assert [(row.id, row._change_type) for row in latest.collect()] == [(2, "delete")]
    assert changes.where("_commit_version = 1 and p = 1").count() == 2


def test_row_ids(spark: Any, table: Table) -> None:
    table.write(spark.range(3).coalesce(1), **{"delta.enableRowTracking": "true"})
    before = {row.id: row._row_id for row in table.read(readRowIds="true").collect()}
    assert sorted(before.values()) == [0, 1, 2]
    table.delta.update("id = 1", {"id": "100"})
    after = {row.id: row._row_id for row in table.read(readRowIds="true").collect()}
    assert after == {0: before[0], 100: before[1], 2: before[2]}


def test_a_partition_directory_as_path(spark: Any, table: Table) -> None:
    table.write(spark.range(4).selectExpr("id", "id % 2 p"), by=("p",))
    assert sorted(row.id for row in spark.read.format("delta").load(f"{table.path}/p=1").collect()) == [1, 3]


def test_a_partition_directory_can_only_be_read(spark: Any, table: Table) -> None:
    table.write(spark.range(4).selectExpr("id", "id % 2 p"), by=("p",))
    path = f"{table.path}/p=1"
    for call in (
        lambda: DeltaTable.forPath(spark, path).delete(),
        lambda: DeltaTable.forName(spark, f"delta.`{path}`").delete(),
        lambda: spark.range(1).selectExpr("id", "1L p").write.format("delta").mode("append").save(path),
    ):
        with pytest.raises(InvalidArgumentError, match="partition directory"):
            call()
    assert table.read().count() == 4


def test_an_empty_table(spark: Any, table: Table) -> None:
    table.write(spark.range(0).selectExpr("id", "named_struct('a', id) s", "cast(id as string) p"), by=("p",))
    assert table.read().collect() == []
    assert table.read().where("p = 'x'").select("s.a").collect() == []
    same_as_core(table)


def test_other_formats_are_untouched(spark: Any, tmp_path: Path) -> None:
    spark.range(3).write.parquet(str(tmp_path / "p"))
    assert spark.read.parquet(str(tmp_path / "p")).count() == 3
    assert spark.read.format("parquet").load(str(tmp_path / "p")).count() == 3


def test_errors(spark: Any, table: Table, tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        spark.read.format("delta").load(str(tmp_path / "nothing"))
    table.write(spark.range(1))
    with pytest.raises(InvalidArgumentError):
        spark.read.format("delta").schema("id int").load(table.path)
    assert DeltaTable.isDeltaTable(spark, table.path)
    assert not DeltaTable.isDeltaTable(spark, str(tmp_path))


def test_more_files_than_a_plan_can_name(spark: Any, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.write(spark.range(1))
    monkeypatch.setattr(listed, "_MOST_BYTES", 10)
    with pytest.raises(UnsupportedEnvironmentError, match="1 files"):
        table.read()


def test_a_file_whose_name_spark_ignores(spark: Any, table: Table) -> None:
    table.write(spark.range(1).coalesce(1))
    (file,) = table.root.glob("*.parquet")
    log = table.root / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text().replace(file.name, "_hidden.parquet"))
    file.rename(table.root / "_hidden.parquet")
    with pytest.raises(UnsupportedFeatureError, match="_hidden"):
        table.read()


def test_many_files(spark: Any, table: Table) -> None:
    """A plan with thousands of paths, with partition values that are joined."""
    table.write(spark.range(1).selectExpr("id", "'0' p").coalesce(1), by=("p",))
    (file,) = table.root.rglob("*.parquet")
    (table.root / "d").mkdir()
    lines = []
    for i in range(3000):
        (table.root / "d" / f"{i}.parquet").hardlink_to(file)
        add = {"path": f"d/{i}.parquet", "partitionValues": {"p": str(i)}, "size": file.stat().st_size}
        lines.append(json.dumps({"add": {**add, "modificationTime": 0, "dataChange": True}}))
    (table.root / "_delta_log" / f"{1:020}.json").write_text("\n".join(lines) + "\n")
    frame = table.read()
    assert frame.count() == 3001
    assert frame.where("p = '77'").count() == 1
