"""What the tests of HDFS do in processes of their own, which have no Spark session; and a proxy that loses replies."""

import multiprocessing
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tablelog.logstore.hdfs.store import HDFSLogStore

SPAWN = multiprocessing.get_context("spawn")
SCHEMA = '{"type":"struct","fields":[{"name":"v","type":"long","nullable":true,"metadata":{}}]}'


def append(table: str, conf: dict[str, str], writer: str, commits: int) -> list[int]:
    """Append to a table, one file a commit; the versions that were made."""
    from tablelog.core.deltalog import DeltaLog
    from tablelog.core.protocol.actions import AddFile
    from tablelog.core.txn.operation import Operation

    log = DeltaLog.for_path(table, conf=conf)
    made = []
    for serial in range(commits):
        added = AddFile(f"f-{writer}-{serial}", {}, 1, 1, True)
        made.append(log.transaction().commit([added], Operation("WRITE")).version)
    return made


def append_in_process(table: str, conf: dict[str, str], writer: str, commits: int, barrier: Any, results: Any) -> None:
    """`append`, with others."""
    try:
        barrier.wait(120)
        results.put((writer, append(table, conf, writer, commits)))
    except BaseException as error:
        results.put((writer, repr(error)))


def die_before_the_rename(conf: dict[str, str], path: str, data: bytes) -> None:
    """Write the temporary file, and be killed."""
    store = HDFSLogStore(conf)
    store._files().rename = lambda *_args, **_keywords: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
    store.write(path, data)


class LosingProxy:
    """Passes bytes on to a NameNode and back. After a request that holds `lose`, the connection is cut.

    `whole`: after the request was passed on and `seconds` have gone by, in which it was applied; else before.
    """

    def __init__(self, port: int, lose: bytes, *, whole: bool, seconds: float = 0.5) -> None:
        self._target = port
        self._lose = lose
        self._whole = whole
        self._seconds = seconds
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.times = 1
        self.lost = 0

    def __enter__(self) -> "LosingProxy":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._target)) as server:
            while True:
                for one in select.select([client, server], [], [])[0]:
                    data = one.recv(1 << 16)
                    if not data:
                        return
                    if one is client and self._lose in data and self.lost < self.times:
                        self.lost += 1
                        if self._whole:
                            server.sendall(data)
                            time.sleep(self._seconds)
                        return
                    (server if one is client else client).sendall(data)


@contextmanager
def processes(writers: list[str], table: str, conf: dict[str, str], commits: int) -> Iterator[dict[str, Any]]:
    """Writers in processes with hdfs-native, beside what is done in the block; their versions are there after it."""
    barrier, results = SPAWN.Barrier(len(writers)), SPAWN.Queue()
    started = [
        SPAWN.Process(target=append_in_process, args=(table, conf, name, commits, barrier, results)) for name in writers
    ]
    for one in started:
        one.start()
    made: dict[str, Any] = {}
    try:
        yield made
        made.update(results.get(timeout=180) for _ in started)
    finally:
        for one in started:
            one.join(30)
            one.kill()
