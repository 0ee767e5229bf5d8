"""OPTIMIZE and REORG: merge small files, lay out rows for data skipping, or rewrite files without their deleted rows.
The table's rows do not change.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession

from ...core.deltalog import DeltaLog
from ...core.log.columns import adds_of
from ...core.protocol import iceberg_compat, properties, schema
from ...core.protocol.actions import Action, AddFile
from ...core.skipping import stats
from ...core.table import bin_packing, clustering
from ...core.table.bin_packing import Bin, Partition
from ...core.table.snapshot import Snapshot
from ...core.txn.operation import Operation
from ...engine.jvm.connection import settings
from ...engine.jvm.connection.sessions import is_classic
from ...engine.read import scan
from ...engine.read.large_log import PlannedFiles
from ...engine.read.lookups import Lookup, lookup
from ...engine.write import writer, zorder
from ...errors import InvalidArgumentError
from ...progress import files_text, stage
from ...settings import declarations
from ..command import rows
from ..command.command import PLAIN, Command, CommitOptions, command_scope
from ..command.removal import num_records
from . import cluster_by

_BINS_PER_JOB = 64
_AS_LAID_OUT = writer.WriteOptions(balanced=False)


@dataclass(frozen=True, slots=True)
class OptimizeLayout:
    """The target layout of OPTIMIZE. Sizes are in bytes.

    Files below `smallest`, or with more than the ratio `deleted_ratio` of their rows deleted, are rewritten into files
    of up to `largest`. `by` are the columns of ZORDER BY. `full`: on a clustered table, also recluster files that were
    clustered by other columns. `purge`: rewrite only the files with deleted rows, or with `for_iceberg` those that were
    not written for Iceberg. There is one commit for each `batch` bytes (`None`: one commit).
    """

    smallest: int = declarations.OPTIMIZE_MIN_FILE_SIZE.default
    largest: int = declarations.OPTIMIZE_MAX_FILE_SIZE.default
    deleted_ratio: float = declarations.OPTIMIZE_MAX_DELETED_RATIO.default
    by: tuple[str, ...] = ()
    full: bool = False
    purge: bool = False
    for_iceberg: bool = False
    auto: bool = False
    batch: int | None = None

    @classmethod
    def of(
        cls, spark: SparkSession, *, by: Sequence[str] = (), full: bool = False, purge: bool = False
    ) -> "OptimizeLayout":
        """The layout by the session's settings `spark.databricks.delta.optimize.*`."""
        return cls(
            smallest=settings.of(spark, declarations.OPTIMIZE_MIN_FILE_SIZE),
            largest=max(1, settings.of(spark, declarations.OPTIMIZE_MAX_FILE_SIZE)),
            deleted_ratio=settings.of(spark, declarations.OPTIMIZE_MAX_DELETED_RATIO),
            by=tuple(by),
            full=full,
            purge=purge,
            batch=settings.of(spark, declarations.OPTIMIZE_BATCH_SIZE) or None,
        )


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


def optimize(
    spark: SparkSession,
    log: DeltaLog,
    layout: OptimizeLayout,
    where: str | Column | None = None,
    *,
    within: Collection[Partition] | None = None,
    options: CommitOptions = PLAIN,
) -> OptimizeResult:
    """Rewrite files by `layout`, in the partitions for which `where` is TRUE, or in the partitions `within`.

    If there is nothing to rewrite, there is no commit. Raises InvalidArgumentError for a condition on other than
    partition columns and for invalid ZORDER BY columns, ConcurrentDeleteReadException or
    ConcurrentDeleteDeleteException if another writer removed one of the files concurrently.
    """
    name = "REORG" if layout.purge else "OPTIMIZE"
    with command_scope(spark, name, log.table):
        outcome = OptimizeResult(log.table, log.clock.now_ms())
        command = Command.on(spark, log, options)
        condition = None if where is None else _condition(command, layout, name, where)
        printed = [] if condition is None or where is None else _printed(spark, condition, where)
        outcome.by = tuple(map(schema.dotted, _columns(command, layout)))
        outcome.clustered = bool(outcome.by) and not layout.by
        outcome.columns = len(command.snapshot.schema.fields)
        for files in _selected(command, layout, condition, within, outcome):
            if files is not None:
                command.select_files(files)
            bins = _planned(command, layout, condition, within, outcome, selected=files is not None)
            for batch in bin_packing.batches(bins, layout.batch):
                with command.discarded_on_failure():
                    _rewrite(command, layout, batch, printed, outcome)
                # Each batch has its own commit, but reads the snapshot from which the rewrite was planned.
                command = command.for_next_commit()
        outcome.ended_ms = log.clock.now_ms()
        return outcome


# --- what is to be rewritten --------------------------------------------------------------------------------------


