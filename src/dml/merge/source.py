"""Reads the source of a MERGE once, stores it, and derives predicates that select the files it can match."""

import datetime
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...core.protocol import schema
from ...core.protocol.schema import CHAR_VARCHAR_KEY, PrimitiveType, StructField, has_collation
from ...core.skipping import predicates
from ...core.skipping.predicates import Predicate
from ...engine.jvm import plans
from ...engine.jvm.connection import settings
from ...engine.jvm.types import frame_schema, table_schema
from ...engine.read import pinning
from ...engine.sql.resolution import Equality, Local, column_named, local, picked
from ...engine.sql.stored_frame import StoredFrame
from ...settings.spark_own import AUTO_BROADCAST
from ..command.command import Command
from .frames import union
from .resolve import Resolved

_MOST_VALUES = 1_000
_BROADCAST = 64 << 20
_MICROSECOND = datetime.timedelta(microseconds=1)
_PLAIN = ("string", "date", "timestamp", "timestamp_ntz", "boolean")


@dataclass
class MergeSource:
    """The source rows of a MERGE, with a row number in the last column (`Command.names`).

    `number_column`: the name of that column.
    `frame`: the rows.
    `joining`: the same rows, prepared for the join.
    `rows`: the number of rows.
    `unique`: whether no table row can match two source rows.
    `predicate`: a condition that is TRUE for every table row that matches.
    `held`: the rows on the driver, if there are few; `numbers` are their row numbers.
    `replicated`: whether two executors store each row of the source, and of what is computed from it.
    """

    number_column: str
    frame: DataFrame
    joining: DataFrame
    rows: int
    unique: bool
    predicate: Predicate
    held: Local | None = None
    numbers: list[int] = field(default_factory=list)
    replicated: bool = False
    _matched: list[StoredFrame] = field(default_factory=list, init=False)

    def record_matched(self, rows: DataFrame) -> DataFrame:
        """Record that source rows match rows of files that the search in groups may leave out: no clause inserts them.

        Args:
            rows: Rows whose last column has the numbers of these source rows; nulls are ignored.

        Returns:
            The same rows, stored on the executors.
        """
        self._matched.append(StoredFrame(rows, replicated=self.replicated))
        return self._matched[-1].frame

    def unmatched(self, matched: DataFrame | None = None) -> DataFrame:
        """The source rows that are not recorded as matching; those with numbers in the frame `matched` neither."""
        frames = [*self._recorded(), *([] if matched is None else [matched])]
        if not frames:
            return self.frame
        numbers = union(frames)
        return self.frame.join(numbers, F.col(self.number_column) == F.col(numbers.columns[0]), "left_anti")

    def unmatched_held(self, matched: Collection[int]) -> DataFrame:
        """As `unmatched`, of a source on the driver; `matched` are numbers of source rows."""
        assert self.held is not None
        recorded = self._recorded()
        known = {number for (number,) in union(recorded).distinct().collect()} if recorded else set()
        left = [i for i, number in enumerate(self.numbers) if number not in matched and number not in known]
        return self.held.frame(pa.array(left, pa.int32()))

    def _recorded(self) -> list[DataFrame]:
        return [stored.frame.select(stored.frame.columns[-1]) for stored in self._matched]

    def release(self, table: str) -> None:
        """Remove the recorded numbers from Spark's cache."""
        for stored in self._matched:
            stored.release(f"{table}: the numbers of source rows that a MERGE matched")


