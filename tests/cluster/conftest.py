"""One cluster and one session on it for the whole run."""

import os
import shutil
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from support.sessions import session_builder
from tablelog.spark import enable

from .standalone import WORKERS, Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    running = Cluster.start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def spark(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session whose tasks run in the executors of the cluster; a failed task is tried again."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    scratch = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.driver.memory": "2g",
        "spark.executor.memory": "1g",
        "spark.executor.cores": "1",
        "spark.cores.max": str(WORKERS),
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "local"),
    }
    session = session_builder(cluster.url, settings).getOrCreate()
    enable(session)
    yield session
    session.stop()
    shutil.rmtree(scratch, ignore_errors=True)
