"""What follows a commit and can't undo it: the handle's newer snapshot, the checksum, the checkpoint."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..protocol.actions import Action
from .conflict import Winner

if TYPE_CHECKING:
    from ..deltalog import DeltaLog
    from ..table.snapshot import Snapshot

logger = logging.getLogger(__name__)


def after_commit(
    log: "DeltaLog", read: "Snapshot | None", version: int, actions: Sequence[Action], winners: Sequence[Winner]
) -> None:
    """Do what follows the commit of `actions` (`commitInfo` included) as `version`.

    `winners` are the commits between `read`, the snapshot of the transaction (`None` for a new table), and it.
    Whatever fails here is logged as a warning: the commit stands.
    """
    try:
        log.committed(read, [*((winner.version, winner.actions) for winner in winners), (version, actions)])
    except Exception:
        logger.warning("%s: after version %d was committed", log.table, version, exc_info=True)
