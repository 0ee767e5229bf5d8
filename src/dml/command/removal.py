"""The files that a command removes or rewrites, and the counts of the affected rows."""

import json
import re
from dataclasses import dataclass, field

from ...core.protocol.actions import Action, AddCDCFile, AddFile
from ...core.txn.bulk_removal import BulkRemoval

_COUNT_FIRST = re.compile(r'\{"numRecords":(\d+)[,}]')


@dataclass
class Removal:
    """The files that a command removes, and the files with the remaining rows.

    `removed`: the files to remove.
    `added`: the files with the remaining rows: new files, or the removed ones with new deletion vectors.
    `changes`: change data files with the deleted rows, if `removed` and `added` don't imply them.
    `numbers`: the indexes of `removed` in `snapshot.files`; empty unless the caller needs them.
    `deleted_rows`: the number of deleted rows; None if they were not counted.
    `by_vectors`: whether deletion vectors mark the deleted rows.
    """

    removed: list[AddFile] = field(default_factory=list)
    added: list[AddFile] = field(default_factory=list)
    changes: list[AddCDCFile] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    deleted_rows: int | None = 0
    copied_rows: int = 0
    scan_ms: int = 0
    rewrite_ms: int = 0
    by_vectors: bool = False
    whole: BulkRemoval | None = None
    """All files of a large table, or very many of some partitions, which are then not in `removed`."""

    @property
    def num_removed(self) -> int:
        """The number of files that the commit removes."""
        return len(self.removed) if self.whole is None else self.whole.num_files

    @property
    def num_removed_files(self) -> int:
        """The number of `removed_files`."""
        return len(self.removed_files) if self.whole is None else self.whole.num_files

    @property
    def removed_bytes(self) -> int:
        """The bytes of `removed_files`."""
        return sum(add.size for add in self.removed_files) if self.whole is None else self.whole.size_in_bytes

    @property
    def written(self) -> list[AddFile]:
        """The files in `added` that are new, not re-added with a new deletion vector."""
        before = {add.path for add in self.removed}
        return [add for add in self.added if add.path not in before]

    @property
    def removed_files(self) -> list[AddFile]:
        """The files in `removed` that are not re-added with a new deletion vector."""
        marked = {add.path for add in self.added}
        return [add for add in self.removed if add.path not in marked]

    def actions(self, deletion_timestamp: int) -> list[Action]:
        """All actions of the removal; `deletion_timestamp` is in milliseconds since the epoch."""
        return [*(add.remove(deletion_timestamp) for add in self.removed), *self.added, *self.changes]

    def vector_metrics(self) -> dict[str, int]:
        """Counts of deletion vectors, by Delta's names; an updated one also counts as added and as removed."""
        removed_paths = {add.path for add in self.removed_files}
        marked = [add for add in self.removed if add.path not in removed_paths]
        updated = sum(add.deletion_vector is not None for add in marked)
        return {
            "numDeletionVectorsAdded": len(marked),
            "numDeletionVectorsRemoved": sum(add.deletion_vector is not None for add in self.removed)
            + (0 if self.whole is None else self.whole.num_vectors),
            "numDeletionVectorsUpdated": updated,
        }


def num_records(add: AddFile) -> int | None:
    """The number of live rows of a file by its statistics, without rows in its deletion vector; None if unknown."""
    physical = physical_records(add)
    return None if physical is None else physical - num_deleted(add)


def num_deleted(add: AddFile) -> int:
    """The number of rows in the deletion vector of a file."""
    return 0 if add.deletion_vector is None else add.deletion_vector.cardinality


def physical_records(add: AddFile) -> int | None:
    """The number of physical rows of a file by its statistics, deleted ones included; None if unknown."""
    if add.stats is None:
        return None
    if (match := _COUNT_FIRST.match(add.stats)) is not None:
        return int(match[1])
    try:
        count = json.loads(add.stats).get("numRecords")
    except (ValueError, AttributeError):
        return None
    return count if isinstance(count, int) else None
