"""The result of OPTIMIZE, and what its commits have in the history."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...core.protocol.actions import AddFile
from ...core.table.bin_packing import Partition
from ...engine.read.lookups import Lookup
from .optimize_layout import OptimizeLayout


@dataclass
class FileCounts:
    """The number of files, their sizes in bytes, and their deletion vectors with the number of rows in these."""

    num: int = 0
    size: int = 0
    smallest: int | None = None
    largest: int | None = None
    vectors: int = 0
    deleted_rows: int = 0

    def count(self, files: Sequence[AddFile]) -> None:
        """Add files."""
        sizes = [file.size for file in files]
        known = [size for size in (self.smallest, self.largest) if size is not None]
        vectors = [file.deletion_vector for file in files if file.deletion_vector is not None]
        self.num += len(files)
        self.size += sum(sizes)
        self.smallest, self.largest = min([*known, *sizes], default=None), max([*known, *sizes], default=None)
        self.vectors += len(vectors)
        self.deleted_rows += sum(vector.cardinality for vector in vectors)


@dataclass
class OptimizeResult:
    """The result of OPTIMIZE, over all its commits. Times are in milliseconds since the epoch."""

    table: str
    began_ms: int
    ended_ms: int = 0
    versions: list[int] = field(default_factory=list)
    considered: int = 0
    num_bins: int = 0
    partitions: set[Partition] = field(default_factory=set)
    removed: FileCounts = field(default_factory=FileCounts)
    added: FileCounts = field(default_factory=FileCounts)
    by: tuple[str, ...] = ()
    clustered: bool = False
    columns: int = 0
    lookups: dict[str, tuple[Lookup, Lookup]] = field(default_factory=dict)


def parameters_of(layout: OptimizeLayout, printed: Sequence[str], outcome: OptimizeResult) -> dict[str, object]:
    """The parameters of the operation in the history; `printed` are the conjuncts of its condition."""
    if layout.purge:
        return {"predicate": list(printed), "applyPurge": not layout.for_iceberg}
    parameters: dict[str, object] = {
        "predicate": list(printed),
        "auto": layout.auto,
        "clusterBy": list(outcome.by) if outcome.clustered else [],
        "zOrderBy": [] if outcome.clustered else list(outcome.by),
    }
    return parameters | ({"isFull": layout.full} if outcome.clustered else {})


def metrics_of(added: Sequence[AddFile], removed: Sequence[AddFile]) -> dict[str, int | str]:
    """The metrics of one commit in the history."""
    vectors = [add.deletion_vector for add in removed if add.deletion_vector is not None]
    metrics: dict[str, int | str] = {
        "numAddedFiles": len(added),
        "numRemovedFiles": len(removed),
        "numAddedBytes": sum(add.size for add in added),
        "numRemovedBytes": sum(add.size for add in removed),
        "numDeletionVectorsRemoved": len(vectors),
    }
    ordered = sorted(add.size for add in added) or [0]
    places = {"min": 0, "p25": len(ordered) // 4, "p50": len(ordered) // 2, "p75": len(ordered) * 3 // 4, "max": -1}
    return metrics | {f"{name}FileSize": ordered[place] for name, place in places.items()}
