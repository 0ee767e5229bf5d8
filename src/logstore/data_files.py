"""A table's data files by fsspec, with the configuration that the stores of its log have.

This is for what Spark's own file systems don't reach; `LogStore` is for the log. Nothing here is atomic or exclusive:
a data file has a name of its own, and counts once a commit names it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib import import_module
from typing import IO, Any
from urllib.parse import unquote

from ..errors import (
    CorruptLogError,
    InvalidArgumentError,
    StorageAccessError,
    StorageError,
    StorageMissingError,
    UnsupportedEnvironmentError,
)
from .common import object_uri, posix
from .common.http_clients import hadoop_keys, needed
from .common.schemes import about
from .common.uri import local_path, scheme_of, shown, without_user

_THREADS = 8
_BATCH = 1_000
_FAR = 1 << 53
_PATTERN = frozenset("*?[")
_HDFS_KEYS = ("dfs.", "fs.defaultFS", "fs.viewfs.", "hadoop.security.", "hadoop.rpc.")
_NAME_NODE_PORT = 8020
_EXTRAS = {"s3fs": "s3", "adlfs": "azure", "gcsfs.core": "gcs", "hdfs_native.fsspec": "hdfs"}


@dataclass(frozen=True)
class FileSystem:
    """An fsspec file system as plain values, so that a Spark worker can make it where tablelog isn't installed.

    `implementation` is `module:Class`; `options` are its arguments, and may hold secrets.
    """

    implementation: str
    options: Mapping[str, Any] = field(repr=False)


def file_system(uri: str, conf: Mapping[str, str], storage_options: Mapping[str, Any]) -> FileSystem:
    """The fsspec file system in which `uri` lies; it caches no listing.

    `conf` holds keys as Hadoop and Spark have them, `storage_options` names of fsspec's; the first come first. Raises
    LogStoreConfigurationError for what they contradict, UnsupportedEnvironmentError for a scheme that fsspec hasn't.
    """
    scheme = scheme_of(uri)
    if scheme == "file":
        return FileSystem("fsspec.implementations.local:LocalFileSystem", {"auto_mkdir": True})
    kind = about(scheme).fsspec
    if kind == "s3":
        from .s3.settings import S3Settings

        bucket = object_uri.split(uri)[1]
        return _uncached("s3fs:S3FileSystem", S3Settings.of(scheme, conf, storage_options).fsspec_options(bucket))
    if kind == "azure":
        from .azure.settings import AzureSettings

        access = AzureSettings.of(scheme, conf, storage_options).access(object_uri.split(uri)[1])
        return _uncached("adlfs:AzureBlobFileSystem", access.fsspec_options())
    if kind == "gcs":
        from .gcs.settings import GCSSettings

        bucket = object_uri.split(uri)[1]
        return _uncached(
            "gcsfs.core:GCSFileSystem", GCSSettings.of(scheme, conf, storage_options).fsspec_options(bucket)
        )
    if kind == "hdfs":
        return _hdfs(scheme, uri, {**storage_options, **hadoop_keys(conf)})
    return _registered(scheme, uri, storage_options)


def _hdfs(scheme: str, uri: str, keys: Mapping[str, Any]) -> FileSystem:
    """hdfs-native, which takes Hadoop's keys as they are; where they are few it finds HADOOP_CONF_DIR by itself."""
    host, _, port = without_user(uri.partition("://")[2].partition("/")[0]).partition(":")
    if port and not port.isdecimal():
        raise InvalidArgumentError(f"{shown(uri)!r} names no port of a NameNode: write {scheme}://host:port/path")
    options = {key: str(value) for key, value in keys.items() if key.startswith(_HDFS_KEYS)}
    if scheme == "viewfs":
        return FileSystem("hdfs_native.fsspec:ViewfsFileSystem", {"host": host, **options})
    one_node = f"dfs.ha.namenodes.{host}" not in options
    number = int(port) if port else _NAME_NODE_PORT if one_node else None
    return FileSystem("hdfs_native.fsspec:HdfsFileSystem", {"host": host, "port": number, **options})


