"""Removes everything that a check has written, with the store's own operations."""

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from tablelog.logstore import LogStore
from tablelog.logstore.common.uri import local_path, scheme_of, shown

_AT_ONCE = 8
_ROUNDS = 5


def clean(store: LogStore, root: str, directories: Iterable[str]) -> list[str]:
    """Delete the files in `root/_delta_log` and in `directories`; returns what couldn't be removed.

    A listing doesn't show directories, so they must be known. For a local root the whole tree is removed, including
    temporary files that no listing shows.
    """
    all_directories = {f"{root}/_delta_log", *directories}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        left = [path for paths in pool.map(lambda place: _emptied(store, place), all_directories) for path in paths]
    if scheme_of(root) == "file":
        shutil.rmtree(local_path(root), ignore_errors=True)
        return [root] if os.path.lexists(local_path(root)) else []
    if _has_directories(store, root):
        parents = {above for directory in all_directories for above in _up_to(root, directory)}
        for directory in sorted(parents, key=len, reverse=True):
            with contextlib.suppress(Exception):  # a store needn't be able to delete a directory
                store.delete(directory)
    return left


def _emptied(store: LogStore, directory: str) -> list[str]:
    """Delete the files of `directory`; returns those that remain."""
    try:
        for _ in range(_ROUNDS):  # a store under test may not list all files
            files = _files(store, directory)
            if not files:
                return []
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                list(pool.map(store.delete, files))
        return [shown(path) for path in _files(store, directory)]
    except Exception as error:
        return [f"{shown(directory)} (not cleaned: {type(error).__name__})"]


def _files(store: LogStore, directory: str) -> list[str]:
    try:
        return [status.path for status in store.list_from(f"{directory}/")]
    except FileNotFoundError:
        return []


def _has_directories(store: LogStore, root: str) -> bool:
    """Whether the store distinguishes a missing directory from an empty one; an object store can't."""
    try:
        list(store.list_from(f"{root}/never-made/"))
    except FileNotFoundError:
        return True
    except Exception:
        return False
    return False


def _up_to(root: str, directory: str) -> Iterator[str]:
    """`directory` and its parents up to `root`."""
    while len(directory) >= len(root):
        yield directory
        directory = directory.rpartition("/")[0]
