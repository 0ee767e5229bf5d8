"""Conditions on partitions of a large log that match very many files: these are removed in pieces, the others stay."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from support.commands import copy_of
from support.large_logs import LARGE, noted_jobs
from support.large_tables import (
    WITH_CHANGE_FEED,
    between,
    committed,
    rows,
    state,
    with_history,
)
from support.spark_tables import Table
from support.table_work import settings
from tablelog.core import DeltaLog
from tablelog.core.log.columns import removes_of
from tablelog.core.txn import bulk_actions
from tablelog.engine.read import file_groups
from tablelog.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
)
from tablelog.spark import conf


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return with_history(
        Table(spark, tmp_path_factory.mktemp("whole") / "table"), partial(rows, spark), **WITH_CHANGE_FEED
    )


_KEYS = "p is not null"
PARTITIONS: dict[str, Callable[[Table], Any]] = {
    "delete": lambda t: t.delta.delete("p is null or p = 'a b/%'"),
    "delete by what only Spark evaluates": lambda t: t.delta.delete("coalesce(length(p), 5) > 3"),
    "update": lambda t: t.delta.update("coalesce(p, 'x') <> 'a b/%'", {"id": "id + 1000", "p": "concat(p, 'y')"}),
    "replaceWhere": lambda t: t.write(rows(t.spark, 900, 6).where("p is not null"), "overwrite", replaceWhere=_KEYS),
    "rearranged": lambda t: t.write(t.read().where(_KEYS), "overwrite", replaceWhere=_KEYS, dataChange="false"),
    "dynamic overwrite": lambda t: t.write(
        rows(t.spark, 900, 6).where("p is not null"), "overwrite", partitionOverwriteMode="dynamic"
    ),
}


@pytest.mark.slow
@pytest.mark.one_case
@pytest.mark.parametrize("name", PARTITIONS)
def test_very_many_files_of_partitions(
    base: Table, in_pieces: list[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Whole partitions are removed in pieces, the other files stay, and so does a file that comes between."""
    known = {a["add"]["path"] for v in range(base.version + 1) for a in base.actions(v) if "add" in a}
    small, large = copy_of(base, f"{name} by partitions, small"), copy_of(base, f"{name} by partitions, large")
    conf.forget()
    with monkeypatch.context() as patched:
        patched.setattr(bulk_actions, "_BYTES", 1 << 40)
        PARTITIONS[name](small)
    assert not in_pieces
    monkeypatch.setattr(file_groups, "MOST_FILES", 2)
    with settings(base.spark, LARGE):
        conf.forget()
        PARTITIONS[name](large)
    assert in_pieces == ["lines"]
    assert committed(large, known) == committed(small, known)
    conf.forget()
    assert state(large, known) == state(small, known)
    commit = large.root / "_delta_log" / f"{large.version:020}.json"
    # The checkpoint has the state, the commit only its time.
    commit.write_bytes(commit.read_bytes().partition(b"\n")[0])
    conf.forget()
    assert state(large, known) == state(small, known)


