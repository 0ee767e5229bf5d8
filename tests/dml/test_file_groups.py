"""Commands that may need very many files of a large log get them in groups, one after the other."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.commands import copy_of, named_files, rows_of, values
from support.grouped_commands import BY_VECTORS, GROUPED, mirrored
from support.large_logs import LARGE, large, noted_selections, outcome, twelve_files
from support.spark_tables import Table
from support.table_work import settings
from tablelog.core import DeltaLog
from tablelog.core.log import checkpoint
from tablelog.core.table import clustering
from tablelog.dml.command.command import Command
from tablelog.engine.read import file_groups
from tablelog.errors import CommandInterrupted, InvalidArgumentError
from tablelog.settings.declarations import (
    OPTIMIZE_MAX_FILE_SIZE,
)
from tablelog.spark import DeltaTable, conf


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return twelve_files(spark, tmp_path_factory.mktemp("groups"))


NEEDED = {
    "mirror": 3,
    "mirror of rows on the driver": 3,
    "mirror with a change feed": 3,
    "mirror by SQL and views": 1,
    "upsert of rows that differ": 1,
    "delete by doubled rows": 1,
    "insert-only merge": 0,
}
"""The files that these commands change, though rows of nearly all files match."""
GROUPED_OFTEN = "delete", "delete by a view", "update", "mirror"


@pytest.mark.parametrize(
    ("name", "by_vectors"),
    [
        pytest.param(name, by_vectors, marks=() if by_vectors and name in GROUPED_OFTEN else pytest.mark.slow)
        for name in GROUPED
        for by_vectors in (True, False)
    ],
)
@pytest.mark.one_case
def test_a_condition_that_excludes_few_files_is_searched_in_groups(
    base: Table, monkeypatch: pytest.MonkeyPatch, name: str, by_vectors: bool
) -> None:
    """The driver has the columns of one group at a time, and then those of the files to change."""
    before, small, other = (
        base.version,
        copy_of(base, f"{name}, alone {by_vectors}"),
        copy_of(base, f"{name}, grouped {by_vectors}"),
    )
    persistent = {setting.key: str(by_vectors).lower() for setting in BY_VECTORS}
    monkeypatch.setattr(file_groups, "MOST_FILES", 4)
    with settings(base.spark, persistent):
        GROUPED[name](small)
        with monkeypatch.context() as patched, large(other, patched) as jobs:
            selections = noted_selections(patched)
            GROUPED[name](other)
    assert outcome(other, before) == outcome(small, before)
    ((*groups, needed),) = selections.values()
    assert len(groups) > 2
    assert max(groups) <= 4
    assert needed < sum(groups)
    if name in NEEDED:
        assert needed == NEEDED[name]
    assert jobs.count("Filters") > 2  # the first one counts the files, each other reads a part of the checkpoint


@pytest.mark.slow
def test_a_row_that_matches_twice_is_found_in_its_group(base: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an error, though no clause changes a row of its file."""
    table = copy_of(base, "matches twice")
    monkeypatch.setattr(file_groups, "MOST_FILES", 4)
    twice = mirrored(lambda source: source.union(source.where("id = 30")))
    with monkeypatch.context() as patched, large(table, patched), pytest.raises(InvalidArgumentError) as caught:
        twice(table)
    assert caught.value.condition == "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
    assert table.version == base.version


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "most"), [("optimize", 6), ("zorder", 6), ("purge", 1), ("optimize", 1), ("zorder", 2)]
)
def test_very_many_files_are_rewritten_in_groups(
    base: Table, monkeypatch: pytest.MonkeyPatch, command: str, most: int
) -> None:
    """Each group has its own commit; the files of a partition are in one group, unless a group can't have so many."""
    run: Callable[[Table], Any] = {
        "optimize": lambda t: t.delta.optimize().executeCompaction(),
        "purge": lambda t: t.delta.reorg(),
        "zorder": lambda t: t.delta.optimize().executeZOrderBy("id"),
    }[command]
    small, other = (copy_of(base, f"{command}, {most} {kind}") for kind in ("together", "grouped"))
    expected = run(small).collect()[0].metrics
    monkeypatch.setattr(file_groups, "MOST_FILES", most)
    with monkeypatch.context() as patched, large(other, patched):
        found = run(other).collect()[0].metrics
    assert rows_of(other) == rows_of(small)
    counts = "numFilesRemoved", "partitionsOptimized", "totalConsideredFiles", "totalFilesSkipped"
    if (command, most) != ("optimize", 1):
        assert [found[name] for name in counts] == [expected[name] for name in counts]
        assert found.filesRemoved == expected.filesRemoved
        assert found.deletionVectorStats == expected.deletionVectorStats
        whole = command != "purge" and most > 2  # otherwise files of one partition are in several groups
        assert (found.numFilesAdded == expected.numFilesAdded) == whole
        assert found.numBatches == other.version - base.version > 1
        assert len(expected.lookups) == (command == "zorder")
        assert not found.lookups  # they would be of the last group alone
    else:  # a group with one file has nothing to combine
        assert found.numFilesRemoved == 0
        assert other.version == base.version


