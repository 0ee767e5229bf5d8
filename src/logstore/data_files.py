"""Access to a table's data files with fsspec, with the same configuration as the stores of the log.

It is for files that Spark's own file systems can't reach; `LogStore` is for the log. Nothing here is atomic or
exclusive: a data file has a unique name, and belongs to the table only after a commit refers to it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib import import_module
from typing import IO, Any, cast
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
from .common.http_clients import distrusts, hadoop_keys, needed
from .common.schemes import about
from .common.uri import local_path, scheme_of, shown, without_user
from .opened_file import OpenedFile

_THREADS = 8
_BATCH = 1_000
_FAR = 1 << 53
_PATTERN = frozenset("*?[")
_CUT = frozenset("#?;")
_HDFS_KEYS = ("dfs.", "fs.defaultFS", "fs.viewfs.", "hadoop.security.", "hadoop.rpc.")
_NAME_NODE_PORT = 8020
_EXTRAS = {"s3fs": "s3", "adlfs": "azure", "gcsfs.core": "gcs", "hdfs_native.fsspec": "hdfs"}


@dataclass(frozen=True)
class FileSystem:
    """An fsspec file system as plain values, so that a Spark worker without tablelog can create it.

    `implementation` is `module:Class`; `options` are its arguments, which may contain secrets.
    """

    implementation: str
    options: Mapping[str, Any] = field(repr=False)


def file_system(uri: str, conf: Mapping[str, str], storage_options: Mapping[str, Any]) -> FileSystem:
    """The fsspec file system for `uri`; it doesn't cache listings.

    `conf` has keys of Hadoop and Spark, `storage_options` fsspec's names; `conf` takes precedence. Raises
    LogStoreConfigurationError if they contradict each other, UnsupportedEnvironmentError for a scheme that fsspec
    doesn't have.
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
    """hdfs-native, which uses Hadoop's keys as they are; it also reads the files in HADOOP_CONF_DIR itself."""
    host, _, port = without_user(uri.partition("://")[2].partition("/")[0]).partition(":")
    if port and not port.isdecimal():
        raise InvalidArgumentError(f"{shown(uri)!r} has an invalid port of a NameNode: write {scheme}://host:port/path")
    options = {key: str(value) for key, value in keys.items() if key.startswith(_HDFS_KEYS)}
    if scheme == "viewfs":
        return FileSystem("hdfs_native.fsspec:ViewfsFileSystem", {"host": host, **options})
    one_node = f"dfs.ha.namenodes.{host}" not in options
    number = int(port) if port else _NAME_NODE_PORT if one_node else None
    return FileSystem("hdfs_native.fsspec:HdfsFileSystem", {"host": host, "port": number, **options})


def _registered(scheme: str, uri: str, storage_options: Mapping[str, Any]) -> FileSystem:
    """fsspec's own implementation for a scheme that tablelog has none for."""
    import fsspec

    if scheme == "memory":
        raise UnsupportedEnvironmentError(
            f"{shown(uri)}: Spark's workers can't read or write data files in the memory of one process. Use another "
            "scheme"
        )
    try:
        implementation = fsspec.get_filesystem_class(scheme)
    except (ValueError, ImportError) as error:
        raise UnsupportedEnvironmentError(
            f"{shown(uri)}: neither Spark's JVM nor fsspec has a file system for {scheme}: put its jar on Spark's "
            "class path, or install the package of fsspec's implementation"
        ) from error
    return _uncached(f"{implementation.__module__}:{implementation.__qualname__}", storage_options)


def _uncached(implementation: str, options: Mapping[str, Any]) -> FileSystem:
    return FileSystem(implementation, {**options, "use_listings_cache": False})


def path_in(uri: str) -> str:
    """The path of `uri` for its fsspec file system. The path in a URI is percent-encoded; a bare path isn't."""
    scheme = scheme_of(uri)
    if scheme == "file":
        return local_path(uri)
    known, rest = about(scheme), uri.partition("://")[2]
    if known.backend is None and rest.startswith("/"):  # an unknown scheme may have no authority
        return unquote(rest).rstrip("/")
    kind = known.fsspec
    if kind == "hdfs":
        return "/" + unquote(uri.partition("://")[2].partition("/")[2])
    _, authority, key = object_uri.split(uri)
    if kind == "azure":
        authority = authority.partition("@")[0]
    return f"{authority}/{key}".rstrip("/")


def _modified_ms(info: Mapping[str, Any]) -> int:
    """The modification time of a file, under any of fsspec's names for it; far in the future if there is none."""
    for key in ("LastModified", "last_modified", "modification_time", "updated", "mtime", "modified"):
        modified = info.get(key)
        if isinstance(modified, str):
            modified = datetime.fromisoformat(modified)
        if isinstance(modified, datetime):
            return int((modified if modified.tzinfo else modified.replace(tzinfo=UTC)).timestamp() * 1000)
        if isinstance(modified, int | float):
            return int(modified if key == "modification_time" else modified * 1000)
    return _FAR


