"""Values at the ends of their types, by every way to write them: the same rows, found by the same conditions."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from tablelog.engine.write import routes, writer
from tablelog.engine.write.routes.hadoop import HadoopRoute
from tablelog.settings.declarations import READ_ROUTE, READ_SCRATCH, WRITE_ROUTE

from .conftest import NATIVE, SMALL, Table

NULL_NAME = "__HIVE_DEFAULT_PARTITION__"
LAST, FIRST = "9223372036854775807L", "(-9223372036854775807L - 1)"

# column -> (its SQL type, values as SQL, how a value is spelt as text)
VALUES: dict[str, tuple[str, list[str], str]] = {
    "x": ("double", ["-0.0D", "0.0D", "double('NaN')", "double('-Infinity')", "double('Infinity')", "4.9E-324D"], "{}"),
    "f": ("float", ["float(-0.0D)", "float(0.0D)", "float('NaN')", "float('Infinity')", "float(1.4E-45D)"], "{}"),
    "d": (
        "date",
        ["date_from_unix_date(-2147483648)", "date_from_unix_date(2147483647)", "date'+10000-01-01'",
         "date'0000-12-31'"],
        "unix_date({})",
    ),
    "t": (
        "timestamp",
        [f"timestamp_micros({FIRST})", f"timestamp_micros({LAST})", "timestamp'0000-12-31 00:00:00'",
         f"timestamp_micros({LAST} - 999)", "timestamp'+10000-01-01 00:00:00'"],
        "unix_micros({})",
    ),
    "n": (
        "timestamp_ntz",
        ["timestamp_ntz'-0001-01-01 00:00:00'", "timestamp_ntz'+290000-01-01 00:00:00.000001'",
         "timestamp_ntz'+10000-01-01 00:00:00'"],
        "string({})",
    ),
    "s": ("string", [f"'{NULL_NAME}'", "''", f"'{NULL_NAME}_'", "'\ufffd'", "'a\\0b'", "' '"], "hex({})"),
    "b": ("binary", ["X''", f"binary('{NULL_NAME}')", "binary('\ufffd')"], "hex({})"),
    "l": ("bigint", [FIRST, LAST, "0L"], "{}"),
    "c": ("decimal(38,0)", [f"-{'9' * 38}BD", f"{'9' * 38}BD"], "{}"),
}  # fmt: skip
TEXTS = ["string(X'FF')", "string(X'C0')", "string(X'62FF')", "'\u00e0'", "string(X'FE41')"]
"""Of which most are no UTF-8: no partition may be called so, and any data column may hold them."""
ROWS = max(len(values) for _, values, _ in VALUES.values())
OPERATORS = ["=", "<=", ">=", "<", ">", "<=>"]


def frame(spark: SparkSession) -> DataFrame:
    """One row for each place in the lists, a shorter list from its start again; every 7th value is null."""
    rows = []
    for i in range(ROWS):
        values = [
            f"cast({'null' if (i + place) % 7 == 6 else of[i % len(of)]} as {kind}) {name}"
            for place, (name, (kind, of, _)) in enumerate(VALUES.items())
        ]
        nested = "named_struct('x', x, 'f', array(f)) st"
        rows.append(f"select *, {nested} from (select {i} i, {', '.join(values)}, {TEXTS[i % len(TEXTS)]} u)")
    return spark.sql(" union all ".join(rows))


def spelt(df: DataFrame) -> list[tuple[Any, ...]]:
    columns = [f"{how.format(name)} {name}" for name, (_, _, how) in VALUES.items()]
    found = df.selectExpr("i", *columns, "hex(u) u", "string(st.x) sx", "string(st.f) sf").collect()
    return sorted(tuple(map(repr, row)) for row in found)


ZEROS = [f"{name} {operator} 0.0D" for name in ("x", "f", "st.x") for operator in ("=", ">=", "<=")]


def conditions() -> list[str]:
    """Each value by one of the operators, in turns.

    Not by those literals with which Spark's own Parquet reader fails (the first timestamp and the first date), or
    misses rows (a text that is no UTF-8), whoever plans the scan.
    """
    every = {**VALUES, "u": ("string", ["'\u00e0'", "'b'", "'\ufffe'", "'a'"], "")}
    return [
        f"{name} {OPERATORS[(i + place) % len(OPERATORS)]} {value}"
        for place, (name, (_, values, _)) in enumerate(every.items())
        for i, value in enumerate(values)
        if "_unix_date(" not in value and FIRST not in value
    ]


def counts(df: DataFrame, found: list[str]) -> dict[str, int]:
    """How many rows each condition has, each by a scan of its own, all of them in one job."""
    every = None
    for number, condition in enumerate(found):
        one = df.where(condition).selectExpr(f"{number} number")
        every = one if every is None else every.unionAll(one)
    assert every is not None
    told = {row.number: row["count"] for row in every.groupBy("number").count().collect()}
    return {condition: told.get(number, 0) for number, condition in enumerate(found)}


WRITERS = ["driver", "spark", "hadoop, renamed", "hadoop, in place", "arrow by the driver", "arrow by workers"]


@pytest.fixture(params=WRITERS)
def options(request: pytest.FixtureRequest, spark: SparkSession, monkeypatch: Any) -> Iterator[writer.WriteOptions]:
    """How to write by a route, which is in force."""
    route = request.param
    if route.startswith("hadoop"):

        def choose(spark: SparkSession, log: Any, below: str = "", **_: Any) -> HadoopRoute:
            return HadoopRoute(spark, log.table, {}, renames=route.endswith("renamed"), below=below)

        monkeypatch.setattr(routes, "choose", choose)
    if route.startswith("arrow"):
        spark.conf.set(WRITE_ROUTE.key, "arrow")
    yield SMALL if "driver" in route else NATIVE
    spark.conf.unset(WRITE_ROUTE.key)


@pytest.fixture(scope="module")
def expected(spark: SparkSession) -> dict[str, int]:
    """How many rows each condition has, where nothing is pushed down."""
    every = conditions() + ZEROS
    row = frame(spark).selectExpr(*(f"count_if({one})" for one in every)).first()
    assert row is not None
    return dict(zip(every, row, strict=True))


def some(expected: dict[str, int], request: pytest.FixtureRequest) -> dict[str, int]:
    """A third of the conditions, other ones for another route, and those on zero."""
    first = WRITERS.index(request.node.callspec.params["options"]) % 3
    return {one: expected[one] for one in conditions()[first::3] + ZEROS}


@pytest.mark.one_case
def test_data(
    table: Table, options: writer.WriteOptions, expected: dict[str, int], request: pytest.FixtureRequest
) -> None:
    """Each row is in a file of its own, so that its bounds, its dictionaries and its pages have one value each."""
    df = frame(table.spark)
    adds = table.write(df, "i", options=options)
    assert len(adds) == ROWS
    assert spelt(table.read()) == spelt(df)
    wanted = some(expected, request)
    assert counts(table.read(), list(wanted)) == wanted


def test_minus_zero_is_found_among_equals(table: Table, options: writer.WriteOptions, request: Any) -> None:
    """A dictionary of -0.0 alone has no 0.0: files of ours have none, unless Spark's own writer made them."""
    nested = "named_struct('x', -0.0D, 'a', array(-0.0D)) st"
    rows = f"select id, -0.0D x, float(-0.0D) f, {nested}, 'v' s from range(0, 100, 1, 1)"
    (add,) = table.write(table.spark.sql(rows), options=options)
    columns = pq.ParquetFile(table.path / unquote(add.path)).metadata.row_group(0)
    made = [columns.column(i) for i in range(columns.num_columns)]
    with_dictionary = {column.path_in_schema for column in made if column.has_dictionary_page}
    route = request.node.callspec.params["options"]
    if route.startswith(("spark", "hadoop")):
        assert {"x", "f", "st.x"} <= with_dictionary  # as docs/guide.md says of them
        return
    assert with_dictionary == {"id", "s"}
    assert counts(table.read(), ZEROS) == dict.fromkeys(ZEROS, 100)


