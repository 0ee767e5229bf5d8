"""Adds up what a command does to very many files, of which its snapshot has one slice after the other."""

from collections.abc import Callable
from contextlib import closing

import pyarrow as pa

from ...core.protocol import row_tracking
from ...core.protocol.actions import AddFile
from ...core.table.bin_packing import partition_of
from ...core.txn.sliced_removal import SlicedRemoval
from ...engine.read import scan
from .command import Command
from .removal import Removal


def change_in_slices(
    command: Command, condition: scan.Condition, search: Callable[[], pa.Array], change: Callable[[], Removal]
) -> Removal:
    """Call `change` for the files that may match, or for one slice of them after the other; return the whole removal.

    `condition` and `search` are as in `Command.selections`.
    """
    slices = Slices(command)
    for last in command.selections(condition, search):
        slices.add(change(), last=last)
    return slices.total()


class Slices:
    """The removals of the slices of a command. If there are several, the local disk has their files."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self._total: Removal | None = None
        self._stored: SlicedRemoval | None = None

    def add(self, removal: Removal, *, last: bool) -> None:
        """Add the removal of a slice; `last`: no other follows. Raises StorageError."""
        if last and self._total is None:
            self._total = removal
            return
        if self._stored is None:
            snapshot = self._command.txn.snapshot
            assert snapshot is not None
            self._stored = self._command.resources.enter_context(closing(SlicedRemoval(snapshot)))
            self._total = Removal()
        assert self._total is not None
        self._store(removal, self._stored)
        self._total.extend(removal)

    def _store(self, removal: Removal, stored: SlicedRemoval) -> None:
        """Move the removed files, and those that are added again, from the lists of the removal to the disk."""
        paths = {add.path for add in removal.removed}
        again = {add.path: add for add in removal.added if add.path in paths}
        lacking: set[str] = set()
        if row_tracking.supported(self._command.txn.protocol):
            if row_tracking.suspended(self._command.txn.metadata):
                again = {path: row_tracking.without_ids(add) for path, add in again.items()}
            else:  # the commit assigns missing row ids to actions only
                lacking = {path for path, add in again.items() if _lacks_row_ids(add)}
        moved = Removal([add for add in removal.removed if add.path not in lacking])
        moved.added = [add for path, add in again.items() if path not in lacking]
        stored.put(moved.removed, moved.added)
        self._command.partitions_in_slices.update(partition_of(add.partition_values) for add in moved.added)
        removal.counts_in_bulk += moved.counts
        removal.removed = [add for add in removal.removed if add.path in lacking]
        removal.added = [add for add in removal.added if add.path not in again or add.path in lacking]

    def total(self) -> Removal:
        """The removal of all slices. Raises CorruptLogError, StorageError."""
        assert self._total is not None, "a command has a last slice"
        if self._stored is not None and self._stored.num_files:
            self._total.in_bulk = self._stored.total(self._command.log.clock.now_ms())
        return self._total


def _lacks_row_ids(add: AddFile) -> bool:
    return add.base_row_id is None or add.default_row_commit_version is None
