"""OPTIMIZE and REORG: merge small files, lay out rows for data skipping, or rewrite files without their deleted rows.
The table's rows do not change.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession

from ...core.deltalog import DeltaLog
from ...core.protocol import properties, schema
from ...core.protocol.actions import Action, AddFile
from ...core.skipping import stats
from ...core.table import bin_packing, clustering
from ...core.table.bin_packing import Bin, Partition
from ...core.txn.operation import Operation
from ...engine.jvm.connection import settings
from ...engine.jvm.connection.sessions import is_classic
from ...engine.read import scan
from ...engine.read.lookups import Lookup, lookup
from ...engine.write import writer, zorder
from ...errors import InvalidArgumentError
from ...progress import files_text, stage
from ...settings import declarations
from ..command import rows
from ..command.command import PLAIN, Command, CommitOptions, command_scope
from ..command.removal import num_records
from . import cluster_by
from .optimize_files import bins_of, selected_files
from .optimize_layout import OptimizeLayout, columns_of
from .optimize_result import OptimizeResult, metrics_of, parameters_of

_BINS_PER_JOB = 64
_AS_LAID_OUT = writer.WriteOptions(balanced=False)


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
        outcome.by = tuple(map(schema.dotted, columns_of(command, layout)))
        outcome.clustered = bool(outcome.by) and not layout.by
        outcome.columns = len(command.snapshot.schema.fields)
        for files in selected_files(command, layout, condition, within, outcome):
            if files is not None:
                command.select_files(files)
            bins = bins_of(command, layout, condition, within, outcome)
            for batch in bin_packing.batches(bins, layout.batch):
                with command.discarded_on_failure():
                    _rewrite(command, layout, batch, printed, outcome)
                # Each batch has its own commit, but reads the snapshot from which the rewrite was planned.
                command = command.for_next_commit()
        outcome.ended_ms = log.clock.now_ms()
        return outcome


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
        parameters_of(layout, printed, outcome),
        metrics_of(added, removed),
        changes_data=False,
    )
    # A lookup reads all files, and each of several commits knows only a part of them.
    outcome.lookups.clear()
    if not outcome.versions:
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
