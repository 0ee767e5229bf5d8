"""Generated statements that maintain tables give the same with delta-spark and with us."""

from pathlib import Path

import pytest
from benchmarks.worker import Worker
from pyspark.sql import SparkSession

from .sql_checks import SEEDS, check


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.timeout(900)
def test_both_engines_do_the_same(spark: SparkSession, peer: Worker, tmp_path: Path, seed: int) -> None:
    check(spark, peer, tmp_path, "maintenance", seed)
