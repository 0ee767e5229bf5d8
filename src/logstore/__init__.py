"""Bytes at rest: the stores under `_delta_log`. Knows no Delta and no Spark."""

from .base import Exclusion, FileStatus, LogStore
from .local.store import LocalLogStore, remove_stale_temporaries
from .memory import MemoryLogStore
from .registry import new_store_for, store_for
from .wrappers.counting import CountingLogStore
from .wrappers.prefixed import PrefixedLogStore
from .wrappers.retrying import RetryingLogStore
from .wrappers.throttled import ThrottledLogStore
from .wrappers.wrapper import LogStoreWrapper

__all__ = [
    "CountingLogStore",
    "Exclusion",
    "FileStatus",
    "LocalLogStore",
    "LogStore",
    "LogStoreWrapper",
    "MemoryLogStore",
    "PrefixedLogStore",
    "RetryingLogStore",
    "ThrottledLogStore",
    "new_store_for",
    "remove_stale_temporaries",
    "store_for",
]
