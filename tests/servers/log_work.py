"""Whole table commits on a store: by several processes, through a proxy that loses replies, on a server that dies."""

import json
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tablelog.conformance.harness.proxy import Exchange, Proxy
from tablelog.conformance.harness.proxy import Reply as Sent
from tablelog.core.deltalog import DeltaLog
from tablelog.core.protocol.actions import AddFile, Metadata
from tablelog.core.txn.operation import Operation
from tablelog.errors import CommitStateUnknownError, CorruptLogError, WriteOutcomeUnknown
from tablelog.logstore import new_store_for, store_for
from tablelog.logstore.common import spool

SCHEMA = '{"type":"struct","fields":[{"name":"v","type":"long","nullable":true,"metadata":{}}]}'
Conf = Mapping[str, str]


def create(url: str, conf: Conf) -> DeltaLog:
    """A table with nothing in it."""
    log = DeltaLog.for_path(url, conf=conf)
    transaction = log.transaction()
    transaction.set_metadata(Metadata("id", SCHEMA))
    transaction.commit([], Operation("CREATE TABLE"))
    return log


def append(log: DeltaLog, name: str) -> int:
    """Commit one file; its version."""
    return log.transaction().commit([AddFile(name, {}, 1, 1, True)], Operation("WRITE")).version


def where_committed(url: str, conf: Conf) -> dict[str, list[int]]:
    """The versions that each file was added in, as a client sees it that comes anew."""
    log = DeltaLog.for_path(url, conf=conf)
    found: dict[str, list[int]] = {}
    for version in range(log.snapshot().version + 1):
        for line in log.store.read(f"{log.log_path}/{version:020}.json").splitlines():
            action = json.loads(line)
            if "add" in action:
                found.setdefault(action["add"]["path"], []).append(version)
    return found


def _append_some(url: str, conf: Conf, number: int, commits: int, barrier: Any, results: Any) -> None:
    log = DeltaLog.for_path(url, conf=conf)
    barrier.wait(60)
    try:
        results.put([(f"f-{number}-{serial}", append(log, f"f-{number}-{serial}")) for serial in range(commits)])
    except BaseException as error:
        results.put(error)
        raise


def processes_append(url: str, conf: Conf, *, processes: int = 4, commits: int = 6) -> None:
    """Several processes append to one table at once: each commit is there once, where its writer was told."""
    create(url, conf)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tablelog.core.deltalog", "tablelog.core.txn.transaction", "pyarrow.compute"])
    barrier, results = context.Barrier(processes), context.Queue()
    writers = [
        context.Process(target=_append_some, args=(url, dict(conf), number, commits, barrier, results))
        for number in range(processes)
    ]
    for writer in writers:
        writer.start()
    told: dict[str, list[int]] = {}
    for _ in writers:
        part = results.get(timeout=120)
        assert isinstance(part, list), part
        told |= {name: [version] for name, version in part}
    for writer in writers:
        writer.join(60)
    assert where_committed(url, conf) == told
    assert sorted(versions[0] for versions in told.values()) == list(range(1, processes * commits + 1))


def is_commit(exchange: Exchange) -> bool:
    """Whether a request is the write of a version."""
    request = exchange.request
    return request.method in ("PUT", "POST") and b'"commitInfo"' in request.body


def lost(exchange: Exchange) -> Sent | None:
    """The request arrives, its reply doesn't."""
    exchange.forward()
    return None


def failed(exchange: Exchange) -> Sent:
    """The request arrives, and the reply says that it failed."""
    exchange.forward()
    return Sent(500)


def unavailable(exchange: Exchange) -> Sent:
    """The request arrives, and something in front of the service says that nobody is there."""
    exchange.forward()
    return Sent(503)


def never_arrived(exchange: Exchange) -> Sent | None:
    """The connection ends before the request arrives."""
    return None


def turned_away(exchange: Exchange) -> Sent:
    """The service is busy, and has done nothing."""
    return Sent(429)


FAULTS: tuple[Callable[[Exchange], Sent | None], ...] = (lost, failed, unavailable, never_arrived, turned_away)


