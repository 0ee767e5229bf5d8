"""The handle on a table's log, as far as reading asks for it."""

from typing import TYPE_CHECKING, Protocol

from ..log.reader import LogReader

if TYPE_CHECKING:
    from .snapshot import Snapshot


class ReadableLog(Protocol):
    """What `DeltaLog` gives to those that read a log and are below it."""

    @property
    def table(self) -> str:
        """The canonical root URI of the table."""

    @property
    def reader(self) -> LogReader:
        """The requests that reading the log makes."""

    def snapshot(self, version: int | None = None, timestamp: int | None = None) -> "Snapshot":
        """The newest version, or the one of a number or a time in milliseconds."""

    def version_at(self, timestamp_ms: int, *, can_return_last: bool = False, can_return_first: bool = False) -> int:
        """The version that was the newest at a time in milliseconds."""
