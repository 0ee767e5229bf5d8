"""A clock that a test controls, and a retry policy without real pauses."""

from tablelog.logstore.common.retry_policy import RetryPolicy


class ManualClock:
    """A clock that only `sleep` and the test advance; it records the sleeps."""

    def __init__(self) -> None:
        self.time = 100.0
        self.sleeps: list[float] = []

    def now_ms(self) -> int:
        return int(self.time * 1000)

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.time += seconds


NO_PAUSES = RetryPolicy(clock=ManualClock())
"""The attempts and the patience of the stores' own policy."""
