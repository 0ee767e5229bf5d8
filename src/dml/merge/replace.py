"""INSERT ... REPLACE USING and REPLACE ON: inserts all rows, and deletes the table's rows that one of them matches.

It is a MERGE. The source has each row twice. The first copy is only matched, and deletes the table's rows; the second
copy matches no row, so that it is inserted. The rows are computed once, before they are doubled.
"""

from collections.abc import Mapping, Sequence
from uuid import uuid4

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ...core.deltalog import DeltaLog
from ...core.protocol.schema import dotted
from ...core.txn.operation import Operation
from ...engine.read.scan import Alias
from ...engine.sql.resolution import columns_of
from ..command.command import PLAIN, CommitOptions
from .clauses import Clause
from .merge import merge


def replace_matching(
    spark: SparkSession,
    log: DeltaLog,
    rows: DataFrame,
    values: Mapping[str, Column],
    condition: Column,
    *,
    alias: Alias,
    evolve: bool,
    parameters: Mapping[str, object],
    options: CommitOptions = PLAIN,
) -> None:
    """Insert `values`, expressions over `rows` by the table's columns, and delete the rows that match, in one commit.

    Args:
        spark: the session.
        log: the table.
        rows: the rows; the condition refers to its columns.
        values: what is stored for each row.
        condition: when a row of the table and one of `rows` match.
        alias: the name of the table in the condition.
        evolve: add columns that the table lacks.
        parameters: what the history says about the command.
        options: for the commit.

    Raises: what `merge` raises.
    """
    hidden = [f"{uuid4().hex}_{i}" for i in range(len(values))]
    named = [value.alias(name) for value, name in zip(values.values(), hidden, strict=True)]
    once = rows.select(*columns_of(rows), *named)
    is_new = F.explode(F.array(F.lit(False), F.lit(True))).alias(uuid4().hex)
    *_, flag = columns_of(doubled := once.select(*columns_of(once), is_new))
    stored = columns_of(doubled)[-len(values) - 1 : -1]
    clauses = [
        Clause("matched", "delete"),
        Clause("not matched", "insert", flag, {dotted((n,)): v for n, v in zip(values, stored, strict=True)}),
    ]

    def recorded(metrics: Mapping[str, int | str]) -> Operation:
        return Operation("WRITE", {"mode": "Overwrite", "partitionBy": [], **parameters}, _metrics(metrics))

    merge(
        spark,
        log,
        doubled,
        condition & ~flag,
        clauses,
        alias=alias,
        evolve=evolve,
        options=options,
        recorded_as=recorded,
    )


_METRICS: Sequence[tuple[str, str]] = (
    ("numFiles", "numTargetFilesAdded"),
    ("numOutputRows", "numOutputRows"),
    ("numOutputBytes", "numTargetBytesAdded"),
    ("numRemovedFiles", "numTargetFilesRemoved"),
    ("numRemovedBytes", "numTargetBytesRemoved"),
    ("numCopiedRows", "numTargetRowsCopied"),
    ("numDeletedRows", "numTargetRowsDeleted"),
    ("numAddedChangeFiles", "numTargetChangeFilesAdded"),
)
"""The metrics of WRITE, each with the metric of MERGE that has its value."""


def _metrics(of_merge: Mapping[str, int | str]) -> dict[str, int | str]:
    return {name: of_merge[other] for name, other in _METRICS}
