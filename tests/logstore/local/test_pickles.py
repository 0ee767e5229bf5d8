"""A store in another process."""

import multiprocessing
import pickle
from pathlib import Path

import pytest

from logstore.local_log import commit
from logstore.writers import write_in_child
from tablelog.logstore import LocalLogStore


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_store_goes_to_another_process(log: Path, method: str) -> None:
    store = LocalLogStore()
    store.write(commit(log), b"parent")
    child = multiprocessing.get_context(method).Process(target=write_in_child, args=(store, commit(log, 1)))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert store.read(commit(log, 1)) == b"child"


def test_a_pickle_holds_no_state(log: Path) -> None:
    store = LocalLogStore()
    store.write(f"{log}/_last_checkpoint", b"1", overwrite=True)
    assert pickle.loads(pickle.dumps(store))._swept == {}
