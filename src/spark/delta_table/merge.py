"""`DeltaTable.merge`: a builder with the methods of `delta.tables.DeltaMergeBuilder`."""

from collections.abc import Mapping, Sequence
from itertools import chain

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from ...core.deltalog import DeltaLog
from ...dml.merge.clauses import Action, Clause, Kind
from ...dml.merge.merge import merge
from ...engine.read import own_columns
from ...engine.read.scan import Alias
from ..arguments import assignments_of, checked
from ..boundary import with_pyspark_errors
from ..options import Options
from ..writer import session_commit
from .describe import local_frame

RESULT = StructType(
    [
        StructField(name, LongType())
        for name in ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")
    ]
)


@with_pyspark_errors
@checked
class DeltaMergeBuilder:
    """Defines the clauses of a MERGE; `execute` runs it.

    For each row, the first clause of its kind whose condition is TRUE applies; only the last clause of a kind may have
    no condition. Each method returns a new builder.
    """

    def __init__(
        self,
        spark: SparkSession,
        log: DeltaLog,
        alias: Alias | None,
        source: DataFrame,
        condition: str | Column,
        clauses: tuple[Clause, ...] = (),
        *,
        evolves: bool = False,
    ) -> None:
        self._spark = spark
        self._log = log
        self._alias = alias
        self._source = source
        self._condition = condition
        self._clauses = clauses
        self._evolves = evolves

    def whenMatchedUpdate(
        self,
        condition: str | Column | None = None,
        set: Mapping[str, str | Column] | None = None,  # noqa: A002
    ) -> "DeltaMergeBuilder":
        """Update matched rows: `set` maps columns of the table to SQL expressions or Columns."""
        return self._with("matched", "update", condition, assignments_of(set, "set"))

    def whenMatchedUpdateAll(self, condition: str | Column | None = None) -> "DeltaMergeBuilder":
        """Update all columns of matched rows by the source columns with the same names."""
        return self._with("matched", "update", condition)

    def whenMatchedDelete(self, condition: str | Column | None = None) -> "DeltaMergeBuilder":
        """Delete matched rows."""
        return self._with("matched", "delete", condition)

    def whenNotMatchedInsert(
        self, condition: str | Column | None = None, values: Mapping[str, str | Column] | None = None
    ) -> "DeltaMergeBuilder":
        """Insert source rows without a match: `values` maps columns of the table to expressions over the source."""
        return self._with("not matched", "insert", condition, assignments_of(values, "values"))

    def whenNotMatchedInsertAll(self, condition: str | Column | None = None) -> "DeltaMergeBuilder":
        """Insert source rows without a match; columns are matched by name."""
        return self._with("not matched", "insert", condition)

    def whenNotMatchedBySourceUpdate(
        self,
        condition: str | Column | None = None,
        set: Mapping[str, str | Column] | None = None,  # noqa: A002
    ) -> "DeltaMergeBuilder":
        """Update table rows that no source row matches; expressions can only use the table's columns."""
        columns = assignments_of(set, "set")
        return self._with("not matched by source", "update", condition, columns)

    def whenNotMatchedBySourceDelete(self, condition: str | Column | None = None) -> "DeltaMergeBuilder":
        """Delete table rows that no source row matches."""
        return self._with("not matched by source", "delete", condition)

    def withSchemaEvolution(self) -> "DeltaMergeBuilder":
        """Allow clauses to add columns to the table that only the source has."""
        return self._copy(self._clauses, evolves=True)

    def execute(self) -> DataFrame:
        """Run the MERGE and commit. Returns one row: the numbers of affected, updated, deleted and inserted rows."""
        of_clauses = ([clause.condition, *(clause.values or {}).values()] for clause in self._clauses)
        passed = [self._condition, *chain.from_iterable(of_clauses)]
        own_columns.check(self._spark, passed, self._log.table, self._source)
        return execute_merge(
            self._spark,
            self._log,
            self._source,
            self._condition,
            self._clauses,
            alias=self._alias,
            evolves=self._evolves,
        )

    def _with(
        self,
        kind: Kind,
        action: Action,
        condition: str | Column | None,
        values: Mapping[str, str | Column] | None = None,
    ) -> "DeltaMergeBuilder":
        if action == "update" and condition is None and values is not None and not values:
            return self  # an update without assignments; Delta ignores it too
        clause = Clause(kind, action, condition, values)
        return self._copy((*self._clauses, clause), evolves=self._evolves)

    def _copy(self, clauses: tuple[Clause, ...], *, evolves: bool) -> "DeltaMergeBuilder":
        return DeltaMergeBuilder(
            self._spark, self._log, self._alias, self._source, self._condition, clauses, evolves=evolves
        )


def execute_merge(
    spark: SparkSession,
    log: DeltaLog,
    source: DataFrame,
    condition: str | Column,
    clauses: Sequence[Clause],
    *,
    alias: Alias | None,
    evolves: bool,
    options: Options | None = None,
) -> DataFrame:
    """Run a MERGE and commit; `options` are those of its commit. Returns the row of `DeltaMergeBuilder.execute`."""
    with session_commit(spark, options) as commit:
        counts = merge(spark, log, source, condition, clauses, alias=alias, evolve=evolves, options=commit)
    rows = [] if counts is None else [(counts.affected, counts.updated, counts.deleted, counts.inserted)]
    return local_frame(spark, rows, RESULT)
