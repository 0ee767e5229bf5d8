"""The files of a version piece by piece, checked, for callers that read all of them but keep little."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...errors import CorruptLogError
from ..log.replay import Totals
from ..protocol.paths import crc_name

if TYPE_CHECKING:
    import pyarrow as pa

    from ...logstore.base import LogStore
    from .snapshot import Snapshot


def checked_pieces(snapshot: "Snapshot") -> "Iterator[pa.Table]":
    """`Snapshot.files` in pieces. A large checkpoint is decoded piece by piece, and its columns aren't kept.

    The checksum is compared with the files, for a large checkpoint after the last piece. Raises ChecksumMismatchError,
    and DamagedCheckpointError for a damaged file of a large checkpoint: then `Snapshot.files` reads other files.
    """
    from ..log.columns import counted

    base = snapshot.base
    if base is None or not base.is_large or base.loaded:
        yield snapshot.files
        return
    totals = Totals()
    for piece in snapshot.pieces(with_stats=False):
        totals += counted(piece)
        yield piece
    snapshot.verify(totals)


def check_base(store: "LogStore", log_path: str, snapshot: "Snapshot") -> None:
    """Compare the checkpoint that a version is read from with the checksum of the checkpoint's version.

    A version that was committed on top of a wrong checkpoint may have a checksum that was computed from it, and so
    agrees. Nothing is compared if there is no checksum that can be read. Raises ChecksumMismatchError.
    """
    from ..log import checksum
    from ..log.replay import CommitOverlay
    from .snapshot import Snapshot

    base = snapshot.base
    if base is None or not base.in_log or base.version == snapshot.version:
        return
    try:
        told = checksum.parse(store.read(f"{log_path}/{crc_name(base.version)}"))
    except (FileNotFoundError, CorruptLogError):
        return
    alone = Snapshot(
        snapshot.table,
        base.version,
        base.header,
        CommitOverlay(snapshot.table),
        base,
        timestamp=lambda _: 0,
        checksum=lambda: told,
        fatal=True,
    )
    for _piece in checked_pieces(alone):
        pass
