"""Temporary files that killed writers left behind."""

import errno
import os
from pathlib import Path

import pytest

from logstore.local_log import TEMPORARIES, UUID, Failing, commit
from tablelog.logstore import LocalLogStore, remove_stale_temporaries

OTHERS = [
    f"{0:020}.json",
    f".{0:020}.json.crc",
    "_last_checkpoint",
    ".hidden",
    f".{0:020}.json.tmp",
    f"{0:020}.{UUID}.tmp",
    f"{0:020}.checkpoint.{UUID}.parquet",
]
DAY_MS = 24 * 3600 * 1000


def test_stale_temporaries_go_and_nothing_else(log: Path) -> None:
    for name in [*TEMPORARIES, *OTHERS]:
        (log / name).write_bytes(b"x")
        os.utime(log / name, (1000, 1000))
    fresh = f".{1:020}.json.{UUID}.tmp"
    (log / fresh).write_bytes(b"x")
    os.utime(log / fresh, (1500, 1500))
    assert remove_stale_temporaries(f"file://{log}", 1_000_000, 2_000_000) == 0
    assert remove_stale_temporaries(f"file://{log}", 1_000_000, 2_000_001) == len(TEMPORARIES)
    assert sorted(os.listdir(log)) == sorted([*OTHERS, fresh])


class FakeClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.ms = 10 * DAY_MS

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000

    def sleep(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)


def test_a_checkpoint_takes_temporaries_older_than_a_day_away(log: Path) -> None:
    """Writing `_last_checkpoint` is the log's regular overwrite; a look each hour is enough."""
    clock = FakeClock()
    store = LocalLogStore(clock)

    def leave(age_ms: int) -> Path:
        path = log / f".{0:020}.json.{UUID}.tmp"
        path.write_bytes(b"half")
        os.utime(path, ns=((clock.ms - age_ms) * 1_000_000,) * 2)
        return path

    left = leave(DAY_MS + 1)
    store.write(commit(log), b"a commit doesn't look")
    assert left.exists()
    store.write(f"{log}/_last_checkpoint", b"1", overwrite=True)
    assert not left.exists()
    left = leave(DAY_MS - 1)
    clock.sleep(1)
    store.write(f"{log}/_last_checkpoint", b"2", overwrite=True)
    assert left.exists()
    clock.sleep(3600)
    store.write(f"{log}/_last_checkpoint", b"3", overwrite=True)
    assert not left.exists()


def test_a_failed_look_for_leftovers_only_warns(log: Path, fail: Failing, caplog: pytest.LogCaptureFixture) -> None:
    fail("listdir", errno.EACCES)
    LocalLogStore().write(f"{log}/_last_checkpoint", b"1", overwrite=True)
    assert "stale temporary files" in caplog.text
