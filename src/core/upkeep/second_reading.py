"""A version read a second time, by other files of its log than the first time: which of two that differ is wrong?

The commits are the truth. What a checkpoint or a log compaction says is held against them as far as they are there, and
so is a state that its version checksum contradicts (docs/decisions/0046-a-checksum-that-contradicts-the-log.md).
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...errors import CorruptLogError, TableNotFoundError, VersionNotFoundError
from ...logstore.base import LogStore
from ..log.checkpoint_file import ReplacedError
from ..log.replay import CommitOverlay, Header
from ..log.segment import Listing, Segment, choose
from ..protocol.actions import Action, CommitInfo
from ..protocol.paths import commit_name

if TYPE_CHECKING:
    from ..log.checksum import VersionChecksum
    from ..log.reader import LogReader
    from ..table.snapshot import Snapshot


def differences(held: "Snapshot", replayed: "Snapshot") -> Iterator[str]:
    """What of the state of a version differs; expired tombstones and transactions are allowed to be gone."""

    def keys(snapshot: "Snapshot") -> set[tuple[str, str, str]]:
        names = ("path", "deletionVector", "size")
        columns = (column.to_pylist() for column in snapshot.select(names).columns)
        return {(path, repr(vector), repr(size)) for path, vector, size in zip(*columns, strict=True)}

    ours, theirs = keys(held), keys(replayed)
    if ours != theirs:
        one = min(ours ^ theirs)[0]
        yield f"it has {len(ours - theirs)} files that they haven't, and lacks {len(theirs - ours)} (such as {one})"
    if held.metadata != replayed.metadata:
        yield "its metadata is another"
    if held.protocol != replayed.protocol:
        yield "its protocol is another"
    if dict(held.domain_metadata) != dict(replayed.domain_metadata):
        yield "its metadata domains are others"
    lost = replayed.transactions.keys() - held.transactions.keys()
    if replayed.properties.set_transaction_retention_ms is None and lost:
        yield f"it lacks the transactions of {', '.join(sorted(lost))}"
    if any(replayed.transactions.get(app) != txn for app, txn in held.transactions.items()):
        yield "its transactions are others"


def doubt(
    store: LogStore,
    log_path: str,
    reader: "LogReader",
    snapshot: "Snapshot",
    told: "VersionChecksum",
) -> str | None:
    """Why a state may be wrong that its checksum contradicts; `None`: the commits say what it says.

    Reads the log from its beginning, or from a checkpoint before the one that the state was read from.
    """
    version = snapshot.version
    try:
        segment = _other(reader.list(0), snapshot)
        if segment is None:
            return "Nothing else tells what the version holds, for the commits before its checkpoint are gone"
        commits = [reader.commit(entry.version) for entry in segment.entries]
        token = next((action.txn_id for action in commits[-1] if isinstance(action, CommitInfo)), None)
        if told.txn_id is not None and token is not None and token != told.txn_id:
            return f"The checksum is of another commit, so that {commit_name(version)} was replaced since"
        for difference in differences(snapshot, _replayed(store, log_path, snapshot, segment, commits)):
            return f"What was read isn't what the commits say either: {difference}"
    except (CorruptLogError, ReplacedError, VersionNotFoundError, TableNotFoundError) as error:
        return f"What else tells of the version can't be read ({error})"
    return None


def _other(listing: Listing, snapshot: "Snapshot") -> Segment | None:
    for oldest in (0, snapshot.base_version):
        newer = [name for found in listing.checkpoints if found.version >= oldest for name in found.names]
        try:
            segment = choose(listing, snapshot.table, version=snapshot.version, unusable=newer, use_compacted=False)
        except CorruptLogError:
            continue
        if segment is not None and segment.entries:
            return segment
    return None


def _replayed(
    store: LogStore, log_path: str, snapshot: "Snapshot", segment: Segment, commits: Sequence[Sequence[Action]]
) -> "Snapshot":
    from ..table.snapshot import Snapshot
    from .cleanup import opened

    base = None
    if segment.checkpoint is not None:
        base = opened(store, log_path, snapshot.table, segment.checkpoint)
    header, tail = base.header if base else Header(), CommitOverlay(snapshot.table)
    for actions in commits:
        header, tail = header.after(actions), tail.extend(actions)
    return Snapshot(snapshot.table, snapshot.version, header, tail, base, timestamp=lambda _: 0)
