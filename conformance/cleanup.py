"""Take away what a check has written, with the store's own means: nothing of the suite stays behind."""

import contextlib
import os
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from tablelog.logstore import LogStore
from tablelog.logstore.uri import local_path, scheme_of, shown

_DELETES_AT_ONCE = 8
_ROUNDS = 5


def clean(store: LogStore, root: str, directories: Iterable[str]) -> list[str]:
    """Delete what is in `root/_delta_log` and in `directories`; gives back what couldn't be taken away.

    A listing shows no directories, so those must be known. Of a local root the whole tree goes, with the temporary
    files that no listing shows.
    """
    left: list[str] = []
    for directory in sorted({f"{root}/_delta_log", *directories}, key=len, reverse=True):
        try:
            _empty(store, directory)
            left += [shown(path) for path in _files(store, directory)]
        except Exception as error:
            left.append(f"{shown(directory)} (not cleaned: {type(error).__name__})")
            continue
        # A file system has directories, which its stores may be able to delete, and a store of keys has none.
        with contextlib.suppress(Exception):
            store.delete(directory)
    if scheme_of(root) == "file":
        shutil.rmtree(local_path(root), ignore_errors=True)
        left = [root] if os.path.lexists(local_path(root)) else []
    else:
        with contextlib.suppress(Exception):
            store.delete(root)
    return left


def _empty(store: LogStore, directory: str) -> None:
    with ThreadPoolExecutor(_DELETES_AT_ONCE) as pool:
        for _ in range(_ROUNDS):  # a store under test may list less than there is
            files = _files(store, directory)
            if not files:
                return
            for _deleted in pool.map(store.delete, files):
                pass


def _files(store: LogStore, directory: str) -> list[str]:
    try:
        return [status.path for status in store.list_from(f"{directory}/")]
    except FileNotFoundError:
        return []
