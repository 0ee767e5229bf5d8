"""UPDATE: assigns new values to columns of the rows for which a condition is TRUE."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ...core.deltalog import DeltaLog
from ...core.protocol.schema import VOID, StructType, dotted, quoted
from ...core.txn.operation import Operation
from ...engine.jvm.connection import settings
from ...engine.jvm.types import frame_schema
from ...engine.read import scan
from ...engine.sql import assigned_values
from ...engine.sql.hidden_names import free_names
from ...engine.sql.violations import translated
from ..command import assignments, change_data, row_deletion, rows
from ..command.assignments import Path
from ..command.command import PLAIN, Command, CommitOptions, RowsChanged, command_scope
from ..command.removal import Removal
from ..command.whole_files import elapsed_ms, remove_all, remove_partitions, slices
from .touched_files import in_slices, matching_places, touched_files

logger = logging.getLogger(__name__)


def update(
    spark: SparkSession,
    log: DeltaLog,
    values: Mapping[str, str | Column],
    condition: str | Column | None = None,
    *,
    alias: scan.Alias | None = None,
    options: CommitOptions = PLAIN,
) -> RowsChanged | None:
    """Update the rows for which `condition` is TRUE (None: all rows) and commit. If no row matches, there is no commit.
    Returns None if the transaction of `options` was already committed.

    The keys of `values` are columns, or struct fields (`a.b`). The values are SQL expressions or Columns, evaluated on
    the row before the update. `alias` is the table's name in all expressions. Raises AppendOnlyTableError;
    SchemaMismatchError for an unknown column or a type that doesn't fit; ConstraintViolationError;
    InvalidArgumentError or UnsupportedFeatureError for an expression that can't be evaluated twice; the conflict errors
    and CommitStateUnknownError.
    """
    with command_scope(spark, "UPDATE", log.table):
        began = time.monotonic()
        command = Command.on(spark, log, options)
        command.check_removable()
        if command.applied_already:
            return None
        command.name_rows(alias)
        with command.discarded_on_failure():
            frame = scan.for_conditions(spark, command.snapshot, alias)
            split = None
            if condition is not None:
                split = scan.split_condition(frame, condition, command.snapshot.mapping, command.row_alias)
            updated = _Updated(command, split, _assignments(command, frame, values, alias))
            done = _changed(command, updated, split)
            if not done.counts.removed:
                logger.info("%s: no row matches the condition of UPDATE, nothing committed", log.table)
                return RowsChanged(None, 0)
            metrics = _metrics(done, round((time.monotonic() - began) * 1000))
            operation = Operation("UPDATE", {"predicate": split.sql if split else []}, metrics)
            now = log.clock.now_ms()
            return RowsChanged(command.commit(done.actions(now), operation, bulk=done.bulk(now)), done.deleted_rows)


def _assignments(
    command: Command, frame: DataFrame, values: Mapping[str, str | Column], alias: scan.Alias | None
) -> dict[Path, assigned_values.Value | assigned_values.PublicValue]:
    columns = command.snapshot.schema
    case_sensitive = settings.case_sensitive(command.spark)
    paths = [
        assignments.path_of(
            name, assigned_values.name_parts(frame, name), columns, alias, case_sensitive=case_sensitive
        )
        for name in values
    ]
    assignments.check_distinct(paths)
    rows.check_updated(command, [path[0] for path in paths])
    return dict(zip(paths, assigned_values.resolved(frame, list(values.values()), command.row_alias), strict=True))


def _changed(command: Command, updated: "_Updated", split: scan.Condition | None) -> Removal:
    """Update the rows for which the condition is TRUE."""
    if split is None or split.always:
        return _whole_files_changed(command, updated, remove_all(command))
    if split.data is None:
        return _whole_files_changed(command, updated, remove_partitions(command, split))
    return in_slices(command, split, lambda: _selected_changed(command, updated, split))


def _whole_files_changed(command: Command, updated: "_Updated", removal: Removal) -> Removal:
    """Update each row of the removed files. In bulk, this is done slice by slice."""
    removal.deleted_rows = 0
    if not removal.counts.removed:
        return removal
    if removal.in_bulk is None:
        _write(command, updated, removal, removal.numbers or range(len(removal.removed)), every_row=True)
        return removal
    for files in slices(removal.in_bulk):
        command.select_files(files)
        _write(command, updated, removal, range(files.num_rows), every_row=True)
    return removal


def _selected_changed(command: Command, updated: "_Updated", split: scan.Condition) -> Removal:
    """Update rows of the command's files: with new deletion vectors if these are enabled, else these are rewritten."""
    began = time.monotonic()
    snapshot = command.snapshot
    candidates = scan.candidates(command.spark, snapshot, split)
    command.record_read(split.predicate, snapshot.files.take(candidates))
    if len(candidates) and row_deletion.vectors_enabled(command, "update"):
        places = matching_places(command, candidates, split)
        removal = row_deletion.delete_rows(command, places, numbers=candidates)
    else:
        touched = touched_files(command, candidates, split)
        numbers = sorted(touched)
        removal = Removal(snapshot.add_files(numbers), numbers=numbers, deleted_rows=sum(touched.values()))
        removal.scan_ms = elapsed_ms(began)
    if removal.numbers:
        _write(command, updated, removal, removal.numbers)
    return removal


