"""The positive control: a simple, correct store."""

import contextlib
import fcntl
import os
from collections.abc import Iterator

from tablelog.logstore import FileStatus, LocalLogStore
from tablelog.logstore.common.uri import local_path


class UnderOneLock(LocalLogStore):
    """Locks the directory for each operation; the kernel releases the lock of a process that ends."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        with _locked(path):
            super().write(path, data, overwrite=overwrite)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        os.stat(os.path.dirname(local_path(path)))  # fails for a missing directory, before `_locked` creates it
        with _locked(path):
            return iter(list(super().list_from(path)))

    def delete(self, path: str) -> None:
        with _locked(path):
            super().delete(path)


@contextlib.contextmanager
def _locked(path: str) -> Iterator[None]:
    directory = os.path.dirname(local_path(path))
    os.makedirs(directory, exist_ok=True)
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
