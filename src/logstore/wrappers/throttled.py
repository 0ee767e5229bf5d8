"""A store that spares a service: no more than so many requests a second."""

import threading
from collections.abc import Iterator
from typing import Any

from ...clock import Clock, SystemClock
from ...errors import InvalidArgumentError
from ..base import FileStatus, LogStore
from .wrapper import LogStoreWrapper


class ThrottledLogStore(LogStoreWrapper):
    """Makes callers wait, each in turn, so that requests start `1 / per_second` seconds apart at the least.

    It counts the calls of this instance in this process; a copy in another one keeps to the same rate on its own.
    """

    def __init__(self, inner: LogStore, per_second: float, *, clock: Clock | None = None) -> None:
        if not per_second > 0:
            raise InvalidArgumentError(f"a store can't make {per_second} requests a second")
        super().__init__(inner)
        self._gap = 1.0 / per_second
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._next = float("-inf")

    def __getstate__(self) -> dict[str, Any]:
        # The times of a monotonic clock mean nothing in another process.
        return {name: value for name, value in self.__dict__.items() if name not in {"_lock", "_next"}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()
        self._next = float("-inf")

    def read(self, path: str) -> bytes:
        self._wait()
        return super().read(path)

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        self._wait()
        super().write(path, data, overwrite=overwrite)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        self._wait()
        return super().list_from(path)

    def delete(self, path: str) -> None:
        self._wait()
        super().delete(path)

    def _wait(self) -> None:
        """Take the next free moment, and wait for it without keeping others from taking theirs."""
        with self._lock:
            now = self._clock.monotonic()
            mine = max(now, self._next)
            self._next = mine + self._gap
        if mine > now:
            self._clock.sleep(mine - now)
