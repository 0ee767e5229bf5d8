"""The store for HDFS: write a whole temporary file, then rename it without replacing an existing file.

The NameNode renames atomically under its lock, so exactly one of several renames to the same name succeeds. The
remaining problem is a lost reply. A rename removes its source, and nothing else does. So after any answer other than
"done" the temporary file is deleted, which is necessary anyway, and the result of the deletion is the evidence:

- the file existed and was deleted: our rename was not applied, and never will be, even if a request is still on its
  way. We lost if the target exists, else nothing was written;
- the file didn't exist: our rename may have been applied, whatever the answer said. The outcome is unknown;
- there is no answer: the outcome is unknown.

This holds for every client. Hadoop's client repeats a rename after a lost reply and after a failover with the same
client id and call id, and the NameNode's retry cache (kept over restarts and failovers, for ten minutes) then returns
the first answer again. hdfs-native repeats it too, but with new ids: the second answer is then "no such file" for the
source, or, on the other NameNode, anything. The evidence above doesn't depend on these answers.
"""

import logging
import os
import posixpath
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any, BinaryIO, ClassVar, Self, TypeAlias
from urllib.parse import unquote_to_bytes

from ...errors import (
    InvalidArgumentError,
    LogStoreConfigurationError,
    StorageUnavailableError,
    TablelogError,
    WriteOutcomeUnknown,
)
from ...settings.spark_own import HADOOP
from ..base import Exclusion, FileStatus, LogStore, too_large
from ..common import posix
from ..common.schemes import served_by
from ..common.spool import Content, received, spooled
from ..common.uri import escaped, shown, without_user
from .client import HdfsClient

STALE_AFTER_MS = 24 * 60 * 60 * 1000
"""A temporary file older than this was left by a writer that was killed."""

