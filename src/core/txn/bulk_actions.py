"""The file actions of a commit that are too many for memory: each reading of them gives the same, piece by piece."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from ..iceberg import enabled as iceberg_enabled
from ..protocol.actions import Action, Metadata
from ..table import manifest

if TYPE_CHECKING:
    from ..table.snapshot import Snapshot

_BYTES = 32 << 20
"""If the checkpoint has more bytes, its files are read in pieces: an action takes kilobytes in memory."""
LINES = 1 << 13
"""The most lines of a commit in memory at a time."""


class BulkActions(Protocol):
    """What a commit does to all files of a large table: it removes them, or adds them to a new table."""

    @property
    def num_files(self) -> int:
        """The number of files."""

    @property
    def removes(self) -> bool:
        """Whether each file of the version that the transaction read is removed; else files are added."""

    @property
    def data_change(self) -> bool:
        """Whether the actions change data."""

    @property
    def more_actions(self) -> tuple[Action, ...]:
        """Actions that the commit needs beside those of the files."""

    def lines(self) -> Iterator[bytes]:
        """The lines of the commit, in pieces; the same bytes at each call."""

    def after(self, commits: Sequence[Sequence[Action]], version: int, time_ms: int) -> "Snapshot":
        """The version `version`, for its checkpoint.

        `commits` are the actions of the commits since the version that was read, the last of them this one's own
        without those of the files; `time_ms` is its time.
        """


def is_large(snapshot: "Snapshot", *metadatas: Metadata) -> bool:
    """Whether commands on all files of a version work in pieces.

    Not for tables with Iceberg's metadata or manifests (`metadatas`): the steps after the commit need each file.
    """
    base = snapshot.base
    if base is None or not base.files or base.size_in_bytes <= _BYTES:
        return False
    return not any(iceberg_enabled.is_enabled(one) or manifest.enabled(one) for one in metadatas)
