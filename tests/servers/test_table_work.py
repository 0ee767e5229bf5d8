"""The whole work of a table through Spark on every server: its data files by Spark's own client, and by Arrow."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.table_work import STEPS, by_route, settings

from .programs import run_program

ROUTES = [("minio", "arrow"), ("azurite", "arrow"), ("gcs_server", "arrow"), ("hdfs", "arrow"), ("hdfs", "native")]


@pytest.fixture(params=ROUTES, ids=" by ".join)
def place(request: pytest.FixtureRequest) -> tuple[Any, str]:
    """A server, and the route that its data files take."""
    server, route = request.param
    return request.getfixturevalue(server), route


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_the_whole_work(spark: SparkSession, place: tuple[Any, str], step: Any) -> None:
    server, route = place
    with settings(spark, {**server.conf, **by_route(route)}):
        step(spark, server.url("a table"), server.conf)


@pytest.mark.timeout(600)
def test_the_whole_work_by_s3a(minio: Any, tmp_path: Path, jars: str) -> None:
    assert run_program(minio, tmp_path, "servers.s3a_work", jars) == "all done: " + ", ".join(STEPS)


@pytest.mark.timeout(600)
def test_spark_connect_by_s3a(minio: Any, tmp_path: Path, jars: str) -> None:
    assert run_program(minio, tmp_path, "servers.connect_work", str(tmp_path), "local[2]", jars) == "all done"


@pytest.mark.timeout(600)
def test_spark_connect_on_hdfs(hdfs: Any, tmp_path: Path) -> None:
    assert run_program(hdfs, tmp_path, "servers.connect_work", str(tmp_path), "local[2]") == "all done"
