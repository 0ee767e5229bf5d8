"""A path with a scheme is a URI, by each route to a table: its percent-escapes are decoded (docs/stores.md)."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tablelog.spark import DeltaTable

CREATES: dict[str, Callable[[SparkSession, str], Any]] = {
    "save": lambda spark, uri: spark.range(1).write.format("delta").save(uri),
    "the option path": lambda spark, uri: spark.range(1).write.format("delta").option("path", uri).save(),
    "saveAsTable": lambda spark, uri: spark.range(1).write.format("delta").option("path", uri).saveAsTable("of_uri"),
    "LOCATION": lambda spark, uri: spark.sql(f"CREATE TABLE of_uri USING delta LOCATION '{uri}' AS SELECT 0L id"),
    "delta.`path`": lambda spark, uri: spark.sql(f"CREATE TABLE delta.`{uri}` USING delta AS SELECT 0L id"),
    "the builder": lambda spark, uri: DeltaTable.create(spark).location(uri).addColumn("id", "long").execute(),
    "the catalog": lambda spark, uri: spark.catalog.createTable(
        "of_uri", path=uri, source="delta", schema=spark.range(1).schema
    ),
}


@pytest.mark.one_case
@pytest.mark.parametrize("way", CREATES)
def test_escapes_of_a_uri_are_decoded_and_those_of_a_path_are_not(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    root = tmp_path / "d"
    for uri, name in ((f"file:{root}/a%20b", "a b"), (f"file:{root}/a%2520b", "a%20b"), (f"{root}/a%20b", "a%20b")):
        root.mkdir()
        CREATES[way](spark, uri)
        assert os.listdir(root) == [name]
        location = spark.sql(f"DESCRIBE DETAIL delta.`{uri}`").first()["location"]
        for known in (uri, location):
            assert spark.read.format("delta").load(known).count() == DeltaTable.forPath(spark, known).toDF().count()
        spark.sql("DROP TABLE IF EXISTS of_uri")
        shutil.rmtree(root)
