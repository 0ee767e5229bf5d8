"""Which rows of the table a MERGE changes, and in which files they lie: its first pass over the table."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...core.skipping import predicates
from ...engine.jvm import settings
from ...engine.read import scan
from ...engine.sql.resolution import Expression, Local, aligned, local
from ...errors import InvalidArgumentError
from ..command.command import Command
from .clauses import only_delete
from .resolve import Resolved, Taken
from .source import MergeSource

_MOST_PAIRS = 10_000
_WHOLE_ROWS = 32 << 20  # bytes of files that are read whole at once, where only keys would have to be


@dataclass
class Matches:
    """What the first pass found. Files are told by their rows in `snapshot.files`.

    `counts` tell how many rows of a file a clause takes. `pairs` are the rows that match, each with its row of the
    source, the number of its clause and its place (see `Command.names`): on the driver (`held`; `whole`, with all
    columns of the table), or on the executors. `matched` are the numbers of the source's rows that
    match, where it is on the driver.
    """

    candidates: pa.Array
    counts: Mapping[tuple[int, int], int] = field(default_factory=dict)
    pairs: DataFrame | None = None
    held: Local | None = None
    whole: bool = False
    matched: frozenset[int] = frozenset()
    several: bool = False

    @property
    def touched(self) -> list[int]:
        """The files in which a row changes."""
        return sorted({file for file, _ in self.counts})

    def rows(self, numbers: list[int]) -> int:
        """How many rows the clauses take."""
        return sum(count for (_, clause), count in self.counts.items() if clause in numbers)

    def release(self) -> None:
        if self.pairs is not None and self.held is None:
            self.pairs.unpersist()


def find(command: Command, resolved: Resolved, source: MergeSource, *, places: bool) -> Matches:
    """Join the source with those files that may hold rows to change, and record what was read.

    `places`: the places of the changed rows will be asked for (deletion vectors). InvalidArgumentError where a row of
    the table matches several rows of the source, and more is done than to delete it.
    """
    candidates = _candidates(command, resolved, source)
    if len(candidates) == 0:
        return Matches(candidates)
    if source.held is not None and not resolved.by_source:
        found = _on_driver(command, resolved, source, candidates)
        if found is not None:
            return found
    return _on_executors(command, resolved, source, candidates, places=places)


def joined(
    command: Command,
    resolved: Resolved,
    source: MergeSource,
    numbers: pa.Array,
    *,
    unmatched: bool,
    places: bool = True,
) -> DataFrame:
    """The rows of files with the rows of the source that they match, or with nulls (`unmatched`), and their clauses.

    The columns are the table's, `command.carried`, the source's with the numbers of its rows, those of the places of
    rows, and the number of the clause (see `Command.names`).
    """
    names = command.names
    row_index = names.row_index if places else None
    rows = command.rows(numbers, file_number=names.file_number, row_index=row_index)
    rows = aligned(rows, resolved.scope.target)
    other = source.joining
    if not unmatched:
        return rows.join(other, resolved.condition.column, "inner").withColumn(
            names.clause, _clause(resolved.matched, 0)
        )
    other = other.withColumn(names.present, F.lit(True))
    found = rows.join(other, resolved.condition.column, "left_outer")
    number = F.when(F.col(names.present).isNotNull(), _clause(resolved.matched, 0)).otherwise(
        _clause(resolved.by_source, len(resolved.matched))
    )
    return found.withColumn(names.clause, number)


def _clause(clauses: list[Taken], first: int) -> Column:
    """The number of the first clause whose condition is TRUE; null: none."""
    number: Column = F.lit(None).cast("int")
    for i, one in reversed(list(enumerate(clauses, first))):
        number = F.lit(i) if one.condition is None else F.when(one.test, F.lit(i)).otherwise(number)
    return number


# --- which files ------------------------------------------------------------------------------------------------------


def _candidates(command: Command, resolved: Resolved, source: MergeSource) -> pa.Array:
    """Rows of `snapshot.files` that may hold rows to change: by partitions and statistics, without a job."""
    snapshot, scope = command.snapshot, resolved.scope
    zone = settings.time_zone(command.spark)
    mask = snapshot.prune_mask(source.predicate, time_zone=zone)
    predicate = source.predicate
    of_table = _of_table(resolved, resolved.condition)
    if not resolved.inserts and not resolved.by_source:  # rows that no clause takes don't matter
        of_clauses = [[] if one.condition is None else _of_table(resolved, one.condition) for one in resolved.matched]
        if all(of_clauses):
            of_table.append(_any([_all(parts) for parts in of_clauses]))
    if of_table:
        condition = scan.split_condition(scope.target, _all(of_table), snapshot.mapping)
        predicate = predicates.all_of([predicate, condition.predicate])
        mask = pc.and_(mask, _mask(scan.candidates(command.spark, snapshot, condition), len(mask)))
    if resolved.by_source:
        if any(one.condition is None for one in resolved.by_source):
            predicate, mask = predicates.TRUE, pa.repeat(pa.scalar(True), len(mask))
        else:
            tests = _any([one.test for one in resolved.by_source])
            condition = scan.split_condition(scope.target, tests, snapshot.mapping)
            predicate = predicates.Or((predicate, condition.predicate))
            mask = pc.or_(mask, _mask(scan.candidates(command.spark, snapshot, condition), len(mask)))
    candidates = pc.indices_nonzero(mask)
    command.txn.read_predicate(predicate, time_zone=zone)
    command.txn.read_table(snapshot.files.take(candidates))
    return candidates


def _of_table(resolved: Resolved, condition: Expression) -> list[Column]:
    """The parts of a condition that the table's columns alone decide."""
    return [one.column for one in resolved.scope.conjuncts(condition) if not one.of_source]