def _write(
    command: Command, updated: "_Updated", removal: Removal, numbers: Sequence[int], *, every_row: bool = False
) -> None:
    """Write the new files of some of the removed files: of the changed rows only if these are marked deleted there,
    else of all rows. `every_row`: each row changes.
    """
    began = time.monotonic()
    frame = updated.over(numbers, rewritten=not removal.by_vectors)
    rewritten = frame.where(frame[command.names.matches]) if removal.by_vectors else frame
    after = updated.after(rewritten, rewritten[command.names.matches])
    written = rows.write_new(command, rows.fitted(command, after))
    if change_data.wanted(command):
        removal.changes += change_data.write(command, updated.changes(frame))
    removal.added += written.adds
    if every_row:
        removal.deleted_rows = (removal.deleted_rows or 0) + written.rows
    else:
        removal.copied_rows = written.rows - (removal.deleted_rows or 0)
    removal.rewrite_ms += elapsed_ms(began)


@dataclass(frozen=True)
class _Updated:
    """The update applied to frames: `values` are assigned where `condition` is TRUE."""

    command: Command
    condition: scan.Condition | None
    values: Mapping[Path, assigned_values.Value | assigned_values.PublicValue]

    @cached_property
    def columns(self) -> StructType:
        return frame_schema(self.command.snapshot.schema)

    @cached_property
    def new(self) -> dict[Path, str]:
        """The names of the columns that hold the new values."""
        taken = [*self.command.column_names, *vars(self.command.names).values()]
        return dict(zip(self.values, free_names([f"SET {dotted(path)}" for path in self.values], taken), strict=True))

    def over(self, numbers: Sequence[int], *, rewritten: bool) -> DataFrame:
        """The rows of some files, with whether each row matches, and with the new values (null if it doesn't match)."""
        frame = self.command.rows(pa.array(numbers, pa.int64()), rewritten=rewritten)
        # Files were selected exactly if the condition is on partition columns only: then every row matches.
        partial = self.condition is not None and self.condition.data is not None
        matches = self.condition.column(frame) if self.condition is not None and partial else F.lit(True)
        frame = frame.select("*", matches.alias(self.command.names.matches))
        fields = {path: assignments.field_of(path, self.columns) for path in self.values}
        with translated(self.command.log.table):
            new = [
                F.when(frame[self.command.names.matches], value.column(frame, fields[path])).alias(self.new[path])
                for path, value in self.values.items()
            ]
            columns = {self.new[path]: f for path, f in fields.items()}
            return assigned_values.stored(frame.select("*", *new), columns, self.command.log.table)

    def after(self, frame: DataFrame, changed: Column, extra_columns: Sequence[str] = ()) -> DataFrame:
        """The rows with the new values where `changed` is TRUE, and the caller's `extra_columns`.

        Generated columns that are not assigned are left out; they are computed again from the new values.
        """
        tops = {path[0] for path in self.values}
        left_out = set(rows.generated(self.command, tops))
        new = {path: frame[quoted(name)] for path, name in self.new.items()}
        new_columns = []
        for field in self.columns:
            kept = frame[quoted(field.name)]
            if field.name in tops:
                value = assignments.whole((field.name,), field, kept, new)
                new_columns.append(F.when(changed, value).otherwise(kept).alias(field.name))
            elif field.name not in left_out:
                new_columns.append(kept)
        return frame.select(*new_columns, *self.command.passed_on(frame, changed), *extra_columns)

    def changes(self, frame: DataFrame) -> DataFrame:
        """The preimages and postimages of the changed rows, for the change data feed."""
        images = F.array(F.lit(0), F.lit(1)).cast("array<bigint>")
        after = self.command.names.after
        both = frame.where(frame[self.command.names.matches]).withColumn(after, F.explode(images))
        shaped = rows.fitted(self.command, self.after(both, both[after] == 1, [after]), extra_columns=[after])
        kind = F.when(shaped[after] == 1, "update_postimage").otherwise("update_preimage")
        names = (f.name for f in self.columns if f.data_type != VOID)
        return shaped.select(*map(quoted, names), kind.alias(change_data.CHANGE_TYPE))


def _metrics(done: Removal, execution_ms: int) -> dict[str, int | str]:
    """The operation metrics, as Delta defines them. Files that only get a deletion vector count as removed, without
    their bytes. Deletion vectors of rewritten files are not counted.
    """
    return {
        "numRemovedFiles": done.counts.removed,
        "numRemovedBytes": 0 if done.by_vectors else done.counts.bytes,
        "numAddedFiles": len(done.written),
        "numAddedBytes": sum(add.size for add in done.written),
        "numAddedChangeFiles": len(done.changes),
        **(done if done.by_vectors else Removal()).vector_metrics(),
        "numUpdatedRows": done.deleted_rows or 0,
        "numCopiedRows": done.copied_rows,
        "executionTimeMs": execution_ms,
        "scanTimeMs": done.scan_ms,
        "rewriteTimeMs": done.rewrite_ms,
    }