_SWEEP_EVERY_SECONDS = 3600.0
_MOST_SWEPT = 10_000
_HADOOP = HADOOP.prefix
_PREFIXES = (
    *("fs.defaultFS", "fs.hdfs.", "fs.viewfs.", "fs.ofs.", "fs.AbstractFileSystem.", "fs.permissions."),
    *("dfs.", "hadoop.rpc.", "hadoop.security.", "ipc.client.", "ozone."),
)
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(?://([^/]*))?(/.*|)", re.DOTALL).fullmatch

logger = logging.getLogger(__name__)


Clients: TypeAlias = Callable[[Mapping[str, str]], HdfsClient]
"""Creates a client from Hadoop's keys, which take precedence over the keys that the client finds itself."""


class ProcessClients:
    """The factory for the clients of the HDFS stores in a process: hdfs-native, until `use` sets another one."""

    def __init__(self) -> None:
        self._in_use: tuple[int, Clients] | None = None

    def use(self, clients: Clients) -> None:
        """Set the factory for this process; a forked child doesn't inherit it."""
        self._in_use = (os.getpid(), clients)

    def current(self) -> Clients:
        """The factory in use."""
        if self._in_use is not None and self._in_use[0] == os.getpid():
            return self._in_use[1]
        from .native_client import NativeFiles

        return NativeFiles


PROCESS_CLIENTS = ProcessClients()
"""Used by all stores that aren't created with their own clients. The engine sets it to Spark's own Hadoop client when
there is a session.
"""


class HDFSLogStore(LogStore):
    """Files on HDFS (`hdfs`, `viewfs`) or Ozone (`ofs`), for any number of processes on any number of hosts.

    `conf` has Hadoop's keys. A writer that is killed leaves at most a hidden temporary file; an overwrite (once for
    each checkpoint) removes those that are older than a day.
    """

    exclusion: Exclusion = "global"
    partial_writes_visible = False
    atomic_overwrite = True
    schemes: ClassVar[frozenset[str]] = served_by("hdfs")
    configuration_prefixes: ClassVar[tuple[str, ...]] = (*_PREFIXES, *(_HADOOP + prefix for prefix in _PREFIXES))

    def __init__(self, conf: Mapping[str, str] | None = None, *, clients: Clients | None = None) -> None:
        self._conf = dict(conf or {})
        self._clients = clients
        self._opened: dict[tuple[int, Clients], HdfsClient] = {}
        self._swept: dict[str, float] = {}

    @classmethod
    def configured(cls, scheme: str, conf: Mapping[str, str], storage_options: Mapping[str, Any]) -> Self:
        """Create the store with Hadoop's keys from `conf`, and from `storage_options` for the missing ones.

        As in Spark, a key without `spark.hadoop.` takes precedence over the same key with it.
        """
        unknown = sorted(key for key in storage_options if not key.startswith(cls.configuration_prefixes))
        if unknown:
            raise LogStoreConfigurationError(
                f"the storage options {', '.join(unknown)} are unknown for {scheme}: give keys of Hadoop "
                f"({', '.join(_PREFIXES)}...)"
            )
        return cls({**_plain(storage_options), **_plain(conf)})

    def __getstate__(self) -> dict[str, Any]:
        return {"_conf": self._conf, "_clients": self._clients, "_opened": {}, "_swept": {}}

    def read(self, path: str) -> bytes:
        return self._files().read(self.resolve(path))

    def read_at_most(self, path: str, most: int) -> bytes:
        content = bytearray()
        with closing(self._files().pieces(self.resolve(path))) as pieces:
            for piece in pieces:
                content += piece
                if len(content) > most:
                    raise too_large(path, None, most)
        return bytes(content)

    def open_file(self, path: str) -> BinaryIO:
        with closing(self._files().pieces(self.resolve(path))) as pieces:
            return received(path, pieces)

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        # An argument that isn't bytes-like fails here, before the write.
        self._write(path, bytes(memoryview(data)), overwrite)

    def write_pieces(self, path: str, pieces: Iterable[bytes], *, overwrite: bool = False) -> None:
        with spooled(path, pieces) as content:
            self._write(path, content, overwrite)

    def _write(self, path: str, content: Content, overwrite: bool) -> None:
        files, final = self._files(), self.resolve(path)
        directory, _, name = final.rpartition("/")
        raw = unquote_to_bytes(name)
        if not raw or posix.is_hidden(raw):
            raise InvalidArgumentError(
                f"{shown(path)} can't be written: listings omit files with such a name. Use another name"
            )
        if not overwrite and files.exists(final):
            raise posix.lost(shown(final))  # the rename would fail too, but only after a useless write
        temporary = f"{directory}/{escaped(os.fsencode(posix.temporary_beside('', os.fsdecode(raw))))}"
        try:
            files.write(temporary, content)
        except BaseException as error:
            _remove_quietly(files, temporary)
            if isinstance(error, OSError) and not isinstance(error, TablelogError):
                raise StorageUnavailableError(f"writing {shown(temporary)}: {error}", path=shown(temporary)) from error
            raise
        try:
            files.rename(temporary, final, overwrite=overwrite)
        except Exception as error:
            _settle(files, temporary, final, overwrite, error)
        except BaseException:
            _remove_quietly(files, temporary)
            raise
        if overwrite:
            self._sweep(files, directory)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        # The NameNode lists a directory in byte order, in batches, each with the state at its time. A later batch is
        # never older than an earlier one, so there is no false gap.
        resolved = self.resolve(path)
        directory, _, start = (resolved.rstrip("/"), "", "") if path.endswith("/") else resolved.rpartition("/")
        first = unquote_to_bytes(start)
        entries = [(os.fsencode(entry.name), entry) for entry in self._files().entries(directory + "/")]
        kept = sorted(item for item in entries if item[0] >= first and not posix.is_hidden(item[0]))
        return (FileStatus(f"{directory}/{escaped(raw)}", entry.size, entry.modified_ms) for raw, entry in kept)

    def delete(self, path: str) -> None:
        self._files().delete(self.resolve(path))

    def resolve(self, path: str) -> str:
        """`scheme://authority/path`, percent-escaped, without empty parts and without a trailing slash.

        The default authority is that of `fs.defaultFS`. Raises InvalidArgumentError for `.` and `..`, and if there is
        no authority.
        """
        match = _URI(path)
        if match is None:
            raise InvalidArgumentError(f"{shown(path)!r} isn't a path of HDFS: write hdfs://nameservice/path")
        scheme = match[1].lower()
        # HDFS ignores a user in the authority.
        authority = without_user(match[2] or "") or self._default_authority(scheme, path)
        return f"{scheme}://{authority}{_canonical(match[3], path)}"

    def _default_authority(self, scheme: str, path: str) -> str:
        default = _URI(self._conf.get("fs.defaultFS") or self._files().default_file_system())
        if default is None or default[1].lower() != scheme or not default[2]:
            raise InvalidArgumentError(
                f"{shown(path)!r} names no NameNode or nameservice, and fs.defaultFS has none for {scheme} either: "
                f"write {scheme}://nameservice/path"
            )
        return without_user(default[2])

    def _files(self) -> HdfsClient:
        key = os.getpid(), self._clients or PROCESS_CLIENTS.current()
        files = self._opened.get(key)
        if files is None:
            files = key[1](self._conf)
            self._opened = {key: files}  # clients of a parent process or of an ended session aren't needed any more
        return files

    def _sweep(self, files: HdfsClient, directory: str) -> None:
        """Remove stale temporary files, at most once an hour. It isn't part of the write, so a failure only warns."""
        now = time.monotonic()
        if now - self._swept.get(directory, float("-inf")) < _SWEEP_EVERY_SECONDS:
            return
        if len(self._swept) >= _MOST_SWEPT:
            self._swept.clear()  # then some directories are checked again too early
        self._swept[directory] = now
        try:
            entries = files.entries(directory + "/")
            # By the NameNode's clock, which set the time of the file just written: our clock may be wrong by a day.
            newest = max((entry.modified_ms for entry in entries), default=0)
            for entry in entries:
                raw = os.fsencode(entry.name)
                if posix.is_temporary(raw) and entry.modified_ms < newest - STALE_AFTER_MS:
                    files.delete(f"{directory}/{escaped(raw)}")
        except (OSError, TablelogError) as error:
            logger.warning("couldn't remove stale temporary files in %s: %s", shown(directory), error)


def _settle(files: HdfsClient, temporary: str, final: str, overwrite: bool, error: Exception) -> None:
    """Raise the outcome of a rename that failed with `error`, depending on whether its source still exists."""
    try:
        never_applied = files.delete(temporary)
    except (OSError, TablelogError) as second:
        raise WriteOutcomeUnknown(shown(final), f"{error}; and then {second}") from error
    if not never_applied:
        raise WriteOutcomeUnknown(
            shown(final), f"{error}; but the temporary file doesn't exist, so the rename may have been applied"
        ) from error
    if not overwrite and (isinstance(error, FileExistsError) or files.exists(final)):
        raise posix.lost(shown(final)) from error
    if isinstance(error, TablelogError):
        raise error
    raise StorageUnavailableError(
        f"renaming to {shown(final)}: {error}; nothing was written", path=shown(final)
    ) from error


def _plain(conf: Mapping[str, Any]) -> dict[str, str]:
    """Hadoop's keys without `spark.hadoop.`; if a key is there in both forms, the one without it wins."""
    prefixed = {key.removeprefix(_HADOOP): str(value) for key, value in conf.items() if key.startswith(_HADOOP)}
    return {**prefixed, **{key: str(value) for key, value in conf.items() if not key.startswith(_HADOOP)}}


def _remove_quietly(files: HdfsClient, path: str) -> None:
    try:
        files.delete(path)
    except (OSError, TablelogError) as error:  # it is hidden, and a later sweep removes it
        logger.debug("couldn't remove %s: %s", shown(path), error)


def _canonical(path: str, shown_as: str) -> str:
    raw = unquote_to_bytes(path)
    parts = [part for part in raw.split(b"/") if part]
    if b"\0" in raw or not {b".", b".."}.isdisjoint(parts):
        raise InvalidArgumentError(f"{shown(shown_as)!r} has '.', '..' or a null character, which HDFS doesn't allow")
    return posixpath.join("/", escaped(b"/".join(parts)))