@pytest.mark.one_case
def test_partitions(table: Table, options: writer.WriteOptions, expected: dict[str, int]) -> None:
    df = frame(table.spark)
    table.write(df, *VALUES, options=options)
    stored = [f"nullif({n}, {'X' if n == 'b' else ''}'') {n}" if n in "sb" else n for n in VALUES]
    assert spelt(table.read()) == spelt(df.selectExpr("i", *stored, "u", "st"))
    few = [one for one in expected if one.startswith(("t ", "d ", "n ", "x "))][::4]
    assert counts(table.read(), few) == {one: expected[one] for one in few}


@pytest.mark.one_case
@pytest.mark.parametrize("route", ["native", "manifest", "arrow"])
def test_each_way_to_read(
    table: Table, spark: SparkSession, conf: Any, tmp_path: Any, route: str, expected: Any
) -> None:
    df = frame(spark)
    table.write(df, "i", "d", "t", "x", options=SMALL)
    conf(READ_ROUTE.key, route)
    conf(READ_SCRATCH.key, str(tmp_path / "scratch"))
    assert spelt(table.read()) == spelt(df)
    few = [one for one in expected if one.startswith(("t ", "d ", "u ", "x "))][::4]
    assert counts(table.read(), few) == {one: expected[one] for one in few}


@pytest.mark.slow
def test_commands_and_checkpoints(table: Table, conf: Any) -> None:
    """DELETE, MERGE from a small source, OPTIMIZE and checkpoints of structs over files that have these bounds."""
    from tablelog.spark import DeltaTable

    df = frame(table.spark)
    properties = {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"}
    table.write(df.coalesce(1), "i", "d", properties=properties, options=SMALL)
    table.log.checkpoint()
    delta = DeltaTable.forPath(table.spark, str(table.path))
    groups = [("i", "t", "u"), ("i", "d", "s"), ("i", "n")]
    for keys in groups:
        clause = delta.alias("t").merge(df.alias("s"), " and ".join(f"t.{key} = s.{key}" for key in keys))
        clause.whenMatchedUpdate(set={"l": "7L"}).execute()
    table.log.checkpoint()
    fresh = Table(table.spark, table.path)
    matched = " or ".join(" and ".join(f"{key} is not null" for key in keys) for keys in groups)
    assert {row.i for row in fresh.read().where("l = 7").select("i").collect()} == {
        row.i for row in df.where(matched).select("i").collect()
    }
    for condition in ("x = 0.0D", f"t >= timestamp_micros({LAST})", "d = date'+10000-01-01'", "u = '\u00e0'"):
        delta.delete(condition)
        df = df.where(f"not coalesce({condition}, false)")
    delta.optimize().executeZOrderBy("u", "t")
    assert {row.i for row in fresh.read().select("i").collect()} == {row.i for row in df.select("i").collect()}
    assert delta.history().count() == table.log.snapshot().version + 1
