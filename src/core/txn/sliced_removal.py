"""Collects what a command does to very many files, slice by slice, on the local disk, and makes one removal of it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from ...errors import CorruptLogError
from ..log.checkpoint_file import DamagedCheckpointError
from ..log.columns import DELETION_VECTOR, FILE_SCHEMA, table_of
from ..log_maintenance.compared_files import RowFlags, flags_of
from ..log_maintenance.table_buckets import TableBuckets
from ..protocol.actions import AddFile
from .bulk_removal import BulkRemoval, FilesAddedAgain

if TYPE_CHECKING:
    from ..table.snapshot import Snapshot

_USE = "the files that a command changes are kept"
_REMOVED, _ADDED = range(2)
_KEYS = pa.schema([("path", pa.string()), ("deletionVector", DELETION_VECTOR), ("size", pa.int64())])
_ADDS = FILE_SCHEMA.append(pa.field("stats", pa.string()))


class SlicedRemoval:
    """The removals of the slices of a command that reads `snapshot`.

    In memory is one byte for each file of the version, at the end. `num_files` is the number of removed files.
    """

    def __init__(self, snapshot: "Snapshot") -> None:
        self._snapshot = snapshot
        self._stored = TableBuckets(2, f"{snapshot.table}: {_USE}")
        self.num_files = self._size_in_bytes = self._num_vectors = self._num_added = 0

    def put(self, removed: Sequence[AddFile], added: Sequence[AddFile]) -> None:
        """Add a slice: the files that it removes, and those of them that it adds again with a new deletion vector.

        Raises StorageError.
        """
        self.num_files += len(removed)
        self._size_in_bytes += sum(file.size for file in removed)
        self._num_vectors += sum(file.deletion_vector is not None for file in removed)
        self._num_added += len(added)
        self._stored.put(_REMOVED, table_of(removed, _KEYS))
        if added:
            self._stored.put(_ADDED, table_of(added, _ADDS))

    def total(self, deletion_timestamp: int) -> BulkRemoval:
        """The removal of all slices; it needs this object until its commit has ended.

        Raises CorruptLogError if the version has another number of these files; StorageError.
        """
        try:
            flags = self._flags()
        except DamagedCheckpointError:
            flags = self._flags()  # now the version is read from other files of the log
        if flags.count != self.num_files:
            raise CorruptLogError(
                f"{self._snapshot.table}: a command changes {self.num_files} files of version "
                f"{self._snapshot.version}, but this version has {flags.count} files with their names: its checkpoint "
                "has a file twice; nothing was committed",
                table=self._snapshot.table,
                version=self._snapshot.version,
            )
        added = FilesAddedAgain(self._num_added, lambda: self._stored.tables(_ADDED)) if self._num_added else None
        return BulkRemoval(
            self._snapshot,
            deletion_timestamp,
            data_change=True,
            num_files=self.num_files,
            size_in_bytes=self._size_in_bytes,
            num_vectors=self._num_vectors,
            num_records=None,
            chosen=flags,
            added=added,
        )

    def _flags(self) -> RowFlags:
        base, pieces = self._snapshot.base, self._snapshot.pieces(with_stats=False)
        size = self.num_files if base is None else base.size_in_bytes
        return flags_of(self._snapshot.table, self._stored.tables(_REMOVED), pieces, size)

    def close(self) -> None:
        """Delete the data."""
        self._stored.close()
