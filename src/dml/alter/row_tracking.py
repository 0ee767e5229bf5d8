"""Adds row IDs to the files of an existing table, and removes them (PROTOCOL.md, "Row Tracking")."""

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
"""Limits the size of a commit file, which readers load at once."""


def backfill(command: Command) -> bool:
    """Assign row IDs to all files that have none, in separate commits. Returns whether there was any such file.

    The feature is added first, so that concurrent writers assign row IDs too (PROTOCOL.md, "Row Tracking").
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
    versions = {key: value for key, value in listed.items() if value is not None}
    return Operation("UPGRADE PROTOCOL", {"newProtocol": versions})


def unbackfill(command: Command) -> bool:
    """Remove the row IDs from all files, after the table suspended row tracking. Returns whether any file had one."""

    def bare(add: AddFile) -> AddFile:
        return replace(add, base_row_id=None, default_row_commit_version=None)

    return _restated(command, row_tracking.UNBACKFILL, with_ids, bare)


def with_ids(snapshot: Snapshot) -> pa.Array:
    """Indexes in `snapshot.files` of the files with row IDs."""
    files = snapshot.files
    bear = pc.or_(pc.is_valid(files.column("baseRowId")), pc.is_valid(files.column("defaultRowCommitVersion")))
    return pc.indices_nonzero(bear)


def _without_ids(snapshot: Snapshot) -> pa.Array:
    return pc.indices_nonzero(pc.is_null(snapshot.files.column("baseRowId")))


def _restated(
    command: Command, name: str, select: Callable[[Snapshot], pa.Array], change: Callable[[AddFile], AddFile]
) -> bool:
    """Re-add the files that `select` returns, modified by `change`, in batches until no file is left."""
    batch = 0
    while True:
        txn = command.log.transaction()
        assert txn.snapshot is not None
        rows = select(txn.snapshot)
        if len(rows) == 0:
            return batch > 0
        files = txn.snapshot.add_files(rows[:_FILES_PER_COMMIT])
        actions = [replace(change(add), data_change=False) for add in files]
        operation = Operation(name, {"batchId": str(batch)}, changes_data=False, restates_files=True)
        txn.commit(actions, operation, user_metadata=command.options.user_metadata)
        batch += 1
