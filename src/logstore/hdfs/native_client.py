"""HDFS without a JVM, with hdfs-native: the client of `HDFSLogStore` if there is no Spark session.

hdfs-native implements the NameNode's protocol itself and logs in with the ticket cache of Kerberos. It has no
time-outs, so each call runs on a thread that is abandoned after a time-out.
"""

import contextlib
import ctypes
import os
import re
import threading
import weakref
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote
from xml.etree import ElementTree

from ...errors import (
    LogStoreConfigurationError,
    StorageAccessError,
    StorageUnavailableError,
    TablelogError,
    UnsupportedEnvironmentError,
)
from ..common.spool import Content, chunks
from ..common.uri import scheme_of, shown
from .client import HdfsEntry
from .errors import error_for

TIMEOUT_SECONDS = 60.0
"""The limit of one call in seconds: a request to the NameNode, the reading of a file, or the writing of a piece."""

_PIECE = 8 << 20
_Result = TypeVar("_Result")
_PROVIDER = "dfs.client.failover.proxy.provider."
_FAILOVER = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
_MOUNTS = "fs.viewfs.mounttable."
_MOUNT = re.compile(r"\.(link\./.*|linkFallback|homedir)$").search
_PORT = 8020
_ATTEMPTS = "dfs.client.failover.max.attempts"
_ATTEMPTS_AT_ONE = "3"
"""Attempts at a single NameNode without failover, within two seconds; Hadoop's 15 are for a failover."""
_JAVA = re.compile(r'(?:Fatal)?RPCError\("([\w.$]+)", "((?:[^"\\]|\\.)*)').match
_LOGIN = ("SASLError", "GSSAPIError", "NoSASLMechanism")
_WRONG = ("InvalidArgument", "UrlParseError", "InvalidPath")


class NativeLibrary:
    """The package hdfs-native, and the id of the process that used it first.

    It shares its connections to DataNodes in a process, and a forked child would use the parent's.
    """

    def __init__(self, used_in: int | None = None) -> None:
        self._used_in = used_in

    def check(self) -> None:
        """Raises UnsupportedEnvironmentError without the package, and in a child that was forked after its use."""
        if self._used_in is None:
            try:
                import hdfs_native  # noqa: F401
            except ImportError as error:
                raise UnsupportedEnvironmentError(
                    "HDFS without a Spark session needs hdfs-native: pip install 'tablelog[hdfs]'"
                ) from error
            self._used_in = os.getpid()
        if self._used_in != os.getpid():
            raise UnsupportedEnvironmentError(
                "hdfs-native was used before this process was forked, and doesn't work in the child: start processes "
                'with multiprocessing.get_context("spawn") or "forkserver"'
            )


_LIBRARY = NativeLibrary()


