"""The whole work of a table where reads and writes go through Arrow, as on a store that Spark's JVM doesn't reach."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.table_work import STEPS, by_route, settings


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_by_arrow(spark: SparkSession, tmp_path: Path, step: Any) -> None:
    with settings(spark, by_route("arrow")):
        step(spark, f"file://{tmp_path}/a table", {})