def _condition(command: Command, layout: OptimizeLayout, name: str, where: str | Column) -> scan.Condition:
    if cluster_by.current(command.snapshot) and not layout.purge:
        raise InvalidArgumentError(
            f"{command.log.table} is clustered: OPTIMIZE doesn't support a condition on a clustered table",
            condition="DELTA_CLUSTERING_WITH_PARTITION_PREDICATE",
            parameters={"predicates": where},
        )
    split = scan.split_condition(scan.for_conditions(command.spark, command.snapshot), where, command.snapshot.mapping)
    if not scan.only_partitions(command.spark, command.snapshot, split):
        raise InvalidArgumentError(
            f"{name} on {command.log.table} supports only conditions on partition columns "
            f"({', '.join(command.snapshot.partition_columns) or 'the table has none'}), not {where}",
            condition="DELTA_NON_PARTITION_COLUMN_REFERENCE",
            parameters={"columnName": where, "columnList": ", ".join(command.snapshot.partition_columns)},
        )
    return split


def _printed(spark: SparkSession, condition: scan.Condition, where: str | Column) -> Sequence[str]:
    return scan.printed_conjuncts(spark, where) if is_classic(spark) else condition.sql


def _columns(command: Command, layout: OptimizeLayout) -> list[schema.Column]:
    """The columns by which rows are laid out; empty for a compaction. Raises InvalidArgumentError."""
    clustered = cluster_by.current(command.snapshot)
    if clustered and not layout.purge and not layout.auto:
        if layout.by:
            raise InvalidArgumentError(
                f"{command.log.table} is clustered by {', '.join(map(schema.dotted, clustered))}: OPTIMIZE doesn't "
                "support ZORDER BY on a clustered table",
                condition="DELTA_CLUSTERING_WITH_ZORDER_BY",
                parameters={"zOrderBy": ", ".join(layout.by)},
            )
        return clustered
    if layout.full:
        raise InvalidArgumentError(
            f"{command.log.table} isn't clustered: OPTIMIZE FULL requires a clustered table",
            condition="DELTA_OPTIMIZE_FULL_NOT_SUPPORTED",
        )
    return [_ordered_by(command, text) for text in layout.by]


def _ordered_by(command: Command, text: str) -> schema.Column:
    snapshot = command.snapshot
    try:
        (wanted,) = properties.column_list(text)
    except ValueError:
        raise InvalidArgumentError(f"ZORDER BY needs column names, not {text!r}") from None
    match = schema.find(snapshot.schema, wanted)
    if match is None:
        raise InvalidArgumentError(
            f"{command.log.table} has no column {text} for ZORDER BY",
            condition="DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
            parameters={"columnName": text},
        )
    column = match[0]
    if column[0] in snapshot.partition_columns:
        raise InvalidArgumentError(
            f"{text} is a partition column of {command.log.table}: ZORDER BY a partition column has no effect",
            condition="DELTA_ZORDERING_ON_PARTITION_COLUMN",
            parameters={"colName": text},
        )
    checks = settings.of(command.spark, declarations.ZORDER_CHECKS_STATISTICS)
    if checks and column not in indexed(snapshot):
        raise InvalidArgumentError(
            f"{command.log.table} has no statistics for {text}, so ZORDER BY it wouldn't help any filter: see the "
            "table properties delta.dataSkippingNumIndexedCols and delta.dataSkippingStatsColumns",
            condition="DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS",
            parameters={"cols": text, "zorderColStatKey": declarations.ZORDER_CHECKS_STATISTICS.key},
        )
    return column


def indexed(snapshot: Snapshot) -> set[schema.Column]:
    """The columns for which statistics are collected."""
    known = snapshot.properties
    leaves = schema.indexed_leaves(
        snapshot.schema,
        snapshot.partition_columns,
        known.data_skipping_num_indexed_cols,
        known.data_skipping_stats_columns,
    )
    return {column for column, _ in leaves}


def _planned(
    command: Command,
    layout: OptimizeLayout,
    condition: scan.Condition | None,
    within: Collection[Partition] | None,
    outcome: OptimizeResult,
    *,
    selected: bool,
) -> list[Bin]:
    """The bins of files to rewrite, each of one partition. `selected`: the snapshot has only files of `_selected`."""
    snapshot = command.snapshot
    if condition is None:
        chosen = pa.array(range(snapshot.files.num_rows), pa.int64())
    else:
        chosen = scan.exact_partitions(command.spark, snapshot, condition)
    outcome.considered += len(chosen)
    if outcome.clustered:
        return _cubes(command, layout, outcome.by, selected=selected)
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


