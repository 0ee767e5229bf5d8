"""A store in this process's memory: for tests and simulations, and the reference model for other stores."""

import errno
import os
import posixpath
import threading
import uuid
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple
from urllib.parse import unquote_to_bytes
from weakref import WeakValueDictionary

from ..clock import Clock, SystemClock
from ..errors import InvalidArgumentError, UnsupportedEnvironmentError
from .base import Exclusion, FileStatus, LogStore
from .common.uri import escaped, scheme_of, shown


class _Place(NamedTuple):
    """The parts of a path: `directory` is a canonical URI that ends in a slash."""

    directory: str
    name: bytes

    @property
    def uri(self) -> str:
        return self.directory + escaped(self.name)


class _Entry(NamedTuple):
    status: FileStatus
    data: bytes


class MemoryLogStore(LogStore):
    """Files in a dictionary that one lock protects.

    Every scheme is accepted; a bare path has the scheme `memory:`. In the same process an unpickled store is the
    original store; in another process, forked or spawned, its calls raise UnsupportedEnvironmentError, because its
    files aren't there.
    """

    exclusion: Exclusion = "process"
    partial_writes_visible = False
    atomic_overwrite = True

    _stores: ClassVar[WeakValueDictionary[str, "MemoryLogStore"]] = WeakValueDictionary()

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._directories: dict[str, dict[bytes, _Entry]] = {}
        self._token = uuid.uuid4().hex
        self._stores[self._token] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return _same_store, (self._token, self._process)

    def read(self, path: str) -> bytes:
        self._check_process()
        place = _place(path)
        with self._lock:
            entry = self._directories.get(place.directory, {}).get(place.name)
        if entry is None:
            raise _absent(path)
        return entry.data

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        self._check_process()
        place = _place(path)
        if not place.name:
            raise InvalidArgumentError(f"{shown(path)} names a directory")
        entry = _Entry(FileStatus(place.uri, len(data), self._clock.now_ms()), bytes(data))
        with self._lock:
            files = self._directories.get(place.directory)
            if files is None:
                for parent in _parents(place.directory):
                    self._directories.setdefault(parent, {})
                files = self._directories[place.directory]
            if place.name in files and not overwrite:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), shown(path))
            files[place.name] = entry

    def list_from(self, path: str) -> Iterator[FileStatus]:
        self._check_process()
        place = _place(path)
        with self._lock:
            files = self._directories.get(place.directory)
            if files is None:
                raise _absent(place.directory)
            return iter([files[name].status for name in sorted(files) if name >= place.name])

    def delete(self, path: str) -> None:
        self._check_process()
        place = _place(path)
        with self._lock:
            self._directories.get(place.directory, {}).pop(place.name, None)

    def resolve(self, path: str) -> str:
        """`scheme://authority/path` with `.`, `..` and extra slashes resolved, percent-escaped."""
        return _place(path.rstrip("/") or "/").uri

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise _another_process()


@lru_cache(maxsize=4096)
def _place(path: str) -> _Place:
    scheme = scheme_of(path)
    rest = path[len(scheme) + 1 :] if path[: len(scheme) + 1].lower() == f"{scheme}:" else path
    if not rest:
        raise InvalidArgumentError(f"the path {path!r} is empty")
    authority = ""
    if rest.startswith("//"):
        authority, _, rest = rest[2:].partition("/")
    if rest is not path:  # a bare path has no escapes
        try:
            raw = unquote_to_bytes(rest)
        except UnicodeEncodeError:
            raise InvalidArgumentError(f"{path!r} can't be written as UTF-8") from None
    else:
        raw, scheme = os.fsencode(rest), "memory"
    directory, name = posixpath.split(b"/" + raw.lstrip(b"/"))
    if name in {b".", b".."}:
        directory, name = posixpath.split(posixpath.normpath(posixpath.join(directory, name)))
    directory = posixpath.normpath(directory).strip(b"/")
    return _Place(f"{scheme}://{authority}/" + (escaped(directory) + "/" if directory else ""), name)


def _parents(directory: str) -> Iterator[str]:
    """`directory` and its parents."""
    root = directory.index("/", directory.index("://") + 3)
    while True:
        yield directory
        if len(directory) <= root + 1:
            return
        directory = directory[: directory.rindex("/", 0, len(directory) - 1) + 1]


def _absent(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown(path))


def _another_process() -> UnsupportedEnvironmentError:
    return UnsupportedEnvironmentError(
        "a MemoryLogStore works only in the process that created it, and this is another process; use a store that "
        "processes can share, such as one for file:"
    )


def _same_store(token: str, process: int) -> MemoryLogStore:
    store = MemoryLogStore._stores.get(token) if process == os.getpid() else None
    if store is None:
        raise _another_process()
    return store
