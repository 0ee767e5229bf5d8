"""The part of a table's log handle that commits and the steps after them use."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ...clock import Clock
from ...logstore.base import FileStatus, LogStore
from ..protocol.actions import Action
from ..table.readable_log import ReadableLog

if TYPE_CHECKING:
    from ..log.last_checkpoint import LastCheckpoint
    from ..log_maintenance.checkpoint_writer import SidecarWriter
    from ..table.snapshot import Snapshot


class WritableLog(ReadableLog, Protocol):
    """The interface that `DeltaLog` offers to a transaction."""

    @property
    def log_path(self) -> str:
        """The URI of `_delta_log`."""

    @property
    def store(self) -> LogStore:
        """The store that the log is on."""

    @property
    def clock(self) -> Clock:
        """The clock of the handle."""

    @property
    def conf(self) -> Mapping[str, str]:
        """The configuration that the handle was created with."""

    def committed(self, read: "Snapshot | None", commits: Iterable[tuple[int, Sequence[Action]]]) -> "Snapshot":
        """Add commits that followed `read` to the handle, with no request; return the snapshot of the last one."""

    def listed_commit(self, version: int) -> FileStatus | None:
        """The file of the newest commit as it was listed, without a request; None if it isn't known or the newest."""

    def forget(self) -> None:
        """Read the log again at the next request for the newest version."""

    def write_checkpoint(
        self,
        snapshot: "Snapshot",
        sidecar_writer: "SidecarWriter | None" = None,
        *,
        part_size: int | None = None,
    ) -> "LastCheckpoint":
        """Write the checkpoint of a version, and update `_last_checkpoint`."""

    def clean_up_after(self, newest: "Snapshot") -> None:
        """Remove expired files of the log, once a day."""

    def compact_after(self, newest: "Snapshot") -> None:
        """Compact the commits up to the newest version if compaction is due."""