class NativeFiles:
    """A client for all name services; see `HdfsClient`. Threads may share it, a forked child may not."""

    def __init__(
        self,
        conf: Mapping[str, str],
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        library: NativeLibrary = _LIBRARY,
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self._library = library
        self._conf = {**_site_files(), **conf}
        self._umask = _umask(self._conf)
        self._clients: dict[str, Any] = {}
        _alive.add(self)

    def default_file_system(self) -> str:
        return self._conf.get("fs.defaultFS", "")

    def exists(self, path: str) -> bool:
        def exists(client: Any, name: str) -> bool:
            try:
                client.get_file_info(name)
            except FileNotFoundError:
                return False
            return True

        return self._call(exists, "looking for", path)

    def read(self, path: str) -> bytes:
        def read(client: Any, name: str) -> bytes:
            file = client.read(name)
            return bytes(file.read()) if len(file) else b""

        return self._call(read, "reading", path)

    def pieces(self, path: str) -> Generator[bytes, None, None]:
        file = self._call(lambda client, name: client.read(name), "reading", path)
        left = len(file)
        while left:
            size = min(left, _PIECE)
            piece = self._call(lambda *_, size=size: bytes(file.read(size)), "reading", path)
            if not piece:
                raise StorageUnavailableError(
                    f"reading {shown(path)}: {left} bytes are missing; try again later", path=shown(path)
                )
            left -= len(piece)
            yield piece

    def entries(self, directory: str) -> list[HdfsEntry]:
        def list_files(client: Any, name: str) -> list[HdfsEntry]:
            return [
                HdfsEntry(status.path.rpartition("/")[2], status.length, status.modification_time)
                for status in client.list_status(name)
                if not status.isdir
            ]

        return self._call(list_files, "listing", directory)

    def write(self, path: str, content: Content) -> None:
        from hdfs_native import WriteOptions

        # A request that is repeated after a lost reply replaces the file that the first one created.
        options = WriteOptions(permission=0o666 & ~self._umask, overwrite=True, create_parent=False)

        def create(client: Any, name: str) -> Any:
            try:
                return client.create(name, options)
            except FileNotFoundError:
                client.mkdirs(name.rpartition("/")[0], 0o777 & ~self._umask, True)
                return client.create(name, options)

        def close(*_: Any) -> None:
            if not empty:
                with contextlib.suppress(NotImplementedError):  # for erasure-coded files
                    file.hsync()
            file.close()

        file, empty = self._call(create, "writing", path), True
        for piece in chunks(content):
            if piece:
                empty = False
                self._call(lambda *_, piece=piece: file.write(piece), "writing", path)
        self._call(close, "writing", path)

    def rename(self, source: str, target: str, *, overwrite: bool) -> None:
        self._call(lambda client, name: client.rename(name, _name(target), overwrite), "renaming", source)

    def delete(self, path: str) -> bool:
        return self._call(lambda client, name: bool(client.delete(name)), "removing", path)

    def _call(self, call: Callable[[Any, str], _Result], doing: str, path: str) -> _Result:
        self._library.check()
        root = _root(path)
        client = self._clients.get(root)
        try:
            if client is None:
                client = self._clients.setdefault(root, self._client(root))
            return _bounded(partial(call, client, _name(path)), self._timeout_seconds)
        except TimeoutError:
            self._clients.pop(root, None)  # its connection may be dead, and the next call would wait for it again
            raise StorageUnavailableError(
                f"{doing} {shown(path)}: no answer within {self._timeout_seconds:.0f} s; is the NameNode up?",
                path=shown(path),
            ) from None
        except TablelogError:
            raise
        except (FileNotFoundError, FileExistsError) as error:  # the text also has Java's stack trace
            raise type(error)(f"{doing} {shown(path)}: {str(error).partition(chr(10))[0]}") from error
        except Exception as error:
            raise native_error(error, doing, path) from error
        except BaseException as error:
            if type(error).__name__ == "PanicException":  # a Rust panic, which isn't an Exception
                raise StorageUnavailableError(
                    f"{doing} {shown(path)}: hdfs-native failed ({error})", path=shown(path)
                ) from error
            raise

    def _client(self, root: str) -> Any:
        from hdfs_native import Client

        scheme, _, authority = root.partition("://")
        conf = _always_active(self._conf)
        if scheme == "viewfs":
            unsupported = [k for k in conf if k.startswith(f"{_MOUNTS}{authority}.") and not _MOUNT(k)]
            if unsupported:
                raise UnsupportedEnvironmentError(
                    f"{root} has mounts that hdfs-native doesn't support ({', '.join(sorted(unsupported))}); "
                    "use the store in a process with a Spark session, or use the hdfs:// path"
                )
        elif scheme != "hdfs":
            raise UnsupportedEnvironmentError(
                f"{scheme} needs Spark's own Hadoop client: use it in a process with a Spark session"
            )
        elif ":" not in authority and f"dfs.ha.namenodes.{authority}" not in conf:
            root = f"{root}:{_PORT}"  # a single NameNode, at Hadoop's default port
        if not any(key.startswith("dfs.ha.namenodes.") for key in conf):
            conf.setdefault(_ATTEMPTS, _ATTEMPTS_AT_ONE)
        return Client(root, conf)


def native_error(error: Exception, doing: str, path: str) -> Exception:
    """Our error for an exception of hdfs-native: its text has the class of Java's exception, or hdfs-native's kind."""
    text = str(error)
    java = _JAVA(text)
    if java:
        return error_for(java[1], java[2].replace("\\n", "\n").replace("\\t", " "), doing, path)
    kind = text.partition("(")[0]
    if kind in _LOGIN:
        return StorageAccessError(
            f"{doing} {shown(path)}: the login failed; check the Kerberos ticket ({text[:300]})", path=shown(path)
        )
    if kind in _WRONG:
        return LogStoreConfigurationError(
            f"{doing} {shown(path)}: the path or Hadoop's configuration (dfs.ha.*, fs.viewfs.*) is wrong ({text[:300]})"
        )
    return StorageUnavailableError(
        f"{doing} {shown(path)}: {text[:300]}; check the NameNode and its address", path=shown(path)
    )


def _bounded(call: Callable[[], _Result], seconds: float) -> _Result:
    """The result of `call`, run on a thread that is abandoned after `seconds`; then raises TimeoutError."""
    future: Future[_Result] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="tablelog-hdfs", daemon=True).start()
    return future.result(seconds)


_alive: "weakref.WeakSet[NativeFiles]" = weakref.WeakSet()


def _keep_for_ever() -> None:
    """Keep the clients in a forked child: deleting them would wait forever for threads that only the parent has."""
    for files in list(_alive):
        for client in files._clients.values():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(client.inner))


os.register_at_fork(after_in_child=_keep_for_ever)


def _root(path: str) -> str:
    """Scheme and authority of a canonical URI."""
    scheme = scheme_of(path)
    return f"{scheme}://{path[len(scheme) + 3 :].partition('/')[0]}"


def _name(path: str) -> str:
    """The path of a canonical URI, unescaped."""
    return unquote(path[len(_root(path)) :], errors="surrogateescape") or "/"


def _umask(conf: Mapping[str, str]) -> int:
    text = conf.get("fs.permissions.umask-mode", "022")
    try:
        return int(text, 8)
    except ValueError:
        raise LogStoreConfigurationError(
            f"fs.permissions.umask-mode = {text}: without a Spark session it must be an octal number"
        ) from None


def _always_active(conf: Mapping[str, str]) -> dict[str, str]:
    """`conf` without observer reads: hdfs-native has no msync before a read (delta-io/delta#769)."""
    observers = {key: _FAILOVER for key, value in conf.items() if key.startswith(_PROVIDER) and "Observer" in value}
    return {**conf, **observers}


def _site_files() -> dict[str, str]:
    """The keys in core-site.xml and hdfs-site.xml, from the directories that hdfs-native uses too."""
    home = os.environ.get("HADOOP_HOME")
    directory = os.environ.get("HADOOP_CONF_DIR") or (home and os.path.join(home, "etc", "hadoop"))
    keys: dict[str, str] = {}
    for file in ("core-site.xml", "hdfs-site.xml") if directory else ():
        path = Path(directory or "", file)
        if not path.exists():
            continue
        try:
            root = ElementTree.parse(path).getroot()
        except (ElementTree.ParseError, OSError) as error:
            raise LogStoreConfigurationError(f"{path} can't be read: {error}") from error
        for property_ in root.iter("property"):
            key, value = property_.findtext("name"), property_.findtext("value")
            if key and value:
                keys[key.strip()] = value.strip()
    return keys
