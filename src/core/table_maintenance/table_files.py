"""The files in a table's directory, listed, checked and deleted without Spark.

- `LocalFiles`: by the operating system; never follows links.
- `FsspecFiles`: by fsspec.

`engine.storage.table_files` has one that uses Spark's own Hadoop client.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote

from ...errors import StorageAccessError
from ...logstore.common.uri import scheme_of
from ...progress import stage
from ..protocol import paths
from . import listing
from .unneeded_files import Directory, ListedFile

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from ...logstore.data_files import DataFiles
    from ..deltalog import DeltaLog

THREADS = 16
"""The number of concurrent requests to remote storage."""

_CHUNK = 1_000
_TAIL = 64 << 10


class TableFiles(Protocol):
    """The files below one table's root. Names are relative to it and not URL-encoded. Shared by threads.

    Every method raises an error of the `StorageError` group, or OSError on a local disk.
    """

    def walk(self, hidden: Callable[[str], bool], below: str = "") -> Iterator[Directory]:
        """All directories from `below` down, except those whose names are `hidden`; none if `below` doesn't exist."""

    def delete(self, names: Sequence[str], *, threads: int | None = None) -> int:
        """Delete files with `threads` concurrent requests; returns how many of them existed."""

    def remove_directories(self, names: Sequence[str]) -> int:
        """Delete empty directories, in this order; returns how many were deleted."""

    def absent(self, paths_in_log: Sequence[str]) -> list[str]:
        """Those of the paths, spelled as in the log's actions, that don't exist."""

    def footer(self, file: ListedFile) -> "pq.FileMetaData":
        """The footer of a Parquet file. Raises ArrowInvalid for another kind of file."""

    def same_place(self, path: str) -> str | None:
        """The relative name of a file whose absolute path in the log is inside the table; `None` if it is outside."""

    def behind_links(self, names: Iterable[str]) -> set[str]:
        """The names, inside the table, of files to which the links among `names` point."""


def counted(directories: Iterable[Directory], expected: int) -> Iterator[Directory]:
    """The directories of a listing, with its progress; it has at least `expected` files, if none is missing."""
    listed = 0
    for directory in directories:
        listed += len(directory.files)
        stage("listing files", listed, expected if listed <= expected else 0)
        yield directory


def of_table(log: "DeltaLog") -> TableFiles:
    """The files of a table, without Spark."""
    if scheme_of(log.table) == "file":
        return LocalFiles(log.table)
    from ...logstore.data_files import DataFiles

    return FsspecFiles(DataFiles.of(log.table, log.conf, log.storage_options), log)


# --- a local disk -------------------------------------------------------------------------------------------------


class LocalFiles:
    """Implements `TableFiles` locally. Deletes relative to directory descriptors, opened without following links."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._root = paths.absolute(table, "")
        self._real = lru_cache(maxsize=4096)(os.path.realpath)

    def walk(self, hidden: Callable[[str], bool], below: str = "") -> Iterator[Directory]:
        pending = [below]
        while pending:
            name = pending.pop()
            directory = self._scan(name, hidden)
            if directory is not None:
                pending.extend(directory.path_of(subdirectory) for subdirectory in directory.directories)
                yield directory

    def _scan(self, name: str, hidden: Callable[[str], bool]) -> Directory | None:
        directory = os.path.join(self._root, name) if name else self._root
        files: list[ListedFile] = []
        directories: list[str] = []
        passed: list[str] = []
        other = 0
        try:
            modified = os.stat(directory, follow_symlinks=False)
            if not stat.S_ISDIR(modified.st_mode):
                return None
            with os.scandir(directory) as entries:
                for entry in entries:
                    if hidden(entry.name):
                        passed.append(entry.name)
                        other += entry.is_symlink()  # a file behind it may be needed
                    elif entry.is_dir(follow_symlinks=False):
                        directories.append(entry.name)
                    elif entry.is_file(follow_symlinks=False):
                        try:
                            status = entry.stat(follow_symlinks=False)
                        except FileNotFoundError:
                            continue
                        files.append(ListedFile(entry.name, status.st_size, status.st_mtime_ns // 1_000_000))
                    else:
                        other += 1
        except FileNotFoundError:
            return None
        return Directory(name, files, directories, passed, other, modified.st_mtime_ns // 1_000_000)

    def delete(self, names: Sequence[str], *, threads: int | None = None) -> int:
        groups: dict[str, list[str]] = {}
        for name in names:
            directory, _, base = name.rpartition("/")
            groups.setdefault(directory, []).append(base)
        parts = [(directory, part) for directory, bases in groups.items() for part in chunks(bases)]
        return sum(in_threads(self._unlink, parts, threads or 1))

    def _unlink(self, part: tuple[str, Sequence[str]]) -> int:
        directory, bases = part
        removed = 0
        with self._opened(directory) as descriptor:
            if descriptor is None:
                return 0
            for base in bases:
                removed += _gone(descriptor, directory, base)
                _gone(descriptor, directory, f".{base}.crc")  # Hadoop's checksum of the file
        return removed

    @contextmanager
    def _opened(self, directory: str) -> Iterator[int | None]:
        """A descriptor of a directory below the root; `None` if it doesn't exist or is reached by a link."""
        with ExitStack() as stack:
            try:
                descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                stack.callback(os.close, descriptor)
                for part in directory.split("/") if directory else ():
                    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                    descriptor = os.open(part, flags, dir_fd=descriptor)
                    stack.callback(os.close, descriptor)
            except (FileNotFoundError, NotADirectoryError):
                yield None
                return
            yield descriptor

    def remove_directories(self, names: Sequence[str]) -> int:
        removed = 0
        for name in names:
            parent, _, base = name.rpartition("/")
            with self._opened(parent) as descriptor:
                try:
                    if descriptor is not None:
                        os.rmdir(base, dir_fd=descriptor)
                        removed += 1
                except OSError:  # not empty, or already deleted
                    continue
        return removed

    def absent(self, paths_in_log: Sequence[str]) -> list[str]:
        return [path for path in paths_in_log if _is_absent(paths.absolute(self._table, path))]

    def footer(self, file: ListedFile) -> "pq.FileMetaData":
        import pyarrow as pa
        import pyarrow.parquet as pq

        with pa.OSFile(os.path.join(self._root, file.name)) as stream:
            return pq.read_metadata(stream)

    def same_place(self, path: str) -> str | None:
        if scheme_of(path) != "file":
            return None
        place = paths.absolute(self._table, path)
        return self._name_of(f"{self._real(os.path.dirname(place))}/{os.path.basename(place)}")

    def _name_of(self, real: str) -> str | None:
        root = self._real(self._root).rstrip("/") + "/"
        return real[len(root) :] if real.startswith(root) else None

    def behind_links(self, names: Iterable[str]) -> set[str]:
        targets = {self._name_of(os.path.realpath(os.path.join(self._root, name))) for name in names}
        return {name for name in targets if name is not None}


