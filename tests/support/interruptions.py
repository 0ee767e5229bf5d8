"""Ctrl-C at a chosen step of a command: where the driver goes from one piece of work to the next, not by a clock."""

import pickle
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from support.commands import copy_of, rows_of, values
from support.spark_tables import Table
from support.table_work import settings
from tablelog.core.deltalog import DeltaLog
from tablelog.dml.maintain import auto_compact as after_commit
from tablelog.engine.read import scan
from tablelog.engine.write.routes.local import LocalRoute
from tablelog.errors import CommandInterrupted
from tablelog.logstore.local.store import LocalLogStore

Command = Callable[[Table], object]

DELTA = "spark.databricks.delta."

_PLACES: tuple[tuple[Any, str], ...] = (
    (LocalLogStore, "_write"),
    (LocalRoute, "write"),
    (LocalRoute, "publish"),
    (LocalRoute, "clear"),
    (scan, "refresh_cached"),
    (after_commit, "run"),
)
"""What a command does, piece by piece: each write to the log, each job that writes files, and what follows a commit."""


@contextmanager
def interrupted_at(number: int | None = None) -> Iterator[list[str]]:
    """Raise KeyboardInterrupt once, at the step with this number; the list has the steps that were passed.

    Each piece of work is two steps: before it and after it.
    """
    passed: list[str] = []

    def step(name: str) -> None:
        passed.append(name)
        if len(passed) - 1 == number:
            raise KeyboardInterrupt

    def watched(owner: Any, name: str) -> Callable[..., Any]:
        function = getattr(owner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            told = f"{name} {str(args[1]).rpartition('/')[2]}" if owner is LocalLogStore else name
            step(f"before {told}")
            result = function(*args, **kwargs)
            step(f"after {told}")
            return result

        return call

    with ExitStack() as stack:
        for owner, name in _PLACES:
            stack.enter_context(mock.patch.object(owner, name, watched(owner, name)))
        yield passed


def compacted_after(table: Table) -> None:
    """A write of (20, 0) with the compaction that follows it, a commit of its own."""
    with settings(table.spark, {f"{DELTA}autoCompact.enabled": "true", f"{DELTA}autoCompact.minNumFiles": "2"}):
        table.write(values(table.spark, (20, 0)))


def optimized_in_batches(table: Table) -> None:
    """OPTIMIZE with a commit for each partition."""
    with settings(table.spark, {f"{DELTA}optimize.batchSize": "1"}):
        table.delta.optimize().executeCompaction()


SEVERAL_COMMITS: dict[str, Command] = {
    "a write, compacted after it": compacted_after,
    "optimize in batches": optimized_in_batches,
    "row ids for old files": lambda t: t.delta.setProperties({"delta.enableRowTracking": "true"}),
    "drop a feature with its traces": lambda t: t.delta.dropFeatureSupport("deletionVectors"),
}
"""Commands that take several commits."""


def every_step_is_told(table: Table, name: str, command: Command) -> None:
    """Interrupt the command at each of its steps, on a copy of the table each: what is said is what the log has."""
    whole = copy_of(table, name)
    with interrupted_at() as steps:
        command(whole)
    outcomes = set()
    # Of many commits in a row each is like the one before.
    chosen = range(len(steps)) if len(steps) < 30 else [*range(16), *range(16, len(steps), 7), len(steps) - 1]
    for step in chosen:
        own, where = copy_of(table, f"{name} {step}"), f"{name}: {steps[step]}"
        with interrupted_at(step):
            try:
                command(own)
            except CommandInterrupted as error:
                _check(own, table.version, error, f"{where}: {error}")
                outcomes.add(error.committed)
            else:
                raise AssertionError(where)
        rows = rows_of(own)  # which reads every file that the log names
        assert rows in (rows_of(table), rows_of(whole)), where
    assert {True, None} <= outcomes, "interrupted before the commit was written, and after it"


def _check(table: Table, before: int, error: CommandInterrupted, where: str) -> None:
    new = tuple(range(before + 1, table.version + 1))
    if error.committed is None:
        found = DeltaLog.for_path(table.path).find_commit(error.token)
        assert found in (None, error.version), where
        assert error.versions == new[: len(new) - (found is not None)], where
        assert f"find_commit('{error.token}')" in str(error), where
    else:
        assert error.versions == new, where
        assert error.committed is bool(new), where
    assert [operation for _, operation in error.commits] == [table.info(v)["operation"] for v in error.versions], where
    for version, operation in error.commits[:1] + error.commits[-1:]:
        assert f"{version} " in str(error), where
        assert f"({operation})" in str(error), where
    assert ("nothing was committed" in str(error)) is (error.committed is False), where
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.versions, again.committed) == (str(error), error.versions, error.committed)
