"""The files of a version piece by piece, checked, for callers that read all of them but keep little."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..log.replay import Totals

if TYPE_CHECKING:
    import pyarrow as pa

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
