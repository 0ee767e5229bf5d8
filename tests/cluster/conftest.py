"""One cluster for the whole run; a module names the settings that its session needs in `SETTINGS`."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from servers import CannotInstallError
from servers.fixtures import azurite, gcs_server, hdfs, minio, moto_server, pytest_terminal_summary
from servers.spark_jars import spark_jars
from support.sessions import session_builder
from support.table_work import by_route, settings
from tablelog.spark import enable

from .standalone import WORKERS, Cluster

__all__ = ["azurite", "gcs_server", "hdfs", "minio", "moto_server", "pytest_terminal_summary"]


def class_path() -> str:
    """The jars of s3a, where they are installed; nothing where they can't be."""
    try:
        return os.pathsep.join(map(str, spark_jars()))
    except CannotInstallError:
        return ""


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    # For the driver and the executors: a task of a driver with these jars fails in an executor without them. At the end
    # of the class path, so that the archive of Spark's classes still fits.
    os.environ["SPARK_DIST_CLASSPATH"] = class_path()
    running = Cluster.start()
    yield running
    running.stop()


class Sessions:
    """The one session of this process; another takes its place when a module needs other settings."""

    def __init__(self, cluster: Cluster, scratch: Path) -> None:
        self._cluster = cluster
        self._scratch = scratch
        self._settings: Mapping[str, str] | None = None
        self._session: SparkSession | None = None

    def of(self, settings: Mapping[str, str], python: str = sys.executable) -> SparkSession:
        """A session with these settings, whose executors run `python`."""
        wanted = {**settings, "python": python}
        if self._session is None or wanted != self._settings:
            self.stop()
            os.environ["PYSPARK_PYTHON"] = python
            self._session = self._started(settings)
            self._settings = wanted
        return self._session

    def _started(self, settings: Mapping[str, str]) -> SparkSession:
        shared = {
            "spark.driver.memory": "2g",
            "spark.executor.memory": "1g",
            "spark.executor.cores": "1",
            "spark.cores.max": str(WORKERS),
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
            "spark.sql.warehouse.dir": str(self._scratch / "warehouse"),
            "spark.local.dir": str(self._scratch / "local"),
        }
        session = session_builder(self._cluster.url, {**shared, **settings}).getOrCreate()
        enable(session)
        return session

    def stop(self) -> None:
        if self._session is not None:
            self._session.stop()
            self._session = None


@pytest.fixture(scope="session")
def sessions(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    scratch = tmp_path_factory.mktemp("spark")
    running = Sessions(cluster, scratch)
    running.of({})  # its settings become those of the JVM, which all later sessions have too
    yield running
    running.stop()
    shutil.rmtree(scratch, ignore_errors=True)


@pytest.fixture(scope="module")
def spark(sessions: Sessions, request: pytest.FixtureRequest) -> SparkSession:
    """A session whose tasks run in the executors of the cluster; a failed task is tried again."""
    return sessions.of(getattr(request.module, "SETTINGS", {}))


@pytest.fixture
def place(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A server by its name; the data files on it take one route. The parameter is both."""
    name, route = request.param
    server = request.getfixturevalue(name)
    if (name, route) == ("minio", "native") and not class_path():
        pytest.skip("the jars of s3a can't be installed")
    with settings(spark, {**server.conf, **by_route(route)}):
        yield server