def commits_through(url: str, conf: Conf, endpoint: str, fault: Callable[[Exchange], Sent | None]) -> None:
    """The first two tries of a commit meet the fault: it is made once, and its writer is told so."""
    create(url, conf)
    count = 0

    def decide(exchange: Exchange) -> Sent | None:
        nonlocal count
        if not is_commit(exchange):
            return exchange.forward()
        count += 1
        return fault(exchange) if count <= 2 else exchange.forward()

    with Proxy(endpoint, decide) as proxy:
        address = proxy.url.removeprefix("http://")
        through = {key: value.replace(endpoint.removeprefix("http://"), address) for key, value in conf.items()}
        assert through != conf
        log = DeltaLog.for_path(url, conf=through)
        told = {name: [append(log, name)] for name in ("one", "two")}
    assert count >= 2
    assert where_committed(url, conf) == told


def commits_while_it_dies(server: Any, url: str, *, before: bool) -> None:
    """The server is killed before, or right after, a commit reaches it: its writer is told that it isn't known."""
    create(url, server.conf)

    def decide(exchange: Exchange) -> Sent | None:
        if not is_commit(exchange):
            return exchange.forward()
        if not before:
            exchange.forward()
        server.kill()
        return None

    with Proxy(server.endpoint, decide) as proxy:
        address = proxy.url.removeprefix("http://")
        through = {
            key: value.replace(server.endpoint.removeprefix("http://"), address) for key, value in server.conf.items()
        }
        log = DeltaLog.for_path(url, conf=through)
        started = time.monotonic()
        with pytest.raises(CommitStateUnknownError, match="find_commit"):
            append(log, "one")
        assert time.monotonic() - started < 60


def large_writes_race(url: str, conf: Conf, monkeypatch: pytest.MonkeyPatch, rounds: int = 3) -> None:
    """Several threads write a large file of the same name at once: one wins, and the file has its bytes and no others.

    It is read as a whole, through a temporary file, and up to a size.
    """
    monkeypatch.setattr(spool, "IN_MEMORY", 1 << 20)
    monkeypatch.setattr(spool, "_CHUNK", 1 << 20)
    store, writers = store_for(url, conf=conf), 4

    def pieces(number: int) -> list[bytes]:
        return [bytes([number]) * (1 << 20)] * 6

    for version in range(rounds):
        path = f"{url}/_delta_log/{version:020}.json"
        barrier = threading.Barrier(writers)

        def write(number: int, path: str = path, barrier: threading.Barrier = barrier) -> bool:
            barrier.wait()
            try:
                store.write_pieces(path, pieces(number))
            except FileExistsError:
                return False
            return True

        with ThreadPoolExecutor(writers) as pool:
            won = [number for number, one in enumerate(pool.map(write, range(writers))) if one]
        assert len(won) == 1
        whole = b"".join(pieces(won[0]))
        assert store.read(path) == store.read_at_most(path, len(whole)) == whole
        with store.open_file(path) as file:
            assert file.read() == whole
        with pytest.raises(CorruptLogError):
            store.read_at_most(path, len(whole) - 1)
    pointer = f"{url}/_delta_log/_last_checkpoint"
    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(lambda number: store.write_pieces(pointer, pieces(number), overwrite=True), range(writers)))
    assert store.read(pointer) in [b"".join(pieces(number)) for number in range(writers)]
    store.write(f"{url}/_delta_log/empty", b"")
    assert store.read_at_most(f"{url}/_delta_log/empty", 5) == b""
    with store.open_file(f"{url}/_delta_log/empty") as file:
        assert file.read() == b""
    with pytest.raises(FileNotFoundError):
        store.open_file(f"{url}/_delta_log/absent")


def large_write_is_cut_off(url: str, conf: Conf, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that ends within a large body leaves nothing: a small and a large write of the name win after it."""
    monkeypatch.setattr(spool, "IN_MEMORY", 4)
    store = new_store_for(url, conf=conf)

    def ends(upload: spool.Upload) -> Iterator[bytes]:
        yield b"abc"
        raise OSError("the process was killed")

    for version, later in enumerate((b"1", b"123456")):
        path = f"{url}/_delta_log/{version:020}.json"
        with monkeypatch.context() as patched:
            patched.setattr(spool.Upload, "__iter__", ends)
            with pytest.raises(WriteOutcomeUnknown):
                store.write_pieces(path, [b"abcdef"])
        assert path not in [status.path for status in store.list_from(f"{url}/_delta_log/")]
        with pytest.raises(FileNotFoundError):
            store.read(path)
        store.write_pieces(path, [later])
        assert store.read(path) == later
