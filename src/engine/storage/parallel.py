"""Threads for blocking calls to disks and stores."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_THREADS = 8
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def in_parallel(function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """Apply `function` to each item; results are in order. Uses threads if there are several items."""
    if len(items) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(min(_THREADS, len(items)), thread_name_prefix="tablelog-write") as pool:
        return list(pool.map(function, items))
