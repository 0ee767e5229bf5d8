"""Stores around stores: patient, slow, of a part; and one around the other."""

import pickle
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from support.clocks import ManualClock
from tablelog.errors import InvalidArgumentError, StorageAccessError, StorageUnavailableError, WriteOutcomeUnknown
from tablelog.logstore import (
    CountingLogStore,
    FileStatus,
    LocalLogStore,
    LogStore,
    LogStoreWrapper,
    MemoryLogStore,
    PrefixedLogStore,
    RetryingLogStore,
    ThrottledLogStore,
)


class Failing(LogStoreWrapper):
    """Raises its errors, one for each call, before it works; a listing fails on its way."""

    def __init__(self, inner: LogStore, *errors: Exception) -> None:
        super().__init__(inner)
        self.errors = list(errors)

    def _fail(self) -> None:
        if self.errors:
            raise self.errors.pop(0)

    def read(self, path: str) -> bytes:
        self._fail()
        return super().read(path)

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        self._fail()
        super().write(path, data, overwrite=overwrite)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        for status in super().list_from(path):
            yield status
            self._fail()

    def delete(self, path: str) -> None:
        self._fail()
        super().delete(path)


def away() -> StorageUnavailableError:
    return StorageUnavailableError("away")


def patient(*errors: Exception, attempts: int = 5) -> tuple[RetryingLogStore, CountingLogStore, ManualClock]:
    clock = ManualClock()
    counting = CountingLogStore(Failing(MemoryLogStore(), *errors))
    return RetryingLogStore(counting, attempts=attempts, clock=clock), counting, clock


# ---- a file in pieces ----


def test_a_file_in_pieces_is_one_write_for_a_wrapper(tmp_path: Path) -> None:
    store = CountingLogStore(LocalLogStore())
    store.write_pieces(f"{tmp_path}/a", iter([b"x", b"", b"y"]))
    assert (store.calls, store.read(f"{tmp_path}/a")) == ({"write": 1, "read": 1}, b"xy")


def test_who_changes_a_write_has_changed_a_write_in_pieces(tmp_path: Path) -> None:
    class Shouts(LocalLogStore):
        def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
            super().write(path, data.upper(), overwrite=overwrite)

    class ShoutsToo(Shouts):
        pass

    class TakesThem(Shouts):
        def write_pieces(self, path: str, pieces: Iterable[bytes], *, overwrite: bool = False) -> None:
            LocalLogStore.write_pieces(self, path, pieces, overwrite=overwrite)

    class Whispers:
        def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
            super().write(path, data.lower(), overwrite=overwrite)  # type: ignore[misc]

    class Both(Whispers, Shouts):
        pass

    class Mixed(Whispers, TakesThem):
        pass

    made = [(Shouts(), b"AB"), (ShoutsToo(), b"AB"), (TakesThem(), b"aB"), (Both(), b"AB"), (Mixed(), b"AB")]
    for store, expected in made:
        store.write_pieces(f"{tmp_path}/a", [b"a", b"B"], overwrite=True)
        assert store.read(f"{tmp_path}/a") == expected


# ---- RetryingLogStore ----


def test_every_request_is_made_again_while_the_store_is_away() -> None:
    store, counting, clock = patient(away(), away())
    store.write("/t/0", b"x")
    assert counting.calls["write"] == 3
    assert len(clock.sleeps) == 2
    for request in (lambda: store.read("/t/0"), lambda: list(store.list_from("/t/0")), lambda: store.delete("/t/0")):
        failing = counting.inner
        assert isinstance(failing, Failing)
        failing.errors = [away()]
        request()
    assert counting.calls == {"write": 3, "read": 2, "list_from": 2, "delete": 2}


def test_a_listing_that_fails_half_way_is_whole_in_the_end() -> None:
    store, counting, _ = patient()
    for name in "abc":
        store.write(f"/t/{name}", b"")
    failing = counting.inner
    assert isinstance(failing, Failing)
    failing.errors = [away()]
    assert [status.path[-1] for status in store.list_from("/t/a")] == ["a", "b", "c"]


def test_patience_ends() -> None:
    store, counting, clock = patient(*[away()] * 9, attempts=3)
    with pytest.raises(StorageUnavailableError):
        store.read("/t/0")
    assert counting.calls["read"] == 3
    assert len(clock.sleeps) == 2


@pytest.mark.parametrize(
    "error", [WriteOutcomeUnknown("/t/0", "lost"), FileExistsError("/t/0"), StorageAccessError("no")]
)
def test_nothing_else_is_made_again(error: Exception) -> None:
    """Above all not a write that may have been applied."""
    store, counting, clock = patient(error)
    with pytest.raises(type(error)):
        store.write("/t/0", b"x")
    assert counting.calls["write"] == 1
    assert not clock.sleeps


def test_the_pauses_grow_up_to_a_bound() -> None:
    clock = ManualClock()
    inner = Failing(MemoryLogStore(), *[away()] * 9)
    store = RetryingLogStore(inner, attempts=10, shortest=0.1, longest=3.0, clock=clock)
    store.write("/t/0", b"")
    bounds = [min(3.0, 0.1 * 2**k) for k in range(1, 10)]
    assert len(clock.sleeps) == 9
    assert all(bound / 2 <= pause <= bound for pause, bound in zip(clock.sleeps, bounds, strict=True))


