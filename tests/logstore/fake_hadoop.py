"""A file system in a local directory that behaves to `HDFSLogStore` as HDFS does, and can be made to fail."""

import errno
import os
import stat
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

from tablelog.errors import StorageUnavailableError
from tablelog.logstore.common import posix
from tablelog.logstore.common.listing import without_false_gaps
from tablelog.logstore.common.spool import Content, joined
from tablelog.logstore.hdfs.client import HdfsEntry
from tablelog.logstore.hdfs.store import HDFSLogStore

Result = TypeVar("Result")


class DirectoryFiles:
    """`hdfs://name/path` is `path` on this machine. A rename is one step of the kernel's, exclusive or replacing."""

    def __init__(self, conf: Mapping[str, str]) -> None:
        self.conf = conf

    def default_file_system(self) -> str:
        return "hdfs://default:8020"

    def exists(self, path: str) -> bool:
        return os.path.exists(local(path))

    def read(self, path: str) -> bytes:
        return Path(local(path)).read_bytes()

    def pieces(self, path: str) -> Generator[bytes, None, None]:
        with open(local(path), "rb") as file:
            while piece := file.read(3):
                yield piece

    def entries(self, directory: str) -> list[HdfsEntry]:
        def scan() -> list[bytes]:
            return os.listdir(os.fsencode(local(directory)))

        # HDFS's listing has no false gaps.
        found = []
        for name in without_false_gaps(scan, b""):
            try:
                status = os.stat(os.path.join(os.fsencode(local(directory)), name))
            except FileNotFoundError:
                continue
            if not stat.S_ISDIR(status.st_mode):
                found.append(HdfsEntry(os.fsdecode(name), status.st_size, status.st_mtime_ns // 1_000_000))
        return found

    def write(self, path: str, content: Content) -> None:
        data = joined(content)
        os.makedirs(os.path.dirname(local(path)), exist_ok=True)
        with open(local(path), "wb") as file:
            file.write(data[: len(data) // 2])
            file.flush()
            file.write(data[len(data) // 2 :])

    def rename(self, source: str, target: str, *, overwrite: bool) -> None:
        if overwrite:
            os.replace(local(source), local(target))
        else:
            posix._rename_exclusively(local(source), local(target), target, OSError(errno.EPERM, "no links here"))

    def delete(self, path: str) -> bool:
        try:
            os.unlink(local(path))
        except FileNotFoundError:
            return False
        return True


class FailingFiles(DirectoryFiles):
    """Each operation fails as `plan` says, by its name: `before` it does anything, or `after`, its reply being lost.

    `again` is a client that repeats the operation after the lost reply, and gives the second answer.
    """

    def __init__(self, **plan: str | tuple[str, Exception]) -> None:
        super().__init__({})
        self.plan = plan
        self.calls: list[str] = []

    def exists(self, path: str) -> bool:
        return self._do("exists", lambda: super(FailingFiles, self).exists(path))

    def write(self, path: str, content: Content) -> None:
        self._do("write", lambda: super(FailingFiles, self).write(path, content))

    def rename(self, source: str, target: str, *, overwrite: bool) -> None:
        self._do("rename", lambda: super(FailingFiles, self).rename(source, target, overwrite=overwrite))

    def delete(self, path: str) -> bool:
        return self._do("delete", lambda: super(FailingFiles, self).delete(path))

    def _do(self, name: str, operation: Callable[[], Result]) -> Result:
        self.calls.append(name)
        when = self.plan.get(name, "")
        when, error = when if isinstance(when, tuple) else (when, StorageUnavailableError("the NameNode is away"))
        if when == "before":
            raise error
        result = operation()
        if when == "after":
            raise error
        return operation() if when == "again" else result


def local(path: str) -> str:
    """The path on this machine for a URI."""
    return "/" + unquote(path.partition("://")[2].partition("/")[2], errors="surrogateescape")


def store() -> HDFSLogStore:
    """A store on the file system above."""
    return HDFSLogStore(clients=DirectoryFiles)
