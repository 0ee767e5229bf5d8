"""The examples of Delta's user guide are served, or refused by the conditions that our page lists."""

from pathlib import Path

import pyspark
import pytest
from pyspark.errors import PySparkException

from spark.sql.delta_guide import PAGES, table

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "delta-guide.md"
SPARK = pyspark.__version__


@pytest.fixture
def settings(spark):
    """The settings of the session are as before when the test ends."""
    before = dict(spark.conf.getAll)
    yield
    after = dict(spark.conf.getAll)
    for key in after.keys() - before.keys():
        spark.conf.unset(key)
    for key, value in before.items():
        if after.get(key) != value:
            spark.conf.set(key, value)


def answer(frame, columns, data):
    """The rows in order, with `/data` for the directory of the test."""

    def readable(value):
        return value.replace(f"file:{data}", "/data").replace(data, "/data") if isinstance(value, str) else value

    frame = frame.select(*columns.split()) if columns else frame
    return sorted((tuple(map(readable, row)) for row in frame.collect()), key=repr)


def outcome(spark, example, data):
    """What happens: the rows, or the condition of the error."""
    statement = example.statement.replace("/data/", f"{data}/")
    try:
        frame = spark.sql(statement)
        if not example.section:
            return []
        if example.query is not None:
            frame = spark.sql(example.query.replace("/data/", f"{data}/"))
        return answer(frame, example.columns, data)
    except PySparkException as error:
        return error.getCondition() or repr(error)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page(spark, database, settings, tmp_path, page):
    differences = []
    for example in PAGES[page]:
        if example.since > SPARK:
            continue
        expected = example.error or sorted(example.rows, key=repr)
        happened = outcome(spark, example, str(tmp_path / "data"))
        if happened != expected:
            differences.append((example.statement, happened, expected))
    assert not differences, "\n".join(f"{one}\n    is  {two}\n    not {three}" for one, two, three in differences)


def test_the_page_has_the_table():
    assert table() in PAGE.read_text()
