"""MERGE on Spark Connect, where Spark's parser and analyzer are out of reach.

Conditions and values are Columns over a join of the table and the source, resolved by the server. They are checked to
give the same result each time (`public_columns`), and the source's rows are stored on the executors first, so both
passes over the table see the same. The first pass finds the files with rows that change; the second writes the files
that replace them. All files are candidates, and any concurrent change of the table's files is a conflict.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...core.protocol import schema
from ...core.protocol.schema import PrimitiveType, StructType, dotted, quoted
from ...core.schema_evolution import merging
from ...core.txn.operation import Operation
from ...engine.connect import assignment, client, public_columns
from ...engine.jvm.types import column_type, frame_schema, table_schema
from ...engine.read import pinning
from ...engine.read.scan import Alias
from ...engine.sql.collations import collated_value
from ...engine.sql.hidden_names import free_names
from ...engine.sql.resolution import column_named, literal_null, reshaped
from ...engine.sql.violations import translated
from ...errors import InvalidArgumentError
from ...progress import files_text, stage
from ...settings.declarations import MERGE_REPARTITION
from ..command import change_data, rows
from ..command.assignments import Path, field_of, whole
from ..command.change_data import CHANGE_TYPE
from ..command.command import Command
from ..command.removal import Removal
from . import frames
from .assigned import check_assigned
from .clauses import Clause, Kind, of_kind, only_delete
from .frames import union
from .names import Names, stage_evolution
from .output import MergeOutput, unchanged_rows

_OWN = ("__tablelog_target", "__tablelog_of_source")


@dataclass(frozen=True)
class _Taken:
    """A clause with its condition, and the assigned columns by the table's names."""

    clause: Clause
    test: Column
    values: Mapping[str, Column] = field(default_factory=dict)


def merge(
    command: Command,
    source: DataFrame,
    condition: str | Column,
    clauses: Sequence[Clause],
    *,
    alias: Alias | None,
    evolve: bool,
) -> tuple[MergeOutput, Operation]:
    """Write the files of a MERGE; the caller commits. `merge.merge` has the arguments and the errors.

    Raises UnsupportedFeatureError for an expression that isn't known to give the same result each time.
    """
    began = time.monotonic()
    pinning.pinned(source, command.log, command.snapshot)  # raises where the source has an older version of the table
    command.txn.read_whole_table()
    run = _Merge(command, source, condition, clauses, alias, evolve=evolve)
    with translated(command.log.table, run.columns):
        outcome = run.write()
    kinds: dict[str, Kind] = {
        "matchedPredicates": "matched",
        "notMatchedPredicates": "not matched",
        "notMatchedBySourcePredicates": "not matched by source",
    }
    printed = {name: [_printed(clause) for clause in of_kind(clauses, kind)] for name, kind in kinds.items()}
    metrics = {
        "numSourceRows": run.source_rows,
        **outcome.metrics(),
        "executionTimeMs": round((time.monotonic() - began) * 1000),
    }
    return outcome, Operation("MERGE", {"predicate": [public_columns.text_of(condition)], **printed}, metrics)


def _printed(clause: Clause) -> dict[str, str]:
    condition = {} if clause.condition is None else {"predicate": public_columns.text_of(clause.condition)}
    return {**condition, "actionType": clause.action}


