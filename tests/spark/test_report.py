"""What a report advises runs as SQL, and gains what the report expects."""

import pytest

from tablelog.report import Advice, Report, report

NAME = "o'clock `x` \\ é"


def advised(made: Report, word: str) -> Advice:
    return next(item for item in made.advice if word in item.command)


@pytest.mark.slow
def test_optimize_leaves_as_many_files_as_the_report_says(spark, table):
    for i in range(10):
        table.write(spark.range(i, i + 1).withColumn("part", _text(NAME)), by=["part"])
    for i in range(4):
        table.write(spark.range(i, i + 1).withColumn("part", _text(f"p{i}")), by=["part"])
    made = report(table.path)
    assert (made.facts.files.count, made.facts.files.after) == (14, 5)
    item = advised(made, "OPTIMIZE")
    assert item.title == "Combine small files in 1 partition"
    assert "14 become 5" in item.gain
    spark.sql(item.command)
    after = report(table.path)
    assert after.facts.files.count == 5
    assert after.facts.growth[-2].files == 14
    assert not any("OPTIMIZE" in item.command for item in after.advice)
    assert after.facts.growth[-1].rows == 14


def test_purge_ends_the_deletion_vectors(spark, table):
    table.write(spark.range(100).repartition(1))
    table.delta.setProperties({"delta.enableDeletionVectors": "true"})
    table.delta.delete("id < 50")
    made = report(table.path)
    assert (made.facts.vectors.files, made.facts.vectors.rows, made.facts.files.rows) == (1, 50, 50)
    spark.sql(advised(made, "REORG").command)
    assert report(table.path).facts.vectors.files == 0


@pytest.mark.slow
def test_the_property_is_accepted(spark, table):
    for i in range(24):
        table.write(spark.range(i, i + 1).selectExpr("id", "id `a.b`"))
    made = report(table.path)
    spark.sql(advised(made, "autoCompact").command)
    assert ("delta.autoOptimize.autoCompact", "true") in report(table.path).facts.properties
    assert [column.name for column in made.facts.skipping.columns] == ["id", "a.b"]


def _text(value: str):
    from pyspark.sql.functions import lit

    return lit(value)
