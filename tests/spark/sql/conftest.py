"""What the tests of statements share."""

import pytest


@pytest.fixture
def database(spark, tmp_path):
    """The current database: it is new, and its tables are in `tmp_path / "db"`."""
    spark.sql(f"CREATE DATABASE own LOCATION '{tmp_path / 'db'}'")
    spark.catalog.setCurrentDatabase("own")
    yield "own"
    spark.catalog.setCurrentDatabase("default")
    spark.sql("DROP DATABASE own CASCADE")
