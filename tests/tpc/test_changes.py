"""The refresh functions of TPC-H, and other changes by SQL: the tables are what DuckDB makes of them."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import duckdb
import pytest
from benchmarks import tpc_data
from pyspark.sql import SparkSession

from support.rows import assert_same_rows

from . import texts
from .answers import assert_same_answers
from .changes import COLUMNS, WORKLOAD
from .conftest import SCALE
from .layouts import MAPPED, VECTORS, Layout, create

FEED = {"delta.enableChangeDataFeed": "true"}
CHANGED = ("customer", "lineitem", "orders", "partsupp")

# How the changed tables are stored: properties of all, and the partitions of the two that grow.
VARIANTS: Mapping[str, tuple[Mapping[str, str], str, str]] = {
    "copy on write": ({}, "PARTITIONED BY (o_orderstatus)", "PARTITIONED BY (l_shipmode)"),
    "deletion vectors": (VECTORS | FEED, "", "PARTITIONED BY (l_shipmode)"),
    "mapped and clustered": (VECTORS | MAPPED, "CLUSTER BY (o_orderdate)", "CLUSTER BY (l_shipdate, l_orderkey)"),
}


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The tables as Parquet."""
    directory = tmp_path_factory.mktemp("generated")
    connection = tpc_data.generator("tpch")
    tpc_data.write_parquet(connection, tpc_data.generate(connection, "tpch", SCALE), directory)
    connection.close()
    yield directory
    shutil.rmtree(directory)


class Expected:
    """What DuckDB makes of the tables: how many rows each statement changes, and the tables at the end."""

    def __init__(self, generated: Path, directory: Path) -> None:
        self.directory = directory
        self.connection = duckdb.connect()
        self.connection.execute("CREATE SCHEMA source; CREATE SCHEMA target")
        self.names = sorted(path.stem for path in generated.glob("*.parquet"))
        for name in self.names:
            self.connection.execute(f"CREATE VIEW source.{name} AS FROM '{generated / name}.parquet'")
            self.connection.execute(f"CREATE TABLE target.{name} AS FROM source.{name}")
        self.counts = [self._run(text) for text in WORKLOAD]
        for name in self.names:
            self.connection.execute(f"COPY target.{name} TO '{directory / name}.parquet' (FORMAT parquet)")

    def _run(self, text: str) -> int:
        ((count,),) = self.connection.execute(text.format(source="source", target="target")).fetchall()
        return int(count)


@pytest.fixture(scope="module")
def expected(generated: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Expected]:
    directory = tmp_path_factory.mktemp("expected")
    answers = Expected(generated, directory)
    yield answers
    answers.connection.close()
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def databases(spark: SparkSession, generated: Path, expected: Expected) -> Iterator[None]:
    """The databases `generated` and `expected`, of Parquet tables."""
    for database, directory in (("generated", generated), ("expected", expected.directory)):
        spark.sql(f"CREATE DATABASE {database}")
        for path in sorted(directory.glob("*.parquet")):
            spark.sql(f"CREATE TABLE {database}.{path.stem} USING parquet LOCATION '{path}'")
    yield
    for database in ("generated", "expected"):
        spark.sql(f"DROP DATABASE {database} CASCADE")


@pytest.fixture(scope="module", params=VARIANTS)
def changed(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    databases: None,
    expected: Expected,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """The database `changed` of Delta tables after the workload, and the name of the variant."""
    properties, orders, lineitem = VARIANTS[request.param]
    directory = tmp_path_factory.mktemp("changed")
    spark.sql(f"CREATE DATABASE changed LOCATION '{directory}'")
    for name in expected.names:
        by = {"orders": orders, "lineitem": lineitem}.get(name, "")
        layout = Layout(by=by, properties=properties if name in CHANGED else {})
        create(spark, f"generated.{name}", f"changed.{name}", layout)
    for text, count in zip(WORKLOAD, expected.counts, strict=True):
        answer = spark.sql(text.format(source="generated", target="changed")).head()
        assert answer is None or answer[0] == count, text
        assert count > 0, text
    yield request.param
    spark.sql("DROP DATABASE changed CASCADE")


@pytest.mark.parametrize("name", CHANGED)
def test_a_changed_table_is_that_of_duckdb(spark: SparkSession, changed: str, expected: Expected, name: str) -> None:
    assert_same_rows(
        spark.sql(f"SELECT * FROM changed.{name}").toArrow(),
        expected.connection.sql(f"FROM target.{name}").to_arrow_table(),
    )


@pytest.mark.parametrize("name", ["lineitem", "orders"])
def test_the_first_version_is_as_it_was(spark: SparkSession, changed: str, name: str) -> None:
    columns = COLUMNS[name]
    summed = f"count(*), bit_xor(xxhash64({columns})), sum(crc32(concat_ws(',', {columns})))"
    first = spark.sql(f"SELECT {summed} FROM changed.{name} VERSION AS OF 0").head()
    assert first == spark.sql(f"SELECT {summed} FROM generated.{name}").head()
    assert first != spark.sql(f"SELECT {summed} FROM changed.{name}").head()


@pytest.mark.parametrize("number", [1, 3, 13, 18])
def test_queries_see_the_changes(spark: SparkSession, changed: str, number: int) -> None:
    assert_same_answers(spark, texts.tpch()[number], "changed", "expected")


def test_the_change_data_feed_leads_from_the_first_version_to_the_last(spark: SparkSession, changed: str) -> None:
    if "enableChangeDataFeed" not in " ".join(VARIANTS[changed][0]):
        pytest.skip("these tables have no change data feed")
    location = spark.sql("DESCRIBE DETAIL changed.orders").head()["location"]
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1).load(location)
    feed.createOrReplaceTempView("feed")
    columns = f"o_orderkey, {COLUMNS['orders']}"
    left = spark.sql(
        f"SELECT {columns}, sum(way) AS more FROM ("
        f"SELECT {columns}, 1 AS way FROM generated.orders "
        f"UNION ALL SELECT {columns}, if(_change_type IN ('insert', 'update_postimage'), 1, -1) FROM feed "
        f"UNION ALL SELECT {columns}, -1 FROM changed.orders) GROUP BY {columns} HAVING more <> 0"
    )
    assert left.collect() == []
    assert feed.count() > 1000
