"""A store that limits the number of requests per second."""

import threading
from collections.abc import Iterator
from typing import Any

from ...clock import Clock, SystemClock
from ...errors import InvalidArgumentError
from ..base import FileStatus, LogStore
from .wrapper import LogStoreWrapper


class ThrottledLogStore(LogStoreWrapper):
    """Delays callers, in their order, so that requests start at least `1 / per_second` seconds apart.

    The limit applies to this instance in this process; a copy in another process has its own limit.
    """

    def __init__(self, inner: LogStore, per_second: float, *, clock: Clock | None = None) -> None:
        if not per_second > 0:
            raise InvalidArgumentError(
                f"per_second is {per_second}: the number of requests per second must be positive"
            )
        super().__init__(inner)
        self._gap = 1.0 / per_second
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._next = float("-inf")

    def __getstate__(self) -> dict[str, Any]:
        # The times of a monotonic clock have no meaning in another process.
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
        """Reserve the next free time, then wait for it without holding the lock."""
        with self._lock:
            now = self._clock.monotonic()
            start = max(now, self._next)
            self._next = start + self._gap
        if start > now:
            self._clock.sleep(start - now)
