"""A session whose tasks are tried three times, as on a cluster: in a usual local one the first failure is the last."""

import os
import shutil
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from servers.fixtures import minio, pytest_terminal_summary
from support.killed_driver import session
from tablelog.spark import enable

__all__ = ["minio", "pytest_terminal_summary", "spark"]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    scratch = tmp_path_factory.mktemp("spark")
    made = session(str(scratch), tries=3)
    enable(made)
    yield made
    made.stop()
    shutil.rmtree(scratch, ignore_errors=True)
