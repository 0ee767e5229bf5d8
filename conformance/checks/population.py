"""Creates directories with very many files, for the checks that need one."""

from concurrent.futures import ThreadPoolExecutor

from ..failures import NotEstablishedError
from ..model import Context
from .suite import commit

PAGE = 1000
"""The number of names that most services return for one request."""

_WRITERS_AT_ONCE, _BATCH = 8, 40
_RESERVED_SECONDS = 3.0


def fill(context: Context, existing: int, size: int, reserved: float = _RESERVED_SECONDS) -> int:
    """Write the commits from `existing` up to `size`, several at the same time; returns the number of commits.

    It stops earlier if less than `reserved` seconds of the check's time remain. The files are empty and written with
    `overwrite`, which is the fastest way.
    """
    store = context.make()
    with ThreadPoolExecutor(_WRITERS_AT_ONCE) as pool:
        for first in range(existing, size, _BATCH):
            if context.time_left < reserved:
                return first
            batch = [commit(context.root, version) for version in range(first, min(first + _BATCH, size))]
            for _ in pool.map(lambda path: store.write(path, b"", overwrite=True), batch):
                pass
    return size


def needs_pages(files: int) -> None:
    """Raise `NotEstablishedError` if a directory of that many files is listed in one page."""
    if files <= PAGE:
        raise NotEstablishedError(
            f"the time was too short: {files} files were written, and more than {PAGE} are needed; "
            "increase it with --patience"
        )
