"""The result of a MERGE: its actions and its metrics."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields

from ...core.protocol.actions import Action, AddCDCFile, AddFile
from ..command.removal import Removal, num_records
from .clauses import Clause


@dataclass
class MergeOutput:
    """The result of a MERGE: its actions, and row counts by kind of change."""

    removal: Removal = field(default_factory=Removal)
    added: list[AddFile] = field(default_factory=list)
    changes: list[AddCDCFile] = field(default_factory=list)
    matched_updated: int = 0
    by_source_updated: int = 0
    matched_deleted: int = 0
    by_source_deleted: int = 0
    inserted: int = 0
    copied: int = 0

    @property
    def updated(self) -> int:
        return self.matched_updated + self.by_source_updated

    @property
    def deleted(self) -> int:
        return self.matched_deleted + self.by_source_deleted

    def count(self, number_of_rows: Callable[[int], int], clauses: Sequence[Clause]) -> None:
        """Add the rows that each clause changed, by its index among the clauses that change existing rows."""
        for number, clause in enumerate(clauses):
            kind = "matched" if clause.kind == "matched" else "by_source"
            name = f"{kind}_{'updated' if clause.action == 'update' else 'deleted'}"
            setattr(self, name, getattr(self, name) + number_of_rows(number))

    def extend(self, other: "MergeOutput") -> None:
        """Add the counts and the new files of another slice of the table; its `removal` is left out."""
        for count in fields(self):
            if count.name != "removal":
                setattr(self, count.name, getattr(self, count.name) + getattr(other, count.name))

    def actions(self, now: int) -> list[Action]:
        """All actions of the commit; `now` is in milliseconds since the epoch."""
        return [*self.removal.actions(now), *self.added, *self.changes]

    def metrics(self) -> dict[str, int | str]:
        """The operation metrics, by Delta's names (DeltaOperationMetrics)."""
        removed = self.removal.counts
        return {
            "numTargetRowsInserted": self.inserted,
            "numTargetRowsUpdated": self.updated,
            "numTargetRowsMatchedUpdated": self.matched_updated,
            "numTargetRowsNotMatchedBySourceUpdated": self.by_source_updated,
            "numTargetRowsDeleted": self.deleted,
            "numTargetRowsMatchedDeleted": self.matched_deleted,
            "numTargetRowsNotMatchedBySourceDeleted": self.by_source_deleted,
            "numTargetRowsCopied": self.copied,
            "numOutputRows": self.inserted + self.updated + self.copied,
            "numTargetFilesAdded": len(self.added),
            "numTargetFilesRemoved": removed.files,
            "numTargetBytesAdded": sum(add.size for add in self.added),
            "numTargetBytesRemoved": removed.bytes,
            "numTargetChangeFilesAdded": len(self.changes),
            "numTargetDeletionVectorsAdded": removed.marked,
            "numTargetDeletionVectorsRemoved": removed.vectors_removed,
            "numTargetDeletionVectorsUpdated": removed.vectors_updated,
        }


def unchanged_rows(removed: Sequence[AddFile], changed: int) -> int | None:
    """The number of rows in the removed files to which no clause applies, by statistics; None if unknown."""
    counts = [num_records(add) for add in removed]
    known = [count for count in counts if count is not None]
    return sum(known) - changed if len(known) == len(counts) else None
