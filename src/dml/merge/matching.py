"""First pass of MERGE over the table: finds the rows that change, and the files that contain them."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ...core.log.columns import exact_sum
from ...engine.sql import stored_frame
from ...engine.sql.resolution import Local, local
from ...errors import InvalidArgumentError
from ..command.command import Command
from .candidates import candidate_files, checks_matches, tell_search
from .join import changed, joined, matched, matched_numbers
from .resolve import Resolved
from .source import MergeSource

_MOST_PAIRS = 10_000
_WHOLE_ROWS = 32 << 20  # bytes; up to this size, whole rows are read, although key columns would suffice


@dataclass
class Matches:
    """The result of the first pass. Files are identified by their index in `snapshot.files`.

    `candidates`: the files that may contain rows to change.
    `counts`: maps (file, clause number) to the number of rows to which the clause applies.
    `pairs`: the matching rows of the candidates, each with its source row number, clause number and location (see
        `Command.names`). Other rows may match too: see `MergeSource.record_matched`.
    `held`: the rows of `pairs`, if they are on the driver; None if they are on the executors.
    `whole`: whether `pairs` has all columns of the table.
    `matched`: the numbers of the source rows in `pairs`, if these are on the driver.
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


def find(command: Command, resolved: Resolved, source: MergeSource, *, places: bool) -> Iterator[tuple[Matches, bool]]:
    """Join the source with the files that may contain rows to change, and record what was read in the transaction.

    If the files with rows that change are very many, each result has one slice of them, which is then the command's
    snapshot. Each result comes with whether it is the last one; the caller releases it. The source rows that match in
    the others are recorded, by the search or here.

    `places`: the caller needs the locations of the changed rows (deletion vectors). Raises InvalidArgumentError if a
    table row matches several source rows, unless all matched clauses delete.
    """
    for candidates, last in candidate_files(command, resolved, source):
        matches = _find(command, resolved, source, candidates, places=places)
        unrecorded = resolved.inserts and checks_matches(resolved, source)  # the search hasn't recorded its matches
        if not last and unrecorded and matches.pairs is not None:
            try:
                source.record_matched(matched_numbers(command, matches.pairs).distinct())
            except BaseException:
                matches.release(command.log.table)
                raise
        yield matches, last


def _find(command: Command, resolved: Resolved, source: MergeSource, candidates: pa.Array, *, places: bool) -> Matches:
    if len(candidates) == 0:
        return Matches(candidates)
    tell_search(candidates)
    if source.held is not None and not resolved.by_source:
        matches = _on_driver(command, resolved, source, candidates)
        if matches is not None:
            return matches
    return _on_executors(command, resolved, source, candidates, places=places)


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
    pairs = pairs.where(changed(command) | matched(command)).select(
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
    if several and resolved.refuses_several_matches:
        raise InvalidArgumentError(
            f"{command.log.table}: a row of the table matches several rows of the source of MERGE, so it is ambiguous "
            "which of them updates it. Make the source's keys unique before the MERGE, for example with "
            "dropDuplicates, or keep only the newest row for each key; nothing was committed",
            condition="DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
        )
