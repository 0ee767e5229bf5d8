"""Warnings that are logged once per process, not for every operation."""

import logging
from threading import Lock

logger = logging.getLogger(__name__)

_logged: set[str] = set()
_lock = Lock()


def log_once(key: str, message: str, *arguments: object) -> None:
    """Log a warning at most once per process for each `key`."""
    with _lock:
        if key in _logged:
            return
        _logged.add(key)
    logger.warning(message, *arguments)
