"""A wrapper of a store that delays, fails, loses answers and delivers late, by a plan that depends on a seed."""

import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tablelog.errors import StorageUnavailableError, WriteOutcomeUnknown
from tablelog.logstore import FileStatus, LogStore, LogStoreWrapper


@dataclass(frozen=True)
class Faults:
    """The probabilities of faults for one call, and the longest delay in seconds. Overwrites are only delayed."""

    lost_reply: float = 0.0
    """A write is applied, but its answer is lost: unknown."""
    lost_request: float = 0.0
    """A write isn't applied, but this isn't known: unknown."""
    late: float = 0.0
    """A write is unknown, and applied later: before another write of this store, or by `deliver`."""
    refused: float = 0.0
    """A write isn't applied, and the writer gets an error that says so."""
    unreachable: float = 0.0
    """A read or a listing fails."""
    delay: float = 0.0

    @classmethod
    def all(cls, probability: float) -> "Faults":
        """Every fault with the same probability."""
        return cls(*[probability] * 5)


class FaultyLogStore(LogStoreWrapper):
    """Follows the interface of `inner` like a store on a bad network: it may answer "unknown", but never wrongly.

    `injected` has (call, path, fault) of every fault so far. Threads may share it; then their order decides the faults.
    """

    def __init__(self, inner: LogStore, faults: Faults, seed: int) -> None:
        super().__init__(inner)
        self.faults = faults
        self.injected: list[tuple[str, str, str]] = []
        self._dice = random.Random(seed)
        self._late: list[tuple[str, bytes]] = []
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def read(self, path: str) -> bytes:
        self._reach("read", path)
        return super().read(path)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        self._reach("list_from", path)
        return super().list_from(path)

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        self.deliver()
        fault = self._drawn("write", path, "lost_reply", "lost_request", "late", "refused") if not overwrite else ""
        if fault == "refused":
            raise StorageUnavailableError(f"writing {path}: refused by plan; nothing was written")
        if fault == "late":
            with self._lock:
                self._late.append((path, bytes(data)))
        if fault in {"late", "lost_request"}:
            raise WriteOutcomeUnknown(path, f"{fault} by plan")
        try:
            super().write(path, data, overwrite=overwrite)
        except FileExistsError:
            if fault:
                raise WriteOutcomeUnknown(path, f"{fault} by plan") from None
            raise
        if fault:
            raise WriteOutcomeUnknown(path, f"{fault} by plan")

    def deliver(self) -> None:
        """Apply the late writes, unless their path exists by now."""
        with self._lock:
            late, self._late = self._late, []
        for path, data in late:
            try:
                self.inner.write(path, data)
            except FileExistsError:
                continue

    def _reach(self, call: str, path: str) -> None:
        if self._drawn(call, path, "unreachable"):
            raise StorageUnavailableError(f"{call} {path}: unreachable by plan")

    def _drawn(self, call: str, path: str, *names: str) -> str:
        """Choose the fault of this call ("" for none), after its delay."""
        with self._lock:
            pause = self._dice.uniform(0, self.faults.delay)
            draw, fault = self._dice.random(), ""
            for name in names:
                draw -= getattr(self.faults, name)
                if draw < 0:
                    fault = name
                    self.injected.append((call, path, name))
                    break
        if pause:
            time.sleep(pause)
        return fault
