"""The stores of this machine keep the contract."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tablelog.conformance import CHECKS, Check, Level, NotEstablishedError, try_out
from tablelog.logstore import CountingLogStore, LocalLogStore, LogStore, MemoryLogStore

QUICK = [check for check in CHECKS if check.level is Level.QUICK]


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """Where flushing costs nothing, if there is such a place: the checks write thousands of files."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(dir="/dev/shm") as name:
        yield Path(name)


@pytest.mark.parametrize("check", QUICK, ids=lambda check: check.name)
@pytest.mark.thorough
def test_a_store_of_files_keeps_the_contract(check: Check, directory: Path) -> None:
    try_out(check, LocalLogStore, f"file://{directory}/table")


# What needs a second process, or a service behind the store.
NOT_IN_MEMORY = {
    "one_winner_among_processes",
    "one_winner_when_all_stand_before_the_act",
    "processes_make_one_contiguous_log",
    "a_lost_reply_is_never_a_loss",
    "a_lost_reply_of_a_large_write_is_never_a_loss",
    "a_write_that_comes_late_is_never_denied",
    "what_was_never_sent_is_never_won",
    "what_was_turned_away_is_never_a_loss",
    "exists_is_seen_in_every_form",
    "a_killed_writer_leaves_all_or_nothing",
    "a_paused_writer_goes_on_safely",
    "a_write_without_room_leaves_nothing",
    "other_processes_see_it_at_once",
    "a_clock_that_is_off_changes_nothing",
    "a_lock_that_ran_out_is_lost_safely",
    "survives_a_fork",
}


# A few rounds of writes into memory may not overlap on a machine with free processors. A broken guarantee still fails.
OVERLAPS_BY_CHANCE = {"one_winner_in_a_directory_of_thousands"}


@pytest.mark.parametrize("check", QUICK, ids=lambda check: check.name)
def test_a_store_in_memory_keeps_it_as_far_as_it_reaches(check: Check) -> None:
    established = any(is_established(check, seed) for seed in range(3))
    assert established == (check.name not in NOT_IN_MEMORY) or check.name in OVERLAPS_BY_CHANCE


def is_established(check: Check, seed: int) -> bool:
    """Whether a check saw enough. Writes into memory are short: on a busy machine, few rounds may not overlap."""
    only = MemoryLogStore()
    try:
        try_out(check, lambda: only, "memory:///table", seed=seed)
    except NotEstablishedError:
        return False
    return True


@pytest.mark.parametrize("check", [check for check in QUICK if check.guarantee == 0], ids=lambda check: check.name)
def test_a_wrapped_store_keeps_it_too(check: Check, directory: Path) -> None:
    try_out(check, counting, f"file://{directory}/table")


def counting() -> LogStore:
    return CountingLogStore(LocalLogStore())


def test_every_guarantee_is_checked() -> None:
    assert {check.guarantee for check in CHECKS} == {0, 1, 2, 3, 4}
