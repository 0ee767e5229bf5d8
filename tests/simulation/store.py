"""A log store that keeps the contract and nothing more: it delays, fails, loses replies and delivers late."""

import random
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from tablelog.clock import Clock
from tablelog.errors import WriteOutcomeUnknown
from tablelog.logstore.base import FileStatus, LogStore

from .scheduler import Scheduler


@dataclass(frozen=True)
class Faults:
    """Probabilities, for one call of the store."""

    lost_reply: float = 0.04  # applied; the answer is lost
    lost_request: float = 0.02  # never applied; the answer is lost
    late: float = 0.04  # applied after the answer was given up for lost
    repeated: float = 0.03  # applied; a layer below asked twice and reports the second answer: "exists"
    refused: float = 0.01  # an honest error: nothing was written
    unreachable: float = 0.02  # a read or a list fails
    crash: float = 0.004  # the process dies in the middle of a write
    interrupt: float = 0.004  # Ctrl-C in the middle of a write
    outage: float = 0.002  # nothing works for this writer for a long while


NO_FAULTS = Faults(*[0.0] * 9)
HEAVY_FAULTS = Faults(
    lost_reply=0.15,
    lost_request=0.08,
    late=0.15,
    repeated=0.1,
    refused=0.03,
    unreachable=0.08,
    crash=0.01,
    interrupt=0.01,
    outage=0.01,
)


Event: TypeAlias = tuple[float, int, str, str, str | None]
"""One call of the store, for the trace of a replay: time, writer, call, path, fault."""

WRITE_FAULTS = ("lost_reply", "lost_request", "late", "repeated", "refused", "crash", "interrupt")


class Crash(BaseException):
    """The writer's process is gone."""


class Disk:
    """What all writers share: the files, in the order in which they came to be.

    `commits` has every commit that ever was, by its version, though a cleanup removed its file: (bytes, time of the
    file in milliseconds). `rewritten` has the versions that came to be twice.
    """

    def __init__(self) -> None:
        self.files: dict[str, tuple[bytes, int]] = {}
        self.commits: dict[int, tuple[bytes, int]] = {}
        self.rewritten: list[int] = []

    def put(self, path: str, data: bytes, file_ms: int, *, overwrite: bool = False) -> bool:
        if not overwrite and path in self.files:
            return False
        self.files[path] = data, file_ms
        version = path[-25:-5]
        if version.isdecimal() and path.endswith(".json"):
            if int(version) in self.commits:
                self.rewritten.append(int(version))
            else:
                self.commits[int(version)] = data, file_ms
        return True


class SimulatedStore(LogStore):
    """One writer's way to the disk."""

    exclusion = "global"
    partial_writes_visible = False
    atomic_overwrite = True

    def __init__(
        self,
        disk: Disk,
        scheduler: Scheduler,
        rng: random.Random,
        faults: Faults,
        *,
        number: int,
        events: list[Event],
        file_clock: Clock,
    ) -> None:
        self.disk = disk
        self.scheduler = scheduler
        self.rng = rng
        self.number = number
        self.events = events
        self.file_clock = file_clock
        self.down_until = 0.0
        self.set_faults(faults)

    def set_faults(self, faults: Faults) -> None:
        self.faults = faults
        self._bounds = list(accumulate(getattr(faults, name) for name in WRITE_FAULTS))

    def read(self, path: str) -> bytes:
        self._enter("read", path)
        found = self.disk.files.get(path)
        if found is None:
            raise FileNotFoundError(path)
        return found[0]

    def list_from(self, path: str) -> Iterator[FileStatus]:
        self._enter("list", path)
        directory = path[: path.rindex("/") + 1]
        length = len(directory)
        found = sorted(
            name for name in self.disk.files if name >= path and name.startswith(directory) and "/" not in name[length:]
        )
        return iter([FileStatus(name, len(self.disk.files[name][0]), self.disk.files[name][1]) for name in found])

    def delete(self, path: str) -> None:
        self._enter("delete", path)
        self.disk.files.pop(path, None)

    def resolve(self, path: str) -> str:
        return path

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        self.scheduler.switch()
        fault = "outage" if self._down() else self._draw()
        self._note("write", path, fault)
        if fault == "refused":
            raise PermissionError(f"{path}: refused, nothing was written")
        if fault in ("outage", "lost_request"):
            raise WriteOutcomeUnknown(path, "timed out")
        if fault == "late":
            # Mostly soon, sometimes long after the writer has gone on or given up.
            delay = self.rng.random() ** 3 * 20.0
            self.scheduler.at(delay, lambda: self._deliver(path, data, overwrite))
            raise WriteOutcomeUnknown(path, "timed out")
        if fault in ("crash", "interrupt") and self.rng.random() < 0.5:
            self._stop(fault)
        won = self._deliver(path, data, overwrite)
        if fault in ("crash", "interrupt"):
            self._stop(fault)
        if fault == "lost_reply":
            raise WriteOutcomeUnknown(path, "the connection was reset")
        if not won or fault == "repeated":
            raise FileExistsError(path)

    def _deliver(self, path: str, data: bytes, overwrite: bool) -> bool:
        return self.disk.put(path, data, self.file_clock.now_ms(), overwrite=overwrite)

    def _stop(self, fault: str) -> None:
        raise Crash if fault == "crash" else KeyboardInterrupt

    def _enter(self, call: str, path: str) -> None:
        self.scheduler.switch()
        failed = self._down() or self.rng.random() < self.faults.unreachable
        self._note(call, path, "unreachable" if failed else None)
        if failed:
            raise ConnectionError("the store doesn't answer")

    def _down(self) -> bool:
        if self.scheduler.monotonic() < self.down_until:
            return True
        if self.rng.random() < self.faults.outage:
            self.down_until = self.scheduler.monotonic() + self.rng.random() * 60.0
            return True
        return False

    def _draw(self) -> str | None:
        index = bisect_right(self._bounds, self.rng.random())
        return WRITE_FAULTS[index] if index < len(WRITE_FAULTS) else None

    def _note(self, call: str, path: str, fault: str | None) -> None:
        self.events.append((self.scheduler.monotonic(), self.number, call, path, fault))
