"""First pass of MERGE over the table: finds the rows that change, and the files that contain them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...core.log.columns import exact_sum
from ...core.skipping import predicates
from ...engine.jvm.connection import settings
from ...engine.read import scan
from ...engine.sql import stored_frame
from ...engine.sql.resolution import Expression, Local, aligned, local
from ...errors import InvalidArgumentError
from ...progress import files_text, stage
from ..command.command import Command
from .clauses import only_delete
from .resolve import Resolved, Taken
from .source import MergeSource

_MOST_PAIRS = 10_000
_WHOLE_ROWS = 32 << 20  # bytes; up to this size, whole rows are read, although key columns would suffice


@dataclass
class Matches:
    """The result of the first pass. Files are identified by their index in `snapshot.files`.

    `candidates`: the files that may contain rows to change.
    `counts`: maps (file, clause number) to the number of rows to which the clause applies.
    `pairs`: the matching rows, each with its source row number, clause number and location (see `Command.names`).
    `held`: the rows of `pairs`, if they are on the driver; None if they are on the executors.
    `whole`: whether `pairs` has all columns of the table.
    `matched`: the numbers of the source rows that match, if `pairs` is on the driver.
    `several`: whether a table row matches several source rows.
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
        """The files that contain a row that changes."""
        return sorted({file for file, _ in self.counts})

    def rows(self, numbers: list[int]) -> int:
        """The number of rows that the clauses with these numbers apply to."""
        return sum(count for (_, clause), count in self.counts.items() if clause in numbers)

    def release(self, table: str) -> None:
        if self.pairs is not None and self.held is None:
            _release(self.pairs, table)


def _release(pairs: DataFrame, table: str) -> None:
    stored_frame.release(pairs.unpersist, f"{table}: the rows that a MERGE matched")


