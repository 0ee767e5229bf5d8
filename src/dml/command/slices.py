"""Adds up what a command does to very many files, of which its snapshot has one slice after the other."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import pyarrow as pa

from ...core.protocol import properties, row_tracking
from ...core.protocol.actions import AddFile
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
        self._tracks_rows = row_tracking.supported(command.txn.protocol)
        configuration = command.txn.metadata.configuration
        self._suspended = self._tracks_rows and bool(properties.get(configuration, "rowTrackingSuspended"))

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
        again = {add.path: self._without_row_ids(add) for add in removal.added if add.path in paths}
        # The commit assigns missing row ids to actions only.
        lacking = {path for path, add in again.items() if self._lacks_row_ids(add)}
        moved = Removal([add for add in removal.removed if add.path not in lacking])
        moved.added = [add for path, add in again.items() if path not in lacking]
        stored.put(moved.removed, moved.added)
        removal.counts_in_bulk += moved.counts
        removal.removed = [add for add in removal.removed if add.path in lacking]
        removal.added = [add for add in removal.added if add.path not in again or add.path in lacking]

    def _without_row_ids(self, add: AddFile) -> AddFile:
        """While row tracking is suspended, files have no ids."""
        return replace(add, base_row_id=None, default_row_commit_version=None) if self._suspended else add

    def _lacks_row_ids(self, add: AddFile) -> bool:
        lacking = add.base_row_id is None or add.default_row_commit_version is None
        return lacking and self._tracks_rows and not self._suspended

    def total(self) -> Removal:
        """The removal of all slices. Raises CorruptLogError, StorageError."""
        assert self._total is not None, "a command has a last slice"
        if self._stored is not None and self._stored.num_files:
            self._total.in_bulk = self._stored.total(self._command.log.clock.now_ms())
        return self._total