@contextmanager
def prepare_source(
    command: Command, source: DataFrame, resolved: Resolved, *, replicated: bool = False
) -> Iterator[MergeSource]:
    """Read the source once: into the driver's memory if it is certainly small, else onto the executors.

    If the source reads the target table, it reads the same version as the MERGE. `replicated` stores each row on two
    executors.
    """
    pinned, reads_itself = pinning.pinned(source, command.log, command.snapshot)
    if reads_itself:
        command.txn.read_whole_table()
    frame = picked(pinned, resolved.needed).withColumn(command.names.source_row, F.monotonically_increasing_id())
    equalities = [resolved.scope.equality(part) for part in resolved.scope.conjuncts(resolved.condition)]
    keys = [equality for equality in equalities if equality is not None]
    bounded = plans.bounded(frame)
    held = None if bounded is None else local(bounded, plans.MAX_ROWS)
    with ExitStack() as stack:
        if held is None:
            stored = StoredFrame(frame, replicated=replicated)
            stack.callback(stored.release, f"{command.log.table}: the rows of a MERGE's source")
            merge_source = replace(_of_executors(command, stored, resolved, keys), replicated=replicated)
        else:
            merge_source = replace(_of_local(command, held, resolved, keys), replicated=replicated)
        stack.callback(merge_source.release, command.log.table)
        yield merge_source


def _of_local(command: Command, held: Local, resolved: Resolved, keys: Sequence[Equality]) -> MergeSource:
    frame = held.frame()
    types = table_schema(frame.select(*(key.source.alias(f"k{i}") for i, key in enumerate(keys))).schema).fields
    python_keys = [_as_python_has_it(key.source, f) for key, f in zip(keys, types, strict=True)]
    named = [key.alias(f"k{i}") for i, key in enumerate(python_keys)]
    # Runs no Spark job: the rows are on the driver.
    values = frame.select(*named, column_named(command.names.source_row)).collect()
    rows = [tuple(map(_hashable, row)) for row in values]
    parts: list[Predicate] = [] if rows else [predicates.Constant(False)]
    for i, (key, key_type) in enumerate(zip(keys, types, strict=True)):
        field = _comparable(command, key, key_type)
        if field is not None:
            distinct = dict.fromkeys(row[i] for row in rows if row[i] is not None)
            parts.append(predicates.In((field.name,), tuple(_as_arrow_has_it(distinct, field))))
    plain = bool(keys) and all(map(_is_plain, types))
    unique = len(rows) < 2 or (plain and _unique(rows, [key.null_safe for key in keys]))
    return MergeSource(
        command.names.source_row,
        frame,
        frame,
        len(rows),
        unique,
        predicates.all_of(parts),
        held,
        [row[-1] for row in rows],
    )


def _as_python_has_it(value: Column, field: StructField) -> Column:
    """A key, converted to a type in which Python can represent all values.

    Python dates are limited to the years 1 to 9999, Python strings to valid UTF-8, and Python timestamps would depend
    on the driver's time zone.
    """
    if field.data_type == schema.DATE:
        return F.unix_date(value)
    if field.data_type == schema.TIMESTAMP:
        return F.unix_micros(value)
    if field.data_type == schema.TIMESTAMP_NTZ:
        return value - F.expr("timestamp_ntz'1970-01-01'")
    return value.cast("binary") if field.data_type == schema.STRING else value


