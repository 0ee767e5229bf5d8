"""Every route gives the same rows to the same questions; the choice between them is by need."""

import datetime
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from tablelog.core.protocol import schema as schemas
from tablelog.engine.read import routes, scan
from tablelog.errors import InvalidArgumentError, MissingDataFileError, UnsupportedEnvironmentError
from tablelog.settings.declarations import READ_ROUTE, READ_SCRATCH

from .conftest import Make, own_python
from .tables import HandMade


def rows(frame: DataFrame) -> list[Row]:
    return sorted(frame.collect(), key=str)


def test_a_partitioned_table(spark: SparkSession, clustered: HandMade, route: str) -> None:
    frame = scan.frame(spark, clustered.log)
    assert frame.columns == ["id", "p", "s"]
    assert frame.selectExpr("count(*)", "sum(id)", "sum(p)").first() == (200, 19900, 300)
    assert rows(frame.where("p = 1 and id between 55 and 95 and s = 'v7'")) == [Row(id=57, p=1, s="v7")]
    assert frame.alias("a").join(frame.alias("b"), "id").count() == 200


def test_odd_names_and_values(spark: SparkSession, make: Make, route: str) -> None:
    table = make({"p": "string", "d": "date", "id": "long"}, ["p", "d"])
    texts = ["a/b", "%41", "ünï+ x", "", "a&b=c"]
    table.commit(
        [
            table.file(
                pa.table({"id": pa.array([i], pa.int64())}),
                {"p": text, "d": f"1500-01-0{i + 1}"},
                name=f"p={i}/ä +%&=[] {i}.parquet",
            )
            for i, text in enumerate(texts)
        ]
    )
    frame = scan.frame(spark, table.log)
    assert {(row.id, row.p, row.d) for row in frame.selectExpr("id", "p", "cast(d as string) d").collect()} == {
        (i, text or None, f"1500-01-0{i + 1}") for i, text in enumerate(texts)
    }
    assert [row.id for row in frame.where("p = '%41'").collect()] == [1]
    assert [row.id for row in frame.where("d > date'1500-01-04'").collect()] == [4]


