"""Processes that commit to one table on the local file system at the same time."""

import json
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROCESSES, COMMITS = 8, 25
SCHEMA = '{"type":"struct","fields":[{"name":"v","type":"long","nullable":true,"metadata":{}}]}'


def _append(table: str, number: int, barrier: Any) -> list[tuple[str, int]]:
    """Append `COMMITS` files, one commit each: (file, version) of each."""
    from tablelog.core.deltalog import DeltaLog
    from tablelog.core.protocol.actions import AddFile
    from tablelog.core.txn.operation import Operation

    log = DeltaLog.for_path(table)
    barrier.wait(60)
    made = []
    for serial in range(COMMITS):
        path = f"f-{number}-{serial}"
        committed = log.transaction().commit([AddFile(path, {}, 1, 1, True)], Operation("WRITE"))
        made.append((path, committed.version))
    return made


def _take(table: str, number: int, barrier: Any) -> tuple[list[tuple[str, int]], list[str]]:
    """Take file after file away and put one in its place, until none is left: (file, version), names of conflicts.

    All processes have begun with the same file of the same version before any goes on, so all but one must fail there.
    """
    from tablelog.core.deltalog import DeltaLog
    from tablelog.core.protocol.actions import AddFile
    from tablelog.core.txn.operation import Operation
    from tablelog.errors import DeltaConcurrentModificationException

    log = DeltaLog.for_path(table)
    taken: list[tuple[str, int]] = []
    conflicts: list[str] = []
    while True:
        transaction = log.transaction()
        assert transaction.snapshot is not None
        files = [file for file in transaction.snapshot.add_files() if file.path.startswith("start")]
        if not files:
            return taken, conflicts
        file = min(files, key=lambda file: file.path)
        transaction.read_keys([file.key])
        if not taken and not conflicts:
            barrier.wait(60)
        instead = AddFile(f"by-{number}-{file.path}", {}, 1, 1, False)
        operation = Operation("OPTIMIZE", changes_data=False)
        try:
            committed = transaction.commit([file.remove(1, data_change=False), instead], operation)
        except DeltaConcurrentModificationException as error:
            conflicts.append(type(error).__name__)
        else:
            taken.append((file.path, committed.version))


def _child(work: Callable[[str, int, Any], Any], table: str, number: int, barrier: Any, results: Any) -> None:
    try:
        results.put((number, work(table, number, barrier)))
    except BaseException as error:
        results.put((number, error))
        raise


def _in_processes(work: Callable[[str, int, Any], Any], table: str) -> list[Any]:
    # Started by a server that has the package loaded: starting eight interpreters takes longer than the test.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tablelog.core.deltalog", "tablelog.core.txn.transaction", "pyarrow.compute"])
    barrier, results = context.Barrier(PROCESSES), context.Queue()
    processes = [
        context.Process(target=_child, args=(work, table, number, barrier, results)) for number in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    found = [results.get(timeout=120) for _ in processes]
    for process in processes:
        process.join(60)
    for number, result in found:
        if isinstance(result, BaseException):
            raise AssertionError(f"process {number} failed") from result
    return [result for _, result in sorted(found)]


@pytest.fixture
def table(tmp_path: Path) -> str:
    from tablelog.core.deltalog import DeltaLog
    from tablelog.core.protocol.actions import AddFile, Metadata
    from tablelog.core.txn.operation import Operation

    log = DeltaLog.for_path(str(tmp_path / "t"))
    transaction = log.transaction()
    transaction.set_metadata(Metadata("id", SCHEMA))
    transaction.commit([AddFile(f"start-{n:02d}", {}, 1, 1, True) for n in range(12)], Operation("CREATE TABLE"))
    return str(tmp_path / "t")


def _commits(table: str) -> list[list[dict[str, Any]]]:
    """The lines of each commit; the versions are contiguous from 0."""
    paths = sorted(path for path in (Path(table) / "_delta_log").iterdir() if path.name.endswith(".json"))
    assert [int(path.name[:20]) for path in paths] == list(range(len(paths)))
    return [[json.loads(line) for line in path.read_text().splitlines()] for path in paths]


def _nothing_left_behind(table: str) -> bool:
    return not [path.name for path in (Path(table) / "_delta_log").iterdir() if path.name.startswith(".")]


@pytest.mark.slow
@pytest.mark.thorough
def test_eight_processes_append_with_no_error(table: str) -> None:
    from tablelog.core.deltalog import DeltaLog

    made = [pair for part in _in_processes(_append, table) for pair in part]
    commits = _commits(table)
    assert len(made) == PROCESSES * COMMITS == len(commits) - 1
    in_log = {line["add"]["path"]: version for version, lines in enumerate(commits) for line in lines if "add" in line}
    assert {path: version for path, version in in_log.items() if path.startswith("f-")} == dict(made)
    tokens = [lines[0]["commitInfo"]["txnId"] for lines in commits]
    assert len(set(tokens)) == len(tokens)
    assert DeltaLog.for_path(table).snapshot().num_files == 12 + PROCESSES * COMMITS
    assert _nothing_left_behind(table)


@pytest.mark.thorough
def test_conflicting_deletes_end_in_some_serial_order(table: str) -> None:
    from tablelog.core.deltalog import DeltaLog

    results = _in_processes(_take, table)
    taken = [pair for part, _ in results for pair in part]
    conflicts = [name for _, names in results for name in names]
    assert sorted(path for path, _ in taken) == [f"start-{n:02d}" for n in range(12)], "each was taken once"
    assert len(conflicts) >= PROCESSES - 1
    assert set(conflicts) <= {"ConcurrentDeleteReadException", "ConcurrentDeleteDeleteException"}
    by_version = {version: path for path, version in taken}
    live = {f"start-{n:02d}" for n in range(12)}
    commits = _commits(table)
    for version, lines in enumerate(commits[1:], 1):
        removed = {line["remove"]["path"] for line in lines if "remove" in line}
        assert removed <= live, f"version {version} removes what is gone"
        live = live - removed | {line["add"]["path"] for line in lines if "add" in line}
        assert removed == {by_version[version]}
    assert sorted(DeltaLog.for_path(table).snapshot().files.column("path").to_pylist()) == sorted(live)
    assert _nothing_left_behind(table)
