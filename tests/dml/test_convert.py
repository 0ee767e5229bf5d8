"""convertToDelta: files, partitions, schemas and statistics of directories that others wrote."""

import datetime
import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.spark_tables import Table
from tablelog.core.protocol.schema import INTEGER, LONG, SHORT, STRING, ArrayType, StructField, StructType
from tablelog.dml.maintain.convert import partition_of, widens
from tablelog.engine.storage.foreign_parquet import fits
from tablelog.errors import InvalidArgumentError, SchemaMismatchError, TableNotFoundError, UnsupportedFeatureError
from tablelog.spark import DeltaTable


def converted(table: Table, partitions=None, **rest) -> list[dict]:
    """Convert; the `add` actions."""
    DeltaTable.convertToDelta(table.spark, f"parquet.`{table.path}`", partitions, **rest)
    return sorted((a["add"] for a in table.actions() if "add" in a), key=lambda a: a["path"])


def test_a_partitioned_directory_by_spark(spark, tmp_path):
    table = Table(spark, tmp_path / "a table")
    rows = spark.createDataFrame([(1, "x y", 3), (2, "a/b=c", 4), (3, None, 4)], "id long, p string, q int")
    rows.write.partitionBy("p", "q").parquet(table.path)
    before = table.data_files()
    adds = converted(table, "p string, Q int")
    assert table.data_files() == before
    assert table.rows() == [(1, "x y", 3), (2, "a/b=c", 4), (3, None, 4)] or len(table.rows("id")) == 3
    assert {(a["partitionValues"]["p"], a["partitionValues"]["Q"]) for a in adds} == {
        *(("x y", "3"), ("a/b=c", "4"), (None, "4"))
    }
    assert all(json.loads(a["stats"])["numRecords"] == 1 for a in adds)
    assert json.loads(adds[0]["stats"])["minValues"].keys() == {"id"}
    info = table.info()
    assert info["operation"] == "CONVERT"
    assert info["operationParameters"] == {
        "numFiles": 3,
        "partitionedBy": '["p","Q"]',
        "collectStats": True,
        "sourceFormat": "parquet",
    }
    assert info["operationMetrics"] == {"numConvertedFiles": "3"}
    assert table.read().where("Q = 4 and id = 2").count() == 1
    DeltaTable.convertToDelta(spark, f"delta.`{table.path}`", "p string")  # it is one already
    assert table.version == 0
    table.delta.delete("id = 1")
    assert table.rows("id") == [2, 3]


def put(table: Table, name: str, columns: dict, **rest) -> None:
    path = table.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, **rest)


def test_files_of_others_and_schemas_that_grow(spark, tmp_path):
    table = Table(spark, tmp_path / "t")
    utc = pa.timestamp("us", "UTC")
    old = datetime.date(1500, 1, 1)
    put(
        table, "a.parquet",
        {"i": pa.array([1, 2], pa.int16()), "f": [1.0, math.nan], "d": [old, datetime.date.max], "s": list("ab")},
    )  # fmt: skip
    put(
        table,
        "b.parquet",
        {"i": pa.array([70000], pa.int32()), "u": pa.array([2**31], pa.uint32()), "t": pa.array([0], utc)},
    )
    put(table, "c.parquet", {"T": pa.array([1], pa.timestamp("ns", "UTC"))}, use_deprecated_int96_timestamps=True)
    for hidden in ("_x/y.parquet", ".z.parquet", "_SUCCESS"):
        (table.root / hidden).parent.mkdir(exist_ok=True)
        (table.root / hidden).write_bytes(b"")
    a, b, c = (json.loads(one["stats"]) for one in converted(table))
    assert table.read().dtypes == [
        *(("i", "int"), ("f", "double"), ("d", "date"), ("s", "string"), ("u", "bigint"), ("t", "timestamp"))
    ]
    assert sorted(table.read().selectExpr("count(i)", "sum(i)", "max(u)", "count(t)").collect()) == [
        (3, 70003, 2**31, 2)
    ]
    assert a["minValues"] == {"i": 1, "f": 1.0, "s": "a"}
    assert a["maxValues"] == {"i": 2, "s": "b"}  # NaN is the largest of all, and no footer of Arrow's tells of it
    assert b["minValues"] == {"i": 70000, "t": "1970-01-01T00:00:00.000Z"}
    assert c == {"numRecords": 1}
    assert table.read().where("d = date'1500-01-01'").count() == 1


def test_what_is_refused(spark, tmp_path):
    table = Table(spark, tmp_path / "t")
    with pytest.raises(TableNotFoundError):
        converted(table)
    put(table, "p=1/a.parquet", {"id": [1]})
    put(table, "p=x/b.parquet", {"id": [2]})
    with pytest.raises(InvalidArgumentError, match=r"partitioned by \['p'\]"):
        converted(table)
    with pytest.raises(InvalidArgumentError, match="is not valid for the type int"):
        converted(table, "p int")
    (table.root / "p=x" / "c.parquet").write_bytes(b"no parquet at all")
    with pytest.raises(InvalidArgumentError, match="is not a Parquet file"):
        converted(table, "p string")
    (table.root / "p=x" / "c.parquet").unlink()
    put(table, "p=y/c.parquet", {"id": ["text"]})
    with pytest.raises(SchemaMismatchError, match=r"p=y/c\.parquet"):
        converted(table, "p string")
    (table.root / "p=y" / "c.parquet").unlink()
    (table.root / "link").symlink_to(tmp_path)
    with pytest.raises(InvalidArgumentError, match="links"):
        converted(table, "p string")
    (table.root / "link").unlink()
    with pytest.raises(UnsupportedFeatureError, match="Iceberg"):
        DeltaTable.convertToDelta(spark, "iceberg.`/x`")
    key = "spark.databricks.delta.properties.defaults.columnMapping.mode"
    spark.conf.set(key, "name")
    try:
        with pytest.raises(UnsupportedFeatureError, match="column mapping"):
            converted(table, "p string")
    finally:
        spark.conf.unset(key)
    assert not (table.root / "_delta_log").exists()
    adds = converted(table, "p string", collectStats=False)
    assert [one.get("stats") for one in adds] == [None, None]
    assert table.rows("id", "p") == [(1, "1"), (2, "x")]


@pytest.mark.parametrize(
    ("directory", "pairs"),
    [
        ("", []),
        ("a/b", []),
        ("p=1", [("p", "1")]),
        ("p=a%2Fb/q=__HIVE_DEFAULT_PARTITION__", [("p", "a/b"), ("q", None)]),
        ("x/p=1/y", [("p", "1")]),
        ("p=1/x/q=2", [("q", "2")]),
    ],
)
def test_directories(directory, pairs):
    assert partition_of(directory) == pairs


def test_fits():
    def struct(**fields):
        return StructType(tuple(StructField(name, kind) for name, kind in fields.items()))

    assert fits(struct(a=INTEGER, b=STRING), struct(A=SHORT), widens)
    assert not fits(struct(a=SHORT), struct(a=INTEGER), widens)
    assert not fits(struct(a=LONG), struct(a=INTEGER), widens)
    assert fits(ArrayType(INTEGER, True), ArrayType(SHORT, True), widens)
    assert not fits(ArrayType(STRING, True), STRING, widens)
