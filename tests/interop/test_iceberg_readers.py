"""pyiceberg and DuckDB read the same rows as we do from tables with Iceberg metadata, at every version."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from interop.iceberg import READERS, by_duckdb, by_pyiceberg, table_at
from support.rows import assert_same_rows
from support.spark_tables import Table
from tablelog.core import DeltaLog

UNIFORM = {"delta.enableIcebergCompatV2": "true", "delta.universalFormat.enabledFormats": "iceberg"}

COLUMNS: dict[str, tuple[str, ...]] = {
    "ti": ("1Y", "-128Y", "127Y", "null"),
    "sh": ("-32768S", "7S", "null"),
    "i": ("0", "-2147483648", "2147483647", "null"),
    "lo": ("id", "-9223372036854775807L", "9223372036854775807L", "null"),
    "f": ("float('nan')", "float(0.1)", "float('-inf')", "float('-0.0')", "null"),
    "d": ("double('nan')", "1e300D", "double('inf')", "-0.0D", "0.0D", "-1.5D", "null"),
    "de": ("cast(1.25 as decimal(9,2))", "cast(-9999999.99 as decimal(9,2))", "cast(null as decimal(9,2))"),
    "big": ("cast('12345678901234567890123456.78' as decimal(38,2))", "cast(-1 as decimal(38,2))"),
    "s": ("''", "'é\U0001f600'", "repeat('z', 60)", "concat('s', id)", "null"),
    "bi": ("X'00FF'", "X''", "cast(null as binary)"),
    "bo": ("true", "false", "null"),
    "da": ("date'2024-02-29'", "date'0001-01-01'", "date'9999-12-31'", "null"),
    "ts": ("timestamp'2024-02-29 12:34:56.123456'", "timestamp'1901-01-01 00:00:00.000001'", "null"),
    "tn": ("timestamp_ntz'2024-02-29 12:34:56.999999'", "timestamp_ntz'1969-12-31 23:59:59.9999'", "null"),
    "a": ("array(1, null, 3)", "array()", "cast(null as array<int>)"),
    "m": ("map('k', id, 'l', null)", "cast(map() as map<string,bigint>)", "cast(null as map<string,bigint>)"),
    "st": (
        "named_struct('x', int(id), 'l', array(named_struct('y', 'q', 'm', map(1, array(date'2020-01-01')))))",
        "named_struct('x', null, 'l', cast(array() as array<struct<y:string,m:map<int,array<date>>>>))",
        "cast(null as struct<x:int,l:array<struct<y:string,m:map<int,array<date>>>>>)",
    ),
}
TYPES = {
    "ti": "tinyint", "sh": "smallint", "i": "int", "lo": "bigint", "f": "float", "d": "double", "de": "decimal(9,2)",
    "big": "decimal(38,2)", "s": "string", "bi": "binary", "bo": "boolean", "da": "date", "ts": "timestamp",
    "tn": "timestamp_ntz", "a": "array<int>", "m": "map<string,bigint>",
    "st": "struct<x:int,l:array<struct<y:string,m:map<int,array<date>>>>>",
}  # fmt: skip


def rows(spark: SparkSession, dice: random.Random, start: int, count: int) -> DataFrame:
    parts = []
    for number in range(count):
        values = [f"cast({dice.choice(choices)} as {TYPES[name]}) `{name}`" for name, choices in COLUMNS.items()]
        parts.append(
            spark.range(start + number, start + number + 1).selectExpr("id", f"int({dice.randrange(3)}) p", *values)
        )
    frame = parts[0]
    for part in parts[1:]:
        frame = frame.union(part)
    return frame


def ours(table: Table, at: int | None = None) -> pa.Table:
    return table.read(**({} if at is None else {"versionAsOf": at})).toArrow()


def assert_current(table: Table) -> None:
    assert table_at(table.path).metadata.properties["delta-version"] == str(table.version)
    for reader in READERS.values():
        assert_same_rows(reader(table.path), ours(table))


def assert_all_versions(table: Table, first: int = 0) -> None:
    for version in range(first, table.version + 1):
        for reader in READERS.values():
            assert_same_rows(reader(table.path, version), ours(table, version))


class History:
    """Random commands on one table."""

    def __init__(self, table: Table, seed: int) -> None:
        self.table = table
        self.dice = random.Random(seed)
        self.next_id = 0
        by = self.dice.choice([(), ("p",), ("p", "da"), ("ts",), ("s",), ("lo", "tn"), ("de", "bo")])
        mode = self.dice.choice(["name", "id"])
        more = {"delta.enableTypeWidening": "true", "delta.columnMapping.mode": mode, "maxRecordsPerFile": "2"}
        table.write(self.rows(), by=by, **UNIFORM, **more)
        self.sql(f"ALTER TABLE {self.name} ADD COLUMNS (w INT, gone ARRAY<STRING>)")

    @property
    def name(self) -> str:
        return f"delta.`{self.table.path}`"

    def sql(self, text: str) -> None:
        self.table.spark.sql(text)

    def rows(self) -> DataFrame:
        count = self.dice.randrange(1, 6)
        frame = rows(self.table.spark, self.dice, self.next_id, count)
        self.next_id += count
        return frame

    def append(self) -> None:
        self.table.write(self.rows(), maxRecordsPerFile=str(self.dice.randrange(0, 3)))

    def evolve(self) -> None:
        extra = self.rows().selectExpr("*", f"named_struct('n{self.next_id}', array(id)) e{self.next_id}")
        self.table.write(extra, mergeSchema="true")

    def delete(self) -> None:
        self.table.delta.delete(self.dice.choice(["id % 3 = 0", "p = 1", "d is null", "bo"]))

    def update(self) -> None:
        self.table.delta.update(
            self.dice.choice(["id % 2 = 0", "p = 2"]), {"lo": "try_subtract(lo, 1L)", "a": "array(9)"}
        )

    def merge(self) -> None:
        source = self.table.read().where("id % 2 = 0").selectExpr("*").alias("s")
        merge = self.table.delta.alias("t").merge(source, "t.id = s.id")
        merge.whenMatchedUpdate("s.p = 0", {"i": "1"}).whenMatchedDelete("s.p = 1").execute()

    def overwrite(self) -> None:
        self.table.write(self.rows(), mode="overwrite")

    def optimize(self) -> None:
        self.table.delta.optimize().executeCompaction()

    def rename(self) -> None:
        for field in self.table.read().schema.fields:
            if field.name.startswith("w"):
                self.sql(f"ALTER TABLE {self.name} RENAME COLUMN {field.name} TO w{self.table.version}")

    def widen(self) -> None:
        for field in self.table.read().schema.fields:
            if field.name.startswith("w") and field.dataType.simpleString() == "int":
                self.sql(f"ALTER TABLE {self.name} ALTER COLUMN {field.name} TYPE BIGINT")

    def drop(self) -> None:
        if "gone" in self.table.read().columns:
            self.sql(f"ALTER TABLE {self.name} DROP COLUMN gone")

    def restore(self) -> None:
        self.table.delta.restoreToVersion(self.dice.randrange(self.table.version + 1))

    def step(self) -> None:
        commands: list[Callable[[], None]] = [
            self.append, self.append, self.delete, self.update, self.merge, self.overwrite, self.optimize, self.evolve,
            self.rename, self.widen, self.drop, self.restore,
        ]  # fmt: skip
        self.dice.choice(commands)()


@pytest.mark.parametrize("seed", range(6))
def test_generated_histories(table: Table, seed: int) -> None:
    history = History(table, seed)
    for _ in range(7):
        history.step()
        assert_current(table)
    assert_all_versions(table)


FILTERS = (
    "id = 3", "id > 5", "p = 1", "i < 0", "lo >= 100", "d < 0", "f < 0", "de = 1.25", "big < 0", "s = 's4'", "s > 'y'",
    "s is null", "bo = true", "da = '2024-02-29'", "da < '2000-01-01'", "ti is not null", "sh = 7",
)  # fmt: skip


@pytest.mark.parametrize("by", [(), ("p",), ("da",), ("s",), ("de",), ("d",), ("bi",)])
def test_bounds_and_partitions_exclude_no_row(spark: SparkSession, table: Table, by: tuple[str, ...]) -> None:
    dice = random.Random(7)
    data = rows(spark, dice, 0, 12)
    data = data.where("bi is null or bi != X'00FF'") if by == ("bi",) else data  # a partition value must be UTF-8
    table.write(data, by=by, **UNIFORM, maxRecordsPerFile="1")
    for where in FILTERS:
        expected = sorted(table.read().where(where.replace("bo = true", "bo")).toArrow()["id"].to_pylist())
        for reader in (by_pyiceberg, by_duckdb):
            assert sorted(reader(table.path, where=where)["id"].to_pylist()) == expected, (where, reader.__name__)


def test_files_are_skipped(spark: SparkSession, table: Table) -> None:
    table.write(spark.range(20).selectExpr("id", "id % 4 p").coalesce(1), by=("p",), **UNIFORM, maxRecordsPerFile="1")
    scan = table_at(table.path).scan
    assert len(list(scan().plan_files())) == 20
    assert len(list(scan(row_filter="p = 1").plan_files())) == 5
    assert len(list(scan(row_filter="id = 7").plan_files())) == 1


@pytest.mark.parametrize("route", ["small", "large"])
def test_elements_have_ids_in_the_files(spark: SparkSession, table: Table, route: str) -> None:
    options = {} if route == "small" else {"maxRecordsPerFile": "1"}
    table.write(rows(spark, random.Random(1), 0, 2), **UNIFORM, **options)
    known = set(table_at(table.path).schema().field_ids)
    for path in Path(table.path).rglob("*.parquet"):
        if "_delta_log" not in path.parts:
            found = by_parquet(str(path))
            assert {
                number for name, number in found if name not in ("list", "key_value", "schema", "spark_schema")
            } == known


def by_parquet(path: str) -> list[tuple[str, int | None]]:
    import duckdb

    return duckdb.sql(f"select name, field_id from parquet_schema('{path}')").fetchall()


@pytest.mark.parametrize(
    "name",
    [pytest.param("pyiceberg", marks=pytest.mark.xfail(reason="apache/iceberg-python#3833", strict=True)), "DuckDB"],
)
def test_an_array_of_structs_that_is_null(spark: SparkSession, table: Table, name: str) -> None:
    table.write(spark.createDataFrame([(1, None), (2, [(3,)])], "id int, a array<struct<x:int>>"), **UNIFORM)
    assert_same_rows(READERS[name](table.path), ours(table))


def test_a_table_without_files(spark: SparkSession, table: Table) -> None:
    table.write(spark.range(0).selectExpr("id", "array(id) a"), **UNIFORM)
    assert_current(table)


def test_replacing_the_table_with_another_type_of_the_partition_column(spark: SparkSession, table: Table) -> None:
    table.write(spark.range(4).selectExpr("id", "int(id % 2) p"), by=("p",), **UNIFORM)
    other = spark.range(4).selectExpr("concat('x', id) p", "id + 1 other")
    table.write(other, mode="overwrite", by=("p",), overwriteSchema="true", **UNIFORM)
    table.write(other)
    assert_current(table)
    assert_all_versions(table)
    assert len(table_at(table.path).metadata.partition_specs) == 2


def test_vacuum_keeps_the_metadata(spark: SparkSession, table: Table, conf: Any) -> None:
    conf("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    table.write(spark.range(4), **UNIFORM)
    table.write(spark.range(3), mode="overwrite")
    table.delta.vacuum(0)
    assert_current(table)
    assert len(list(Path(table.path).glob("*.parquet"))) == len(table.logged_files() & table.data_files())


def test_a_shallow_clone(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    table.write(spark.range(4).selectExpr("id", "array(id) a"), **UNIFORM)
    clone = Table(spark, tmp_path / "clone")
    spark.sql(f"CREATE TABLE delta.`{clone.path}` SHALLOW CLONE delta.`{table.path}`")
    assert_current(clone)
    clone.delta.delete("id = 1")
    clone.write(spark.range(4, 6).selectExpr("id", "array(id) a"))
    assert_current(clone)
    assert_current(table)


def test_without_the_compatibility_elements_need_no_ids(spark: SparkSession, table: Table) -> None:
    table.write(spark.range(2).selectExpr("id", "array(id) a"), **{"delta.enableIcebergCompatV2": "true"})
    table.delta.setProperties({"delta.enableIcebergCompatV2": "false"})
    table.write(spark.range(2, 4).selectExpr("id", "array(id) a"), maxRecordsPerFile="1")
    added = [action["add"] for action in table.actions() if "add" in action]
    assert [add.get("tags") for add in added] == [None, None]
    assert not any(
        name == "element" and number for add in added for name, number in by_parquet(f"{table.path}/{add['path']}")
    )
    assert table.rows("id") == [0, 1, 2, 3]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_files_with_row_ids_and_change_types(spark: SparkSession, table: Table, mode: str) -> None:
    """Columns of the files that aren't in the schema have ids too, without which pyiceberg reads no file."""
    properties = {
        **UNIFORM,
        "delta.columnMapping.mode": mode,
        "delta.enableRowTracking": "true",
        "delta.enableChangeDataFeed": "true",
    }
    for start in (0, 3):
        frame = spark.range(start, start + 3).selectExpr("id k", "'x' b").coalesce(1)
        table.write(frame, **(properties if not start else {}))

    def row_ids() -> dict[int, int]:
        read = spark.read.format("delta").option("readRowIds", "true").load(table.path)
        return {row.k: row[-2] for row in read.collect()}

    before = row_ids()
    table.delta.update("k = 1", {"b": "'y'"})
    table.delta.update("k = 1", {"b": "'z'"})
    assert_current(table)
    merge = table.delta.alias("t").merge(spark.range(2, 8).toDF("k").alias("s"), "t.k = s.k")
    merge.whenMatchedUpdate(set={"b": "'m'"}).whenNotMatchedInsert(values={"k": "s.k"}).execute()
    assert_current(table)
    spark.sql(f"INSERT INTO delta.`{table.path}` REPLACE WHERE k = 7 VALUES (7, 'r')")
    assert_current(table)
    table.delta.optimize().executeCompaction()
    assert_current(table)
    after = row_ids()
    assert {k: after[k] for k in before} == before
    assert len(set(after.values())) == 8