def _registered(scheme: str, uri: str, storage_options: Mapping[str, Any]) -> FileSystem:
    """The implementation that fsspec itself has for a scheme of somebody else's."""
    import fsspec

    if scheme == "memory":
        raise UnsupportedEnvironmentError(
            f"{shown(uri)}: the memory of one process holds no data files that Spark's workers could read or write"
        )
    try:
        found = fsspec.get_filesystem_class(scheme)
    except (ValueError, ImportError) as error:
        raise UnsupportedEnvironmentError(
            f"{shown(uri)}: neither Spark's JVM nor fsspec has a file system for {scheme}: put its jar on Spark's "
            "class path, or install the package of fsspec's implementation"
        ) from error
    return _uncached(f"{found.__module__}:{found.__qualname__}", storage_options)


def _uncached(implementation: str, options: Mapping[str, Any]) -> FileSystem:
    return FileSystem(implementation, {**options, "use_listings_cache": False})


def path_in(uri: str) -> str:
    """The path of `uri` as its fsspec file system takes it. The path of a URI is percent-encoded; a bare one isn't."""
    scheme = scheme_of(uri)
    if scheme == "file":
        return local_path(uri)
    known, rest = about(scheme), uri.partition("://")[2]
    if known.backend is None and rest.startswith("/"):  # a scheme of somebody else's may have no authority
        return unquote(rest).rstrip("/")
    kind = known.fsspec
    if kind == "hdfs":
        return "/" + unquote(uri.partition("://")[2].partition("/")[2])
    _, authority, key = object_uri.split(uri)
    if kind == "azure":
        authority = authority.partition("@")[0]
    return f"{authority}/{key}".rstrip("/")


def _modified_ms(info: Mapping[str, Any]) -> int:
    """When a file was changed, by what fsspec's implementations call it; where none tells, in a far future."""
    for key in ("LastModified", "last_modified", "modification_time", "updated", "mtime", "modified"):
        found = info.get(key)
        if isinstance(found, str):
            found = datetime.fromisoformat(found)
        if isinstance(found, datetime):
            return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
        if isinstance(found, int | float):
            return int(found if key == "modification_time" else found * 1000)
    return _FAR