def test_the_number_of_the_file(spark: SparkSession, clustered: HandMade, route: str) -> None:
    log = clustered.log
    snapshot = log.snapshot()
    chosen = snapshot.files.take([3, 17, 4])
    frame = scan.frame(spark, log, snapshot=snapshot, files=chosen, file_number="__file")
    assert frame.columns == ["id", "p", "s", "__file"]
    found = {(row[0] // 10, row[1]) for row in frame.select("id", "__file").collect()}
    assert found == {(3, 0), (17, 1), (4, 2)}
    placed = scan.frame(spark, log, snapshot=snapshot, files=chosen, row_index="__row").where("id % 10 between 4 and 5")
    assert {tuple(row) for row in placed.select("id", "__row").collect()} == {
        (start + i, i) for start in (30, 170, 40) for i in (4, 5)
    }


def test_missing_and_additional_columns_and_nested_ones(spark: SparkSession, make: Make, route: str) -> None:
    nested = "named_struct('a', 1L, 'b', 'x', 'c', array(named_struct('d', 1)))"
    text = spark.sql(f"select 1L id, {nested} n, 1.5D x").schema.json()
    schema = schemas.parse_schema(text.replace("false", "true"))
    table = make({"id": "long"})
    table.commit([table.metadata(schema)])
    old = pa.struct([("B", pa.string()), ("c", pa.list_(pa.struct([("d", pa.int32())])))])
    table.append(
        pa.table(
            {
                "ID": pa.array([1, 2], pa.int64()),
                "gone": ["x", "y"],
                "n": pa.array([{"B": "q", "c": [{"d": 7}]}, None], old),
            }
        ),
        stats=False,
    )
    assert rows(scan.frame(spark, table.log)) == [
        Row(id=1, n=Row(a=None, b="q", c=[Row(d=7)]), x=None),
        Row(id=2, n=None, x=None),
    ]


def test_types(spark: SparkSession, make: Make, route: str) -> None:
    moment = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999)
    kinds = {"ts": "timestamp", "tn": "timestamp_ntz", "dt": "date", "x": "decimal(10,2)", "y": "binary", "f": "float"}
    table = make(kinds)
    data = pa.table(
        {
            "ts": pa.array([moment], pa.timestamp("us", "UTC")),
            "tn": pa.array([moment], pa.timestamp("us")),
            "dt": pa.array([-200_000], pa.date32()),
            "x": pa.array([pa.scalar(150, pa.decimal128(10, 2))]),
            "y": [b"\0\xff"],
            "f": pa.array([0.1], pa.float32()),
        }
    )
    table.append(data, stats=False)
    texts = [f"cast({name} as string)" if name != "y" else "hex(y)" for name in kinds]
    found = scan.frame(spark, table.log).selectExpr(*texts).first()
    instant = "1969-12-31 23:59:59.999999"
    assert tuple(found or ()) == (instant, instant, "1422-06-03", "150.00", "00FF", "0.1")


def test_an_empty_table(spark: SparkSession, make: Make, route: str) -> None:
    frame = scan.frame(spark, make({"id": "long", "p": "string"}, ["p"]).log)
    assert frame.columns == ["id", "p"]
    assert frame.collect() == []


def test_versions(spark: SparkSession, make: Make, route: str) -> None:
    table = make({"id": "long"})
    one = pa.table({"id": pa.array([1], pa.int64())})
    table.append(one)
    log = table.log
    newest, pinned = scan.frame(spark, log), scan.frame(spark, log, snapshot=log.snapshot())
    table.append(one)
    assert pinned.count() == 1
    assert newest.count() == (2 if route == "native" else 1)
    assert scan.frame(spark, log).count() == 2


def test_a_file_that_is_gone(spark: SparkSession, make: Make, route: str) -> None:
    table = make({"id": "long"})
    add = table.append(pa.table({"id": pa.array([1], pa.int64())}))
    frame = scan.frame(spark, table.log)
    (table.root / add.path).unlink()
    with pytest.raises(MissingDataFileError, match=r"part-00001.*version 1 of file:"):
        frame.selectExpr("sum(id)").collect()


@pytest.mark.slow
def test_the_arrow_route_skips_files_where_spark_offers_its_filters(spark: SparkSession, clustered: HandMade) -> None:
    spark.conf.set(READ_ROUTE.key, "arrow")
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        for i in range(2, 20):
            (clustered.root / f"part-{i + 1:05d}.parquet").unlink()
        with own_python(spark):
            frame = scan.frame(spark, clustered.log)
            assert frame.where("id < 15 and p = 1").count() == 5
            with pytest.raises(MissingDataFileError):
                frame.where("id < 25").count()
    finally:
        spark.conf.unset(READ_ROUTE.key)
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_the_reader_of_the_arrow_route_works_where_tablelog_is_not_installed(tmp_path: Path) -> None:
    import pyarrow.parquet as pq
    from pyspark import cloudpickle

    from tablelog.engine.read.routes.arrow_source import data_source

    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64())}), tmp_path / "x.parquet")
    arrow = pa.schema([("id", pa.int64()), ("p", pa.string())])
    method = data_source({}, takes_filters=False)({}).reader.__func__  # type: ignore[attr-defined]
    names = method.__code__.co_freevars
    reader_type = method.__closure__[names.index("reader")].cell_contents
    target = tmp_path / "reader"
    entry = {
        "path": str(tmp_path / "x.parquet"),
        "size": 1,
        "place": "file://",
        "constants": {"p": pa.array(["v"])},
        "named": "",
    }
    target.write_bytes(cloudpickle.dumps((reader_type({}, arrow, None), entry)))
    program = (
        "import sys; sys.modules['tablelog'] = None\n"
        "import pickle, types\n"
        f"reader, entry = pickle.load(open({str(target)!r}, 'rb'))\n"
        "batches = list(reader.read(types.SimpleNamespace(value=[entry])))\n"
        "print([batch.to_pydict() for batch in batches])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.strip() == "[{'id': [1, 2], 'p': ['v', 'v']}]", done.stderr


def test_the_choice(spark: SparkSession, conf: Callable[[str, str], None]) -> None:
    class Conf:
        def __init__(self, route: str | None) -> None:
            self._route = route

        def get(self, key: str, default: str | None) -> str | None:
            return self._route if key == READ_ROUTE.key and self._route else default

    class Connect:
        def __init__(self, route: str | None = None) -> None:
            self.conf = Conf(route)

    assert routes.choose(spark, "file:///t", {}) == "native"
    assert routes.choose(spark, "nosuchscheme://bucket/t", {}) == "arrow"
    assert routes.choose(Connect(), "file:///t", {}) == "listed"  # type: ignore[arg-type]
    for route in ("native", "manifest", "arrow"):
        with pytest.raises(UnsupportedEnvironmentError, match=f"is {route}, which Spark Connect"):
            routes.choose(Connect(route), "file:///t", {})  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="must be auto, native, manifest or arrow"):
        routes.choose(Connect("fast"), "file:///t", {})  # type: ignore[arg-type]
    conf(READ_ROUTE.key, "manifest")
    with pytest.raises(InvalidArgumentError, match="directory that this process and Spark share"):
        routes.choose(spark, "file:///t", {})
    conf(READ_SCRATCH.key, "/shared")
    assert routes.choose(spark, "file:///t", {}) == "manifest"
