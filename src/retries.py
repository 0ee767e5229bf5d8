"""Runs a command again after a conflict with another writer."""

import logging
import random
from collections.abc import Callable
from typing import TypeVar

from . import observe
from .clock import Clock, SystemClock
from .errors import DeltaConcurrentModificationException

T = TypeVar("T")

logger = logging.getLogger(__name__)

_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 10.0
_DOUBLINGS = 10  # beyond the longest pause; it keeps the power finite


def retrying(
    command: Callable[[], T],
    *,
    attempts: int = 5,
    clock: Clock | None = None,
    dice: Callable[[], float] = random.random,
) -> T:
    """Run a command, and run it again after each conflict with another writer.

    Before the second attempt it waits up to 0.2 seconds, and then up to twice as long each time, but never longer than
    10 seconds. The wait is a random part of this time, so that writers that conflict don't meet again.

    Only conflicts are retried. After a `CommitStateUnknownError` the commit may be in the log, and a second run could
    write its rows twice.

    Args:
        command: A function without arguments that runs one command. It runs from its beginning at each attempt, so a
            command in front of the one that conflicts would run twice.
        attempts: How often the command runs at most.
        clock: Waits between the attempts; by default the clock of the system.
        dice: Gives random numbers in [0, 1), for the length of the waits.

    Returns:
        What the command returns.

    Raises:
        ValueError: `attempts` is less than 1.
        DeltaConcurrentModificationException: The last attempt ended in a conflict, too. Nothing was committed by it.
    """
    if attempts < 1:
        raise ValueError(f"attempts must be 1 or more, not {attempts}")
    clock = clock or SystemClock()
    for attempt in range(1, attempts):
        try:
            return command()
        except DeltaConcurrentModificationException as error:
            bound = min(_LONGEST_PAUSE_S, _SHORTEST_PAUSE_S * 2.0 ** min(attempt, _DOUBLINGS))
            pause = bound * dice()
            fields = observe.fields(error.table, version=error.version, attempt=attempt, outcome=type(error).__name__)
            logger.info(
                "attempt %d of %d failed, the next follows in %.2f s: %s", attempt, attempts, pause, error, extra=fields
            )
            observe.counted("retries", 1, fields)
        clock.sleep(pause)
    return command()
