"""The place of a write's files: what every route of a write offers."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from .job import DataFile, Job

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


class Placement(Protocol):
    """The place of one write's files, from the first byte until a commit names them.

    Names are relative to the table, not encoded, and those that they have in the end.
    """

    prefix: str
    """What the names of this write's files begin with: nothing, or a directory with its slash."""

    def write(self, df: "DataFrame", job: Job) -> list[DataFile]:
        """Have Spark write the rows of `df`."""

    def save(self, name: str, make: "Callable[[pa.NativeFile], None]") -> tuple[int, int]:
        """Write one file, with what `make` puts into the stream; its size in bytes and time in milliseconds."""

    def publish(self, names: Sequence[str], *, durable: bool) -> None:
        """Give the files their place and remove all else that the write has made; on an error none is left.

        With `durable` they are on disk when this returns, where that is this process's to see to.
        """

    def clear(self) -> None:
        """Remove what the write has made and not published. To be called in the end, whatever became of it."""

    def remove(self, names: Sequence[str]) -> None:
        """Delete published files; what isn't there is fine."""
