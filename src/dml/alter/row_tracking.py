"""Row ids for files that were there before their table tracked its rows, and how they go again."""

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ...core.protocol import features, row_tracking
from ...core.protocol.actions import AddFile, Protocol
from ...core.table.snapshot import Snapshot
from ...core.txn.operation import Operation
from ..command.command import Command

_FILES_PER_COMMIT = 100_000
"""So that no commit file becomes too large to be read at once."""


def backfill(command: Command) -> bool:
    """Give row ids to all files that have none, in commits of their own; whether there was anything to do.

    The feature is added first, so that whoever writes meanwhile assigns ids too (PROTOCOL.md, "Row Tracking").
    """
    raised = not row_tracking.supported(command.snapshot.protocol)
    if raised:
        txn = command.log.transaction()
        protocol = features.protocol_of(features.supported(txn.protocol) | {row_tracking.FEATURE})
        txn.set_protocol(protocol)
        txn.commit([], _upgrade(protocol), user_metadata=command.options.user_metadata)
    return _restated(command, row_tracking.BACKFILL, _without_ids, lambda add: add) or raised


def _upgrade(protocol: Protocol) -> Operation:
    listed = {
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        "readerFeatures": None if protocol.reader_features is None else sorted(protocol.reader_features),
        "writerFeatures": None if protocol.writer_features is None else sorted(protocol.writer_features),
    }
    told = {key: value for key, value in listed.items() if value is not None}
    return Operation("UPGRADE PROTOCOL", {"newProtocol": told})


def unbackfill(command: Command) -> bool:
    """Take the row ids from all files, once the table has suspended them; whether there was anything to do."""

    def bare(add: AddFile) -> AddFile:
        return replace(add, base_row_id=None, default_row_commit_version=None)

    return _restated(command, row_tracking.UNBACKFILL, with_ids, bare)


def with_ids(snapshot: Snapshot) -> pa.Array:
    """The rows of `snapshot.files` that bear row ids."""
    files = snapshot.files
    bear = pc.or_(pc.is_valid(files.column("baseRowId")), pc.is_valid(files.column("defaultRowCommitVersion")))
    return pc.indices_nonzero(bear)


def _without_ids(snapshot: Snapshot) -> pa.Array:
    return pc.indices_nonzero(pc.is_null(snapshot.files.column("baseRowId")))


def _restated(
    command: Command, name: str, which: Callable[[Snapshot], pa.Array], change: Callable[[AddFile], AddFile]
) -> bool:
    """Commit the files that `which` finds again, as `change` makes them, until a commit takes the last of them."""
    batch = 0
    while True:
        txn = command.log.transaction()
        assert txn.snapshot is not None
        rows = which(txn.snapshot)
        if len(rows) == 0:
            return batch > 0
        files = txn.snapshot.add_files(rows[:_FILES_PER_COMMIT])
        actions = [replace(change(add), data_change=False) for add in files]
        operation = Operation(name, {"batchId": str(batch)}, changes_data=False, restates_files=True)
        txn.commit(actions, operation, user_metadata=command.options.user_metadata)
        batch += 1