def _hashable(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def _as_arrow_has_it(values: Iterable[Any], field: StructField) -> pa.Array:
    """Convert values of `_as_python_has_it` to Arrow, in the type of the column."""
    kind = schema.arrow_type(field.data_type)
    if field.data_type == schema.STRING:
        return pa.array(values, pa.binary()).view(kind)
    if field.data_type == schema.DATE:
        return pa.array(values, pa.int32()).cast(kind)
    if field.data_type == schema.TIMESTAMP:
        return pa.array(values, pa.int64()).cast(kind)
    if field.data_type == schema.TIMESTAMP_NTZ:
        return pa.array([value // _MICROSECOND for value in values], pa.int64()).cast(kind)
    return pa.array(values, kind)


def _unique(rows: Sequence[tuple[Any, ...]], null_safe: Sequence[bool]) -> bool:
    """Whether all keys are distinct; the keys are the first values of each row."""
    seen = set()
    for row in rows:
        key = row[: len(null_safe)]
        if any(value is None and not safe for value, safe in zip(key, null_safe, strict=True)):
            continue  # a null key matches no row
        if key in seen:
            return False
        seen.add(key)
    return True


def _is_plain(field: StructField) -> bool:
    """Whether two values of this type are equal in Python and Arrow exactly if they are equal in Spark."""
    kind = field.data_type
    if not isinstance(kind, PrimitiveType) or has_collation(field):
        return False
    return kind.is_integral or kind.decimal is not None or kind.name in _PLAIN


def _of_executors(command: Command, stored: StoredFrame, resolved: Resolved, keys: Sequence[Equality]) -> MergeSource:
    """Count the rows, detect duplicate keys, and get the minimum and maximum of each key, in one job."""
    frame = stored.frame
    named = [key.source.alias(f"k{i}") for i, key in enumerate(keys)]
    types = table_schema(frame.select(*named).schema).fields
    fields = [_comparable(command, key, f) for key, f in zip(keys, types, strict=True)]
    matchable = F.lit(True)
    for i, key in enumerate(keys):
        if not key.null_safe:
            matchable = matchable & F.col(f"k{i}").isNotNull()
    groupable = bool(keys) and not any(schema.contains(f.data_type, _is_map) for f in types)
    rows = frame.select(*named) if named else frame.select(column_named(command.names.source_row))
    grouped = rows.groupBy(*(f"k{i}" for i in range(len(keys)))).agg(F.count("*").alias("n")) if groupable else None
    aggregates = [F.count("*") if grouped is None else F.sum("n")]
    aggregates.append(F.lit(2) if grouped is None else F.max(F.when(matchable, F.col("n"))))
    bounds = [i for i, f in enumerate(fields) if f is not None]
    for i in bounds:
        aggregates += [F.min(f"k{i}"), F.max(f"k{i}")]
    aggregated = (rows if grouped is None else grouped).agg(
        *(aggregate.alias(f"a{i}") for i, aggregate in enumerate(aggregates))
    )
    summary = pa.Table.from_batches(plans.collected(aggregated))
    count, most = summary.column(0)[0].as_py() or 0, summary.column(1)[0].as_py() or 0
    parts: list[Predicate] = [] if count else [predicates.Constant(False)]
    for at, i in enumerate(bounds):
        field = fields[i]
        assert field is not None
        low, high = (
            summary.column(2 + 2 * at + side).combine_chunks().cast(schema.arrow_type(field.data_type))[0]
            for side in (0, 1)
        )
        if not low.is_valid:
            parts.append(predicates.Constant(False))
        elif field.name in command.snapshot.partition_columns:
            parts.append(_in_partitions(rows.select(f"k{i}"), field, low, high))
        else:
            parts.append(_between(field, low, high))
    size = stored.bytes
    threshold = settings.in_force(command.spark, AUTO_BROADCAST) or ""
    small = 0 < size <= _BROADCAST and not threshold.startswith("-")  # a negative threshold disables broadcasts
    joining = F.broadcast(frame) if small else frame
    unique = count < 2 or most <= 1
    return MergeSource(command.names.source_row, frame, joining, count, unique, predicates.all_of(parts))


def _is_map(data_type: schema.DataType) -> bool:
    return isinstance(data_type, schema.MapType)


def _between(field: StructField, low: pa.Scalar, high: pa.Scalar) -> Predicate:
    name = (field.name,)
    return predicates.And((predicates.Compare(">=", name, low), predicates.Compare("<=", name, high)))


def _in_partitions(keys: DataFrame, field: StructField, low: pa.Scalar, high: pa.Scalar) -> Predicate:
    """The predicate lists few partition values individually: then commits to other partitions don't conflict."""
    batches = plans.collected(keys.distinct().limit(_MOST_VALUES + 1))
    values = pa.Table.from_batches(batches).column(0)
    if len(values) > _MOST_VALUES:
        return _between(field, low, high)
    return predicates.In(
        (field.name,), tuple(values.combine_chunks().drop_null().cast(schema.arrow_type(field.data_type)))
    )


def _comparable(command: Command, equality: Equality, key: StructField) -> StructField | None:
    """The table column that a key is compared with, if statistics or partition values can be used for it."""
    if equality.place is None or equality.null_safe:
        return None
    field = frame_schema(command.snapshot.schema).fields[equality.place]
    same = field.data_type == key.data_type and CHAR_VARCHAR_KEY not in field.metadata
    return field if same and _is_plain(field) else None
