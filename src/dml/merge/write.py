"""Second pass of MERGE: writes the new files for changed rows, and the inserted rows."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...engine.jvm import plans
from ...engine.jvm.columns import chosen, named
from ...engine.jvm.connection.gateway import Gateway
from ...engine.sql.resolution import aligned, column_named, local
from ...engine.sql.stored_frame import StoredFrame
from ...settings.declarations import MERGE_REPARTITION
from ..command import change_data, row_deletion, rows
from ..command.change_data import CHANGE_TYPE
from ..command.command import Command
from ..command.removal import Removal
from . import frames
from .frames import union
from .join import joined, matched_numbers
from .matching import Matches
from .output import MergeOutput, unchanged_rows
from .resolve import Resolved
from .source import MergeSource

_FEW_ROWS = 1_000
_SMALL_FILES = 16 << 20


def write(command: Command, resolved: Resolved, source: MergeSource, matches: Matches, *, inserts: bool) -> MergeOutput:
    """Write the changes of rows, and with `inserts`, the new rows.

    Raises AppendOnlyTableError if existing rows would be deleted or replaced.
    """
    outcome = MergeOutput()
    if matches.touched:
        command.check_removable()
    outcome.count(lambda number: matches.rows([number]), [taken.clause for taken in resolved.changing])
    new = _new_rows(command, resolved, source, matches) if inserts else None
    writer = _Writer(command, resolved, matches, outcome, new)
    by_vectors, recorded = row_deletion.vectors_enabled(command, "merge"), change_data.wanted(command)
    if not matches.touched:
        writer.insert()
    elif by_vectors or recorded:
        writer.apart(source, by_vectors=by_vectors, recorded=recorded)
    else:
        writer.together(source)
    return outcome


# --- new rows ---------------------------------------------------------------------------------------------------------


@dataclass
class _Piece:
    """Rows of the table after the commit. `count` is None if unknown; `held`: the rows are on the driver."""

    frame: DataFrame
    held: bool = False
    count: int | None = None


def _new_rows(command: Command, resolved: Resolved, source: MergeSource, matches: Matches) -> _Piece | None:
    """The rows that the clauses insert; None if there are none."""
    if not resolved.inserts or not source.rows:
        return None
    on_driver = source.held is not None and (matches.held is not None or matches.pairs is None)
    if on_driver:
        rest = source.unmatched_held(matches.matched)
    else:
        rest = source.unmatched(None if matches.pairs is None else matched_numbers(command, matches.pairs))
    frame = union(frames.inserted(command, rest, [(clause.test, clause.values) for clause in resolved.inserts]))
    if not on_driver:
        return _Piece(frame)
    held = local(frame, source.rows)
    assert held is not None
    return _Piece(held.frame(), held=True, count=held.count) if held.count else None


# --- changed rows -----------------------------------------------------------------------------------------------------


class _Writer:
    def __init__(
        self, command: Command, resolved: Resolved, matches: Matches, outcome: MergeOutput, new: _Piece | None
    ) -> None:
        self._command = command
        self._names = command.names
        self._clause = F.col(command.names.clause)
        self._resolved = resolved
        self._matches = matches
        self._outcome = outcome
        self._new = new
        self._removed = command.snapshot.add_files(matches.touched)

    def insert(self) -> None:
        """Write only the new rows."""
        self.write(self._inserted)

    def together(self, source: MergeSource) -> None:
        """Rewrite the touched files: changed rows replace the old ones, in the same files if the rules allow it."""
        self._outcome.removal = Removal(removed=self._removed)
        if self._few:
            pieces = [self._kept_of_few(), *self._updated(source)]
        elif rows.generated(self._command):
            pieces = [self._kept(source), *self._updated(source)]
        else:
            pieces = [self._after(source)]
        self.write([*pieces, *self._inserted])

    def apart(self, source: MergeSource, *, by_vectors: bool, recorded: bool) -> None:
        """Write changed rows separately from unchanged ones, which are not rewritten if `by_vectors`."""
        kept: list[_Piece] = []
        if by_vectors:
            assert self._matches.pairs is not None
            places = self._matches.pairs.where(self._clause.isNotNull()).select(
                self._names.file_number, self._names.row_index
            )
            self._outcome.removal = row_deletion.delete_rows(self._command, places, numbers=self._matches.candidates)
        else:
            kept = [self._kept_of_few() if self._few else self._kept(source)]
            self._outcome.removal = Removal(removed=self._removed)
        changed = self._updated(source)
        if not recorded:
            self.write([*kept, *changed, *self._inserted])
            return
        images = [piece.frame.withColumn(CHANGE_TYPE, F.lit("update_postimage")) for piece in changed]
        images += [piece.frame.withColumn(CHANGE_TYPE, F.lit("insert")) for piece in self._inserted]
        with _once(self._command, images, source, all(piece.held for piece in (*changed, *self._inserted))) as both:
            self.write([*kept, *(_Piece(piece.frame.drop(CHANGE_TYPE), piece.held) for piece in both)])
            pieces = [*(piece.frame for piece in both), *self._before(source)]
            alike = [change_data.shaped(self._command, piece) for piece in pieces]
            self._outcome.changes = change_data.write(self._command, union(alike))

    def write(self, pieces: Sequence[_Piece]) -> None:
        """Write the data files; `pieces` include the new rows."""
        if pieces:
            frame = union([piece.frame for piece in pieces])
            names = self._command.txn.metadata.partition_columns
            if not all(piece.held for piece in pieces):
                if self._matches.touched and self._few and not self._command.numbered:
                    frame = frame.coalesce(1)
                elif names and MERGE_REPARTITION.of(self._command.log.conf):
                    frame = frame.repartition(*(column_named(name) for name in names))
            written = rows.write_new(self._command, frame)
            self._outcome.added = written.adds
            self._tell_apart(written.rows)

    def _tell_apart(self, written: int) -> None:
        """Derive the counts of copied and inserted rows from the count of written rows."""
        new = self._new
        rest = written - self._outcome.updated
        if self._outcome.removal.by_vectors:
            unchanged: int | None = 0
        else:
            changed = self._matches.rows(list(range(len(self._resolved.changing))))
            unchanged = unchanged_rows(self._removed, changed)
        if new is None:
            inserted = 0
        elif new.count is not None:
            inserted = new.count
        else:
            inserted = new.frame.count() if unchanged is None else rest - unchanged
        self._outcome.inserted = inserted
        self._outcome.copied = rest - self._outcome.inserted

    @property
    def _inserted(self) -> list[_Piece]:
        new = self._new
        if new is None:
            return []
        if new.held or self._command.txn.metadata.partition_columns:
            return [new]
        return [_Piece(new.frame.hint("rebalance"))]  # the rows may be spread over many small tasks

    @property
    def _few(self) -> bool:
        """Whether the changed rows are on the driver, and the touched files are small enough for one write task."""
        held = self._matches.held
        small = sum(add.size for add in self._removed) <= _SMALL_FILES
        return held is not None and self._matches.whole and held.count <= _FEW_ROWS and small

    # --- frames -------------------------------------------------------------------------------------------------------

    def _joined(self, source: MergeSource, *, unmatched: bool, places: bool = False) -> DataFrame:
        numbers = pa.array(self._matches.touched, pa.int64())
        return joined(
            self._command,
            self._resolved,
            source,
            numbers,
            unmatched=unmatched,
            places=places,
            # With deletion vectors, the same rows must be found here as by the search, which marked them.
            rewritten=not self._outcome.removal.by_vectors,
        )

    def _every_row(self, source: MergeSource) -> DataFrame:
        """All rows of the touched files, each once, with the number of the clause that applies to it."""
        several = self._matches.several
        frame = self._joined(source, unmatched=True, places=several)
        if not several:
            return frame
        return frames.once_each(frame, self._names)

    def _changing(self, source: MergeSource) -> _Piece:
        """The rows that change, with their old values, joined with their source rows."""
        if self._matches.held is not None and self._matches.whole:
            return _Piece(self._matches.held.frame().where(self._clause.isNotNull()), held=True)
        frame = self._joined(source, unmatched=bool(self._resolved.by_source), places=self._matches.several)
        return _Piece(frame.where(self._clause.isNotNull()))

    def _as_kept(self, frame: DataFrame) -> DataFrame:
        """Rows of the table, with the table's schema after the commit."""
        columns = [named(self._resolved.kept[f.name], f.name) for f in self._resolved.columns]
        return rows.without_void(self._command, frame.select(*columns, *map(column_named, self._command.carried)))

    def _kept(self, source: MergeSource) -> _Piece:
        """The unchanged rows of the touched files."""
        return _Piece(self._as_kept(self._every_row(source).where(self._clause.isNull())))

    def _kept_of_few(self) -> _Piece:
        """The unchanged rows, found by excluding the locations of the changed rows, without a join."""
        matches = self._matches
        assert matches.pairs is not None
        numbers = matches.candidates.to_pylist()
        at = {number: place for place, number in enumerate(matches.touched)}
        places: dict[int, set[int]] = {}
        for file, row in (
            matches.pairs.where(self._clause.isNotNull())
            .select(self._names.file_number, self._names.row_index)
            .collect()
        ):
            places.setdefault(at[numbers[file]], set()).add(row)
        in_file, at_row = self._names.file_number, self._names.row_index
        tests = [
            f"({in_file} = {file} AND {at_row} IN ({', '.join(map(str, sorted(of_file)))}))"
            for file, of_file in sorted(places.items())
        ]
        touched = pa.array(matches.touched, pa.int64())
        frame = aligned(
            self._command.rows(touched, file_number=self._names.file_number, row_index=self._names.row_index),
            self._resolved.scope.target_output,
        )
        return _Piece(self._as_kept(frame.where(f"NOT ({' OR '.join(tests)})")))

    def _after(self, source: MergeSource) -> _Piece:
        """All rows of the touched files after the MERGE."""
        numbers = self._resolved.updates
        frame = self._every_row(source)
        frame = frame.where(self._clause.isNull() | self._clause.isin(numbers))
        columns = self._values(self._resolved.columns.names, numbers)
        passed_on = self._command.passed_on(frame, self._clause.isNotNull())
        return _Piece(rows.fitted(self._command, frame.select(*columns, *passed_on)))

    def _updated(self, source: MergeSource) -> list[_Piece]:
        """The updated rows with new values: one frame for each set of generated columns that clauses assign."""
        resolved = self._resolved
        groups: dict[tuple[str, ...], list[int]] = {}
        for number in resolved.updates:
            if self._matches.rows([number]):
                lacking = rows.generated(self._command, resolved.changing[number].values)
                groups.setdefault(tuple(lacking), []).append(number)
        if not groups:
            return []
        changing = self._changing(source)
        pieces = []
        for left_out, numbers in groups.items():
            frame = changing.frame.where(self._clause.isin(numbers))
            columns = self._values([name for name in resolved.columns.names if name not in left_out], numbers)
            passed_on = self._command.passed_on(frame, F.lit(True))
            pieces.append(_Piece(rows.fitted(self._command, frame.select(*columns, *passed_on)), changing.held))
        return pieces

    def _values(self, columns: Sequence[str], numbers: Sequence[int]) -> list[Column]:
        """The values of these columns in a row that is unchanged, or to which one of these clauses applies."""
        gateway = Gateway.of(self._command.spark)
        tests = {number: self._clause == number for number in numbers}
        values = []
        for name in columns:
            value = self._resolved.kept[name]
            for number, test in tests.items():
                assigned = self._resolved.changing[number].values
                if name in assigned:
                    value = chosen(gateway, test, assigned[name], value)
            values.append(named(value, name))
        return values

    def _before(self, source: MergeSource) -> list[DataFrame]:
        """The changed rows with their old values, as rows of the change data feed."""
        frame = self._changing(source).frame
        if self._matches.several:
            frame = frame.dropDuplicates([self._names.file_number, self._names.row_index])
        columns = [named(self._resolved.kept[f.name], f.name) for f in self._resolved.columns]
        return [frame.select(*columns, frames.preimage_kind(self._clause, self._resolved.updates))]


@contextmanager
def _once(command: Command, pieces: Sequence[DataFrame], source: MergeSource, held: bool) -> Iterator[list[_Piece]]:
    """The rows of the frames, computed only once even if they are read several times."""
    if not pieces:
        yield []
        return
    frame = union(pieces)
    if held:
        rows_held = local(frame, 2 * plans.MAX_ROWS)
        assert rows_held is not None
        yield [_Piece(rows_held.frame(), held=True)]
        return
    stored = StoredFrame(frame, replicated=source.replicated)
    try:
        yield [_Piece(stored.frame)]
    finally:
        stored.release(f"{command.log.table}: the rows of a MERGE's changes")
