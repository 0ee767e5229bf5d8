"""DataFrames of a MERGE that a classic session and Spark Connect build in the same way."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ...engine.jvm.columns import named
from ...engine.jvm.connection.sessions import is_classic
from ...engine.sql.fill import Turn
from ..command import rows
from ..command.change_data import CHANGE_TYPE
from ..command.command import Command
from ..command.hidden_names import HiddenNames


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of all frames, whose columns have the same order."""
    combined = frames[0]
    for frame in frames[1:]:
        combined = combined.union(frame)
    return combined


def inserted(
    command: Command, unmatched: DataFrame, clauses: Sequence[tuple[Column, Mapping[str, Column]]]
) -> list[DataFrame]:
    """The rows that each INSERT clause inserts. `clauses` are the conditions and the assigned columns of each."""
    with_name = named if is_classic(command.spark) else Column.alias
    pieces = []
    for i, (test, values) in enumerate(clauses):
        frame = unmatched.where(test)
        for earlier, _ in clauses[:i]:
            frame = frame.where(~earlier.eqNullSafe(F.lit(True)))
        columns = [with_name(value, name) for name, value in values.items()]
        nulls = [F.lit(None).cast("bigint").alias(name) for name in command.carried]
        pieces.append(rows.fitted(command, frame.select(*columns, *nulls), turn=Turn(i, len(clauses))))
    return pieces


def once_each(frame: DataFrame, names: HiddenNames) -> DataFrame:
    """Each row of the table once, though it matches several source rows, with the number of the clause that applies.

    A clause may apply to a row for one of its matching source rows and not for another.
    """
    place = [names.file_number, names.row_index]
    clause = F.max(names.clause).over(Window.partitionBy(*place))
    return frame.withColumn(names.clause, clause).dropDuplicates(place)


def preimage_kind(clause: Column, updates: Sequence[int]) -> Column:
    """The kind of change of a changed row's old values; `updates` are the numbers of the UPDATE clauses."""
    return F.when(clause.isin(list(updates)), F.lit("update_preimage")).otherwise(F.lit("delete")).alias(CHANGE_TYPE)
