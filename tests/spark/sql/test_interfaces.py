"""Interfaces of Spark that Python classes implement: Py4J sends every method to Python, also those with a default."""

import pytest
from pyspark.sql import SparkSession

from tablelog.engine.jvm.statements.inserts import InsertTarget
from tablelog.engine.jvm.statements.table_catalog import DescribedTable


@pytest.mark.parametrize("kind", [InsertTarget, DescribedTable])
def test_python_has_every_method(spark: SparkSession, kind: type) -> None:
    for name in kind.Java.implements:
        methods = spark._jvm.java.lang.Class.forName(name).getMethods()
        names = {str(method.getName()) for method in methods if "static" not in method.toString().split("(")[0].split()}
        assert {one for one in names if "$" not in one and not hasattr(kind, one)} == set(), name
