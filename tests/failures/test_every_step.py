"""Whatever a command dies of, and where: the table is as before or after, VACUUM cleans it, and it runs again."""

import errno
import logging
import resource

import pytest

from support.commands import KINDS, ROWS, copy_of, data_files_needed, made, nothing_is_left_behind, rows_of, values
from support.crashes import State, killed_at_each_step, torn
from support.grouped_commands import SLICED
from support.large_logs import large, twelve_files
from support.slices import slices_of
from support.spark_tables import Table
from tablelog.engine.write.routes.local import LocalRoute
from tablelog.logstore.common import posix

CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
STAGING = "_tablelog_staging-"


@pytest.fixture(scope="module")
def table(spark, tmp_path_factory) -> Table:
    table = made(spark, tmp_path_factory.mktemp("failures"))
    table.delta.setProperties({"delta.checkpointInterval": "1"})
    return table


def is_whole(state: State, name: str, version: int) -> bool:
    """The table is as before or after; whether it is as after."""
    committed = state.table.version > version
    rows = KINDS[name].leaves(ROWS) if committed else ROWS
    assert rows_of(state.table) == rows, f"{name}, killed before: {state.step}"
    return committed


def vacuum_cleans(state: State) -> None:
    table, before = state.table, rows_of(state.table)
    table.delta.vacuum(0)
    assert rows_of(table) == before, state.step
    assert table.data_files() == data_files_needed(table), state.step
    assert not [path for path in table.root.iterdir() if path.name.startswith(STAGING)], state.step


@pytest.mark.parametrize("name", KINDS)
def test_killed_at_each_step_of_the_driver(table, conf, name):
    conf(CHECK, "false")
    own = copy_of(table, name)
    with killed_at_each_step(own) as states:
        KINDS[name].run(own)
    assert rows_of(own) == KINDS[name].leaves(ROWS)
    nothing_is_left_behind(own)
    outcomes = [is_whole(state, name, table.version) for state in states]
    assert outcomes == sorted(outcomes), "once it is committed it stays so"
    assert True in outcomes, "what follows the commit was seen too"
    # The states with other data files; those that differ in the log alone are all the same to VACUUM.
    different = {
        (frozenset(state.table.data_files()), done): state for state, done in zip(states, outcomes, strict=True)
    }
    last = states[outcomes.index(True) - 1]
    KINDS[name].run(last.table)
    assert rows_of(last.table) == KINDS[name].leaves(ROWS), "the same command run again"
    for state in different.values():
        vacuum_cleans(state)


@pytest.mark.parametrize("name", ["update", "mirror of other rows"])
def test_killed_while_very_many_files_are_changed(spark, tmp_path_factory, conf, monkeypatch, name):
    """The search in groups, the slices, and the commit and the checkpoint that are written in pieces."""
    conf(CHECK, "false")
    base = twelve_files(spark, tmp_path_factory.mktemp("slices"))
    small, own = copy_of(base, f"{name} small"), copy_of(base, name)
    SLICED[name](small)
    before, after = rows_of(base), rows_of(small)
    slices_of(monkeypatch, 5)
    with killed_at_each_step(own) as states, large(own, monkeypatch):
        SLICED[name](own)
    assert rows_of(own) == after != before
    done = [state.table.version > base.version for state in states]
    assert [rows_of(state.table) for state in states] == [after if committed else before for committed in done]
    last = done.index(True) - 1
    assert len(states[last].table.data_files() - base.data_files()) > 3, "each slice had written files"
    for state in states[:last:4] + states[last:]:
        vacuum_cleans(state)


def test_killed_while_tasks_write(table, conf):
    conf(CHECK, "false")
    own = copy_of(table, "torn")
    with killed_at_each_step(own) as states:
        own.write(table.spark.range(300, 304, 1, 2).repartition(2).selectExpr("id", "0 p"))
    staged = [state for state in states if list(state.table.root.glob(f"{STAGING}*/**/*.parquet"))]
    torn(staged[0])
    assert not is_whole(staged[0], "append", table.version)
    vacuum_cleans(staged[0])
    KINDS["append"].run(staged[0].table)
    assert rows_of(staged[0].table) == KINDS["append"].leaves(ROWS)


# --- a full disk --------------------------------------------------------------------------------------------------


def full(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("name", ["append", "delete", "merge", "optimize", "restore", "replace", "vacuum"])
def test_no_room_for_the_commit(table, monkeypatch, name):
    own, kind = copy_of(table, f"full {name}"), KINDS[name]
    with monkeypatch.context() as patch:
        patch.setattr(posix, "write_whole", full)
        with pytest.raises(OSError, match="No space left"):
            kind.run(own)
    assert own.version == table.version
    assert rows_of(own) == ROWS
    nothing_is_left_behind(own)
    kind.run(own)
    assert rows_of(own) == kind.leaves(ROWS)


@pytest.mark.parametrize("name", ["append", "delete"])
def test_no_room_for_what_the_driver_writes(table, monkeypatch, name):
    own, kind = copy_of(table, f"full, small {name}"), KINDS[name]
    save = LocalRoute.save

    def half(self, name, make):
        save(self, name, make)
        full()

    with monkeypatch.context() as patch:
        patch.setattr(LocalRoute, "save", half)
        with pytest.raises(OSError, match="No space left"):
            kind.run(own)
    assert own.version == table.version
    nothing_is_left_behind(own)
    kind.run(own)
    assert rows_of(own) == kind.leaves(ROWS)


def test_no_room_for_what_tasks_write(table):
    """The kernel refuses the JVM what makes a file longer than a bound, as a full disk does."""
    own, spark = copy_of(table, "full, tasks"), table.spark
    jvm = spark._jvm.java.lang.ProcessHandle.current().pid()
    before = resource.prlimit(jvm, resource.RLIMIT_FSIZE)
    frame = spark.range(300, 700_300, 1, 2).selectExpr("id", "0 p", "uuid() large")
    try:
        resource.prlimit(jvm, resource.RLIMIT_FSIZE, (4 << 20, before[1]))
        with pytest.raises(Exception, match=r"File too large|TASK_WRITE_FAILED"):
            own.write(frame, mergeSchema=True)
    finally:
        resource.prlimit(jvm, resource.RLIMIT_FSIZE, before)
    assert own.version == table.version
    assert rows_of(own) == ROWS
    nothing_is_left_behind(own)


def test_no_room_for_what_follows_the_commit(table, monkeypatch, caplog):
    own = copy_of(table, "full, afterwards")
    write = posix.write_whole

    def only_commits(path, data, **rest):
        return write(path, data, **rest) if ".json." in path else full()

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, logger="tablelog"):
        patch.setattr(posix, "write_whole", only_commits)
        own.write(values(own.spark, (20, 0)))
    assert "its checkpoint wasn't written" in caplog.text
    assert rows_of(own) == KINDS["append"].leaves(ROWS)
    own.write(values(own.spark, (21, 0)))
    assert rows_of(own) == (*ROWS, (20, 0), (21, 0))
