"""The files that a MERGE may change: by partition values and statistics, and by a search if they are very many."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F

from ...core.skipping import predicates
from ...engine.jvm.connection import settings
from ...engine.read import scan
from ...engine.sql.resolution import Expression
from ...progress import files_text, stage
from ..command.command import Command
from .join import changed, joined, matched
from .resolve import Resolved
from .source import MergeSource


def candidate_files(command: Command, resolved: Resolved, source: MergeSource) -> Iterator[tuple[pa.Array, bool]]:
    """Indexes in `snapshot.files` of the files that may contain rows to change: by partition values and statistics.

    It takes no Spark job unless the log is too large for the driver. If very many files may contain such rows, they are
    searched: then the result has the files with rows that change, and `source` knows which of its rows match others.
    If these files are very many too, `snapshot` has one slice of them at each step. Each step also tells whether it is
    the last one.
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

    for last in command.selections(predicate, lambda: _with_changes(command, resolved, source, candidates())):
        found = candidates()
        command.record_read(predicate, command.snapshot.files.take(found))
        yield found, last


def _with_changes(command: Command, resolved: Resolved, source: MergeSource, candidates: pa.Array) -> pa.Array:
    """The files among the candidates with a row that a clause changes; with `checks_matches`, or that matches.

    Otherwise the source rows that match are recorded if there are clauses that insert: they don't insert these.
    """
    if len(candidates) == 0:
        return candidates
    tell_search(candidates)
    names = command.names
    pairs = joined(command, resolved, source, candidates, unmatched=bool(resolved.by_source), places=False)
    file, number = F.col(names.file_number), F.col(names.source_row)
    if checks_matches(resolved, source):
        rows = pairs.where(changed(command) | matched(command)).select(file)
    elif not resolved.inserts:
        rows = pairs.where(changed(command)).select(file)
    else:
        found = pairs.select(F.when(changed(command), file).alias(names.file_number), number.alias(names.matched))
        rows = source.record_matched(found.distinct()).where(file.isNotNull()).select(file)
    numbers = rows.distinct().collect()
    return candidates.take(pa.array(sorted(number for (number,) in numbers), pa.int64()))


def checks_matches(resolved: Resolved, source: MergeSource) -> bool:
    """Whether rows that match may be an error, so that the files with such rows are searched once more."""
    return resolved.refuses_several_matches and not source.unique


def tell_search(candidates: pa.Array) -> None:
    """Report the stage of the search in these files."""
    stage(f"searching {files_text(len(candidates))} for matching rows")


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
