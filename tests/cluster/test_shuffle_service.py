"""An external shuffle service serves the shuffle files of executors that dynamic allocation has removed."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from servers import process
from support.table_work import STEPS

from .conftest import Sessions
from .test_dynamic_allocation import SETTINGS, run_without_executors, without_executors

_SPARK = Path(pyspark.__file__).parent


@pytest.fixture(scope="module")
def spark(sessions: Sessions) -> Iterator[SparkSession]:
    """A session whose executors register with a shuffle service; both workers' hosts are this machine."""
    with tempfile.TemporaryDirectory(prefix="tablelog-shuffle-") as home:
        port = process.free_port()
        log = Path(home, "log")
        environment = {
            "SPARK_HOME": str(_SPARK),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_SHUFFLE_OPTS": f"-Dspark.shuffle.service.enabled=true -Dspark.shuffle.service.port={port}",
        }
        command = [str(_SPARK / "bin" / "spark-class"), "org.apache.spark.deploy.ExternalShuffleService"]
        process.launch(Path(home), command, environment, lambda: "Starting shuffle service" in log.read_text(), 60)
        more = {"spark.shuffle.service.enabled": "true", "spark.shuffle.service.port": str(port)}
        try:
            tracking = "spark.dynamicAllocation.shuffleTracking"
            yield sessions.of({**{key: SETTINGS[key] for key in SETTINGS if not key.startswith(tracking)}, **more})
        finally:
            sessions.stop()
            process.kill(Path(home))


def test_a_shuffle_is_read_after_its_executors_are_gone(spark: SparkSession) -> None:
    """This shows that the service is used: without it, Spark runs the first stage again."""
    context = spark.sparkContext
    computed = context.accumulator(0)

    def pair(number: int) -> tuple[int, int]:
        computed.add(1)
        return number % 3, number

    sums = context.parallelize(range(12), 2).map(pair).reduceByKey(lambda left, right: left + right, 2)
    assert dict(sums.collect()) == {0: 18, 1: 22, 2: 26}
    without_executors(spark)
    assert dict(sums.collect()) == {0: 18, 1: 22, 2: 26}
    assert computed.value == 12


@pytest.mark.parametrize("route", ["native", "arrow"])
def test_executors_go_between_commands(spark: SparkSession, tmp_path: Path, route: str) -> None:
    run_without_executors(spark, tmp_path, route)


def test_the_whole_work(spark: SparkSession, tmp_path: Path) -> None:
    STEPS["commands"](spark, f"file://{tmp_path}/a table", {})