def find(command: Command, resolved: Resolved, source: MergeSource, *, places: bool) -> Matches:
    """Join the source with the files that may contain rows to change, and record what was read in the transaction.

    `places`: the caller needs the locations of the changed rows (deletion vectors). Raises InvalidArgumentError if a
    table row matches several source rows, unless all matched clauses delete.
    """
    candidates = _candidates(command, resolved, source)
    if len(candidates) == 0:
        return Matches(candidates)
    _search(candidates)
    if source.held is not None and not resolved.by_source:
        matches = _on_driver(command, resolved, source, candidates)
        if matches is not None:
            return matches
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
    """Join the rows of the files with their source rows, and add the number of the clause that applies.

    With `unmatched`, the result also has rows without a match, with nulls. The columns are the table's,
    `command.carried`, the source's with the source row number, the location of the row, and the clause number (see
    `Command.names`).
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
    matched_rows = rows.join(other, resolved.condition.column, "left_outer")
    number = F.when(F.col(names.present).isNotNull(), _clause(resolved.matched, 0)).otherwise(
        _clause(resolved.by_source, len(resolved.matched))
    )
    return matched_rows.withColumn(names.clause, number)


def _clause(clauses: list[Taken], first: int) -> Column:
    """The number of the first clause whose condition is TRUE; null if there is none."""
    number: Column = F.lit(None).cast("int")
    for i, clause in reversed(list(enumerate(clauses, first))):
        number = F.lit(i) if clause.condition is None else F.when(clause.test, F.lit(i)).otherwise(number)
    return number


# --- which files ------------------------------------------------------------------------------------------------------


def _candidates(command: Command, resolved: Resolved, source: MergeSource) -> pa.Array:
    """Indexes in `snapshot.files` of the files that may contain rows to change: by partition values and statistics.

    It takes no Spark job unless the log is too large for the driver.
    """
    scope = resolved.scope
    zone = settings.time_zone(command.spark)
    predicate = source.predicate
    of_target = by_source = None
    of_table = _of_table(resolved, resolved.condition)
    if not resolved.inserts and not resolved.by_source:  # rows to which no clause applies are irrelevant
        of_clauses = [
            [] if clause.condition is None else _of_table(resolved, clause.condition) for clause in resolved.matched
        ]
        if all(of_clauses):
            of_table.append(_any([_all(parts) for parts in of_clauses]))
    if of_table:
        of_target = scan.split_condition(scope.target, _all(of_table), command.snapshot.mapping)
        predicate = predicates.all_of([predicate, of_target.predicate])
    every = any(clause.condition is None for clause in resolved.by_source)
    if every:
        predicate = predicates.TRUE
    elif resolved.by_source:
        tests = _any([clause.test for clause in resolved.by_source])
        by_source = scan.split_condition(scope.target, tests, command.snapshot.mapping)
        predicate = predicates.Or((predicate, by_source.predicate))

    def candidates() -> pa.Array:
        snapshot = command.snapshot
        mask = pa.repeat(pa.scalar(True), snapshot.files.num_rows)
        if not every:
            mask = snapshot.prune_mask(source.predicate, time_zone=zone)
            if of_target is not None:
                mask = pc.and_(mask, _mask(scan.candidates(command.spark, snapshot, of_target), len(mask)))
            if by_source is not None:
                mask = pc.or_(mask, _mask(scan.candidates(command.spark, snapshot, by_source), len(mask)))
        return pc.indices_nonzero(mask)

    # A clause without a condition for rows that match no source row needs each file.
    command.select(predicate, None if every else lambda: _with_matches(command, resolved, source, candidates()))
    found = candidates()
    command.record_read(predicate, command.snapshot.files.take(found))
    return found


def _with_matches(command: Command, resolved: Resolved, source: MergeSource, candidates: pa.Array) -> pa.Array:
    """The files among the candidates with a row that matches a source row, or that a clause changes; one Spark job."""
    if len(candidates) == 0:
        return candidates
    _search(candidates)
    pairs = joined(command, resolved, source, candidates, unmatched=bool(resolved.by_source), places=False)
    found = pairs.where(_matters(command)).select(command.names.file_number).distinct().collect()
    return candidates.take(pa.array(sorted(number for (number,) in found), pa.int64()))


def _search(candidates: pa.Array) -> None:
    stage(f"searching {files_text(len(candidates))} for matching rows")


def _matters(command: Command) -> Column:
    """Whether a row of `joined` matches a source row, or a clause changes it."""
    return F.col(command.names.clause).isNotNull() | F.col(command.names.source_row).isNotNull()


def _of_table(resolved: Resolved, condition: Expression) -> list[Column]:
    """The conjuncts of a condition that refer only to columns of the table."""
    return [conjunct.column for conjunct in resolved.scope.conjuncts(condition) if not conjunct.of_source]


def _all(columns: list[Column]) -> Column:
    combined = columns[0]
    for column in columns[1:]:
        combined = combined & column
    return combined


def _any(columns: list[Column]) -> Column:
    combined = columns[0]
    for column in columns[1:]:
        combined = combined | column
    return combined


def _mask(indices: pa.Array, count: int) -> pa.Array:
    return pc.is_in(pa.array(range(count), pa.int64()), value_set=indices.cast(pa.int64()))


# --- which rows -------------------------------------------------------------------------------------------------------


def _on_driver(command: Command, resolved: Resolved, source: MergeSource, candidates: pa.Array) -> Matches | None:
    """Collect all matching pairs on the driver in one job; None if there are too many."""
    size = exact_sum(command.snapshot.files.column("size").take(candidates))
    whole = size <= _WHOLE_ROWS and bool(resolved.changing)
    names = command.names
    pairs = joined(command, resolved, source, candidates, unmatched=False)
    if not whole:
        pairs = pairs.select(names.file_number, names.row_index, names.source_row, names.clause)
    held = local(pairs, _MOST_PAIRS)
    if held is None:
        return None
    frame = held.frame()
    matches = Matches(candidates, pairs=frame, held=held, whole=whole)
    # Runs no Spark job: the rows are on the driver.
    located = frame.select(names.file_number, names.row_index, names.source_row, names.clause).collect()
    if not located:
        return matches
    files, rows, numbers, clauses = zip(*located, strict=True)
    matches.matched = frozenset(numbers)
    places = candidates.to_pylist()
    met = Counter(zip(files, rows, strict=True))
    matches.several = len(met) < len(files)
    _check_single(command, resolved, several=matches.several)
    taken = {(file, row): clause for file, row, clause in zip(files, rows, clauses, strict=True) if clause is not None}
    matches.counts = Counter((places[file], clause) for (file, _), clause in taken.items())
    return matches


def _on_executors(
    command: Command, resolved: Resolved, source: MergeSource, candidates: pa.Array, *, places: bool
) -> Matches:
    """Count the rows by clause in Spark; the pairs are cached on the executors if the second pass needs them."""
    names = command.names
    single = source.unique or resolved.inserts_only
    places = places or not single
    pairs = joined(command, resolved, source, candidates, unmatched=bool(resolved.by_source), places=places)
    pairs = pairs.where(_matters(command)).select(
        names.file_number, *([names.row_index] if places else []), names.source_row, names.clause
    )
    again = bool(resolved.inserts) or places
    if again:
        pairs = pairs.persist(StorageLevel.MEMORY_AND_DISK)
    matches = Matches(candidates, pairs=pairs)
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
        counts = [tuple(row) for row in counted.collect()]
        matches.several = any(most > 1 for _, _, _, most in counts)
        _check_single(command, resolved, several=matches.several)
    except BaseException:
        if again:
            _release(pairs, command.log.table)
        raise
    numbers = candidates.to_pylist()
    matches.counts = {(numbers[file], clause): n for file, clause, n, _ in counts if clause is not None}
    return matches


def _check_single(command: Command, resolved: Resolved, *, several: bool) -> None:
    if not several or resolved.inserts_only:
        return
    if not only_delete([clause.clause for clause in resolved.matched]):
        raise InvalidArgumentError(
            f"{command.log.table}: a row of the table matches several rows of the source of MERGE, so it is ambiguous "
            "which of them updates it. Make the source's keys unique before the MERGE, for example with "
            "dropDuplicates, or keep only the newest row for each key; nothing was committed",
            condition="DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
        )
