"""The queries of TPC-H and TPC-DS give the same results on Delta tables as on Parquet, in one Spark session."""

import pytest
from pyspark.sql import SparkSession

from . import texts
from .answers import assert_same_answers

TPCH, TPCDS = texts.tpch(), texts.tpcds()


@pytest.mark.parametrize("number", TPCH)
def test_tpch(spark: SparkSession, tpch: str, number: int) -> None:
    assert_same_answers(spark, TPCH[number], f"{tpch}_delta", f"{tpch}_parquet")


@pytest.mark.parametrize("number", TPCDS)
def test_tpcds(spark: SparkSession, tpcds: str, number: int) -> None:
    assert_same_answers(spark, TPCDS[number], f"{tpcds}_delta", f"{tpcds}_parquet")
