"""The fields of log records, and what an observer receives."""

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from support.clocks import ManualClock
from support.memory_table import WRITE, add, new_log, other, table
from tablelog import observe, retrying
from tablelog.core.txn.operation import Operation
from tablelog.errors import MetadataChangedException, TablelogError
from tablelog.observe import Counter, Fields, Timing
from tablelog.settings.declarations import WRITE_CHECKSUM

LOCATION = {"table": "memory:///t", "store": "MemoryLogStore"}


class Recorder:
    """Keeps what it receives."""

    def __init__(self) -> None:
        self.counters: list[tuple[str, int, Fields]] = []
        self.timings: list[tuple[str, float, Fields]] = []

    def counted(self, name: Counter, value: int, fields: Fields) -> None:
        assert name in observe.COUNTERS
        self.counters.append((name, value, fields))

    def timed(self, name: Timing, seconds: float, fields: Fields) -> None:
        assert name in observe.TIMINGS
        self.timings.append((name, seconds, fields))

    def of(self, name: str) -> list[Fields]:
        return [fields for timing, _, fields in self.timings if timing == name]


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    assert observe.set_observer(recorder) is None
    yield recorder
    assert observe.set_observer(None) is recorder


def shown(record: logging.LogRecord) -> dict[str, object]:
    names = Fields.__annotations__
    return {name: value for name, value in vars(record).items() if name in names}


def test_each_attempt_of_a_commit_has_its_fields(caplog: pytest.LogCaptureFixture, recorder: Recorder) -> None:
    log = table()
    caplog.set_level(logging.INFO, "tablelog.core.txn.commit_loop")
    caplog.clear()
    recorder.timings.clear()
    mine = log.transaction()
    other(log).transaction().commit([add("a")], WRITE)
    mine.commit([add("b")], WRITE)
    expected = [
        {**LOCATION, "version": 1, "attempt": 1, "outcome": "won"},
        {**LOCATION, "version": 1, "attempt": 1, "outcome": "lost"},
        {**LOCATION, "version": 2, "attempt": 2, "outcome": "won"},
    ]
    assert [shown(record) for record in caplog.records] == expected
    assert caplog.messages[1].startswith("memory:///t: version 1, attempt 1: lost, ")
    assert recorder.of("commit.attempt") == expected
    assert all(seconds >= 0 for _, seconds, _ in recorder.timings)


def test_conflicts_and_retries_are_counted(recorder: Recorder) -> None:
    log = table()
    runs = []

    def append() -> None:
        mine = log.transaction()
        runs.append(mine)
        if len(runs) == 1:
            theirs = other(log).transaction()
            theirs.set_metadata(replace(theirs.metadata, description="new"))
            theirs.commit([], Operation("COMMENT"))
        mine.commit([add("m")], WRITE)

    retrying(append, clock=ManualClock())
    outcome = MetadataChangedException.__name__
    conflict, retry = recorder.counters
    assert conflict == ("commit.conflicts", 1, {**LOCATION, "version": 1, "outcome": outcome})
    assert retry == ("retries", 1, {"table": "memory:///t", "version": 0, "attempt": 1, "outcome": outcome})


def test_a_refresh_says_what_it_found(recorder: Recorder) -> None:
    log = table()
    reader = other(log)
    recorder.timings.clear()
    reader.snapshot()
    reader.snapshot()
    other(log).transaction().commit([add("a")], WRITE)
    recorder.timings.clear()
    reader.snapshot()
    reader.snapshot()
    assert [fields["outcome"] for fields in recorder.of("refresh")] == ["updated", "unchanged"]
    recorder.timings.clear()
    other(log).snapshot()
    assert recorder.of("refresh") == [{**LOCATION, "version": 1, "outcome": "loaded"}]


def test_what_fails_has_an_outcome_too(recorder: Recorder) -> None:
    with pytest.raises(TablelogError):
        new_log().snapshot()
    assert recorder.of("refresh") == [{**LOCATION, "outcome": "failed"}]


def test_a_checkpoint_is_timed_and_its_record_has_fields(caplog: pytest.LogCaptureFixture, recorder: Recorder) -> None:
    log = table()
    log.checkpoint()
    caplog.set_level(logging.INFO, "tablelog.core.log_maintenance")
    log.checkpoint()
    assert recorder.of("checkpoint") == [{**LOCATION, "version": 0, "outcome": "written"}] * 2
    assert [shown(record) for record in caplog.records] == [{"store": "MemoryLogStore", "outcome": "exists"}]


def test_a_step_after_a_commit_that_fails_has_fields(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = table(conf={WRITE_CHECKSUM.key: "true"})

    def fail(*_: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr("tablelog.core.txn.post_commit._write_checksum", fail)
    log.transaction().commit([add("a")], WRITE)
    assert [shown(record) for record in caplog.records] == [{**LOCATION, "version": 1, "outcome": "failed"}]


def test_an_observer_that_fails_fails_no_commit(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def counted(self, *_: object) -> None:
            raise OSError

        def timed(self, *_: object) -> None:
            raise OSError

    observe.set_observer(Broken())
    try:
        log = table()
        observe.counted("retries", 1, {})
        assert log.snapshot().version == 0
    finally:
        observe.set_observer(None)
    assert {"the observer failed to record the time of commit.attempt", "the observer failed to count retries"} <= {
        *caplog.messages
    }


def test_without_an_observer_no_clock_is_asked() -> None:
    class NoClock(ManualClock):
        def monotonic(self) -> float:
            raise AssertionError

    fields = observe.fields("t")
    with observe.Stopwatch("refresh", NoClock(), fields):
        pass
    assert fields == {"table": "t"}


def test_fields_that_do_not_apply_are_absent() -> None:
    assert observe.fields() == {}
    assert set(observe.fields("t", version=0, attempt=0, store=object(), outcome="")) == set(Fields.__annotations__)


def test_an_observer_is_called_without_the_lock_of_the_handle(recorder: Recorder) -> None:
    log = table()
    read = []

    def elsewhere(*_: object) -> None:
        if not read:
            read.append(True)
            thread = threading.Thread(target=lambda: read.append(log.snapshot().version == 0), daemon=True)
            thread.start()
            thread.join(10)

    recorder.timed = elsewhere  # type: ignore[method-assign]
    log.snapshot()
    assert read == [True, True]
