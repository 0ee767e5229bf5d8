"""The files of a version piece by piece, checked, for callers that read all of them but keep little."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from ..log.replay import Totals

if TYPE_CHECKING:
    import pyarrow as pa

    from ..log.checkpoint import CheckpointState
    from ..log.checksum import VersionChecksum
    from ..log.reader import LogReader
    from .snapshot import Snapshot

    ReadsChecksum: TypeAlias = Callable[[], VersionChecksum | None]
    Doubt: TypeAlias = Callable[[Snapshot, VersionChecksum], str | None]


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


def of_checkpoint(
    table: str, base: "CheckpointState", checksum: "ReadsChecksum | None", doubt: "Doubt | None" = None
) -> "Snapshot":
    """The version of a checkpoint, from it alone. Reading its files raises ChecksumMismatchError if it is wrong.

    With `doubt` (`second_reading.doubt`), it isn't wrong if the commits confirm it, although its checksum differs.
    """
    from ..log.replay import CommitOverlay
    from .snapshot import Snapshot

    return Snapshot(
        table,
        base.version,
        base.header,
        CommitOverlay(table),
        base,
        timestamp=lambda _: 0,
        checksum=None if checksum is None else partial(_without_time, checksum),
        fatal=True,
        doubt=doubt,
    )


def _without_time(checksum: "ReadsChecksum") -> "VersionChecksum | None":
    """The checksum without the in-commit timestamp, which only the commit has."""
    found = checksum()
    return None if found is None else replace(found, in_commit_timestamp=None)


def check_base(reader: "LogReader", snapshot: "Snapshot", doubt: "Doubt | None" = None) -> None:
    """Compare the checkpoint that a version is read from with the checksum of the checkpoint's version.

    A version that was committed on top of a wrong checkpoint may have a checksum that was computed from it, and so
    agrees. A checkpoint is compared once; not if its version has no checksum that can be read. `doubt` is that of
    `of_checkpoint`. Raises ChecksumMismatchError.
    """
    base = snapshot.base
    if base is None or base.compared or base.version == snapshot.version:
        return
    checksum = reader.checksum(base.checksum)
    if checksum is None:
        return
    for _piece in checked_pieces(of_checkpoint(snapshot.table, base, checksum, doubt)):
        pass
    base.compared = True
