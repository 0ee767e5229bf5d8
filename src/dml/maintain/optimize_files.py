"""The files that OPTIMIZE rewrites, and which of them together."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ...core.log.columns import adds_of
from ...core.protocol import iceberg_compat
from ...core.table import bin_packing, clustering
from ...core.table.bin_packing import Bin, Partition
from ...engine.jvm.connection import settings
from ...engine.read import scan
from ...engine.read.large_log import PlannedFiles
from ...settings import declarations
from ..command.command import Command
from .optimize_layout import OptimizeLayout
from .optimize_result import OptimizeResult


def selected_files(
    command: Command,
    layout: OptimizeLayout,
    condition: scan.Condition | None,
    within: Collection[Partition] | None,
    outcome: OptimizeResult,
) -> Iterator[pa.Table | None]:
    """The files that may be rewritten, if the log is too large for the driver; else None, once, for all files.

    Very many files come in several tables, those of a partition in one, unless they are too many. Adds the excluded
    files that the condition includes to `considered`.
    """
    if outcome.clustered:
        planned = _of_cubes(command, layout, outcome.by)
    else:
        choice = _choice(layout, within, lays_out=bool(outcome.by))
        planned = scan.planned(command.spark, command.log, command.snapshot, condition, choice, grouped=True)
    if planned is None:
        yield None
        return
    number = planned.files.num_rows if planned.groups is None else planned.groups.num_files
    outcome.considered += planned.after_partitions - number
    if planned.groups is None:
        yield planned.files
    else:
        yield from planned.groups.by_partition(command.snapshot.mapping.physical_partition_columns)


def bins_of(
    command: Command,
    layout: OptimizeLayout,
    condition: scan.Condition | None,
    within: Collection[Partition] | None,
    outcome: OptimizeResult,
) -> list[Bin]:
    """The bins of files to rewrite, each of one partition; of a large log, those that `selected_files` gave."""
    snapshot = command.snapshot
    if condition is None:
        chosen = pa.array(range(snapshot.files.num_rows), pa.int64())
    else:
        chosen = scan.exact_partitions(command.spark, snapshot, condition)
    outcome.considered += len(chosen)
    if outcome.clustered:
        return _cubes(command, layout, outcome.by)
    if layout.for_iceberg:
        tags = pc.map_lookup(snapshot.files.take(chosen).column("tags"), iceberg_compat.TAG, "last")
        chosen = chosen.filter(pc.is_null(tags))
    elif layout.purge:
        chosen = chosen.filter(pc.is_valid(snapshot.files.take(chosen).column("deletionVector")))
    elif not outcome.by:
        chosen = bin_packing.worth_compacting(
            snapshot, chosen, smallest=layout.smallest, deleted_ratio=layout.deleted_ratio
        )
    files = snapshot.files.take(chosen)
    partitions = [bin_packing.partition_of(values) for values in files.column("partitionValues").to_pylist()]
    candidates = zip(partitions, chosen.to_pylist(), files.column("size").to_pylist(), strict=True)
    return bin_packing.packed(
        (candidate for candidate in candidates if within is None or candidate[0] in within),
        None if outcome.by else layout.largest,
        alone=bool(outcome.by) or layout.purge,
    )


def _choice(
    layout: OptimizeLayout, within: Collection[Partition] | None, *, lays_out: bool
) -> bin_packing.RewriteCandidates:
    kind: bin_packing.RewriteKind = "small or marked"
    if layout.for_iceberg:
        kind = "without Iceberg tag"
    elif layout.purge:
        kind = "marked"
    elif lays_out:
        kind = "all"
    return bin_packing.RewriteCandidates(kind, layout.smallest, None if within is None else frozenset(within))


def _of_cubes(command: Command, layout: OptimizeLayout, by: Sequence[str]) -> PlannedFiles | None:
    """The files of the cubes of a clustered table to cluster again, by the sizes of all cubes."""
    choice = clustering.OneOfEachCube()
    found = scan.planned(command.spark, command.log, command.snapshot, None, choice)
    if found is None:
        return None
    smallest = settings.of(command.spark, declarations.CLUSTERING_MIN_CUBE_SIZE)
    chosen = clustering.to_cluster(adds_of(found.files), by, smallest_cube=smallest, full=layout.full)
    of_cubes = clustering.OfCubes(frozenset(map(clustering.cube_of, chosen)))
    planned = scan.planned(command.spark, command.log, command.snapshot, None, of_cubes, grouped=True)
    return None if planned is None else replace(planned, after_partitions=planned.total)


def _cubes(command: Command, layout: OptimizeLayout, by: Sequence[str]) -> list[Bin]:
    smallest = settings.of(command.spark, declarations.CLUSTERING_MIN_CUBE_SIZE)
    largest = max(smallest, settings.of(command.spark, declarations.CLUSTERING_TARGET_CUBE_SIZE))
    files = command.snapshot.add_files()
    numbers = {id(file): number for number, file in enumerate(files)}
    if command.has_selected:
        # `_of_cubes` knew the sizes of all cubes; these files may be a part of them.
        chosen = clustering.in_order(files)
    else:
        chosen = clustering.to_cluster(files, by, smallest_cube=smallest, full=layout.full)
    return bin_packing.packed(
        (((), numbers[id(file)], file.size) for file in chosen), largest, alone=True, in_order=True
    )
