"""The whole work of a table through Spark on every server: its data files by Spark's own client, and by Arrow."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.table_work import STEPS, by_route, settings

from . import CannotInstallError
from .spark_jars import spark_jars

ROUTES = [("minio", "arrow"), ("azurite", "arrow"), ("gcs_server", "arrow"), ("hdfs", "arrow"), ("hdfs", "native")]
_TESTS = Path(__file__).resolve().parents[1]


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


@pytest.fixture(scope="session")
def jars() -> str:
    """The jars for s3a, as a setting of Spark."""
    try:
        return ",".join(map(str, spark_jars()))
    except CannotInstallError as error:
        if os.environ.get("TABLELOG_REQUIRE_SERVERS") == "1":
            pytest.fail(str(error))
        pytest.skip(str(error))


def _run(server: Any, directory: Path, *program: str) -> str:
    """The last line that a program says. A class path is a JVM's own, so it has a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", *program],
        cwd=directory,
        env={**os.environ, **server.published(), "PYTHONPATH": str(_TESTS)},
        capture_output=True,
        text=True,
        check=False,
        timeout=540,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-8000:]
    return done.stdout.split("\n")[-2]


@pytest.mark.timeout(600)
def test_the_whole_work_by_s3a(minio: Any, tmp_path: Path, jars: str) -> None:
    assert _run(minio, tmp_path, "servers.s3a_work", jars) == "all done: " + ", ".join(STEPS)


@pytest.mark.timeout(600)
def test_spark_connect_by_s3a(minio: Any, tmp_path: Path, jars: str) -> None:
    assert _run(minio, tmp_path, "servers.connect_work", jars, str(tmp_path)) == "all done"
