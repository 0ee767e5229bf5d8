"""Every feature, both ways: one engine makes a table, the other reads each version, goes on with it, and back.

docs/interop.md is what this finds; TABLELOG_UPDATE_DOCS=1 writes it.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.worker import Worker
from pyspark.sql import DataFrame, SparkSession

from interop.engines import ENGINES
from interop.features import CASES, THEIR_WORDS, Case, scope
from support.rows import assert_same_rows, multiset
from tablelog.core import DeltaLog
from tablelog.spark import DeltaTable

DOCS = Path(__file__).resolve().parents[3] / "docs" / "interop.md"
HEAD = """# Which engine reads and writes what

One engine makes a table with the feature, the other reads every version of it, appends to it, deletes and updates
rows, and the first reads that and goes on. Written by tests/interop/delta_spark/test_features.py (`make interop`),
which fails when this page isn't what it finds. *rows* means that they were right; what refuses a table reads none.

"""
FOUND: dict[str, list[str]] = {}


def read(spark: SparkSession, path: str, case: Case, **options: Any) -> pa.Table:
    frame = spark.read.format("delta").options(**options).load(path)
    return shown(frame, case)


def shown(frame: DataFrame, case: Case) -> pa.Table:
    return frame.drop("_commit_timestamp").selectExpr(*case.shown).toArrow()


def theirs(peer: Worker, path: str, case: Case, out: Path, **options: Any) -> pa.Table:
    lines = (
        f"frame = spark.read.format('delta').options(**{options!r}).load(path)\n"
        f"frame = frame.drop('_commit_timestamp').selectExpr(*{case.shown!r})\n"
        f"frame.coalesce(1).write.mode('overwrite').parquet({str(out)!r})"
    )
    peer("run", code=lines, path=path)
    return pq.read_table(out)


def assert_both_read_the_same(spark: SparkSession, peer: Worker, path: str, case: Case, out: Path, first: int) -> int:
    newest = DeltaLog.for_path(path).snapshot().version
    for at in range(first, newest + 1):
        assert_same_rows(theirs(peer, path, case, out, versionAsOf=at), read(spark, path, case, versionAsOf=at))
    if case.feed:
        feed = {"readChangeFeed": "true", "startingVersion": "0"}
        assert_same_rows(theirs(peer, path, case, out, **feed), read(spark, path, case, **feed))
    return newest + 1


def ours(spark: SparkSession, path: str, lines: str) -> None:
    exec(lines, scope(spark, path))


def their(peer: Worker, path: str, lines: str) -> None:
    peer("run", code=THEIR_WORDS + lines, path=path)


def assert_it_has_the_feature(spark: SparkSession, peer: Worker, path: str, case: Case) -> None:
    """`DESCRIBE DETAIL` says so, and says the same of the table in all else."""
    detail = peer("detail", path=path)
    ours = json.loads(DeltaTable.forPath(spark, path).detail().toJSON().collect()[0])
    if case.feature == "inCommitTimestamp":  # theirs is the time of the file all the same
        detail["lastModified"] = ours["lastModified"]
    assert ours == detail
    if case.versions:
        assert (detail["minReaderVersion"], detail["minWriterVersion"]) == case.versions
    else:
        assert case.feature.split()[0] in detail["tableFeatures"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.feature)
def test_both_engines_take_turns(spark: SparkSession, peer: Worker, tmp_path: Path, case: Case) -> None:
    out = tmp_path / "out"
    mine, yours = str(tmp_path / "mine"), str(tmp_path / "yours")
    ours(spark, mine, case.make)
    rows = spark.read.format("delta").load(mine).toArrow()
    others = [told(engine, mine, rows, case) for engine in ENGINES.values()]
    done = assert_both_read_the_same(spark, peer, mine, case, out, 0)
    assert_it_has_the_feature(spark, peer, mine, case)
    their(peer, mine, case.more)
    done = assert_both_read_the_same(spark, peer, mine, case, out, done)
    ours(spark, mine, case.more)
    assert_both_read_the_same(spark, peer, mine, case, out, done)

    their(peer, yours, case.make)
    assert_it_has_the_feature(spark, peer, yours, case)
    done = assert_both_read_the_same(spark, peer, yours, case, out, 0)
    ours(spark, yours, case.more)
    done = assert_both_read_the_same(spark, peer, yours, case, out, done)
    their(peer, yours, case.more)
    assert_both_read_the_same(spark, peer, yours, case, out, done)
    FOUND[case.feature] = ["rows", "rows", *others]


def told(engine: Callable[[str], pa.Table], path: str, expected: pa.Table, case: Case) -> str:
    """What another engine makes of a table of ours; wrong rows of a feature that it says to know are our concern."""
    try:
        found = engine(path)
    except Exception:
        return "refuses"
    if case.shown != ("*",):
        return "reads"  # the two have no common form of the type
    return "rows" if multiset(found) == multiset(expected) else "other rows"


def test_the_page_says_what_was_found() -> None:
    if len(FOUND) < len(CASES):
        pytest.skip("the page is about all features, and not all were tried")
    lines = [
        "| feature | delta-spark 4.4.0 and ours: made by us | made by it | "
        + " | ".join(f"{engine} reads ours" for engine in ENGINES)
        + " |",
        "|---|---|---|" + "---|" * len(ENGINES),
        *(f"| {name} | {' | '.join(FOUND[name])} |" for name in (case.feature for case in CASES)),
    ]
    page = HEAD + "\n".join(lines) + "\n"
    if os.environ.get("TABLELOG_UPDATE_DOCS"):
        DOCS.write_text(page)
    assert DOCS.read_text() == page, "run this with TABLELOG_UPDATE_DOCS=1, and look at what changed"
