"""Reads a version a second time, from other files of its log, to find out which of two differing files is wrong.

The commits are authoritative. Checkpoints and log compactions are compared with the commits that still exist, and so is
a state that its version checksum contradicts (docs/decisions/0046-checksum-mismatch-is-an-error.md).
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...errors import CorruptLogError, TableNotFoundError, VersionNotFoundError
from ...logstore.base import LogStore
from ..log.checkpoint import checkpoint_alone
from ..log.checkpoint_file import ReplacedError
from ..log.replay import CommitOverlay, Header
from ..log.segment import Listing, Segment, choose
from ..protocol.actions import Action, CommitInfo
from ..protocol.paths import commit_name
from .snapshot import Snapshot

if TYPE_CHECKING:
    from ..log.checksum import VersionChecksum
    from ..log.reader import LogReader


def differences(held: Snapshot, replayed: Snapshot) -> Iterator[str]:
    """The differences between two states of a version; expired tombstones and transactions may be missing."""

    def keys(snapshot: Snapshot) -> set[tuple[str, str, str]]:
        names = ("path", "deletionVector", "size")
        columns = (column.to_pylist() for column in snapshot.select(names).columns)
        return {(path, repr(vector), repr(size)) for path, vector, size in zip(*columns, strict=True)}

    ours, theirs = keys(held), keys(replayed)
    if ours != theirs:
        example = min(ours ^ theirs)[0]
        yield (
            f"it has {len(ours - theirs)} files that they don't have, "
            f"and lacks {len(theirs - ours)} (such as {example})"
        )
    if held.metadata != replayed.metadata:
        yield "its metadata differs"
    if held.protocol != replayed.protocol:
        yield "its protocol differs"
    if dict(held.domain_metadata) != dict(replayed.domain_metadata):
        yield "its metadata domains differ"
    lost = replayed.transactions.keys() - held.transactions.keys()
    if replayed.properties.set_transaction_retention_ms is None and lost:
        yield f"it lacks the transactions of {', '.join(sorted(lost))}"
    if any(replayed.transactions.get(app) != txn for app, txn in held.transactions.items()):
        yield "its transactions differ"


def doubt(
    store: LogStore,
    log_path: str,
    reader: "LogReader",
    snapshot: Snapshot,
    checksum: "VersionChecksum",
) -> str | None:
    """The reason why a state that its checksum contradicts may be wrong; `None`: the commits confirm the state.

    Reads the log from its start, or from a checkpoint before the one that the state was read from.
    """
    version = snapshot.version
    try:
        segment = _other(reader.list(0), snapshot)
        if segment is None:
            return "It can't be verified, because the commits before its checkpoint were removed"
        commits = [reader.commit(entry.version) for entry in segment.entries]
        token = next((action.txn_id for action in commits[-1] if isinstance(action, CommitInfo)), None)
        if checksum.txn_id is not None and token is not None and token != checksum.txn_id:
            return f"The checksum belongs to another commit, so {commit_name(version)} was replaced since then"
        for difference in differences(snapshot, _replayed(store, log_path, snapshot, segment, commits)):
            return f"The state that was read doesn't match the commits either: {difference}"
    except (CorruptLogError, ReplacedError, VersionNotFoundError, TableNotFoundError) as error:
        return f"The other files of the version can't be read ({error})"
    return None


def _other(listing: Listing, snapshot: Snapshot) -> Segment | None:
    for oldest in (0, snapshot.base_version):
        newer = [
            name for checkpoint in listing.checkpoints if checkpoint.version >= oldest for name in checkpoint.names
        ]
        try:
            segment = choose(listing, snapshot.table, version=snapshot.version, unusable=newer, use_compacted=False)
        except CorruptLogError:
            continue
        if segment is not None and segment.entries:
            return segment
    return None


def _replayed(
    store: LogStore, log_path: str, snapshot: Snapshot, segment: Segment, commits: Sequence[Sequence[Action]]
) -> Snapshot:
    base = None
    if segment.checkpoint is not None:
        base = checkpoint_alone(store, log_path, snapshot.table, segment.checkpoint)
    header, tail = base.header if base else Header(), CommitOverlay(snapshot.table)
    for actions in commits:
        header, tail = header.after(actions), tail.extend(actions)
    return Snapshot(snapshot.table, snapshot.version, header, tail, base, timestamp=lambda _: 0)
