"""The files that a command removes or rewrites, and the counts of the affected rows."""

import json
import re
from dataclasses import dataclass, field, fields, replace

from ...core.protocol.actions import Action, AddCDCFile, AddFile
from ...core.txn.bulk_removal import BulkRemoval

_COUNT_FIRST = re.compile(r'\{"numRecords":(\d+)[,}]')


@dataclass(frozen=True, slots=True)
class RemovalCounts:
    """Counts of removed files.

    `removed`: all of them, also those that are added again with a new deletion vector.
    `files`, `bytes`: those that aren't added again.
    `marked`, `marked_bytes`, `marked_rows`: those that are, and their remaining rows by their statistics.
    `vectors_updated`: those of the marked files that had a deletion vector before.
    `vectors_removed`: the files in `removed` that had one.
    """

    removed: int = 0
    files: int = 0
    bytes: int = 0
    marked: int = 0
    marked_bytes: int = 0
    marked_rows: int = 0
    vectors_updated: int = 0
    vectors_removed: int = 0

    def __add__(self, other: "RemovalCounts") -> "RemovalCounts":
        return RemovalCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass
class Removal:
    """The files that a command removes, and the files with the remaining rows.

    `removed`: the files to remove.
    `added`: the files with the remaining rows: new files, or the removed ones with new deletion vectors.
    `changes`: change data files with the deleted rows, if `removed` and `added` don't imply them.
    `numbers`: the indexes of `removed` in `snapshot.files`; empty unless the caller needs them.
    `deleted_rows`: the number of deleted rows; None if they were not counted.
    `by_vectors`: whether deletion vectors mark the deleted rows.
    `in_bulk`: the removal of the files that are too many for `removed`; then their counts are in `counts_in_bulk`.
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
    in_bulk: BulkRemoval | None = None
    counts_in_bulk: RemovalCounts = RemovalCounts()

    @property
    def counts(self) -> RemovalCounts:
        """The counts of the removed files."""
        paths = {add.path for add in self.removed}
        marked = [add for add in self.added if add.path in paths]
        again = {add.path for add in marked}
        gone = [add for add in self.removed if add.path not in again]
        had_vector = [add.path for add in self.removed if add.deletion_vector is not None]
        return self.counts_in_bulk + RemovalCounts(
            removed=len(self.removed),
            files=len(gone),
            bytes=sum(add.size for add in gone),
            marked=len(marked),
            marked_bytes=sum(add.size for add in marked),
            marked_rows=sum(num_records(add) or 0 for add in marked),
            vectors_updated=sum(path in again for path in had_vector),
            vectors_removed=len(had_vector),
        )

    @property
    def written(self) -> list[AddFile]:
        """The files in `added` that are new, not re-added with a new deletion vector."""
        before = {add.path for add in self.removed}
        return [add for add in self.added if add.path not in before]

    def extend(self, other: "Removal") -> None:
        """Add what another removal does, which isn't in bulk; the indexes in `numbers` are left out."""
        self.removed += other.removed
        self.added += other.added
        self.changes += other.changes
        known = self.deleted_rows is not None and other.deleted_rows is not None
        self.deleted_rows = (self.deleted_rows or 0) + (other.deleted_rows or 0) if known else None
        self.copied_rows += other.copied_rows
        self.scan_ms += other.scan_ms
        self.rewrite_ms += other.rewrite_ms
        self.by_vectors = self.by_vectors or other.by_vectors
        self.counts_in_bulk += other.counts_in_bulk

    def actions(self, deletion_timestamp: int) -> list[Action]:
        """All actions of the removal; `deletion_timestamp` is in milliseconds since the epoch."""
        return [*(add.remove(deletion_timestamp) for add in self.removed), *self.added, *self.changes]

    def bulk(self, deletion_timestamp: int) -> BulkRemoval | None:
        """What the commit does beside `actions`: VACUUM counts from the time of the commit."""
        return None if self.in_bulk is None else replace(self.in_bulk, deletion_timestamp=deletion_timestamp)

    def vector_metrics(self) -> dict[str, int]:
        """Counts of deletion vectors, by Delta's names; an updated one also counts as added and as removed."""
        counts = self.counts
        return {
            "numDeletionVectorsAdded": counts.marked,
            "numDeletionVectorsRemoved": counts.vectors_removed,
            "numDeletionVectorsUpdated": counts.vectors_updated,
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
