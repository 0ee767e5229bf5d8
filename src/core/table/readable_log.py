"""The part of a table's log handle that reading uses."""

from typing import TYPE_CHECKING, Protocol

from ..log.reader import LogReader

if TYPE_CHECKING:
    from .snapshot import Snapshot


class ReadableLog(Protocol):
    """The interface of `DeltaLog` for modules that read a log and that it imports."""

    @property
    def table(self) -> str:
        """The canonical root URI of the table."""

    @property
    def reader(self) -> LogReader:
        """Reads the files of the log."""

    def snapshot(self, version: int | None = None, timestamp: int | None = None) -> "Snapshot":
        """The newest version, or the version with a number, or the newest version at a time in milliseconds."""

    def version_at(self, timestamp_ms: int, *, can_return_last: bool = False, can_return_first: bool = False) -> int:
        """The version that was the newest at a time in milliseconds."""