class _Merge:
    def __init__(
        self,
        command: Command,
        source: DataFrame,
        condition: str | Column,
        clauses: Sequence[Clause],
        alias: Alias | None,
        *,
        evolve: bool,
    ) -> None:
        self._command = command
        self._evolve = evolve
        self._before: StructType = frame_schema(command.snapshot.schema)
        self._source_columns = table_schema(source.schema)
        schema.check_no_duplicates(self._source_columns)
        command.avoid_columns(source.columns)
        self._names = command.names
        taken = {*command.column_names, *source.columns, *vars(self._names).values()}
        self._kept_name, self._source_name = free_names(_OWN, taken)
        self._alias = alias if isinstance(alias, str) else None
        self._named_columns = Names(command, source, self._source_columns, alias)
        if evolve:
            stage_evolution(command, self._named_columns, clauses)
        self.columns: StructType = frame_schema(schema.parse_schema(command.txn.metadata.schema_string))
        self._source_alias, self._source_aliases = client.alias_of(source), client.aliases_in(source)
        stage("reading the source")
        stored = source.localCheckpoint(eager=True)
        of_source = F.struct(*(stored[quoted(name)] for name in source.columns)).alias(self._source_name)
        stored = stored.select("*", of_source, F.lit(True).alias(self._names.present))
        self._source = stored if self._source_alias is None else stored.alias(self._source_alias)
        self._every = list(range(command.snapshot.files.num_rows))
        self._condition = self._checked(condition, "both", "the search condition of MERGE")
        self._of_target: dict[str, Column] = {}
        self._analysed = self._target([]).join(self._source, self._condition, "left_outer")
        self._matched = [self._take(clause) for clause in of_kind(clauses, "matched")]
        by_source = [self._take(clause) for clause in of_kind(clauses, "not matched by source")]
        self._by_source = [self._before_join(i, one, taken) for i, one in enumerate(by_source)]
        self._inserts = [self._take(clause) for clause in of_kind(clauses, "not matched")]
        self._only_delete = only_delete(clauses)
        self._changing = [*self._matched, *self._by_source]
        self._several = False
        self._counts: dict[tuple[int, int], int] = {}
        self.source_rows = stored.count()

    # --- clauses ------------------------------------------------------------------------------------------------------

    def _checked(self, expression: str | Column, over: str, what: str) -> Column:
        """An expression over the columns of the table (`target`), of the source (`source`) or of both."""
        columns: list[str] = []
        qualifiers: list[str] = []
        if over != "source":
            columns += self._before.names
            qualifiers += [] if self._alias is None else [self._alias]
        if over != "target":
            columns += self._source_columns.names
            qualifiers += self._source_aliases
        return public_columns.checked_over(self._command.spark, expression, what, columns, qualifiers)

    def _take(self, clause: Clause) -> _Taken:
        over = {"matched": "both", "not matched": "source", "not matched by source": "target"}[clause.kind]
        test = F.lit(True)
        if clause.condition is not None:
            test = self._checked(clause.condition, over, f"the condition of {clause.text}")
        if clause.action == "delete":
            return _Taken(clause, test)
        assigned = self._star(clause) if clause.is_star else self._named(clause, over)
        tops = check_assigned(self._command, clause, [path for path, _ in assigned])
        values = self._casted(clause, assigned)
        whole_values = {}
        for top in tops:
            known = self.columns.get(top, case_sensitive=True)
            assert known is not None
            whole_values[top] = whole((top,), known, self._kept(top), values)
        return _Taken(clause, test, whole_values)

    def _before_join(self, number: int, taken: _Taken, names: set[str]) -> _Taken:
        """A clause over the table's columns alone, computed before the join with the source."""
        wanted = [f"__tablelog_by_source_{number}", *(f"__tablelog_by_source_{number}_{n}" for n in taken.values)]
        hidden = free_names(wanted, names)
        self._of_target |= dict(zip(hidden, [taken.test, *taken.values.values()], strict=True))
        test, *values = map(column_named, hidden)
        return _Taken(taken.clause, test, dict(zip(taken.values, values, strict=True)))

    def _named(self, clause: Clause, over: str) -> list[tuple[Path, Column]]:
        assert clause.values is not None
        assigned = []
        for name, value in clause.values.items():
            path = self._named_columns.path(name, self.columns, clause)
            assigned.append((path, self._checked(value, over, f"a value of {clause.text}")))
        return assigned

    def _star(self, clause: Clause) -> list[tuple[Path, Column]]:
        names, of_source = self._source_columns.names, column_named(self._source_name)
        assigned = self._named_columns.star(clause, self.columns, evolve=self._evolve)
        return [(path, of_source.getField(names[place])) for path, place in assigned]

    def _casted(self, clause: Clause, assigned: Sequence[tuple[Path, Column]]) -> dict[Path, Column]:
        """The values, cast to the types of the columns where both are primitive; `rows.fitted` converts the others."""
        # A clause for rows without a match resolves names of the one side only.
        sides = {"matched": self._analysed, "not matched": self._source, "not matched by source": self._target([])}
        over = sides[clause.kind]
        types = table_schema(over.select(*(value.alias(f"c{i}") for i, (_, value) in enumerate(assigned))).schema)
        keeps = clause.is_star and clause.action == "update"
        casted = {}
        for (path, value), new in zip(assigned, types, strict=True):
            column = field_of(path, self.columns)
            to = column.data_type
            if new.data_type == to:
                value = collated_value(value, column)
            elif isinstance(to, PrimitiveType) and isinstance(new.data_type, PrimitiveType):
                assignment.check_settings(self._source, self._command.log.table, dotted(path))
                value = value.cast(column_type(column))
            elif self._evolve:  # structs of the source may lack fields of the table's structs
                value = reshaped(value, new.data_type, to, self._kept(path[0]) if keeps else None)
            casted[path] = value
        return casted

    # --- frames -------------------------------------------------------------------------------------------------------

    def _kept(self, name: str) -> Column:
        """A column of the table, or one of `Command.carried`, in its row of the table, by its type after the commit."""
        field = self.columns.get(name, case_sensitive=True)
        before = self._before.get(name, case_sensitive=True)
        if field is not None and before is None:
            return literal_null(field)
        kept = column_named(self._kept_name).getField(name)
        if field is None or before is None or field.data_type == before.data_type:
            return kept
        wider = merging.as_nullable(StructType((field,))).fields[0]
        return reshaped(kept, before.data_type, field.data_type).cast(column_type(wider))

    def _target(self, numbers: Sequence[int], *, rewritten: bool = False) -> DataFrame:
        """The rows of some files, with a struct of their columns, whose name no column of the source has."""
        names = self._names
        files = pa.array(numbers, pa.int64())
        frame = self._command.rows(files, file_number=names.file_number, row_index=names.row_index, rewritten=rewritten)
        kept = F.struct(*(frame[quoted(name)] for name in (*self._before.names, *self._command.carried)))
        frame = frame.select("*", kept.alias(self._kept_name))
        frame = frame if self._alias is None else frame.alias(self._alias)
        if self._of_target:
            # These expressions may use names of the table that the source has too.
            frame = frame.select("*", *(column.alias(name) for name, column in self._of_target.items()))
            frame = frame if self._alias is None else frame.alias(self._alias)
        return frame

    def _joined(self, numbers: Sequence[int], *, unmatched: bool, rewritten: bool = False) -> DataFrame:
        """The rows of the files with their source rows, and the number of the clause that applies."""
        how = "left_outer" if unmatched else "inner"
        frame = self._target(numbers, rewritten=rewritten).join(self._source, self._condition, how)
        number = F.when(F.col(self._names.present).isNotNull(), _number(self._matched, 0)).otherwise(
            _number(self._by_source, len(self._matched))
        )
        return frame.withColumn(self._names.clause, number)

    def _find(self) -> list[int]:
        """The files with rows that change; sets the counts of rows by file and clause."""
        if not self._changing or not self._every:
            return []
        stage(f"searching {files_text(len(self._every))} for matching rows")
        names = self._names
        frame = self._joined(self._every, unmatched=bool(self._by_source))
        matters = F.col(names.clause).isNotNull() | F.col(names.present).isNotNull()
        by_row = (
            frame.where(matters)
            .groupBy(names.file_number, names.row_index)
            .agg(F.count("*").alias("n"), F.max(names.clause).alias(names.clause))
        )
        counted = by_row.groupBy(names.file_number, names.clause).agg(F.count("*").alias("n"), F.max("n").alias("most"))
        found = [tuple(row) for row in counted.collect()]
        self._several = any(most > 1 for *_, most in found)
        if self._several and not self._only_delete:
            raise InvalidArgumentError(
                f"{self._command.log.table}: a row of the table matches several rows of the source of MERGE, so it is "
                "ambiguous which of them updates it. Make the source's keys unique before the MERGE, for example with "
                "dropDuplicates; nothing was committed",
                condition="DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
            )
        self._counts = {(file, clause): n for file, clause, n, _ in found if clause is not None}
        return sorted({file for file, _ in self._counts})

    def _rows_of(self, numbers: Sequence[int]) -> int:
        return sum(n for (_, clause), n in self._counts.items() if clause in numbers)

    # --- writing ------------------------------------------------------------------------------------------------------

    def write(self) -> MergeOutput:
        """Find the rows that change, and write the files that replace theirs, and the inserted rows."""
        command = self._command
        touched = self._find()
        outcome = MergeOutput()
        outcome.count(lambda number: self._rows_of([number]), [taken.clause for taken in self._changing])
        inserted = self._inserted()
        kept: list[DataFrame] = []
        changed: list[DataFrame] = []
        every: DataFrame | None = None
        removed = command.snapshot.add_files(touched)
        if touched:
            command.check_removable()
            outcome.removal = Removal(removed=removed)
            every = self._every_row(touched)
            kept = [self._unchanged(every)]
            changed = self._updated(every)
        pieces = [*kept, *changed, *inserted]
        if not pieces:
            return outcome
        frame = union(pieces)
        by = command.txn.metadata.partition_columns
        if by and MERGE_REPARTITION.of(command.log.conf):
            frame = frame.repartition(*map(column_named, by))
        written = rows.write_new(command, frame)
        outcome.added = written.adds
        unchanged = unchanged_rows(removed, sum(self._counts.values()))
        if not inserted:
            outcome.inserted = 0
        elif unchanged is None:
            outcome.inserted = union(inserted).count()
        else:
            outcome.inserted = written.rows - outcome.updated - unchanged
        outcome.copied = written.rows - outcome.updated - outcome.inserted
        if every is not None and change_data.wanted(command):
            images = [piece.withColumn(CHANGE_TYPE, F.lit("update_postimage")) for piece in changed]
            images += [piece.withColumn(CHANGE_TYPE, F.lit("insert")) for piece in inserted]
            images.append(self._old_rows(every))
            outcome.changes = change_data.write(
                command, union([change_data.shaped(command, image) for image in images])
            )
        return outcome

    def _every_row(self, touched: Sequence[int]) -> DataFrame:
        """All rows of the touched files, each once, with the number of the clause that applies to it."""
        frame = self._joined(touched, unmatched=True, rewritten=True)
        if not self._several:
            return frame
        return frames.once_each(frame, self._names)

    def _unchanged(self, every: DataFrame) -> DataFrame:
        names = (*self.columns.names, *self._command.carried)
        frame = every.where(F.col(self._names.clause).isNull())
        return rows.without_void(self._command, frame.select(*(self._kept(name).alias(name) for name in names)))

    def _updated(self, every: DataFrame) -> list[DataFrame]:
        """The updated rows with new values, for each clause: generated columns that it doesn't set are left out."""
        pieces = []
        for number, taken in enumerate(self._changing):
            if taken.clause.action != "update" or not self._rows_of([number]):
                continue
            left_out = set(rows.generated(self._command, taken.values))
            frame = every.where(F.col(self._names.clause) == number)
            columns = [
                taken.values.get(name, self._kept(name)).alias(name)
                for name in self.columns.names
                if name not in left_out
            ]
            carried = self._command.carried
            if carried:  # a changed row keeps its ID, and gets the version of this commit
                columns += [self._kept(carried[0]).alias(carried[0]), F.lit(None).cast("bigint").alias(carried[1])]
            pieces.append(rows.fitted(self._command, frame.select(*columns)))
        return pieces

    def _inserted(self) -> list[DataFrame]:
        if not self._inserts or not self.source_rows:
            return []
        rest = self._source
        if self._every:
            rest = rest.join(self._target(self._every), self._condition, "left_anti")
        return frames.inserted(self._command, rest, [(taken.test, taken.values) for taken in self._inserts])

    def _old_rows(self, every: DataFrame) -> DataFrame:
        """The changed rows with their old values, as rows of the change data feed."""
        number = F.col(self._names.clause)
        updates = [i for i, taken in enumerate(self._changing) if taken.clause.action == "update"]
        columns = [self._kept(name).alias(name) for name in self.columns.names]
        return every.where(number.isNotNull()).select(*columns, frames.preimage_kind(number, updates))


def _number(taken: Sequence[_Taken], first: int) -> Column:
    """The number of the first clause whose condition is TRUE; null if there is none."""
    number: Column = F.lit(None).cast("int")
    for i, one in reversed(list(enumerate(taken, first))):
        number = F.lit(i) if one.clause.condition is None else F.when(one.test, F.lit(i)).otherwise(number)
    return number
