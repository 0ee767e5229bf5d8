"""Runs a generated sequence of SQL statements with both engines, and lets each read the other's tables."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.worker import Worker
from pyspark.sql import SparkSession

from . import sql_outcomes
from .sql_compare import DEFAULT, differences, schema_without
from .sql_differences import ACCEPTED
from .sql_sequences import SETTINGS, Sequence, sequence

SEEDS = range(3)


def check(spark: SparkSession, peer: Worker, directory: Path, subject: str, seed: int) -> None:
    """Fails for each difference that isn't accepted, and for each accepted one that doesn't occur where it should."""
    case = sequence(subject, seed)
    ours, theirs = directory / "ours", directory / "theirs"
    texts = [statement.text for statement in case.statements]
    try:
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(peer, "statements", statements=texts, root=str(theirs), tables=case.tables)
            left = sql_outcomes.run(spark, texts, str(ours), case.tables)
            right = answer.result()
        _check_differences(case, left, right, (str(ours), str(theirs)))
        for table in case.tables.values():
            for root in (ours, theirs):
                _check_read(spark, peer, root / table)
    finally:
        for text in (f"DROP DATABASE IF EXISTS {case.database} CASCADE", *(f"RESET {key}" for key in SETTINGS)):
            spark.sql(text)
            peer("sql", text=text)


def _check_differences(case: Sequence, left: list[Any], right: list[Any], roots: tuple[str, str]) -> None:
    found = differences(case.statements, left, right, roots)
    expected = [accepted for accepted in ACCEPTED if case.database in accepted.sequences.split()]
    unexpected = [one for one in found if not any(accepted.fits(one) for accepted in expected)]
    assert not unexpected, "\n".join(map(str, unexpected))
    vanished = [accepted for accepted in expected if not any(map(accepted.fits, found))]
    assert not vanished, f"these differences are listed, and there are none: {vanished}"


def _check_read(spark: SparkSession, peer: Worker, table: Path) -> None:
    ours = sql_outcomes.cross_read(spark, str(table))
    theirs = peer("cross_read", path=str(table))
    if ours["detail"]["properties"].get("delta.enableInCommitTimestamps") == "true":
        theirs["detail"]["lastModified"] = ours["detail"]["lastModified"]  # the time of the file there
    for one in (ours, theirs):
        one["read"]["schema"] = schema_without(one["read"].get("schema"), DEFAULT)
    both = {"ours": {**ours.pop("detail"), **ours}, "delta-spark": {**theirs.pop("detail"), **theirs}}
    different = {
        name: {engine: read.get(name) for engine, read in both.items()}
        for name in both["ours"].keys() | both["delta-spark"].keys()
        if both["ours"].get(name) != both["delta-spark"].get(name)
    }
    assert not different, (table, different)
