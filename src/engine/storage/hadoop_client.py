"""Files on whatever file system Spark's own Hadoop client reaches, with the user's configuration and login.

For data files; the log has guarantees of its own to keep (`hadoop_log`). A call over Py4J costs 50-100 us, so a listing
crosses as three columns, whatever its length.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...core.upkeep.vacuum import ListedFile
from ...errors import StorageError, StorageUnavailableError
from ...logstore import FileStatus
from ..jvm.gateway import Gateway, JavaObject
from ..jvm.hadoop import has_file_system
from ..jvm.sessions import hadoop_configuration
from .hadoop_jvm import Statuses, translated, uri_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHUNK = 50_000  # statuses that cross at once


class HadoopFiles:
    """The file systems of one session. URIs are percent-encoded, as the log has them. Shared by threads.

    `settings` are Hadoop's, beside those of the session.
    Every method raises FileNotFoundError, FileExistsError or an error of the `StorageError` group.
    """

    def __init__(self, spark: "SparkSession", settings: Mapping[str, str] | None = None) -> None:
        self._spark = spark
        self._settings = settings or {}
        self._gateway = Gateway.of(spark)

    def scheme_supported(self, uri: str) -> bool:
        """Whether the JVM has a file system for the scheme of `uri`."""
        return has_file_system(self._spark, uri)

    def exists(self, uri: str) -> bool:
        """Whether there is a file or a directory at `uri`."""
        with translated("looking for", uri):
            path = self._gateway.path(uri)
            return bool(self._file_system(path).exists(path))

    def list_recursive(self, uri: str) -> Iterator[FileStatus]:
        """The files in the directory `uri` and below it, in no order; FileNotFoundError where there is none."""
        with translated("listing", uri):
            directory = self._gateway.path(uri)
            found = self._file_system(directory).listFiles(directory, True)
            statuses = self._gateway.jvm.org.apache.hadoop.util.functional.RemoteIterators.toList(found)
            count = statuses.size()
        for start in range(0, count, _CHUNK):
            with translated("listing", uri):
                part = statuses.subList(start, min(start + _CHUNK, count))
                files = Statuses.of(self._gateway).files(part)
            for path, size, modified in files:
                yield FileStatus(uri_of(path), size, modified)

    def list_children(self, uri: str) -> tuple[list[ListedFile], list[tuple[str, int]]]:
        """The files, and the directories (name, time in ms), in the directory `uri`; FileNotFoundError: no such."""
        with translated("listing", uri):
            path = self._gateway.path(uri)
            found = self._file_system(path).listStatusIterator(path)
            listed = self._gateway.jvm.org.apache.hadoop.util.functional.RemoteIterators.toList(found)
            statuses = Statuses.of(self._gateway)
            files, directories = list(statuses.files(listed)), list(statuses.directories(listed))
        return (
            [ListedFile(name.rpartition("/")[2], size, modified) for name, size, modified in files],
            [(name.rpartition("/")[2], modified) for name, _, modified in directories],
        )

    def delete_many(self, uris: Sequence[str]) -> int:
        """Remove files of one file system; how many of them were there."""
        if not uris:
            return 0
        with translated("removing", uris[0]):
            file_system = self._file_system(self._gateway.path(uris[0]))
            return Statuses.of(self._gateway).deleted(file_system, list(uris))

    def remove_empty(self, uri: str) -> bool:
        """Remove a directory unless there is something in it; whether it is gone by that."""
        try:
            return self.delete(uri)
        except StorageError:
            return False

    def rename(self, source: str, target: str) -> None:
        """Give the file `source` the name `target`, whose directory is made; FileExistsError where it is taken.

        No promise between two that rename to one name at once: data files have names of their own.
        """
        with translated("renaming to", target):
            old, new = self._gateway.path(source), self._gateway.path(target)
            files = self._file_system(new)
            if files.rename(old, new):
                return
            files.mkdirs(new.getParent())
            if files.exists(new):
                raise FileExistsError(target)
            if not files.rename(old, new):
                if not files.exists(old):
                    raise FileNotFoundError(source)
                raise StorageUnavailableError(f"renaming to {target}: the file system refused, and didn't say why")

    def delete(self, uri: str, *, recursive: bool = False) -> bool:
        """Remove a file, or with `recursive` a directory and all below it; whether there was one."""
        with translated("removing", uri):
            path = self._gateway.path(uri)
            return bool(self._file_system(path).delete(path, recursive))

    def read_tail(self, uri: str, size: int, count: int) -> bytes:
        """The last `count` bytes of a file of `size` bytes (all of them where there are fewer)."""
        with self.open_file(uri, size) as file:
            file.seek(max(0, size - count))
            return file.read(count) or b""

    def open_file(self, uri: str, size: int) -> "HadoopFile":
        """A file of `size` bytes to read by ranges, for pyarrow and others; close it."""
        with translated("opening", uri):
            path = self._gateway.path(uri)
            builder = self._file_system(path).openFile(path)
            # What a file system doesn't know of these it ignores; s3a saves a request, and reads ranges only.
            builder.opt("fs.option.openfile.read.policy", "parquet, random")
            builder.opt("fs.option.openfile.length", str(size))
            return HadoopFile(uri, size, builder.build().get())

    def write(self, uri: str, data: bytes) -> None:
        """Write a whole file, making its directory; one that is there is replaced."""
        with translated("writing", uri):
            path = self._gateway.path(uri)
            stream = self._file_system(path).create(path, True)
            try:
                stream.write(bytearray(data))
            finally:
                stream.close()

    @cached_property
    def _configuration(self) -> JavaObject:
        found = hadoop_configuration(self._spark)
        for key, value in self._settings.items():
            found.set(key, value)
        return found

    def _file_system(self, path: JavaObject) -> JavaObject:
        return path.getFileSystem(self._configuration)


class HadoopFile(io.RawIOBase):
    """An open file of a Hadoop file system. One thread at a time."""

    def __init__(self, uri: str, size: int, stream: JavaObject) -> None:
        super().__init__()
        self._uri = uri
        self._size = size
        self._stream = stream
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(0, self._size - self._at)
        count = left if size is None or size < 0 else min(size, left)
        if not count:
            return b""
        with translated("reading", self._uri):
            self._stream.seek(self._at)
            data = bytes(self._stream.readNBytes(count))
        self._at += len(data)
        return data

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            super().close()
            with translated("closing", self._uri):
                self._stream.close()