@pytest.mark.slow
def test_very_many_files_of_partitions_by_times(spark: SparkSession, tmp_path: Path, in_pieces: list[str]) -> None:
    """Partition values are compared in the time zone of the session, by a text or a Column."""
    base = Table(spark, tmp_path / "times")
    zone = "spark.sql.session.timeZone"
    with settings(spark, {zone: "Asia/Kolkata"}):
        hours = spark.range(0, 48, 1, 1).selectExpr(
            "id", "timestamp'2024-03-01 00:00:00' + make_interval(0,0,0,0,id) AS h"
        )
        base.write(hours, by=("h",))
    DeltaLog.for_path(base.path).checkpoint()
    limit = F.lit("2024-03-02 00:00:00").cast("timestamp")
    for name, condition in {"text": "h < timestamp'2024-03-02 00:00:00'", "column": F.col("h") < limit}.items():
        for place in ("UTC", "Asia/Kolkata"):
            table = copy_of(base, f"{name} {place.replace('/', ' ')}")
            with pytest.MonkeyPatch.context() as patched, settings(spark, {**LARGE, zone: place}):
                patched.setattr(file_groups, "MOST_FILES", 2)
                conf.forget()
                expected = [row[0] for row in table.read().where("NOT (h < timestamp'2024-03-02 00:00:00')").collect()]
                table.delta.delete(condition)
                conf.forget()
                assert [row[0] for row in table.rows()] == sorted(expected)
    assert in_pieces == ["lines"] * 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("winner", "error"),
    [
        (lambda t: t.write(rows(t.spark, 801, 1)), ConcurrentAppendException),
        (lambda t: t.delta.delete("id in (4, 13)"), ConcurrentAppendException),
        (lambda t: t.delta.delete("p = 'a b/%'"), ConcurrentDeleteReadException),
        (lambda t: t.write(rows(t.spark, 800, 1).where("p is null")), None),
        (lambda t: t.delta.delete("p is null and id > 15"), None),
        (lambda t: t.delta.delete("p is null"), None),
        (lambda t: t.delta.optimize().where("p is null").executeCompaction(), None),
    ],
    ids=["append", "marks", "delete", "append elsewhere", "marks elsewhere", "delete elsewhere", "optimize elsewhere"],
)
def test_a_concurrent_commit_to_other_partitions(
    base: Table,
    in_pieces: list[str],
    monkeypatch: pytest.MonkeyPatch,
    winner: Callable[[Table], Any],
    error: type[Exception] | None,
) -> None:
    """The removal of partitions goes on after commits to others, and the checkpoint has what these did."""
    number = len(list(base.root.parent.iterdir()))
    small, table = copy_of(base, f"first {number}"), copy_of(base, f"between {number}")
    conf.forget()
    with monkeypatch.context() as patched:
        patched.setattr(bulk_actions, "_BYTES", 1 << 40)
        winner(small)
        small.delta.delete("p is not null")
    monkeypatch.setattr(file_groups, "MOST_FILES", 2)
    between(monkeypatch, lambda: winner(Table(table.spark, table.root)))
    before = table.version
    with settings(base.spark, LARGE):
        conf.forget()
        if error is not None:
            with pytest.raises(error):
                table.delta.delete("p is not null")
            assert table.version == before + 1
            return
        table.delta.delete("p is not null")
    assert table.version == before + 2
    conf.forget()
    assert list((table.root / "_delta_log").glob(f"{table.version:020}.checkpoint*"))
    told = [state(one, set()) for one in (table, small)]
    assert len(told[0][0]) == len(told[1][0])
    assert told[0][2:] == told[1][2:]
    log = DeltaLog.for_path(table.path)
    files, gone = log.snapshot().add_files(), removes_of(log.snapshot().tombstones)
    assert not {one.key for one in files} & {one.key for one in gone}
    assert len(gone) == len(DeltaLog.for_path(small.path).snapshot().tombstones)


@pytest.mark.slow
def test_a_table_with_manifests_holds_all_actions(
    base: Table, in_pieces: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Manifests need each removed file; Spark isn't asked for the partitions in vain."""
    table = copy_of(base, "manifests")
    table.delta.setProperties({"delta.enableDeletionVectors": "false"})
    table.delta.reorg()
    table.delta.setProperties({"delta.compatibility.symlinkFormatManifest.enabled": "true"})
    expected = table.read().where("p is null").count()
    jobs = noted_jobs(monkeypatch)
    monkeypatch.setattr(file_groups, "MOST_FILES", 2)
    with settings(base.spark, LARGE):
        conf.forget()
        table.delta.delete("p is not null")
    assert jobs
    assert "OneOfEachTuple" not in jobs
    assert not in_pieces
    assert table.read().count() == expected > 0
