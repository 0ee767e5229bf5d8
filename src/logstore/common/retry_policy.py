"""How often a store repeats a request, and the pauses between the attempts."""

import random
from dataclasses import dataclass

from ...clock import Clock, SystemClock


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a store repeats a request that may be repeated, and how long it pauses before.

    The pauses double, with random jitter against repeated collisions.
    """

    attempts: int = 4
    """How often a read, a listing, a delete or an overwrite is sent in all."""
    attempts_if_busy: int = 8
    """The same where a busy service rejects it. Of 10 % rejected requests, four attempts in a row are too many."""
    patience_seconds: float = 30.0
    """The limit of the sum of all pauses of one request."""
    last_attempt_seconds: float = 90.0
    """When the last attempt begins at the latest, counted from the first one: a service that accepts connections and
    never replies takes a time-out for each attempt."""
    first_pause: float = 0.05
    """The upper bound of the first pause in seconds; the lower bound of each pause is half of its upper bound."""
    longest_pause: float = 2.0
    """The upper bound of every pause in seconds."""
    clock: Clock = SystemClock()  # noqa: RUF009 - it has no state

    def pauses(self) -> "Pauses":
        """The pauses of one request."""
        return Pauses(self)


class Pauses:
    """The pauses between the attempts of one request."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._bound = policy.first_pause
        self._left = policy.patience_seconds

    def another(self) -> bool:
        """Pause once more; False if the limit is reached."""
        if self._left <= 0:
            return False
        pause = self._bound * random.uniform(0.5, 1.0)
        self._policy.clock.sleep(pause)
        self._left -= pause
        self._bound = min(2 * self._bound, self._policy.longest_pause)
        return True


DEFAULT_RETRIES = RetryPolicy()
"""The policy of the stores."""
