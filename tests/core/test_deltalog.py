"""The handle on a log: commits by their token, local paths, threads."""

import gc
import os
import threading
import weakref
from pathlib import Path

from support.counted_table import table
from support.log_builder import LogBuilder, SetClock, add
from tablelog.core import DeltaLog, Operation
from tablelog.core.protocol.paths import commit_name
from tablelog.logstore import LocalLogStore, LogStoreWrapper


def test_find_commit() -> None:
    builder = table(3)
    builder.commit(add("x"), txn_id="the-token").commit(add("the-other-token"))
    log = builder.log()
    assert log.find_commit("the-token") == 3
    assert log.find_commit("the-other-token") is None
    assert log.find_commit("") is None


def test_a_handle_on_a_local_path(tmp_path: Path) -> None:
    builder = LogBuilder(LocalLogStore(), str(tmp_path / "a table")).create(add("x"))
    for path in (str(tmp_path / "a table"), f"file://{tmp_path}/a%20table", f"{tmp_path}/a table/"):
        log = DeltaLog.for_path(path)
        assert log.table == f"file://{tmp_path}/a%20table"
        assert log.log_path == f"file://{tmp_path}/a%20table/_delta_log"
        assert log.snapshot().num_files == 1
    os.utime(tmp_path / "a table/_delta_log" / commit_name(0), (1_600_000_000, 1_600_000_000))
    assert DeltaLog.for_path(str(tmp_path / "a table")).snapshot().timestamp_ms == 1_600_000_000_000
    assert builder.log().exists()
    assert not DeltaLog.for_path(str(tmp_path)).exists()


def test_many_threads_on_one_handle() -> None:
    builder = table(3)
    log = builder.log()
    start, problems = threading.Barrier(9), []
    versions: list[list[int]] = [[] for _ in range(8)]

    def look(mine: list[int]) -> None:
        try:
            start.wait(10)
            for _ in range(30):
                snapshot = log.snapshot()
                assert snapshot.num_files == snapshot.files.num_rows == snapshot.version + 1
                mine.append(snapshot.version)
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=look, args=(mine,)) for mine in versions]
    for thread in threads:
        thread.start()
    start.wait(10)
    for number in range(20):
        builder.commit(add(f"new{number}"))
    for thread in threads:
        thread.join()
    assert not problems
    assert all(mine == sorted(mine) and len(mine) == 30 for mine in versions)


class TellingClock(SetClock):
    """A monotonic clock on which every look takes a second."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def monotonic(self) -> float:
        self.seconds += 1
        return self.seconds


def test_slow_reads_run_side_by_side() -> None:
    builder = table(4)
    meeting = threading.Barrier(3)

    class Waiting(LogStoreWrapper):
        def read(self, path: str) -> bytes:
            if path.endswith(".json") and not path.endswith(commit_name(0)):
                meeting.wait(30)  # passes only when the three others are read at once
            return super().read(path)

    log = DeltaLog.for_path(builder.root, store=Waiting(builder.store), clock=TellingClock())
    assert log.snapshot().num_files == 4


def test_nothing_but_its_handle_keeps_a_snapshot() -> None:
    """In a cycle the columns of large tables would stay in memory until Python next looks for cycles."""
    builder = table(2)
    first = builder.log()
    gc.disable()
    try:
        log = builder.log()
        loser = log.transaction()
        assert loser.snapshot is not None
        read = weakref.ref(loser.snapshot)
        first.transaction().commit([add("b")], Operation("WRITE"))
        assert loser.commit([add("c")], Operation("WRITE")).version == 3
        handle = weakref.ref(log)
        del log, loser
        assert (handle(), read()) == (None, None)
    finally:
        gc.enable()
