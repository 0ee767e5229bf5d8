"""Crews: processes that meet, are limited, killed and paused, and are gone afterwards."""

import errno
import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from tablelog.conformance import Context, Factory, Level, NotEstablishedError, Target
from tablelog.conformance.harness.file_faults import blind, failing
from tablelog.conformance.harness.processes import Station, crew, file_size_limit, forked, together
from tablelog.conformance.harness.tiny_disk import mount
from tablelog.logstore import LocalLogStore, LogStore, MemoryLogStore


def context(factory: Factory = LocalLogStore) -> Context:
    return Context(Target(factory, "file:///nowhere", ""), "file:///nowhere", Level.QUICK, 0, time.monotonic() + 60)


def meet_often(here: Station, rounds: int) -> list[int]:
    at = []
    for number in range(rounds):
        here.meet(number + 1)
        at.append(time.monotonic_ns())
    return at


def test_a_crew_meets_within_a_moment_and_is_gone_afterwards() -> None:
    with crew(context(), 3) as workers:
        pids = [worker.pid for worker in workers]
        found = together(workers, meet_often, 50)
    spread = sorted(max(times) - min(times) for times in zip(*found, strict=True))
    assert spread[len(spread) // 2] < 20_000_000  # most within a turn of the machine's
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_crew_is_gone_when_one_of_it_hangs() -> None:
    with crew(context(), 1) as [worker]:
        pid = worker.pid
        worker.start(sleep_long)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def sleep_long(_here: Station) -> None:
    time.sleep(1000)


def fail(_here: Station) -> None:
    raise FileExistsError("taken")


def test_an_error_of_a_task_is_raised_here() -> None:
    with crew(context(), 1) as [worker]:
        with pytest.raises(FileExistsError, match="taken"):
            worker.call(fail)
        assert worker.call(meet_often, 1)


def in_a_lambda() -> Factory:
    return lambda: LocalLogStore()  # noqa: PLW0108 (a lambda can't be pickled)


def in_memory() -> Factory:
    store = MemoryLogStore()
    return partial(copied, store)


def copied(store: LogStore) -> LogStore:
    return store


@pytest.mark.parametrize("factory", [in_a_lambda(), in_memory()], ids=["unpicklable", "refuses"])
def test_a_store_that_no_other_process_can_make_establishes_nothing(factory: Factory) -> None:
    with pytest.raises(NotEstablishedError, match=r"another process"), crew(context(factory), 1):
        pass


def now(_here: Station) -> float:
    return time.time()


def test_a_clock_is_off_in_its_process_alone() -> None:
    with crew(context(), 1, clock_offset=86400) as [worker]:
        assert 86000 < worker.call(now) - time.time() < 87000


def kill_and_stop(here: Station, path: str) -> tuple[bool, bool, str | None, str | None]:
    def counting() -> str:
        with open(path, "a") as file:
            file.write("x")
        return "done"

    killed = forked(lambda: counting, 0, signal.SIGKILL)
    killed.end()
    absent = not os.path.exists(path)
    stopped = forked(lambda: counting, 0, signal.SIGSTOP)
    still_absent = not os.path.exists(path)
    stopped.go_on()
    said = stopped.answer(10)
    stopped.end()
    whole = forked(lambda: counting, 10**6, signal.SIGKILL)
    ended = whole.answer(10) if not whole.where else "killed"
    whole.end()
    return absent, still_absent, said, ended


def test_a_fork_stops_or_dies_before_its_step(tmp_path: Path) -> None:
    with crew(context(), 1) as [worker]:
        assert worker.call(kill_and_stop, str(tmp_path / "f")) == (True, True, "done", "done")
    assert (tmp_path / "f").read_text() == "xx"


def limited(_here: Station, path: str) -> int | None:
    with file_size_limit(100):
        try:
            Path(path).write_bytes(b"x" * 1000)
        except OSError as error:
            return error.errno
    return None


def test_a_file_size_is_limited_for_a_while(tmp_path: Path) -> None:
    with crew(context(), 1) as [worker]:
        assert worker.call(limited, str(tmp_path / "f")) == errno.EFBIG
    assert (tmp_path / "f").stat().st_size == 100


def on_a_tiny_disk(_here: Station, directory: str) -> int | None:
    mount(directory, 8192)
    try:
        Path(directory, "f").write_bytes(b"x" * 100_000)
    except OSError as error:
        return error.errno
    return None


def test_a_tiny_disk_is_full_for_one_process_and_gone_with_it(tmp_path: Path) -> None:
    with crew(context(), 1) as [worker]:
        try:
            full = worker.call(on_a_tiny_disk, str(tmp_path / "disk"))
        except OSError as error:
            pytest.skip(f"nothing can be mounted here: {error}")
        assert full == errno.ENOSPC
        assert os.listdir(tmp_path / "disk") == []


def test_a_call_fails_before_after_or_long_before_its_work(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x")
    for when, during, afterwards in (("before", False, False), ("after", True, True), ("late", False, True)):
        target = tmp_path / when
        with failing(1, errno.EIO, when) as calls:  # type: ignore[arg-type]
            with pytest.raises(OSError, match="Input/output"):
                os.link(source, target)
            assert target.exists() is during
            os.fsync(os.open(tmp_path, os.O_RDONLY))
        assert target.exists() is afterwards
        assert calls == ["link"]


def test_a_blind_process_sees_nothing_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")
    with blind(str(tmp_path)) as looks:
        assert not os.path.exists(tmp_path / "f") or looks == []
        assert not os.path.exists(str(tmp_path / "f"))
        assert os.path.exists("/")
    assert looks
    assert os.path.exists(str(tmp_path / "f"))
