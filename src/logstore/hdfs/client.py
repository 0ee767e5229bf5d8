"""The interface of an HDFS client for `HDFSLogStore`: Hadoop's own in Spark's JVM, or hdfs-native without a JVM."""

from collections.abc import Generator
from typing import NamedTuple, Protocol

from ..common.spool import Content


class HdfsEntry(NamedTuple):
    """A file in a directory: unescaped `name`, `size` in bytes, `modified_ms` by the NameNode's clock."""

    name: str
    size: int
    modified_ms: int


class HdfsClient(Protocol):
    """The operations that the store needs. Paths are canonical URIs.

    Every call ends within a bounded time, `write` within one for each piece of a large file. Its errors are
    FileNotFoundError, FileExistsError or a `TablelogError` with the service's message. A client may repeat requests
    itself.
    """

    def default_file_system(self) -> str:
        """The client's `fs.defaultFS`; empty if it isn't set."""

    def exists(self, path: str) -> bool:
        """Whether the file or directory exists."""

    def read(self, path: str) -> bytes:
        """The whole current content of a file."""

    def pieces(self, path: str) -> Generator[bytes, None, None]:
        """The same in pieces; the first request is made when the first one is asked for."""

    def entries(self, directory: str) -> list[HdfsEntry]:
        """The current files in a directory, including hidden ones, without subdirectories."""

    def write(self, path: str, content: Content) -> None:
        """Write the whole file `path`, which no other writer uses, and its parents; closed and synced on return."""

    def rename(self, source: str, target: str, *, overwrite: bool) -> None:
        """Rename a file atomically; FileExistsError if `target` exists and `overwrite` is false."""

    def delete(self, path: str) -> bool:
        """Remove a file; returns whether it existed."""
