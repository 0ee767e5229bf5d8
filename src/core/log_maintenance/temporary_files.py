"""Files of this process on the local disk, without names: they end with the process, also if it is killed."""

import errno
import os
import tempfile
import threading
from array import array
from collections.abc import Iterator
from typing import IO

from ...errors import StorageError, UnsupportedEnvironmentError
from ...logstore.base import Exclusion, FileStatus, LogStore


def _write(file: IO[bytes], data: bytes, use: str) -> None:
    rest = memoryview(data)
    try:
        while rest:  # without a buffer, a part may be written
            rest = rest[file.write(rest) :]
    except OSError as error:
        raise StorageError(
            f"{use} on the local disk, in {tempfile.gettempdir()}, but a temporary file there can't be written: "
            f"{error.strerror or error}. Free space there, or set TMPDIR to another directory"
        ) from error


def _create(use: str) -> IO[bytes]:
    try:
        return tempfile.TemporaryFile(prefix="tablelog-", buffering=0)
    except OSError as error:
        raise StorageError(
            f"{use} on the local disk, but no temporary file can be created: {error}. Set TMPDIR to a directory that "
            "this process can write to"
        ) from error


class Buckets:
    """Pieces of data in numbered buckets, in one temporary file; each bucket returns its pieces in order.

    `use` begins the message of a StorageError: what is sorted.
    """

    def __init__(self, count: int, use: str) -> None:
        self._file = _create(use)
        self._use = use
        self._end = 0
        self._places = [array("Q") for _ in range(count)]

    def __len__(self) -> int:
        return len(self._places)

    def put(self, bucket: int, data: bytes) -> None:
        """Append a piece. Raises StorageError."""
        _write(self._file, data, self._use)
        self._places[bucket].extend((self._end, len(data)))
        self._end += len(data)

    def pieces(self, bucket: int) -> Iterator[bytes]:
        """The pieces of a bucket."""
        places = self._places[bucket]
        for start, size in zip(places[::2], places[1::2], strict=True):
            self._file.seek(start)
            yield self._file.read(size)

    def close(self) -> None:
        """Delete the data."""
        self._file.close()


class TemporaryFiles(LogStore):
    """A store whose files are temporary files of this process; each is written once. `use` is as in `Buckets`."""

    exclusion: Exclusion = "process"
    partial_writes_visible = False
    atomic_overwrite = False

    def __init__(self, use: str) -> None:
        self._use = use
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._files: dict[str, tuple[IO[bytes], int]] = {}

    def read(self, path: str) -> bytes:
        if os.getpid() != self._process:
            raise UnsupportedEnvironmentError("temporary files can be read only in the process that wrote them")
        with self._lock:
            if path not in self._files:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            file, size = self._files[path]
            file.seek(0)
            return file.read(size)

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        file = _create(self._use)
        try:
            _write(file, data, self._use)
        except BaseException:
            file.close()
            raise
        with self._lock:
            if path in self._files:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            self._files[path] = file, len(data)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        directory = path.rpartition("/")[0]
        names = sorted(name for name in self._files if name >= path and name.rpartition("/")[0] == directory)
        return iter([FileStatus(name, self._files[name][1], 0) for name in names])

    def delete(self, path: str) -> None:
        with self._lock:
            if path in self._files:
                self._files.pop(path)[0].close()

    def resolve(self, path: str) -> str:
        return path
