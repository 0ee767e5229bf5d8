"""The work of a table on the cluster where its files are on Azure or Google Cloud Storage: Python workers read them."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.copied_streams import copied_by_streams
from support.table_work import STEPS

pytestmark = pytest.mark.parametrize(
    "place", [("azurite", "arrow"), ("gcs_server", "arrow")], ids=" by ".join, indirect=True
)


@pytest.mark.parametrize("step", STEPS)
def test_the_whole_work(spark: SparkSession, place: Any, step: str) -> None:
    STEPS[step](spark, place.url("a table"), place.conf)


def test_streams(spark: SparkSession, place: Any, tmp_path: Path) -> None:
    copied_by_streams(spark, place.url("source"), tmp_path)