@pytest.mark.slow
def test_rows_of_a_group_are_sorted_together(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of two groups has files with ids from everywhere; ZORDER BY makes files with ranges of their own."""
    table = Table(spark, tmp_path / "sorted")
    for first in range(4):
        table.write(spark.range(first, 4000, 4, 1))
    DeltaLog.for_path(table.path).checkpoint()
    monkeypatch.setattr(file_groups, "MOST_FILES", 2)
    half = {OPTIMIZE_MAX_FILE_SIZE.key: str(min(file.stat().st_size for file in table.root.glob("*.parquet")) // 2)}
    before = table.version
    with settings(spark, half), monkeypatch.context() as patched, large(table, patched):
        table.delta.optimize().executeZOrderBy("id")
    assert table.version == before + 2
    for version in (before + 1, before + 2):
        stats = [json.loads(action["add"]["stats"]) for action in table.actions(version) if "add" in action]
        ranges = sorted((of["minValues"]["id"], of["maxValues"]["id"]) for of in stats)
        assert len(ranges) > 1
        assert all(highest < lowest for (_, highest), (lowest, _) in pairwise(ranges))
        assert sum(of["numRecords"] for of in stats) == 2000


@pytest.mark.slow
@pytest.mark.parametrize(("command", "committed"), [("delete", 0), ("zorder", 1)])
def test_an_interrupt_between_groups(
    base: Table, monkeypatch: pytest.MonkeyPatch, command: str, committed: int
) -> None:
    """A search commits nothing until it has ended; OPTIMIZE keeps the groups that it has rewritten."""
    table = copy_of(base, f"interrupted {command}")
    run = {"delete": GROUPED["delete"], "zorder": lambda t: t.delta.optimize().executeZOrderBy("id")}[command]
    monkeypatch.setattr(file_groups, "MOST_FILES", 2)
    select, calls = Command.select_files, []

    def interrupted(self: Command, files: Any) -> None:
        calls.append(files.num_rows)
        if len(calls) == 2:
            raise KeyboardInterrupt
        select(self, files)

    expected = rows_of(table)
    with monkeypatch.context() as patched, large(table, patched):
        patched.setattr(Command, "select_files", interrupted)
        with pytest.raises(CommandInterrupted) as caught:
            run(table)
    assert caught.value.versions == tuple(range(base.version + 1, base.version + 1 + committed))
    assert table.version == base.version + committed
    assert rows_of(table) == expected
    assert table.data_files() <= named_files(table)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["delete", "mirror"])
def test_commands_in_threads_search_their_own_groups(
    base: Table, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    small, *others = (copy_of(base, f"thread {number} {command}") for number in range(3))
    GROUPED[command](small)
    monkeypatch.setattr(file_groups, "MOST_FILES", 4)
    monkeypatch.setattr(checkpoint, "_AT_ONCE", 0)  # the MERGE's source is the table: its read loads no columns
    conf.forget()
    selected = noted_selections(monkeypatch)
    with settings(base.spark, LARGE), ThreadPoolExecutor(2) as pool:
        list(pool.map(GROUPED[command], others))
    assert len(selected) == 2
    assert all(len(groups) > 2 and max(groups[:-1]) <= 4 for groups in selected.values())
    assert [rows_of(table) for table in others] == [rows_of(small)] * 2


@pytest.mark.slow
def test_very_many_files_are_clustered_in_groups(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each group has cubes of its own; a second run clusters these together, if they are small."""
    base = Table(spark, tmp_path / "clustered")
    created = DeltaTable.create(spark).location(base.path).addColumn("id", "long").addColumn("p", "int")
    created.clusterBy("id").execute()
    for first in range(0, 30, 2):
        base.write(values(spark, (first, 0), (first + 1, 1)).coalesce(1))
    DeltaLog.for_path(base.path).checkpoint()
    expected = base.rows("id")
    monkeypatch.setattr(file_groups, "MOST_FILES", 5)
    before = base.version
    with monkeypatch.context() as patched, large(base, patched):
        selections = noted_selections(patched)
        metrics = base.delta.optimize().executeCompaction().collect()[0].metrics
    assert list(selections.values()) == [[5, 5, 5]]
    assert metrics.numBatches == base.version - before == 3
    assert metrics.numFilesRemoved == 15
    assert len({clustering.cube_of(file) for file in base.log.snapshot().add_files()}) == 3
    other = copy_of(base, "by another column")
    other.delta.clusterBy("p")
    DeltaLog.for_path(other.path).checkpoint()
    with monkeypatch.context() as patched, large(other, patched):
        patched.setattr(file_groups, "MOST_FILES", 2)
        _cluster(other, full=False)
        assert {clustering.cube_of(file)[1] for file in other.log.snapshot().add_files()} == {'["id"]'}
        _cluster(other, full=True)
    cubes = [clustering.cube_of(file) for file in other.log.snapshot().add_files()]
    assert [columns for _, columns, _ in cubes] == ['["p"]'] * 2
    assert len(set(cubes)) == 2
    assert other.rows("id") == expected
    with monkeypatch.context() as patched, large(base, patched):
        assert base.delta.optimize().executeCompaction().collect()[0].metrics.numFilesRemoved == 3
    assert base.log.snapshot().num_files == 1
    assert base.rows("id") == expected


def _cluster(table: Table, *, full: bool) -> None:
    table.spark.sql(f"OPTIMIZE delta.`{table.path}`{' FULL' if full else ''}")
