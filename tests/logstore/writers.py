"""Writers in processes of their own, held or killed at a chosen system call; run by multiprocessing's spawn."""

import multiprocessing
import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from tablelog.logstore import LocalLogStore, LogStore

_context = multiprocessing.get_context("spawn")
_SECONDS = 60


class Gate(NamedTuple):
    """Hold `before` or `after` the `count`-th call of `os.<call>`; `half`: after `os.write` of half the data."""

    when: str
    call: str
    count: int = 1

    def __str__(self) -> str:
        return f"{self.when}-{self.call}" + (f"-{self.count}" if self.count > 1 else "")


class Writer:
    """A process that writes when it is told to, and is held at its gate; `answer` is how its write ended."""

    def __init__(self, gate: Gate | None = None, kind: type[LogStore] = LocalLogStore, file_limit: int = 0) -> None:
        self._pipe, child = _context.Pipe()
        self._process = _context.Process(target=_serve, args=(child, gate, kind, file_limit), daemon=True)
        self._process.start()
        child.close()

    def start(self, path: str, data: bytes, overwrite: bool = False) -> None:
        self._pipe.send((path, data, overwrite))

    def _receive(self) -> Any:
        if not self._pipe.poll(_SECONDS):
            raise TimeoutError("a writer process doesn't answer")
        return self._pipe.recv()

    def wait_until_held(self) -> None:
        said = self._receive()
        assert said == "held", said

    def go_on(self) -> None:
        self._pipe.send("go on")

    def answer(self) -> str:
        return str(self._receive())

    def write(self, path: str, data: bytes, overwrite: bool = False) -> str:
        self.start(path, data, overwrite)
        return self.answer()

    def kill(self) -> None:
        os.kill(self._process.pid or 0, signal.SIGKILL)
        self._process.join(_SECONDS)
        assert self._process.exitcode == -signal.SIGKILL

    def close(self) -> None:
        self._pipe.close()
        self._process.join(_SECONDS)
        if self._process.is_alive():
            self._process.kill()


@contextmanager
def writers(number: int, **options: Any) -> Iterator[list[Writer]]:
    """Some processes that are gone afterwards."""
    running: list[Writer] = []
    try:
        for _ in range(number):
            running.append(Writer(**options))
        yield running
    finally:
        for writer in running:
            writer.close()


def _serve(pipe: Connection, gate: Gate | None, kind: type[LogStore], file_limit: int) -> None:
    if file_limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
    store = kind()
    while True:
        try:
            path, data, overwrite = pipe.recv()
        except EOFError:
            return
        with _held_at(gate, pipe):
            pipe.send(_outcome(store, path, data, overwrite))


def _outcome(store: LogStore, path: str, data: bytes, overwrite: bool) -> str:
    try:
        store.write(path, data, overwrite=overwrite)
    except FileExistsError:
        return "lost"
    except OSError as error:
        return type(error).__name__ + f" {error.errno}"
    return "won"


@contextmanager
def _held_at(gate: Gate | None, pipe: Connection) -> Iterator[None]:
    if gate is None:
        yield
        return
    real: Callable[..., Any] = getattr(os, gate.call)
    calls = 0

    def hold() -> None:
        # The pipe writes with os.write itself: it has to be the real one.
        setattr(os, gate.call, real)
        pipe.send("held")
        pipe.recv()

    def gated(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls != gate.count:
            return real(*args, **kwargs)
        if gate.when == "half":
            descriptor, data = args
            written = real(descriptor, bytes(data)[: len(data) // 2])
            hold()
            return written
        if gate.when == "before":
            hold()
            return real(*args, **kwargs)
        result = real(*args, **kwargs)
        hold()
        return result

    setattr(os, gate.call, gated)
    try:
        yield
    finally:
        setattr(os, gate.call, real)


def write_in_child(store: LogStore, path: str) -> None:
    """The whole work of a process that got its store from its parent."""
    store.write(path, b"child")