def _is_absent(path: str) -> bool:
    """Whether the file doesn't exist. Raises another OSError: a file that can't be looked at may exist."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except PermissionError as error:
        raise StorageAccessError(f"looking for {path}: {error.strerror}", path=path) from error
    return False


def _gone(descriptor: int, directory: str, base: str) -> bool:
    try:
        os.unlink(base, dir_fd=descriptor)
    except FileNotFoundError:
        return False
    except PermissionError as error:
        path = f"{directory}/{base}"
        raise StorageAccessError(f"removing {path}: {error.strerror}", path=path) from error
    return True


# --- fsspec -------------------------------------------------------------------------------------------------------


class FsspecFiles:
    """Implements `TableFiles` by fsspec."""

    def __init__(self, files: "DataFiles", log: "DeltaLog") -> None:
        self._files = files
        self._log = log

    def walk(self, hidden: Callable[[str], bool], below: str = "") -> Iterator[Directory]:
        return listing.walk(self._files, hidden, below)

    def delete(self, names: Sequence[str], *, threads: int | None = None) -> int:
        self._files.delete(names, threads=threads or THREADS)
        return len(names)

    def remove_directories(self, names: Sequence[str]) -> int:
        return 0

    def absent(self, paths_in_log: Sequence[str]) -> list[str]:
        def there(path: str) -> bool:
            name = paths.below(self._log.table, path)
            if name is not None:
                return self._files.exists(name)
            from ...logstore.data_files import DataFiles

            parent, _, base = paths.absolute_uri(self._log.table, path).rpartition("/")
            return DataFiles.of(parent, self._log.conf, self._log.storage_options).exists(unquote(base))

        answers = in_threads(there, paths_in_log, THREADS)
        return [path for path, exists in zip(paths_in_log, answers, strict=True) if not exists]

    def footer(self, file: ListedFile) -> "pq.FileMetaData":
        import pyarrow as pa
        import pyarrow.parquet as pq

        tail = self._files.read_range(file.name, max(0, file.size - _TAIL), file.size)
        needed = int.from_bytes(tail[-8:-4], "little") + 8
        if len(tail) < needed <= file.size:
            tail = self._files.read_range(file.name, file.size - needed, file.size)
        return pq.read_metadata(pa.BufferReader(tail))

    def same_place(self, path: str) -> str | None:
        return None

    def behind_links(self, names: Iterable[str]) -> set[str]:
        return set()


def chunks(items: Sequence[Any]) -> list[Sequence[Any]]:
    """The items in parts of a size that one request may have."""
    return [items[start : start + _CHUNK] for start in range(0, len(items), _CHUNK)]


def in_threads(function: Callable[[Any], Any], items: Sequence[Any], threads: int) -> list[Any]:
    """The results of a function for each item, in order, from at most `threads` threads."""
    if threads < 2 or len(items) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(min(threads, len(items)), thread_name_prefix="tablelog-files") as pool:
        return list(pool.map(function, items))
