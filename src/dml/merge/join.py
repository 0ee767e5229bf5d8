"""The join of table rows with source rows, and the clause that applies to each."""

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...engine.sql.resolution import aligned
from ..command.command import Command
from .resolve import Resolved, Taken
from .source import MergeSource


def joined(
    command: Command,
    resolved: Resolved,
    source: MergeSource,
    numbers: pa.Array,
    *,
    unmatched: bool,
    places: bool = True,
    rewritten: bool = False,
) -> DataFrame:
    """Join the rows of the files with their source rows, and add the number of the clause that applies.

    With `unmatched`, the result also has rows without a match, with nulls. The columns are the table's,
    `command.carried`, the source's with the source row number, the location of the row, and the clause number (see
    `Command.names`). `rewritten` as in `Command.rows`.
    """
    names = command.names
    row_index = names.row_index if places else None
    rows = command.rows(numbers, file_number=names.file_number, row_index=row_index, rewritten=rewritten)
    rows = aligned(rows, resolved.scope.target_output)
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


def changed(command: Command) -> Column:
    """Whether a clause changes a row of `joined`."""
    return F.col(command.names.clause).isNotNull()


def matched(command: Command) -> Column:
    """Whether a row of `joined` matches a source row."""
    return F.col(command.names.source_row).isNotNull()


def matched_numbers(command: Command, pairs: DataFrame) -> DataFrame:
    """The numbers of the source rows that match, of rows of `joined`; in a column with a name of its own."""
    return pairs.where(matched(command)).select(F.col(command.names.source_row).alias(command.names.matched))
