"""`DeltaTable.merge`: the builder that mirrors `delta.tables.DeltaMergeBuilder` call for call."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from ..core.deltalog import DeltaLog
from ..dml.merge.clauses import Action, Clause, Kind
from ..dml.merge.merge import merge
from .arguments import assignments_of, checked
from .boundary import with_pyspark_errors
from .describe import local_frame
from .writer import session_commit

RESULT = StructType(
    [
        StructField(name, LongType())
        for name in ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")
    ]
)


@with_pyspark_errors
@checked
class DeltaMergeBuilder:
    """Says what becomes of rows that match, and of those that don't; `execute` does it.

    The clauses of a kind are tried in their order, and the first whose condition is TRUE takes the row; only the last
    may have no condition. Each call gives a new builder.
    """

    def __init__(
        self,
        spark: SparkSession,
        log: DeltaLog,
        alias: str | None,
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
        """Update a matched row: `set` maps columns of the table to SQL expressions or Columns."""
        return self._with("matched", "update", condition, assignments_of(set, "set"))

    def whenMatchedUpdateAll(self, condition: str | Column | None = None) -> "DeltaMergeBuilder":
        """Update all columns of a matched row with the source's of the same names."""
        return self._with("matched", "update", condition)

    def whenMatchedDelete(self, condition: str | Column | None = None) -> "DeltaMergeBuilder":
        """Delete a matched row."""
        return self._with("matched", "delete", condition)

    def whenNotMatchedInsert(
        self, condition: str | Column | None = None, values: Mapping[str, str | Column] | None = None
    ) -> "DeltaMergeBuilder":
        """Insert a source row that matches none: `values` maps columns of the table to expressions over the source."""
        return self._with("not matched", "insert", condition, assignments_of(values, "values"))

    def whenNotMatchedInsertAll(self, condition: str | Column | None = None) -> "DeltaMergeBuilder":
        """Insert a source row that matches none, its columns into the table's of the same names."""
        return self._with("not matched", "insert", condition)

    def whenNotMatchedBySourceUpdate(
        self,
        condition: str | Column | None = None,
        set: Mapping[str, str | Column] | None = None,  # noqa: A002
    ) -> "DeltaMergeBuilder":
        """Update a row of the table that no source row matches; expressions see the table alone."""
        columns = assignments_of(set, "set")
        return self._with("not matched by source", "update", condition, columns)

    def whenNotMatchedBySourceDelete(self, condition: str | Column | None = None) -> "DeltaMergeBuilder":
        """Delete a row of the table that no source row matches."""
        return self._with("not matched by source", "delete", condition)

    def withSchemaEvolution(self) -> "DeltaMergeBuilder":
        """Let columns that clauses set, and only the source has, be added to the table."""
        return self._copy(self._clauses, evolves=True)

    def execute(self) -> DataFrame:
        """Do it and commit. One row tells how many rows were affected, updated, deleted and inserted."""
        with session_commit(self._spark) as options:
            counts = merge(
                self._spark,
                self._log,
                self._source,
                self._condition,
                self._clauses,
                alias=self._alias,
                evolve=self._evolves,
                options=options,
            )
        rows = [] if counts is None else [(counts.affected, counts.updated, counts.deleted, counts.inserted)]
        return local_frame(self._spark, rows, RESULT)

    def _with(
        self,
        kind: Kind,
        action: Action,
        condition: str | Column | None,
        values: Mapping[str, str | Column] | None = None,
    ) -> "DeltaMergeBuilder":
        if action == "update" and condition is None and values is not None and not values:
            return self  # a clause that changes nothing of any row: Delta takes no notice of it
        clause = Clause(kind, action, condition, values)
        return self._copy((*self._clauses, clause), evolves=self._evolves)

    def _copy(self, clauses: tuple[Clause, ...], *, evolves: bool) -> "DeltaMergeBuilder":
        return DeltaMergeBuilder(
            self._spark, self._log, self._alias, self._source, self._condition, clauses, evolves=evolves
        )
