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
    """What a commit does to the files of a large table: it removes all or some of them, and may add these again, or it
    replaces all of them by those of a version.
    """

    @property
    def every_file(self) -> bool:
        """Whether the commit depends on every file, also on those that concurrent commits add or remove."""

    @property
    def num_added(self) -> int:
        """The number of files that are added."""

    @property
    def num_removed(self) -> int:
        """The number of files that are removed."""

    @property
    def data_change(self) -> bool:
        """Whether the actions change data."""

    @property
    def unnumbered(self) -> int:
        """The number of files that stay and have no row ids, if the commit enables row tracking."""

    @property
    def more_actions(self) -> tuple[Action, ...]:
        """Actions that the commit needs beside those of the files."""

    def at(self, version: int, highest_row_id: int) -> "BulkActions":
        """The same for an attempt at a version; `highest_row_id` is the high-water mark before it, -1 for none."""

    def lines(self) -> Iterator[bytes]:
        """The lines of the commit, in pieces; the same bytes at each call."""

    def after(self, commits: Sequence[Sequence[Action]], version: int, time_ms: int) -> "Snapshot | None":
        """The version `version`, for its checkpoint; None if it must be read from the log.

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
