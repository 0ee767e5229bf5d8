"""One small table, reached by each route that a statement may name it by."""

import shutil

import pytest

from support.spark_tables import Table
from tablelog.spark import DeltaTable


class Routes:
    """A table of two columns and a partition column, by path, by name and by a temporary view, and equal copies."""

    def __init__(self, spark, root):
        self.spark = spark
        self.root = root
        self.count = 0

    def make(self, frame, *, by=(), **properties):
        self.count += 1
        table = Table(self.spark, self.root / f"t{self.count}")
        table.write(frame, by=by, **properties)
        return table

    def copy(self, table):
        self.count += 1
        copied = Table(self.spark, self.root / f"t{self.count}")
        shutil.copytree(table.path, copied.path)
        return copied

    def name(self, table, route):
        """What a statement calls the table."""
        if route == "path":
            return f"delta.`{table.path}`"
        if route == "view":
            table.read().createOrReplaceTempView(f"v_{table.root.name}")
            return f"v_{table.root.name}"
        DeltaTable.createIfNotExists(self.spark).tableName(f"own.{table.root.name}").location(table.path).execute()
        return f"own.{table.root.name}" if route == "name" else f"spark_catalog.own.{table.root.name}"


@pytest.fixture
def routes(spark, tmp_path):
    spark.sql(f"CREATE DATABASE own LOCATION '{tmp_path / 'db'}'")
    found = Routes(spark, tmp_path)
    yield found
    spark.sql("DROP DATABASE own CASCADE")
    for number in range(found.count + 1):
        spark.catalog.dropTempView(f"v_t{number}")


@pytest.fixture
def database(spark, tmp_path):
    """The current database: it is new, and its tables are in `tmp_path / "db"`. No temporary view hides them."""
    for found in spark.catalog.listTables():
        if found.isTemporary:
            spark.catalog.dropTempView(found.name)
    spark.sql(f"CREATE DATABASE own LOCATION '{tmp_path / 'db'}'")
    spark.catalog.setCurrentDatabase("own")
    yield "own"
    spark.catalog.setCurrentDatabase("default")
    spark.sql("DROP DATABASE own CASCADE")
