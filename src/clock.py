"""The only module that reads the time, so that a test or a simulation can replace the clock."""

import time
from typing import Protocol


class Clock(Protocol):
    """The operations of a clock that the transaction log needs."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""

    def monotonic(self) -> float:
        """Seconds on a monotonic clock."""

    def sleep(self, seconds: float) -> None:
        """Block for `seconds`."""


class SystemClock:
    """The clock of the operating system."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
