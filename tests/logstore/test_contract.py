"""The stores keep the contract, and each check fails for a store that doesn't."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from logstore.broken_stores import BROKEN
from tablelog.conformance import CHECKS, Check, GuaranteeBrokenError, try_out
from tablelog.conformance.interleave import all_interleavings, count_steps, interleave
from tablelog.logstore import CountingLogStore, LocalLogStore, LogStore, MemoryLogStore

BY_NAME = {check.name: check for check in CHECKS}


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """Where flushing costs nothing, if there is such a place: the checks write thousands of files."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(dir="/dev/shm") as name:
        yield Path(name)


def factory(kind: type[LogStore]) -> Callable[[], LogStore]:
    """Another client of the same storage: a memory store is its storage."""
    if issubclass(kind, MemoryLogStore):
        only = kind()
        return lambda: only
    return kind


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
@pytest.mark.parametrize("kind", [LocalLogStore, MemoryLogStore])
def test_store_keeps_the_contract(kind: type[LogStore], check: Check, directory: Path) -> None:
    root = "memory:///table" if kind is MemoryLogStore else f"file://{directory}/table"
    try_out(check, factory(kind), root)


def test_a_wrapped_store_keeps_it_too(directory: Path) -> None:
    for number, check in enumerate(CHECKS):
        if check.guarantee == 0:
            try_out(check, lambda: CountingLogStore(LocalLogStore()), f"file://{directory}/{number}")


@pytest.mark.parametrize(("kind", "check"), [(kind, name) for kind, names in BROKEN.items() for name in sorted(names)])
def test_check_finds_the_broken_store(kind: type[LogStore], check: str, directory: Path) -> None:
    root = "memory:///table" if issubclass(kind, MemoryLogStore) else f"file://{directory}/table"
    with pytest.raises(GuaranteeBrokenError):
        try_out(BY_NAME[check], factory(kind), root)


def test_every_check_but_the_plainest_is_proven() -> None:
    """What no broken store stands for: a store that can't even read or list fails everything."""
    unproven = set(BY_NAME) - {name for names in BROKEN.values() for name in names}
    assert unproven == {"reads_what_was_written", "absent_is_not_found", "listed_paths_are_the_files"}


def test_every_guarantee_is_checked() -> None:
    assert {check.guarantee for check in CHECKS} == {0, 1, 2, 3, 4}


def test_a_call_is_held_before_each_of_its_steps() -> None:
    """The interleaving is forced: `between` sees exactly what the held call has done by then."""
    done: dict[int, list[int]] = {}

    def held(case: int) -> None:
        done[case] = []
        done[case].append(1)
        done[case].append(2)

    seen = [len(case.between.value) for case in all_interleavings(held, lambda case: list(done.get(case, ())))]
    assert sorted(set(seen)) == [0, 1, 2]
    assert seen == sorted(seen)
    assert len(seen) == count_steps(partial(held, -1))


def test_a_lock_ends_the_hold() -> None:
    """A correct store with a lock passes: the other call waits and is served afterwards."""
    store = MemoryLogStore()
    store.write("memory:///t/0", b"")
    waited = [
        interleave(
            lambda n=step: store.write(f"memory:///t/a{n}", b"1"),
            lambda n=step: store.write(f"memory:///t/a{n}", b"2"),
            step,
            0.02,
        )
        for step in range(count_steps(lambda: store.write("memory:///t/x", b"1")))
    ]
    assert any(case.between_waited for case in waited)
    assert all((case.held.error is None) != (case.between.error is None) for case in waited)
