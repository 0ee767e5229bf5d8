"""A store that repeats requests to the inner store, for a service that restarts or a network that is down."""

import random
from collections.abc import Callable, Iterator
from typing import TypeVar

from ...clock import Clock, SystemClock
from ...errors import StorageUnavailableError
from ..base import FileStatus, LogStore
from .wrapper import LogStoreWrapper

_Result = TypeVar("_Result")


class RetryingLogStore(LogStoreWrapper):
    """Repeats a request after `StorageUnavailableError`, up to `attempts` times in all.

    Other errors are raised at once. This error says that a conditional write was certainly not applied, so guarantee 4
    holds: an ambiguous answer (`WriteOutcomeUnknown`) isn't repeated. The pause before try k (from 1) is uniform in
    (0.5, 1] x min(longest, shortest x 2^k) seconds.
    """

    def __init__(
        self,
        inner: LogStore,
        *,
        attempts: int = 5,
        shortest: float = 0.1,
        longest: float = 10.0,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(inner)
        self._attempts = attempts
        self._shortest = shortest
        self._longest = longest
        self._clock = clock or SystemClock()

    def read(self, path: str) -> bytes:
        return self._patient(lambda: self.inner.read(path))

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        self._patient(lambda: self.inner.write(path, data, overwrite=overwrite))

    def list_from(self, path: str) -> Iterator[FileStatus]:
        # The whole listing, because a listing that fails halfway must be repeated from the start.
        return self._patient(lambda: iter(list(self.inner.list_from(path))))

    def delete(self, path: str) -> None:
        self._patient(lambda: self.inner.delete(path))

    def _patient(self, request: Callable[[], _Result]) -> _Result:
        for k in range(1, self._attempts):
            try:
                return request()
            except StorageUnavailableError:
                bound = min(self._longest, self._shortest * 2.0**k)
                self._clock.sleep(bound * random.uniform(0.5, 1.0))
        return request()
