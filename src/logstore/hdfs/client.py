"""What `HDFSLogStore` asks of a client of HDFS: Hadoop's own in Spark's JVM, or hdfs-native without one."""

from typing import NamedTuple, Protocol


class HdfsEntry(NamedTuple):
    """A file in a directory: `name` with nothing escaped, `size` in bytes, by the NameNode's clock `modified_ms`."""

    name: str
    size: int
    modified_ms: int


class HdfsClient(Protocol):
    """What the store asks of a client. Paths are canonical URIs.

    Every call ends within a bounded time, and fails with FileNotFoundError, FileExistsError or a `TablelogError` that
    says what the service said. What a client repeats by itself is up to it.
    """

    def default_file_system(self) -> str:
        """`fs.defaultFS` as the client has it; empty where it is not set."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory."""

    def read(self, path: str) -> bytes:
        """All of a file, as of now."""

    def entries(self, directory: str) -> list[HdfsEntry]:
        """The files in a directory as of now, hidden ones too, without those in directories below."""

    def write(self, path: str, data: bytes) -> None:
        """Write the whole file `path`, which nobody else writes, with its parents; closed and synced on return."""

    def rename(self, source: str, target: str, *, overwrite: bool) -> None:
        """Rename a file, in one step; FileExistsError where `target` is there and mustn't be replaced."""

    def delete(self, path: str) -> bool:
        """Remove a file; whether it was there."""
