"""What a handle holds in memory."""

import tracemalloc
from dataclasses import replace

import pytest

from support import memory_table
from support.counted_table import table
from support.log_builder import LogBuilder, add
from tablelog.core import DeltaLog, Operation
from tablelog.core.log.memory_limits import MemoryLimits
from tablelog.core.protocol.actions import AddFile
from tablelog.core.protocol.paths import checkpoint_name
from tablelog.logstore import CountingLogStore, LogStoreWrapper
from tablelog.logstore.base import FileStatus


def rewritten(log: DeltaLog, times: int, files: int) -> list[int]:
    """Commits that each replace all files of the table; how many actions the handle held over its base after each."""
    live: list[AddFile] = []
    held = []
    for number in range(times):
        new = [add(f"f-{number}-{file}") for file in range(files)]
        gone = [file.remove(log.clock.now_ms(), data_change=True) for file in live]
        log.transaction().commit([*new, *gone], Operation("WRITE", {"mode": "Overwrite"}))
        live = new
        held.append(len(log.snapshot().overlay))
    return held


@pytest.mark.slow
def test_a_handle_that_alone_writes_a_table_takes_each_checkpoint_for_its_base() -> None:
    """What its commits say would else stay in memory for as long as the handle lives: 60,000 actions here."""
    log = memory_table.table(checkpointInterval="50")
    held = rewritten(log, 1500, 20)
    # 2,000 actions, and those of the commits until the checkpoint that follows.
    assert max(held) <= 2_000 + 51 * 40
    snapshot, fresh = log.snapshot(), memory_table.other(log).snapshot()
    assert snapshot.base_version > 1400
    for ours, theirs in ((snapshot.files, fresh.files), (snapshot.tombstones, fresh.tombstones)):
        assert sorted(ours.column("path").to_pylist()) == sorted(theirs.column("path").to_pylist())
    assert (snapshot.num_files, snapshot.tombstones.num_rows) == (20, 1499 * 20)


def test_a_checkpoint_that_cannot_be_read_is_not_tried_at_each_refresh() -> None:
    builder = table(8, checkpoint=6)
    builder.limits = MemoryLimits(tail_actions=5)
    builder.write(checkpoint_name(6), b"PAR1 torn")
    counting = CountingLogStore(builder.store)
    log = builder.log(counting)
    assert log.snapshot().base_version == -1
    assert log.snapshot().num_files == 8
    counting.reset()
    for _ in range(3):
        log.snapshot()
    assert counting.calls == {"list_from": 3}


class Copying(LogStoreWrapper):
    """A store whose reads give bytes of their own, as all do but that in memory."""

    def read(self, path: str) -> bytes:
        return bytes(bytearray(super().read(path)))


def test_a_history_holds_the_bytes_of_some_commits_at_a_time() -> None:
    builder = table(1)
    for number in range(60):
        builder.commit(replace(add(str(number)), tags={"long": "x" * (1 << 20)}))
    log = builder.log(Copying(builder.store))
    log.snapshot()
    tracemalloc.start()
    try:
        assert len(log.history()) == 61
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30 << 20, "the commits have 60 MiB"


def test_files_are_read_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = LogBuilder().create().log().reader
    asked: list[list[str]] = []
    monkeypatch.setattr(
        reader, "many", lambda some: asked.append([one.path for one in some]) or [b"" for _ in some], raising=True
    )
    sizes = [1] * 130 + [9 << 20, 8 << 20, 20 << 20]
    statuses = [FileStatus(str(number), size, 0) for number, size in enumerate(sizes)]
    assert len(list(reader.each(statuses))) == len(sizes)
    assert [len(some) for some in asked] == [64, 64, 3, 1, 1]
    assert [path for some in asked for path in some] == [status.path for status in statuses]
    assert list(reader.each([])) == []
