"""What a command takes out of a table, and what becomes of the rows that stay."""

import json
import re
from dataclasses import dataclass, field

from ...core.protocol.actions import Action, AddCDCFile, AddFile

_COUNT_FIRST = re.compile(r'\{"numRecords":(\d+)[,}]')


@dataclass
class Removal:
    """Files that go, and files with the rows that stay: new ones, or the same with new deletion vectors.

    `changes` tell the deleted rows to the change data feed, where `removed` and `added` don't. `numbers` are the rows
    of `snapshot.files` that `removed` are, where somebody needs them. `deleted_rows` is `None` where nobody counted.
    `by_vectors`: rows went by deletion vectors.
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

    @property
    def written(self) -> list[AddFile]:
        """Those of `added` that are new files."""
        before = {add.path for add in self.removed}
        return [add for add in self.added if add.path not in before]

    @property
    def gone(self) -> list[AddFile]:
        """Those of `removed` of which nothing stays in its place."""
        marked = {add.path for add in self.added}
        return [add for add in self.removed if add.path not in marked]

    def actions(self, deletion_timestamp: int) -> list[Action]:
        """All of it; `deletion_timestamp` is in milliseconds."""
        return [*(add.remove(deletion_timestamp) for add in self.removed), *self.added, *self.changes]

    def vector_metrics(self) -> dict[str, int]:
        """How many deletion vectors came, went and were replaced, by Delta's names; what was replaced came and went."""
        gone = {add.path for add in self.gone}
        marked = [add for add in self.removed if add.path not in gone]
        updated = sum(add.deletion_vector is not None for add in marked)
        return {
            "numDeletionVectorsAdded": len(marked),
            "numDeletionVectorsRemoved": sum(add.deletion_vector is not None for add in self.removed),
            "numDeletionVectorsUpdated": updated,
        }


def num_records(add: AddFile) -> int | None:
    """How many rows a file has by its statistics, those that its deletion vector takes left out; None: unknown."""
    physical = physical_records(add)
    return None if physical is None else physical - num_deleted(add)


def num_deleted(add: AddFile) -> int:
    """How many rows of a file its deletion vector takes."""
    return 0 if add.deletion_vector is None else add.deletion_vector.cardinality


def physical_records(add: AddFile) -> int | None:
    """How many rows lie in a file by its statistics; None: unknown."""
    if add.stats is None:
        return None
    if (match := _COUNT_FIRST.match(add.stats)) is not None:
        return int(match[1])
    try:
        count = json.loads(add.stats).get("numRecords")
    except (ValueError, AttributeError):
        return None
    return count if isinstance(count, int) else None
