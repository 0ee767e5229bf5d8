"""The interface of the write routes: creates, publishes and deletes the files of one write."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from ..write_spec import DataFile, WriteSpec

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


class WriteRoute(Protocol):
    """The files of one write, from their creation until a commit references them.

    File names are final names relative to the table, not URL-encoded.
    """

    prefix: str
    """The common prefix of the file names: empty, or a directory with a slash at the end."""

    def write(self, df: "DataFrame", spec: WriteSpec) -> list[DataFile]:
        """Write the rows of `df` by a Spark job."""

    def save(self, name: str, make: "Callable[[pa.NativeFile], None]") -> tuple[int, int]:
        """Write one file whose content `make` writes to the stream; returns its size in bytes and its modification
        time in milliseconds since the epoch."""

    def publish(self, names: Sequence[str], *, durable: bool) -> None:
        """Move the files to their final names and delete all other files of the write; on an error, delete these too.

        With `durable`, the files are synced to disk, if this process is responsible for that.
        """

    def clear(self) -> None:
        """Delete the files that were not published. Must be called at the end, also after an error."""

    def remove(self, names: Sequence[str]) -> None:
        """Delete published files; missing files are ignored."""