def test_a_path_with_special_characters(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(spark, tmp_path / "a b%20c=d")
    table.write(spark.createDataFrame([(1, "x/y z%"), (2, "a:b")], "id int, p string"), by=("p",), **UNIFORM)
    assert_current(table)


def test_a_stream_writes_it(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    table.write(spark.range(0), **UNIFORM)
    source = Table(spark, tmp_path / "source")
    source.write(spark.range(5))
    stream = spark.readStream.format("delta").load(source.path).writeStream.format("delta")
    stream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start(
        table.path
    ).awaitTermination()
    assert_current(table)
    assert by_duckdb(table.path).num_rows == 5


def test_rewriting_a_table_for_it(spark: SparkSession, table: Table) -> None:
    """What the error message says to do works."""
    table.write(spark.range(4).selectExpr("id", "array(id) a"))
    name = f"delta.`{table.path}`"
    compat = "'delta.columnMapping.mode' = 'name', 'delta.enableIcebergCompatV2' = 'true'"
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({compat})")
    spark.sql(f"INSERT OVERWRITE {name} SELECT * FROM {name}")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.universalFormat.enabledFormats' = 'iceberg')")
    assert_current(table)


def test_reorg_upgrades_a_table(spark: SparkSession, table: Table) -> None:
    table.write(spark.range(6).selectExpr("id", "array(id) a", "id % 2 p"), by=("p",))
    table.delta.delete("id = 5")
    statement = f"REORG TABLE delta.`{table.path}` APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))"
    before = table.version
    row = spark.sql(statement).first()
    assert row is not None
    assert row.metrics.numFilesRemoved == len([a for v in range(2) for a in table.actions(v) if "add" in a]) - 1
    assert table.version == before + 3
    assert table.info(before + 2)["operation"] == "REORG"
    assert not any(a["add"]["dataChange"] for a in table.actions(before + 2) if "add" in a)
    assert_current(table)
    assert table.rows("id") == [0, 1, 2, 3, 4]
    spark.sql(statement)
    assert table.version == before + 3, "nothing to do"
    table.write(spark.range(6, 8).selectExpr("id", "array(id) a", "id % 2 p"))
    assert_current(table)


def test_a_writer_without_pyiceberg_commits(spark: SparkSession, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.write(spark.range(4), **UNIFORM)
    log = DeltaLog.for_path(table.path)
    with monkeypatch.context() as patch:
        patch.setitem(__import__("sys").modules, "tablelog.core.iceberg.convert", None)
        table.write(spark.range(4, 6))
    assert table_at(table.path).metadata.properties["delta-version"] == "0"
    assert log.snapshot().version == 1
    table.write(spark.range(6, 8))
    assert_current(table)
    assert_all_versions(table)


def test_dates_of_a_table_are_utf8_json(spark: SparkSession, table: Table) -> None:
    """The metadata is plain JSON of format version 2 that names its version of the log."""
    table.write(spark.range(1).selectExpr("id `ä ö`"), **UNIFORM)
    newest = json.loads((Path(table.path) / "metadata" / "v1.metadata.json").read_text())
    assert newest["format-version"] == 2
    assert newest["properties"]["delta-version"] == "0"
    assert newest["schemas"][0]["fields"][0]["name"] == "ä ö"
    assert_current(table)
