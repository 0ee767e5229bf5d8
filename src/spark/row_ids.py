"""The option `readRowIds` of batches and streams: row IDs and row commit versions as columns."""

from ..core.protocol import row_tracking
from ..core.table.snapshot import Snapshot
from ..errors import InvalidArgumentError

ROW_IDS = ("_row_id", "_row_commit_version")
"""The names of the columns; in Delta they are fields of `_metadata`."""


def check_enabled(snapshot: Snapshot) -> None:
    """Raise InvalidArgumentError if the table has no row tracking in this version."""
    if not row_tracking.enabled(snapshot.protocol, snapshot.metadata):
        raise InvalidArgumentError(
            f"readRowIds: row tracking is not enabled in version {snapshot.version} of {snapshot.table}. Set the table "
            f"property {row_tracking.ENABLED} to true first."
        )


def no_change_feed() -> InvalidArgumentError:
    """The error for `readRowIds` of a change data feed."""
    return InvalidArgumentError("readRowIds can't be used with a change data feed: change data files have no row IDs.")