def _all(columns: list[Column]) -> Column:
    found = columns[0]
    for one in columns[1:]:
        found = found & one
    return found


def _any(columns: list[Column]) -> Column:
    found = columns[0]
    for one in columns[1:]:
        found = found | one
    return found


def _mask(indices: pa.Array, count: int) -> pa.Array:
    return pc.is_in(pa.array(range(count), pa.int64()), value_set=indices.cast(pa.int64()))


# --- which rows -------------------------------------------------------------------------------------------------------


def _on_driver(command: Command, resolved: Resolved, source: MergeSource, candidates: pa.Array) -> Matches | None:
    """All pairs, brought to the driver by one job; None where they are too many."""
    size = pc.sum(command.snapshot.files.column("size").take(candidates)).as_py() or 0
    whole = size <= _WHOLE_ROWS and bool(resolved.changing)
    names = command.names
    pairs = joined(command, resolved, source, candidates, unmatched=False)
    if not whole:
        pairs = pairs.select(names.file_number, names.row_index, names.source_row, names.clause)
    held = local(pairs, _MOST_PAIRS)
    if held is None:
        return None
    frame = held.frame()
    found = Matches(candidates, pairs=frame, held=held, whole=whole)
    # No job: they are on the driver.
    told = frame.select(names.file_number, names.row_index, names.source_row, names.clause).collect()
    if not told:
        return found
    files, rows, numbers, clauses = zip(*told, strict=True)
    found.matched = frozenset(numbers)
    places = candidates.to_pylist()
    met = Counter(zip(files, rows, strict=True))
    found.several = len(met) < len(files)
    _check_single(command, resolved, several=found.several)
    taken = {(file, row): clause for file, row, clause in zip(files, rows, clauses, strict=True) if clause is not None}
    found.counts = Counter((places[file], clause) for (file, _), clause in taken.items())
    return found


def _on_executors(
    command: Command, resolved: Resolved, source: MergeSource, candidates: pa.Array, *, places: bool
) -> Matches:
    """Count what the clauses take; the pairs stay on the executors where the second pass needs them."""
    names = command.names
    single = source.unique or resolved.inserts_only
    places = places or not single
    pairs = joined(command, resolved, source, candidates, unmatched=bool(resolved.by_source), places=places)
    matters = F.col(names.clause).isNotNull() | F.col(names.source_row).isNotNull()
    pairs = pairs.where(matters).select(
        names.file_number, *([names.row_index] if places else []), names.source_row, names.clause
    )
    again = bool(resolved.inserts) or places
    if again:
        pairs = pairs.persist(StorageLevel.MEMORY_AND_DISK)
    found = Matches(candidates, pairs=pairs)
    try:
        if single:
            counted = pairs.groupBy(names.file_number, names.clause).agg(
                F.count("*").alias("n"), F.lit(1).alias("most")
            )
        else:
            by_row = pairs.groupBy(names.file_number, names.row_index).agg(
                F.count("*").alias("n"), F.max(names.clause).alias(names.clause)
            )
            counted = by_row.groupBy(names.file_number, names.clause).agg(
                F.count("*").alias("n"), F.max("n").alias("most")
            )
        told = [tuple(row) for row in counted.collect()]
        found.several = any(most > 1 for _, _, _, most in told)
        _check_single(command, resolved, several=found.several)
    except BaseException:
        if again:
            pairs.unpersist()
        raise
    numbers = candidates.to_pylist()
    found.counts = {(numbers[file], clause): n for file, clause, n, _ in told if clause is not None}
    return found


def _check_single(command: Command, resolved: Resolved, *, several: bool) -> None:
    if not several or resolved.inserts_only:
        return
    if not only_delete([one.clause for one in resolved.matched]):
        raise InvalidArgumentError(
            f"{command.log.table}: a row of the table matches several rows of the source of MERGE, and which of them "
            "it would be updated by is left to chance. Make the source's keys unique before the MERGE, say with "
            "dropDuplicates or the newest row for each key; nothing was committed",
            condition="DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
        )
