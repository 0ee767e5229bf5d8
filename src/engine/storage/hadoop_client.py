"""Reads and writes files through Spark's own Hadoop client, with the user's configuration and login.

It is for data files; the log has its own client with stronger guarantees (`hadoop_log`). A call over Py4J costs 50-100
us, so a listing is transferred as three columns, independent of its length.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...core.table_maintenance.unneeded_files import ListedFile
from ...errors import StorageError, StorageUnavailableError
from ...logstore import FileStatus
from ..jvm.connection.gateway import Gateway, JavaObject
from ..jvm.connection.sessions import hadoop_configuration
from .hadoop_jvm import Statuses, translated, uri_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHUNK = 50_000  # file statuses per transfer


class HadoopFiles:
    """The file systems of one session. URIs are percent-encoded, as in the log. Shared by threads.

    `settings` are Hadoop settings in addition to those of the session.
    Every method raises FileNotFoundError, FileExistsError or an error of the `StorageError` group.
    """

    def __init__(self, spark: "SparkSession", settings: Mapping[str, str] | None = None) -> None:
        self._spark = spark
        self._settings = settings or {}
        self._gateway = Gateway.of(spark)

    def exists(self, uri: str) -> bool:
        """Whether there is a file or a directory at `uri`."""
        with translated("looking for", uri):
            path = self._gateway.path(uri)
            return bool(self._file_system(path).exists(path))

    def list_recursive(self, uri: str) -> Iterator[FileStatus]:
        """The files in the directory `uri` and below it, unordered. Raises FileNotFoundError if it doesn't exist."""
        with translated("listing", uri):
            directory = self._gateway.path(uri)
            remote_iterator = self._file_system(directory).listFiles(directory, True)
            statuses = self._gateway.jvm.org.apache.hadoop.util.functional.RemoteIterators.toList(remote_iterator)
            count = statuses.size()
        for start in range(0, count, _CHUNK):
            with translated("listing", uri):
                part = statuses.subList(start, min(start + _CHUNK, count))
                files = Statuses.of(self._gateway).files(part)
            for path, size, modified in files:
                yield FileStatus(uri_of(path), size, modified)

    def list_children(self, uri: str) -> tuple[list[ListedFile], list[tuple[str, int]]]:
        """The files, and the directories as (name, modification time in ms), in the directory `uri`. Raises
        FileNotFoundError if it doesn't exist."""
        with translated("listing", uri):
            path = self._gateway.path(uri)
            remote_iterator = self._file_system(path).listStatusIterator(path)
            listed = self._gateway.jvm.org.apache.hadoop.util.functional.RemoteIterators.toList(remote_iterator)
            statuses = Statuses.of(self._gateway)
            files, directories = list(statuses.files(listed)), list(statuses.directories(listed))
        return (
            [ListedFile(name.rpartition("/")[2], size, modified) for name, size, modified in files],
            [(name.rpartition("/")[2], modified) for name, _, modified in directories],
        )

    def delete_many(self, uris: Sequence[str]) -> int:
        """Delete files of one file system; returns how many of them existed, as far as the file system tells.

        On S3, one request deletes 250 files (`fs.s3a.bulk.delete.page.size`); deleted one by one, each file would take
        three requests, and the service doesn't tell whether a file existed.
        """
        if not uris:
            return 0
        with translated("removing", uris[0]):
            file_system = self._file_system(self._gateway.path(uris[0]))
            statuses = Statuses.of(self._gateway)
            bulk = file_system.createBulkDelete(file_system.makeQualified(self._gateway.path("/")))
            try:
                page = bulk.pageSize()
                if page < 2:
                    return statuses.deleted(file_system, list(uris))
                paths = statuses.paths(list(uris))
                for start in range(0, len(uris), page):
                    failures = bulk.bulkDelete(paths.subList(start, min(start + page, len(uris))))
                    if not failures.isEmpty():
                        first = failures.get(0)
                        raise StorageError(
                            f"removing {failures.size()} files like {uri_of(first.getKey().toString())}: the store "
                            f"refused: {first.getValue()}. Check the permissions of the credentials",
                            path=uris[start],
                        )
                return len(uris)
            finally:
                bulk.close()

    def remove_empty(self, uri: str) -> bool:
        """Delete a directory if it is empty; returns whether it was deleted."""
        try:
            return self.delete(uri)
        except StorageError:
            return False

    def rename(self, source: str, target: str) -> None:
        """Rename the file `source` to `target`, whose directory is created. Raises FileExistsError if `target` exists.

        The rename is not exclusive between concurrent writers: data files have unique names.
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
                raise StorageUnavailableError(
                    f"renaming to {target}: the file system refused without giving a reason", path=target
                )

    def delete(self, uri: str, *, recursive: bool = False) -> bool:
        """Delete a file, or with `recursive` a directory with its contents; returns whether it existed."""
        with translated("removing", uri):
            path = self._gateway.path(uri)
            return bool(self._file_system(path).delete(path, recursive))

    def open_file(self, uri: str, size: int) -> "HadoopFile":
        """Open a file of `size` bytes for random reads, by pyarrow for example; close it afterwards."""
        with translated("opening", uri):
            path = self._gateway.path(uri)
            builder = self._file_system(path).openFile(path)
            # File systems ignore unknown options; s3a saves a request, and reads only the requested ranges.
            builder.opt("fs.option.openfile.read.policy", "parquet, random")
            builder.opt("fs.option.openfile.length", str(size))
            return HadoopFile(uri, size, builder.build().get())

    def write(self, uri: str, data: bytes) -> None:
        """Write a whole file and create its directory; an existing file is replaced."""
        with translated("writing", uri):
            path = self._gateway.path(uri)
            stream = self._file_system(path).create(path, True)
            try:
                stream.write(bytearray(data))
            finally:
                stream.close()

    @cached_property
    def _configuration(self) -> JavaObject:
        configuration = hadoop_configuration(self._spark)
        for key, value in self._settings.items():
            configuration.set(key, value)
        return configuration

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
