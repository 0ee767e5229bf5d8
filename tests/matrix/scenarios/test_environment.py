"""That the cell is what its name says: its versions, its settings, its workers, and tablelog's wheel."""

import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import functions as F

import tablelog
from matrix.cells import CLASSIC, Cell
from tablelog.spark import disable, enable, is_enabled


def test_the_versions_are_those_of_the_cell(spark: Any, cell: Cell) -> None:
    assert "site-packages" in str(tablelog.__file__), "the wheel, and not the source tree"
    assert Path(sys.prefix) in Path(str(tablelog.__file__)).parents
    assert spark.version.partition("-")[0] == pyspark.__version__.partition(".dev")[0]
    if cell.python:
        assert "{}.{}".format(*sys.version_info) == cell.python
        assert spark.version.startswith(f"{cell.spark}.")
    worker = F.udf(lambda _: "{}.{}".format(*sys.version_info))
    assert spark.range(1).select(worker("id")).first()[0] == "{}.{}".format(*sys.version_info)


def test_the_session_has_the_settings_of_the_cell(spark: Any, cell: Cell) -> None:
    assert {key: spark.conf.get(key) for key in cell.settings} == cell.settings
    assert spark.sql("select current_timezone()").first()[0] == cell.zone


def test_disable_and_enable(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    assert is_enabled(spark)
    disable(spark)
    try:
        assert not is_enabled(spark)
        with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
            spark.range(1).write.format("delta").save(path)
    finally:
        enable(spark)
    spark.range(1).write.format("delta").save(path)
    assert spark.read.format("delta").load(path).count() == 1


@pytest.mark.only(CLASSIC)
def test_a_new_session_is_enabled_by_itself(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    other = spark.newSession()
    assert not is_enabled(other)
    enable(other)
    try:
        other.range(3).write.format("delta").save(path)
        assert spark.read.format("delta").load(path).count() == 3
    finally:
        disable(other)
    assert is_enabled(spark)
