"""What every test may use: one Spark session for the whole run, and the corpora where they are present."""

import os
import shutil
import signal
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from support import java, other_cases, shares

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from support.spark_tables import Table

# A shell that starts the tests in the background has Ctrl-C ignored, for them and for the programs that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A program that a test starts, such as the command line, gets a JVM that starts fast too.
os.environ.setdefault("SPARK_SUBMIT_OPTS", java.java_options())

# The same cases in each run, however slow the machine is that runs them.
hypothesis.settings.register_profile("tablelog", derandomize=True, deadline=None)
hypothesis.settings.load_profile("tablelog")


def pytest_report_header() -> str:
    return f"share of the cases of each test: {shares.SHARE}"


@pytest.hookimpl(tryfirst=True)  # before pytest selects by markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    other_cases.mark_other_cases(items)
    selected, others = shares.select_share(items)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = selected


CORPORA = Path(__file__).resolve().parents[2] / "shared" / "corpora"
Corpus = Callable[[str], Path]


def _unpacked(name: str, inside: str, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    archive = CORPORA / name
    if not archive.exists():
        pytest.skip(f"the corpus {name} is not on this machine")
    target = tmp_path_factory.mktemp("corpus")
    with tarfile.open(archive) as tar:
        tar.extractall(target, filter="data")
    return lambda table: target / inside / table


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Directory of a golden table: `delta` is the table, `expected` its rows as Parquet where there are any."""
    return _unpacked("golden.tar.gz", "golden", tmp_path_factory)


@pytest.fixture(scope="session")
def dat(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Directory of a DAT table: `delta` is the table, `expected/<version>` what it holds."""
    return _unpacked("dat-v0.0.3.tar.gz", "out/reader_tests/generated", tmp_path_factory)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """The one Spark session of the run, enabled for Delta tables, in UTC."""
    from support.sessions import session_builder
    from tablelog.spark import enable

    os.environ["PYSPARK_PYTHON"] = sys.executable  # else Spark's Python workers are whatever `python3` is on the PATH
    scratch = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.driver.memory": "3g",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "local"),
    }
    session = session_builder("local[2]", settings).getOrCreate()
    enable(session)
    yield session
    session.stop()
    shutil.rmtree(scratch, ignore_errors=True)


@pytest.fixture
def table(spark: "SparkSession", tmp_path: Path) -> "Table":
    """A path with no table yet."""
    from support.spark_tables import Table

    return Table(spark, tmp_path / "table")


@pytest.fixture
def conf(spark: "SparkSession") -> Iterator[Any]:
    """`conf(key, value)` sets a key of the session for one test."""
    before: dict[str, str | None] = {}

    def set_key(key: str, value: str) -> None:
        before.setdefault(key, spark.conf.get(key, None))
        spark.conf.set(key, value)

    yield set_key
    for key, value in before.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)