@dataclass(frozen=True)
class DataFiles:
    """The files below one URI; their names are relative to it, not encoded. Shared by threads.

    Every method raises an error of the `StorageError` group.
    """

    root: str
    system: FileSystem

    def __repr__(self) -> str:
        return f"DataFiles({shown(self.root)!r}, {self.system!r})"

    @classmethod
    def of(cls, root: str, conf: Mapping[str, str], storage_options: Mapping[str, Any]) -> "DataFiles":
        """Those below `root`; see `file_system` for the arguments and the errors."""
        return cls(root, file_system(root, conf, storage_options))

    @property
    def path(self) -> str:
        """The root as the fsspec file system takes it."""
        return path_in(self.root)

    def read_range(self, name: str, start: int, end: int) -> bytes:
        """Bytes of a file, fewer where it ends before `end`; FileNotFoundError where it is absent."""
        try:
            with self._translated("reading", name):
                self._check(name)
                return bytes(self._opened.cat_file(self._path_of(name), start=start, end=end))
        except StorageMissingError as error:
            raise FileNotFoundError(name) from error

    def open(self, name: str) -> IO[bytes]:
        """A file of which parts are read as they are needed; FileNotFoundError where it is absent."""
        try:
            with self._translated("opening", name):
                self._check(name)
                found: IO[bytes] = self._opened.open(self._path_of(name), "rb")
                return found
        except StorageMissingError as error:
            raise FileNotFoundError(name) from error

    def write(self, name: str, data: bytes) -> None:
        """Write a whole file; one that is there is replaced."""
        with self._translated("writing", name):
            path = self._path_of(name)
            if self._has_directories:
                self._opened.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._opened.pipe_file(path, data)

    def list(self, below: str) -> list[str]:
        """The names of the files in the directory `below` and deeper, in no order; none where it is absent."""
        with self._translated("listing", below):
            try:
                found = self._opened.find(self._path_of(below))
            except FileNotFoundError:
                return []
        start = len(self.path.lstrip("/")) + 1
        # s3a marks directories by empty objects with a slash at the end.
        return [path.lstrip("/")[start:] for path in found if not path.endswith("/")]

    def statuses(self, below: str = "") -> Iterator[tuple[str, int, int]]:
        """Name, size and modification time (ms) of each file in the directory `below` (the root) and deeper."""
        with self._translated("listing", below):
            try:
                found = self._opened.find(self._path_of(below) if below else self.path, detail=True)
            except FileNotFoundError:
                return
        start = len(self.path.strip("/")) + 1
        for path, info in found.items():
            if not path.endswith("/"):
                yield path.lstrip("/")[start:], int(info["size"] or 0), _modified_ms(info)

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        with self._translated("looking for", name):
            return bool(self._opened.exists(self._path_of(name)))

    def delete(self, names: Iterable[str], *, threads: int = _THREADS) -> None:
        """Remove files; what isn't there is fine. Directories stay. `threads` bounds the requests at once."""

        def remove(name: str) -> None:
            with self._translated("removing", name):
                try:
                    self._opened.rm_file(self._path_of(name))
                except FileNotFoundError:
                    return

        def remove_batch(batch: Sequence[str]) -> None:
            with self._translated("removing", batch[0]):
                self._opened.rm([self._path_of(name) for name in batch])

        chosen = list(names)
        if not chosen:
            return
        batches: list[list[str]] = []
        if self.system.implementation.startswith("s3fs:"):
            # One request for a thousand. fsspec takes some characters for patterns: such a name goes by itself.
            plain = [name for name in chosen if not _PATTERN.intersection(name)]
            batches = [plain[start : start + _BATCH] for start in range(0, len(plain), _BATCH)]
            chosen = [name for name in chosen if _PATTERN.intersection(name)]
        with ThreadPoolExecutor(threads, thread_name_prefix="tablelog-delete") as pool:
            list(pool.map(remove_batch, batches))
            list(pool.map(remove, chosen))

    def delete_all(self, below: str) -> None:
        """Remove a directory with all that is in it; one that isn't there is fine."""
        if not self._has_directories:
            self.delete(self.list(below))
            return
        with self._translated("removing", below):
            try:
                self._opened.rm(self._path_of(below), recursive=True)
            except FileNotFoundError:
                return

    @property
    def _has_directories(self) -> bool:
        return self.system.implementation.startswith(("hdfs_native.", "fsspec.implementations.local:"))

    def _check(self, name: str) -> None:
        """Raise CorruptLogError for what a local directory holds that is no file, and may have no end."""
        if scheme_of(self.root) == "file":
            posix.open_regular(self._path_of(name), f"{self.root}/{name}").close()

    def _path_of(self, name: str) -> str:
        return f"{self.path}/{name}"

    @cached_property
    def _opened(self) -> Any:
        module, _, name = self.system.implementation.partition(":")
        found = needed(module, _EXTRAS[module]) if module in _EXTRAS else import_module(module)
        return getattr(found, name)(**self.system.options)

    @contextmanager
    def _translated(self, doing: str, name: str) -> Iterator[None]:
        where = f"{doing} {shown(self.root)}/{name}"
        try:
            yield
        except (StorageError, UnsupportedEnvironmentError, CorruptLogError):
            raise
        except FileNotFoundError as error:
            raise StorageMissingError(f"{where}: there is no such bucket, container or directory") from error
        except PermissionError as error:
            raise StorageAccessError(f"{where}: {error}. Check the credentials and what they allow") from error
        except Exception as error:
            raise StorageError(f"{where}: {type(error).__name__}: {error}") from error
