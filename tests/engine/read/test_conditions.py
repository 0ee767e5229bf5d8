"""A condition taken apart: what partition columns decide, what data decides, what is refused."""

import re

import pyarrow.compute as pc
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tablelog.core.skipping import predicates as core
from tablelog.engine.read import scan
from tablelog.errors import InvalidArgumentError, UnsupportedFeatureError

from .tables import HandMade


def numbers(clustered: HandMade, rows: object) -> set[int]:
    return set(pc.add(rows, 0).to_pylist())


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("p = 1", {1, 5, 9, 13, 17}),
        ("P = 1 and true", {1, 5, 9, 13, 17}),
        ("t.p = 1 or t.p is null", {1, 5, 9, 13, 17}),
        ("p % 2 = 1 and cast(p as string) > '1'", {3, 7, 11, 15, 19}),
        ("true", set(range(20))),
        ("false", set()),
        ("p = 1 and p = 2", set()),
        (lambda: F.col("p") == 1, {1, 5, 9, 13, 17}),
    ],
)
def test_partition_only(spark: SparkSession, clustered: HandMade, condition: object, files: set[int]) -> None:
    log = clustered.log
    snapshot = log.snapshot()
    frame = scan.frame(spark, log, snapshot=snapshot)
    given = condition() if callable(condition) else condition  # a Column needs a running Spark
    found = scan.split_condition(frame.alias("t"), given, clustered.log.snapshot().mapping)  # type: ignore[arg-type]
    assert found.data is None
    assert numbers(clustered, scan.exact_partitions(spark, snapshot, found)) == files
    assert frame.where(found.column(frame)).count() == 10 * len(files)


@pytest.mark.parametrize(
    ("condition", "partitions", "candidates", "rows"),
    [
        ("p = 1 and id < 60", {1, 5, 9, 13, 17}, {1, 5}, 20),
        ("id < 15", set(range(20)), {0, 1}, 15),
        ("p = 1 or id < 15", set(range(20)), set(range(20)), 60),
        ("p = 1 and hash(s) = hash('v3')", {1, 5, 9, 13, 17}, {1, 5, 9, 13, 17}, 5),
        ("id = id and p = 0", {0, 4, 8, 12, 16}, {0, 4, 8, 12, 16}, 50),
    ],
)
def test_mixed(
    spark: SparkSession, clustered: HandMade, condition: str, partitions: set[int], candidates: set[int], rows: int
) -> None:
    log = clustered.log
    snapshot = log.snapshot()
    frame = scan.frame(spark, log, snapshot=snapshot)
    found = scan.split_condition(frame, condition, clustered.log.snapshot().mapping)
    assert found.data is not None
    assert numbers(clustered, scan.exact_partitions(spark, snapshot, found)) == partitions
    assert numbers(clustered, scan.candidates(spark, snapshot, found)) == candidates
    numbered = scan.frame(spark, log, snapshot=snapshot, files=snapshot.files, file_number="__file").alias("other")
    matched = numbered.where(found.column(numbered))
    assert matched.count() == rows
    assert {row[0] for row in matched.select("__file").distinct().collect()} <= candidates


def test_a_column_bound_to_another_frame_of_the_table(spark: SparkSession, clustered: HandMade) -> None:
    log = clustered.log
    other = scan.frame(spark, log)
    frame = scan.frame(spark, log, snapshot=log.snapshot())
    found = scan.split_condition(frame, (other.p == 1) & (other["id"] < 60), clustered.log.snapshot().mapping)
    assert frame.where(found.column(frame)).count() == 20


def test_the_text_is_delta_s(spark: SparkSession, clustered: HandMade) -> None:
    frame = scan.frame(spark, clustered.log)
    (text,) = scan.split_condition(frame, "p = 1 and s = 'v1'", clustered.log.snapshot().mapping).sql
    assert core.Opaque(text).text == text
    assert re.fullmatch(r"\(\(p#\d+ = 1\) AND \(s#\d+ = v1\)\)", text)


def test_what_is_refused(spark: SparkSession, clustered: HandMade) -> None:
    frame = scan.frame(spark, clustered.log)
    spark.range(3).createOrReplaceTempView("three")
    with pytest.raises(UnsupportedFeatureError, match="subquery"):
        scan.split_condition(frame, "id in (select id from three)", clustered.log.snapshot().mapping)
    with pytest.raises(UnsupportedFeatureError, match="subquery"):
        scan.split_condition(frame, "exists (select 1 from three)", clustered.log.snapshot().mapping)
    with pytest.raises(InvalidArgumentError, match="not deterministic"):
        scan.split_condition(frame, "rand() < 0.5", clustered.log.snapshot().mapping)
    with pytest.raises(AnalysisException):
        scan.split_condition(frame, "nobody = 1", clustered.log.snapshot().mapping)
    with pytest.raises(AnalysisException):
        scan.split_condition(frame, "id", clustered.log.snapshot().mapping)
