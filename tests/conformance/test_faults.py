"""The fault store does what its plan says, and whole table commits over it are each made once."""

import pickle
from contextlib import suppress

import pytest

from support.lost_replies import holds_once
from support.memory_table import QUICK, WRITE, add, create
from tablelog.conformance.harness.faults import Faults, FaultyLogStore
from tablelog.core.deltalog import DeltaLog
from tablelog.core.txn.transaction import Transaction
from tablelog.errors import CommitStateUnknownError, StorageError, WriteOutcomeUnknown
from tablelog.logstore import MemoryLogStore

PATH = "memory:///t/_delta_log/0.json"


def faulty(faults: Faults, seed: int = 0) -> FaultyLogStore:
    return FaultyLogStore(MemoryLogStore(), faults, seed)


def test_a_lost_reply_leaves_the_file_and_says_unknown() -> None:
    store = faulty(Faults(lost_reply=1))
    for data in (b"1", b"2"):
        with pytest.raises(WriteOutcomeUnknown):
            store.write(PATH, data)
    assert store.inner.read(PATH) == b"1"
    assert store.injected == [("write", PATH, "lost_reply")] * 2


def test_a_lost_request_leaves_nothing_and_says_unknown() -> None:
    store = faulty(Faults(lost_request=1))
    with pytest.raises(WriteOutcomeUnknown):
        store.write(PATH, b"1")
    with pytest.raises(FileNotFoundError):
        store.read(PATH)


def test_a_late_write_arrives_where_the_name_is_free() -> None:
    store, taken = faulty(Faults(late=1)), PATH.replace("0", "1")
    for path in (PATH, taken):
        with suppress(WriteOutcomeUnknown):
            store.write(path, b"late")
        if path == taken:
            store.inner.write(taken, b"another's")
    store.deliver()
    assert (store.inner.read(PATH), store.inner.read(taken)) == (b"late", b"another's")


def test_a_refused_write_and_an_unreachable_read_are_errors_of_storage() -> None:
    store = faulty(Faults(refused=1, unreachable=1))
    for call in (lambda: store.write(PATH, b"1"), lambda: store.read(PATH), lambda: store.list_from(PATH)):
        with pytest.raises(StorageError):
            call()
    store.write(PATH, b"1", overwrite=True)
    assert store.inner.read(PATH) == b"1"


def test_a_seed_repeats_the_plan_and_a_pickle_goes_on_with_it() -> None:
    def injected(store: FaultyLogStore) -> list[tuple[str, str, str]]:
        for number in range(50):
            with suppress(WriteOutcomeUnknown, StorageError, FileExistsError):
                store.write(f"memory:///t/{number}", b"")
        return store.injected

    plans = [injected(faulty(Faults.all(0.1), seed)) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]
    store = faulty(Faults.all(0.1), 1)
    assert injected(pickle.loads(pickle.dumps(store))) == plans[0]


@pytest.mark.parametrize("seed", range(40))
def test_commits_are_made_once_and_told_truly(seed: int) -> None:
    inner = MemoryLogStore()
    direct = DeltaLog.for_path("memory:///t", store=inner)
    create(direct)
    store = FaultyLogStore(inner, Faults.all(0.12), seed)
    told: dict[str, int | None] = {}
    tokens: dict[str, str] = {}
    for number in range(10):
        name = f"f-{number}"
        with suppress(StorageError):
            log = DeltaLog.for_path("memory:///t", store=store)
            transaction = Transaction(log, log.snapshot(), patience=QUICK)
            try:
                told[name] = transaction.commit([add(name)], WRITE).version
            except CommitStateUnknownError as error:
                told[name], tokens[name] = None, error.token
    store.deliver()
    holds_once(direct, told, tokens)
    assert store.injected
