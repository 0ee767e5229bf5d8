"""Decides which small files OPTIMIZE combines into larger ones; pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..protocol.iceberg_compat import TAG

if TYPE_CHECKING:
    import pyarrow as pa

    from .snapshot import Snapshot

Partition = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Bin:
    """Files of one partition, by their index in `snapshot.files`, to rewrite together. `size` is in bytes."""

    partition: Partition
    files: tuple[int, ...]
    size: int


def packed(
    files: Iterable[tuple[Partition, int, int]], largest: int | None, *, alone: bool, in_order: bool = False
) -> list[Bin]:
    """Bins of the files (partition, index, size in bytes); no bin exceeds `largest` bytes unless a single file does.

    The smallest files come first, unless `in_order` keeps the given order. A bin with a single file is left out,
    because rewriting it changes nothing, unless `alone`.
    """
    by_partition: dict[Partition, list[tuple[int, int]]] = {}
    for partition, row, size in files:
        by_partition.setdefault(partition, []).append((row, size))
    bins: list[Bin] = []
    for partition, members in by_partition.items():
        ordered = members if in_order else sorted(members, key=lambda member: member[1])
        for group in _groups(ordered, largest):
            if alone or len(group) > 1:
                bins.append(Bin(partition, tuple(row for row, _ in group), sum(size for _, size in group)))
    return bins


def _groups(members: Sequence[tuple[int, int]], largest: int | None) -> list[list[tuple[int, int]]]:
    groups: list[list[tuple[int, int]]] = []
    total = 0
    for member in members:
        if not groups or (largest is not None and total + member[1] > largest):
            groups.append([])
            total = 0
        groups[-1].append(member)
        total += member[1]
    return groups


def batches(bins: Sequence[Bin], size: int | None) -> list[list[Bin]]:
    """Group bins into commits: every batch except the last has at least `size` bytes; `None`: one batch."""
    if size is None:
        return [list(bins)] if bins else []
    groups: list[list[Bin]] = []
    total = size
    for bin_ in bins:
        if total >= size:
            groups.append([])
            total = 0
        groups[-1].append(bin_)
        total += bin_.size
    return groups


def worth_compacting(snapshot: "Snapshot", rows: "pa.Array", *, smallest: int, deleted_ratio: float) -> "pa.Array":
    """The files among `rows` that are smaller than `smallest` bytes, or of which a larger share of rows is deleted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    files = snapshot.files.take(rows)
    chosen = pc.less(files.column("size"), smallest)
    deleted = pc.struct_field(files.column("deletionVector"), "cardinality")
    if deleted.null_count < len(deleted):
        records = pc.cast(snapshot.num_records().take(rows), pa.float64())
        share = pc.divide(pc.cast(deleted, pa.float64()), records)
        # A file with a deletion vector but an unknown number of rows is rewritten too.
        many = pc.coalesce(pc.greater(share, deleted_ratio), pc.is_valid(deleted))
        chosen = pc.or_(chosen, many)
    return rows.filter(chosen)


RewriteKind: TypeAlias = Literal["all", "small or marked", "marked", "without Iceberg tag"]


@dataclass(frozen=True, slots=True)
class RewriteCandidates:
    """Selects the files that OPTIMIZE may rewrite, where it can't have all files: a superset of what it rewrites.

    A file is marked if it has a deletion vector, and small below `smallest` bytes. `partitions`, if given, are the only
    ones.
    """

    kind: RewriteKind
    smallest: int
    partitions: frozenset[Partition] | None = None

    def __call__(self, files: "pa.Table") -> "tuple[pa.Table, int]":
        """The selected rows of `Snapshot.files`, and the number of rows before."""
        import pyarrow as pa
        import pyarrow.compute as pc

        chosen = files
        if self.kind == "without Iceberg tag":
            chosen = files.filter(pc.is_null(pc.map_lookup(files.column("tags"), TAG, "last")))
        elif self.kind != "all":
            selected = pc.is_valid(files.column("deletionVector"))
            if self.kind == "small or marked":
                selected = pc.or_(selected, pc.less(files.column("size"), self.smallest))
            chosen = files.filter(selected)
        if self.partitions is not None:
            partitions = map(partition_of, chosen.column("partitionValues").to_pylist())
            chosen = chosen.filter(pa.array([one in self.partitions for one in partitions], pa.bool_()))
        return chosen, files.num_rows


def partition_of(values: Mapping[str, str | None] | Sequence[tuple[str, str | None]]) -> Partition:
    """Partition values as a dictionary key."""
    return tuple(sorted(values.items() if isinstance(values, Mapping) else values))
