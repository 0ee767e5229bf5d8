"""Directories with very many files, for the checks that need one."""

from concurrent.futures import ThreadPoolExecutor

from ..failures import NotEstablishedError
from ..model import Context
from .suite import commit

PAGE = 1000
"""The number of names that most services return for one request."""

_WRITERS_AT_ONCE, _BATCH = 8, 40
_RESERVED_SECONDS = 3.0


def fill(context: Context, made: int, size: int, reserved: float = _RESERVED_SECONDS) -> int:
    """Write the commits from `made` up to `size`, several at once; returns how many there are.

    There are fewer if otherwise less than `reserved` seconds of the check's time would remain. The files are empty and
    written with `overwrite`, the fastest way.
    """
    store = context.make()
    with ThreadPoolExecutor(_WRITERS_AT_ONCE) as pool:
        for first in range(made, size, _BATCH):
            if context.time_left < reserved:
                return first
            batch = [commit(context.root, version) for version in range(first, min(first + _BATCH, size))]
            for _ in pool.map(lambda path: store.write(path, b"", overwrite=True), batch):
                pass
    return size


def needs_pages(made: int) -> None:
    """Raise `NotEstablishedError` if a directory of `made` files is listed in one page."""
    if made <= PAGE:
        raise NotEstablishedError(
            f"the time was too short: {made} files could be written, and more than {PAGE} are needed; "
            "give it more with --patience"
        )
