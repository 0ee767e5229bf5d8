"""One session with the tables of each benchmark in two databases: `<benchmark>_parquet` and `<benchmark>_delta`."""

import os
import shutil
import sys
from collections.abc import Iterator

import pytest
from benchmarks import tpc_data
from pyspark.sql import SparkSession

from support.sessions import session_builder
from tablelog.spark import enable

from .layouts import LAYOUTS, PLAIN, create

SCALE = 0.1


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    scratch = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.driver.memory": "3g",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",  # as standard SQL, and the texts, have them
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "local"),
    }
    session = session_builder("local[2]", settings).getOrCreate()
    enable(session)
    yield session
    session.stop()
    shutil.rmtree(scratch, ignore_errors=True)


def _databases(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, benchmark: str) -> Iterator[str]:
    directory = tmp_path_factory.mktemp(benchmark)
    connection = tpc_data.generator(benchmark)
    names = tpc_data.generate(connection, benchmark, SCALE)
    tpc_data.write_parquet(connection, names, directory)
    connection.close()
    for kind in ("parquet", "delta"):
        spark.sql(f"CREATE DATABASE {benchmark}_{kind} LOCATION '{directory / kind}'")
    for name in names:
        source = f"{benchmark}_parquet.{name}"
        spark.sql(f"CREATE TABLE {source} USING parquet LOCATION '{directory / name}.parquet'")
        create(spark, source, f"{benchmark}_delta.{name}", LAYOUTS.get(name, PLAIN))
    yield benchmark
    for kind in ("parquet", "delta"):
        spark.sql(f"DROP DATABASE {benchmark}_{kind} CASCADE")
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def tpch(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from _databases(spark, tmp_path_factory, "tpch")


@pytest.fixture(scope="module")
def tpcds(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from _databases(spark, tmp_path_factory, "tpcds")