def _selected(
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


def _cubes(command: Command, layout: OptimizeLayout, by: Sequence[str], *, selected: bool) -> list[Bin]:
    smallest = settings.of(command.spark, declarations.CLUSTERING_MIN_CUBE_SIZE)
    largest = max(smallest, settings.of(command.spark, declarations.CLUSTERING_TARGET_CUBE_SIZE))
    files = command.snapshot.add_files()
    numbers = {id(file): number for number, file in enumerate(files)}
    if selected:  # `_of_cubes` knew the sizes of all cubes; of a large log, these files may be a part of them
        chosen = clustering.in_order(files)
    else:
        chosen = clustering.to_cluster(files, by, smallest_cube=smallest, full=layout.full)
    return bin_packing.packed(
        (((), numbers[id(file)], file.size) for file in chosen), largest, alone=True, in_order=True
    )


# --- rewriting ----------------------------------------------------------------------------------------------------


def _rewrite(
    command: Command, layout: OptimizeLayout, batch: Sequence[Bin], printed: Sequence[str], outcome: OptimizeResult
) -> None:
    """Rewrite the files of some bins and commit."""
    snapshot = command.snapshot
    numbers = [number for group in batch for number in group.files]
    command.txn.read_table(snapshot.files.take(numbers))
    removed = snapshot.add_files(numbers)
    added: list[AddFile] = []
    samples: dict[schema.Column, list[pa.Array]] = {}
    # Each cube is written by its own job, because its ID is in the tags of all its files.
    step = 1 if outcome.clustered else _BINS_PER_JOB
    for first in range(0, len(batch), step):
        part = batch[first : first + step]
        stage(f"rewriting {files_text(len(numbers))}", sum(len(group.files) for group in batch[:first]), len(numbers))
        tags: dict[str, str] | None = None
        if outcome.by:
            laid = _laid_out(command, layout, part, outcome)
            frame = laid.frame
            for column, values in laid.sample.items():
                samples.setdefault(column, []).append(values)
            tags = clustering.tags_of_new_cube(outcome.by) if outcome.clustered else None
        else:
            frame = _together(command, part)
        adds = rows.write_kept(command, frame, _AS_LAID_OUT, data_change=False).adds
        if tags is not None:
            adds = [
                replace(add, tags={**(add.tags or {}), **tags}, clustering_provider=clustering.PROVIDER) for add in adds
            ]
        added += adds
    now = command.log.clock.now_ms()
    actions: list[Action] = [*added, *(add.remove(now, data_change=False) for add in removed)]
    operation = Operation(
        "REORG" if layout.purge else "OPTIMIZE",
        _parameters(layout, printed, outcome),
        _metrics(added, removed),
        changes_data=False,
    )
    # Computed before the commit, because it may fail.
    for column, parts in samples.items():
        before, after = (_lookup(command, column, pa.concat_arrays(parts), files) for files in (removed, added))
        outcome.lookups[schema.dotted(column)] = before, after
    outcome.versions.append(command.commit(actions, operation).version)
    outcome.num_bins += len(batch)
    outcome.partitions.update(group.partition for group in batch)
    outcome.removed.count(removed)
    outcome.added.count(added)


def _together(command: Command, part: Sequence[Bin]) -> DataFrame:
    """A frame with one partition, and so one output file, per bin."""
    spread = settings.of(command.spark, declarations.OPTIMIZE_REPARTITION)
    frames = [command.rows(pa.array(group.files, pa.int64())) for group in part]
    return reduce(DataFrame.unionAll, [frame.repartition(1) if spread else frame.coalesce(1) for frame in frames])


def _laid_out(command: Command, layout: OptimizeLayout, part: Sequence[Bin], outcome: OptimizeResult) -> zorder.LaidOut:
    numbers = [number for group in part for number in group.files]
    frame = command.rows(pa.array(numbers, pa.int64()), file_number=command.names.file_number)
    places = iter(range(len(numbers)))
    groups = [[next(places) for _ in group.files] for group in part]
    by = []
    for text in outcome.by:
        match = schema.find(command.snapshot.schema, properties.column_list(text)[0])
        assert match is not None
        by.append((match[0], match[1].data_type))
    counts = [num_records(add) for add in command.snapshot.add_files(numbers)]
    known = [count for count in counts if count is not None]
    total = sum(known) if len(known) == len(counts) else None
    files = [max(1, group.size // layout.largest) for group in part]
    return zorder.lay_out(frame, by, file_number=command.names.file_number, groups=groups, files=files, rows=total)


def _lookup(command: Command, column: schema.Column, sample: pa.Array, files: Sequence[AddFile]) -> Lookup:
    """The average cost of looking up one value of the column in these files, by their statistics."""
    mapping = command.snapshot.mapping
    name = mapping.to_physical(column)
    texts = pa.table({"stats": pa.array([file.stats for file in files], pa.string())})
    bounds = stats.read(texts, [name], mapping.physical).leaves.get(name)
    sizes = pa.array([file.size for file in files], pa.int64())
    if bounds is None or bounds.min is None or bounds.max is None:
        unknown = pa.nulls(len(files), sample.type)
        return lookup(sample, unknown, unknown, sizes)
    return lookup(sample, zorder.comparable(bounds.min), zorder.comparable(bounds.max), sizes)


# --- metrics and parameters ---------------------------------------------------------------------------------------


def _parameters(layout: OptimizeLayout, printed: Sequence[str], outcome: OptimizeResult) -> dict[str, object]:
    if layout.purge:
        return {"predicate": list(printed), "applyPurge": not layout.for_iceberg}
    parameters: dict[str, object] = {
        "predicate": list(printed),
        "auto": layout.auto,
        "clusterBy": list(outcome.by) if outcome.clustered else [],
        "zOrderBy": [] if outcome.clustered else list(outcome.by),
    }
    return parameters | ({"isFull": layout.full} if outcome.clustered else {})


def _metrics(added: Sequence[AddFile], removed: Sequence[AddFile]) -> dict[str, int | str]:
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