@dataclass(frozen=True)
class DataFiles:
    """The files below one URI; names are relative to it and not encoded. Threads may share it.

    Every method may raise an error of the `StorageError` group.
    """

    root: str
    system: FileSystem

    def __repr__(self) -> str:
        return f"DataFiles({shown(self.root)!r}, {self.system!r})"

    @classmethod
    def of(cls, root: str, conf: Mapping[str, str], storage_options: Mapping[str, Any]) -> "DataFiles":
        """The files below `root`; see `file_system` for the arguments and the errors."""
        return cls(root, file_system(root, conf, storage_options))

    @property
    def path(self) -> str:
        """The root as a path of the fsspec file system."""
        return path_in(self.root)

    def read_range(self, name: str, start: int, end: int) -> bytes:
        """Bytes of a file, fewer if it ends before `end`; raises FileNotFoundError if it doesn't exist."""
        try:
            with self._translated("reading", name):
                self._check(name)
                return bytes(self._done("cat_file", self._path_of(name), start=start, end=end))
        except StorageMissingError as error:
            raise FileNotFoundError(name) from error

    def open(self, name: str) -> IO[bytes]:
        """Open a file whose parts are read on demand; raises FileNotFoundError if it doesn't exist.

        Its reads may raise an error of the `StorageError` group too.
        """

        def request(call: Callable[[], Any]) -> Any:
            with self._translated("reading", name):
                return self._repeated(call)

        try:
            with self._translated("opening", name):
                self._check(name)
                opened = OpenedFile(self._done("open", self._path_of(name), "rb"), request)
                return cast(IO[bytes], opened)
        except StorageMissingError as error:
            raise FileNotFoundError(name) from error

    def write(self, name: str, data: bytes) -> None:
        """Write a whole file; an existing one is replaced."""
        with self._translated("writing", name):
            path = self._path_of(name)
            if self._has_directories:
                self._opened.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._done("pipe_file", path, data)

    def list(self, below: str) -> list[str]:
        """The names of the files in the directory `below` and its subdirectories, unordered; empty if it is missing."""
        with self._translated("listing", below):
            try:
                file_paths = self._found(self._path_of(below))
            except FileNotFoundError:
                return []
        start = len(self.path.lstrip("/")) + 1
        # s3a creates empty objects with a trailing slash for directories.
        return [path.lstrip("/")[start:] for path in file_paths if not path.endswith("/")]

    def entries(self) -> tuple[Sequence[tuple[str, int, int]], Sequence[str]]:
        """The files directly in the root, as `statuses` has them, and the names of the directories there."""
        with self._translated("listing", ""):
            try:
                infos = self._done("ls", self.path, detail=True)
            except FileNotFoundError:
                return [], []
        start = len(self.path.strip("/")) + 1
        files, directories = [], []
        for info in infos:
            name = info["name"].strip("/")[start:]
            if info["type"] == "directory":
                directories.append(name)
            elif name and not info["name"].endswith("/"):
                files.append((name, int(info["size"] or 0), _modified_ms(info)))
        return files, directories

    def statuses(self, below: str = "") -> Iterator[tuple[str, int, int]]:
        """Name, size and modification time (ms) of each file in the directory `below` and its subdirectories."""
        with self._translated("listing", below):
            try:
                infos = self._found(self._path_of(below) if below else self.path)
            except FileNotFoundError:
                return
        start = len(self.path.strip("/")) + 1
        for path, info in infos.items():
            if not path.endswith("/"):
                yield path.lstrip("/")[start:], int(info["size"] or 0), _modified_ms(info)

    def exists(self, name: str) -> bool:
        """Whether the file exists."""
        with self._translated("looking for", name):
            try:
                self._done("info", self._path_of(name))  # `exists` of fsspec answers no after any error
            except FileNotFoundError:
                return False
            return True

    def delete(self, names: Iterable[str], *, threads: int = _THREADS) -> None:
        """Remove files; missing files are ignored, directories remain. `threads` limits the parallel requests."""

        def remove(name: str) -> None:
            with self._translated("removing", name):
                try:
                    self._done("rm_file", self._path_of(name))
                except FileNotFoundError:
                    return

        def remove_batch(batch: Sequence[str]) -> None:
            with self._translated("removing", batch[0]):
                self._done("rm", [self._path_of(name) for name in batch])

        chosen = [name for name in names if not self._is_misread(name)]
        if not chosen:
            return
        batches: list[list[str]] = []
        if self.system.implementation.startswith("s3fs:"):
            # One request for 1,000 names. fsspec reads some characters as patterns: such names are removed one by one.
            plain = [name for name in chosen if not _PATTERN.intersection(name)]
            batches = [plain[start : start + _BATCH] for start in range(0, len(plain), _BATCH)]
            chosen = [name for name in chosen if _PATTERN.intersection(name)]
        with ThreadPoolExecutor(threads, thread_name_prefix="tablelog-delete") as pool:
            list(pool.map(remove_batch, batches))
            list(pool.map(remove, chosen))

    def delete_all(self, below: str) -> None:
        """Remove a directory and everything in it; it is no error if it doesn't exist."""
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
        """Raise CorruptLogError if a local path isn't a regular file: reading a pipe or a device may never end."""
        if scheme_of(self.root) == "file":
            posix.open_regular(self._path_of(name), f"{self.root}/{name}").close()

    def _found(self, path: str) -> Mapping[str, Mapping[str, Any]]:
        """What fsspec tells of each file below a directory, by its path.

        fsspec's own `find`, which lists directory by directory, leaves out a directory whose listing fails. A directory
        that the file system takes for another one isn't looked into.
        """
        from fsspec.spec import AbstractFileSystem

        if getattr(self._opened.find, "__func__", None) is not AbstractFileSystem.find:
            return cast(Mapping[str, Mapping[str, Any]], self._done("find", path, detail=True))
        found: dict[str, Mapping[str, Any]] = {}
        start, pending = len(self.path), [path]
        while pending:
            directory = pending.pop()
            try:
                infos = self._done("ls", directory, detail=True)
            except FileNotFoundError:
                continue
            for info in infos:
                if info["type"] != "directory":
                    found[info["name"]] = info
                elif info["name"].rstrip("/") != directory.rstrip("/") and not self._is_misread(info["name"][start:]):
                    pending.append(info["name"])
        return found

    def _is_misread(self, name: str) -> bool:
        """Whether the file system takes the name for another one: hdfs_native reads it as a URL."""
        return self.system.implementation.startswith("hdfs_native.") and not _CUT.isdisjoint(name)

    def _path_of(self, name: str) -> str:
        if self._is_misread(name):
            raise StorageError(
                f"{shown(self.root)}: the client hdfs_native can't name the file {name!r}, because it reads "
                "#, ? and ; as parts of a URL. Use Spark's client for this table",
                path=name,
            )
        return f"{self.path}/{name}"

    @cached_property
    def _opened(self) -> Any:
        module, _, name = self.system.implementation.partition(":")
        loaded = needed(module, _EXTRAS[module]) if module in _EXTRAS else import_module(module)
        opened = getattr(loaded, name)(**self.system.options)
        if module == "s3fs":
            from .s3.settings import parse_times_fast

            with self._translated("opening", ""):
                opened.connect()
            parse_times_fast(opened.session)
        return opened

    def _done(self, method: str, *arguments: Any, **options: Any) -> Any:
        """The result of a method of the file system.

        Each call may be repeated: a data file has one writer.
        """
        return self._repeated(lambda: getattr(self._opened, method)(*arguments, **options))

    def _repeated(self, call: Callable[[], Any]) -> Any:
        """The result of a call; it is repeated with new credentials if they have expired, or if there were none."""
        try:
            return self._asked(call)
        except Exception as error:
            if not self._may_have_newer(error) or self.system.options.get("key"):
                raise
        self._opened.connect(refresh=True)
        return self._asked(call)

    def _may_have_newer(self, error: Exception) -> bool:
        """Whether S3's credentials may have expired, or there were none; s3fs makes several classes of S3's error."""
        if not self.system.implementation.startswith("s3fs:"):
            return False
        from .s3.settings import EXPIRED, sdk

        if isinstance(error, sdk().exceptions.NoCredentialsError):
            return True
        reply = getattr(error.__cause__, "response", None) or {}
        return reply.get("Error", {}).get("Code") in EXPIRED

    def _asked(self, call: Callable[[], Any]) -> Any:
        """The result of a call; an error of the source of credentials, of any class, is an error of its own."""
        try:
            return call()
        except Exception as error:
            if self.system.implementation.startswith("s3fs:"):
                from .s3.credential_sources import error_of_source

                of_source = error_of_source(error, shown(self.root))
                if of_source is not None:
                    raise of_source.with_context(path=shown(self.root)) from error
            raise

    @contextmanager
    def _translated(self, doing: str, name: str) -> Iterator[None]:
        path = f"{shown(self.root)}/{name}"
        where = f"{doing} {path}"
        try:
            yield
        except (StorageError, UnsupportedEnvironmentError, CorruptLogError):
            raise
        except FileNotFoundError as error:
            raise StorageMissingError(
                f"{where}: the bucket, container or directory doesn't exist", path=path
            ) from error
        except Exception as error:
            if isinstance(error, PermissionError) or self._may_have_newer(error):
                raise StorageAccessError(
                    f"{where}: {error}. Check the credentials and their permissions", path=path
                ) from error
            if self.system.implementation.startswith("s3fs:") and distrusts(error):
                from .s3.settings import DISTRUST

                raise StorageAccessError(f"{where}: {DISTRUST}", path=path) from error
            if type(error).__name__ == "CredentialRetrievalError":  # its text has what a program of the user printed
                raise StorageAccessError(
                    f"{where}: the source of the credentials (a profile, or its credential_process) gave none; run it "
                    "by hand to see why",
                    path=path,
                ) from None
            raise StorageError(f"{where}: {type(error).__name__}: {error}", path=path) from error
