"""A store that counts the requests to the inner store, for tests of the number of round trips."""

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ..base import FileStatus, LogStore
from .wrapper import LogStoreWrapper


class CountingLogStore(LogStoreWrapper):
    """Counts calls, including those that raise; `resolve` makes no request and isn't counted.

    `calls` counts by method name (`read`, `write`, `list_from`, `delete`), `log` has (method, path) in the order of
    the calls. A copy in another process counts separately.
    """

    def __init__(self, inner: LogStore) -> None:
        super().__init__(inner)
        self._lock = threading.Lock()
        self.calls: Counter[str] = Counter()
        self.log: list[tuple[str, str]] = []

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {
                name: value.copy() if name in {"calls", "log"} else value
                for name, value in self.__dict__.items()
                if name != "_lock"
            }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def reset(self) -> None:
        """Set all counts to zero."""
        with self._lock:
            self.calls.clear()
            self.log.clear()

    def _count(self, method: str, path: str) -> None:
        with self._lock:
            self.calls[method] += 1
            self.log.append((method, path))

    def read(self, path: str) -> bytes:
        self._count("read", path)
        return super().read(path)

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        self._count("write", path)
        super().write(path, data, overwrite=overwrite)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        self._count("list_from", path)
        return super().list_from(path)

    def delete(self, path: str) -> None:
        self._count("delete", path)
        super().delete(path)
