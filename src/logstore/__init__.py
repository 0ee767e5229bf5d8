"""Bytes at rest: the stores under `_delta_log`. Knows no Delta and no Spark."""

from .base import Exclusion, FileStatus, LogStore
from .counting import CountingLogStore
from .local import LocalLogStore, remove_stale_temporaries
from .memory import MemoryLogStore
from .prefixed import PrefixedLogStore
from .registry import new_store_for, store_for
from .retrying import RetryingLogStore
from .throttled import ThrottledLogStore
from .wrapper import LogStoreWrapper

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