# ---- ThrottledLogStore ----


def test_requests_are_spaced() -> None:
    clock = ManualClock()
    counting = CountingLogStore(MemoryLogStore())
    store = ThrottledLogStore(counting, 4, clock=clock)
    store.write("/t/0", b"x")
    store.read("/t/0")
    list(store.list_from("/t/0"))
    store.delete("/t/0")
    assert clock.sleeps == pytest.approx([0.25] * 3)
    clock.time += 10
    store.delete("/t/0")
    assert len(clock.sleeps) == 3, "what wasn't used before isn't waited for"
    store.resolve("/t/0")
    assert len(clock.sleeps) == 3, "no request, no wait"
    assert counting.calls.total() == 5


def test_threads_share_one_rate() -> None:
    class Standing(ManualClock):
        """Each thread sleeps on its own: the time stands still for all."""

        def sleep(self, seconds: float) -> None:
            self.sleeps.append(seconds)

    clock = Standing()
    store = ThrottledLogStore(MemoryLogStore(), 10, clock=clock)
    threads = [threading.Thread(target=lambda: [store.delete("/x") for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(clock.sleeps) == pytest.approx([k / 10 for k in range(1, 200)])


@pytest.mark.parametrize("rate", [0, -1, float("nan")])
def test_a_rate_that_is_none(rate: float) -> None:
    with pytest.raises(InvalidArgumentError):
        ThrottledLogStore(MemoryLogStore(), rate)


# ---- PrefixedLogStore ----


@pytest.fixture
def part() -> tuple[PrefixedLogStore, MemoryLogStore]:
    inner = MemoryLogStore()
    return PrefixedLogStore(inner, "memory://bucket/tenants/a", shown_as="mine://data"), inner


def test_paths_are_mapped_both_ways(part: tuple[PrefixedLogStore, MemoryLogStore]) -> None:
    store, inner = part
    store.write("mine://data/t/_delta_log/0", b"x")
    assert inner.read("memory://bucket/tenants/a/t/_delta_log/0") == b"x"
    assert store.read("mine://data/t/_delta_log/0") == b"x"
    listed = [status.path for status in store.list_from("mine://data/t/_delta_log/")]
    assert listed == ["mine://data/t/_delta_log/0"]
    assert store.read(listed[0]) == b"x"
    assert store.resolve("mine://data/t//x/../_delta_log/0") == listed[0]
    store.delete(listed[0])
    with pytest.raises(FileNotFoundError):
        inner.read("memory://bucket/tenants/a/t/_delta_log/0")


@pytest.mark.parametrize(
    "path", ["mine://database/t", "mine://data/../b/t", "mine://data/t/%2e%2e/%2e%2e/b", "memory://bucket/tenants/b/t"]
)
def test_what_is_outside_cant_be_reached(part: tuple[PrefixedLogStore, MemoryLogStore], path: str) -> None:
    store, inner = part
    inner.write("memory://bucket/tenants/b/t", b"theirs")
    for request in (
        lambda: store.read(path),
        lambda: store.write(path, b"x", overwrite=True),
        lambda: store.list_from(path),
        lambda: store.delete(path),
        lambda: store.resolve(path),
    ):
        with pytest.raises(InvalidArgumentError):
            request()  # type: ignore[no-untyped-call]
    assert inner.read("memory://bucket/tenants/b/t") == b"theirs"


def test_a_directory_that_is_missing_is_so_at_the_call(part: tuple[PrefixedLogStore, MemoryLogStore]) -> None:
    with pytest.raises(FileNotFoundError):
        part[0].list_from("mine://data/never/0")


# ---- together ----


def test_they_compose(tmp_path: Path) -> None:
    """In whatever order: what is counted inside is what the patient one outside asked for, each in its turn."""
    clock = ManualClock()
    counting = CountingLogStore(Failing(LocalLogStore(), away(), away()))
    store = RetryingLogStore(
        ThrottledLogStore(PrefixedLogStore(counting, f"file://{tmp_path}", shown_as="mine://data"), 100, clock=clock),
        clock=clock,
    )
    store.write("mine://data/t/0", b"x")
    assert counting.calls == {"write": 3}
    assert store.read("mine://data/t/0") == b"x"
    assert (tmp_path / "t" / "0").read_bytes() == b"x"
    assert (store.exclusion, store.atomic_overwrite, store.partial_writes_visible) == ("host", True, False)


def test_they_are_pickled_with_what_is_inside(tmp_path: Path) -> None:
    store: LogStore = RetryingLogStore(
        ThrottledLogStore(PrefixedLogStore(LocalLogStore(), str(tmp_path), shown_as="mine://data"), 1000)
    )
    store.write("mine://data/t/0", b"x")
    assert pickle.loads(pickle.dumps(store)).read("mine://data/t/0") == b"x"


def test_a_class_that_changes_reading_has_what_it_reads_within_a_bound_too(tmp_path: Path) -> None:
    class Upper(LocalLogStore):
        def read(self, path: str) -> bytes:
            return super().read(path).upper()

    (tmp_path / "x").write_bytes(b"abc")
    assert LocalLogStore().read_at_most(f"{tmp_path}/x", 3) == b"abc"
    assert Upper().read_at_most(f"{tmp_path}/x", 3) == b"ABC"
