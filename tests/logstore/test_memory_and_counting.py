"""The memory store beyond the contract, and the store that counts."""

import multiprocessing
import pickle
import threading

import pytest

from logstore.writers import write_in_child
from tablelog.errors import InvalidArgumentError, UnsupportedEnvironmentError
from tablelog.logstore import CountingLogStore, LocalLogStore, MemoryLogStore


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_another_process_is_refused(method: str) -> None:
    """A copy there would take commits that nobody sees."""
    store = MemoryLogStore()
    child = multiprocessing.get_context(method).Process(target=write_in_child, args=(store, "memory:///t/0"))
    child.start()
    child.join(60)
    assert child.exitcode == 1
    with pytest.raises(FileNotFoundError):
        store.read("memory:///t/0")


def test_a_forked_child_is_told_and_never_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while another thread of the parent held the lock at the fork."""
    store = MemoryLogStore()
    with store._lock:
        monkeypatch.setattr("os.getpid", lambda: -1)
        for call in (
            lambda: store.write("/t/0", b""),
            lambda: store.read("/t/0"),
            lambda: store.list_from("/t/"),
            lambda: store.delete("/t/0"),
        ):
            with pytest.raises(UnsupportedEnvironmentError, match="another process"):
                call()
        data = pickle.dumps(store)
        with pytest.raises(UnsupportedEnvironmentError):
            pickle.loads(data)


def test_a_pickle_doesnt_outlive_its_store() -> None:
    data = pickle.dumps(MemoryLogStore())
    with pytest.raises(UnsupportedEnvironmentError):
        pickle.loads(data)


def test_stores_are_apart() -> None:
    first, second = MemoryLogStore(), MemoryLogStore()
    first.write("memory:///t/0", b"x")
    second.write("memory:///t/0", b"y")
    assert first.read("/t/0") == b"x"


def test_later_changes_of_a_buffer_dont_reach_the_file() -> None:
    store, buffer = MemoryLogStore(), bytearray(b"abc")
    store.write("/t/0", buffer)
    buffer[0] = 0
    assert store.read("/t/0") == b"abc"


def test_a_listing_is_of_one_moment() -> None:
    store = MemoryLogStore()
    store.write("/t/1", b"")
    listing = store.list_from("/t/")
    store.write("/t/0", b"")
    store.delete("/t/1")
    assert [status.path for status in listing] == ["memory:///t/1"]


def test_directories_stay_as_on_a_file_system() -> None:
    store = MemoryLogStore()
    store.write("memory://h/a/b/c", b"x")
    store.delete("memory://h/a/b/c")
    for directory in ("memory://h/", "memory://h/a/", "memory://h/a/b/"):
        assert list(store.list_from(directory)) == []
    with pytest.raises(FileNotFoundError):
        store.list_from("memory://other/")
    with pytest.raises(InvalidArgumentError):
        store.write("/t/", b"")


def test_calls_are_counted_and_logged() -> None:
    store = CountingLogStore(MemoryLogStore())
    store.write("/t/0", b"x")
    with pytest.raises(FileExistsError):
        store.write("/t/0", b"x")
    with pytest.raises(FileNotFoundError):
        store.read("/t/1")
    store.list_from("/t/0")
    store.delete("/t/1")
    store.resolve("/t")
    assert store.calls == {"write": 2, "read": 1, "list_from": 1, "delete": 1}
    assert store.log == [
        ("write", "/t/0"),
        ("write", "/t/0"),
        ("read", "/t/1"),
        ("list_from", "/t/0"),
        ("delete", "/t/1"),
    ]
    store.reset()
    assert not store.calls
    assert store.log == []


def test_it_declares_what_the_store_inside_does() -> None:
    assert CountingLogStore(LocalLogStore()).exclusion == "host"
    assert CountingLogStore(MemoryLogStore()).exclusion == "process"


def test_no_call_of_many_threads_is_missed() -> None:
    store = CountingLogStore(MemoryLogStore())
    threads = [threading.Thread(target=lambda: [store.delete("/x") for _ in range(500)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.calls["delete"] == 4000
    assert len(store.log) == 4000


def test_a_pickled_copy_counts_on_its_own() -> None:
    store = CountingLogStore(LocalLogStore())
    store.delete("/nowhere/at/all")
    copy = pickle.loads(pickle.dumps(store))
    copy.delete("/nowhere/at/all")
    assert (store.calls["delete"], copy.calls["delete"]) == (1, 2)
