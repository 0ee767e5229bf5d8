"""Where the two engines differ on purpose: each difference with its reason.

A listed difference that doesn't occur any more fails the test that runs its statement.
"""

from typing import Any, NamedTuple

from .sql_compare import Difference


class Accepted(NamedTuple):
    """A difference that is meant.

    `kind` is the statement's, `what` the part of its outcome. `ours` and `theirs` are the conditions of the errors (a
    class for an error without one), None for a statement that succeeds; of other parts than the answer they are None,
    and aren't compared. `sequences` names those where the difference occurs, as `subject_seed`.
    """

    kind: str
    what: str
    ours: str | None
    theirs: str | None
    sequences: str
    reason: str

    def fits(self, difference: Difference) -> bool:
        """Whether this is the difference."""
        if (difference.statement.kind, difference.what) != (self.kind, self.what):
            return False
        return self.what != "answer" or (_error(difference.ours), _error(difference.theirs)) == (self.ours, self.theirs)


def _error(answer: Any) -> str | None:
    return str(answer["error"]).split(":")[0] if "error" in answer else None


ACCEPTED: tuple[Accepted, ...] = (
    Accepted(
        "wrong DELETE: aggregate",
        "answer",
        "INVALID_WHERE_CONDITION",
        "UNSUPPORTED_EXPR_FOR_OPERATOR",
        "rows_0 rows_2",
        "the condition is resolved as that of a filter",
    ),
    Accepted(
        "wrong MERGE: unknown column in condition",
        "answer",
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        "INTERNAL_ERROR",
        "rows_1",
        "delta-spark's condition has no text, an internal error",
    ),
    Accepted("MERGE", "commit", None, None, "rows_2", "no row changes, so we rewrite no file and make no commit"),
    Accepted("INSERT OVERWRITE", "domains", None, None, "rows_2", "delta-spark forgets the clustering columns"),
    Accepted(
        "wrong CREATE: CTAS column twice",
        "answer",
        "DELTA_DUPLICATE_COLUMNS_FOUND.DATA",
        "COLUMN_ALREADY_EXISTS",
        "tables_0",
        "Spark's catalog refuses it first there",
    ),
    Accepted(
        "CONSTRAINT with a subquery",
        "answer",
        "DELTA_AGGREGATE_IN_CHECK_CONSTRAINT",
        "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
        "tables_0",
        "other writers can't evaluate it, so we refuse each subquery",
    ),
    Accepted(
        "ALTER CLUSTER BY: unknown column",
        "answer",
        "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
        "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
        "tables_0 tables_1",
        "both conditions hold; the partitioning is looked at first",
    ),
    Accepted(
        "wrong CREATE: property of no number",
        "answer",
        "DELTA_ILLEGAL_OPTION",
        "IllegalArgumentException",
        "tables_0 tables_1",
        "delta-spark has no condition of its own for it",
    ),
    Accepted(
        "wrong SET TBLPROPERTIES: 'delta.columnMapping.mode' = 'other'",
        "answer",
        "DELTA_ILLEGAL_OPTION",
        "UnsupportedOperationException",
        "tables_0",
        "delta-spark has no condition of its own for it",
    ),
    Accepted(
        "CONSTRAINT with a subquery",
        "answer",
        "DELTA_AGGREGATE_IN_CHECK_CONSTRAINT",
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        "tables_1",
        "other writers can't evaluate it, so we refuse each subquery",
    ),
    Accepted(
        "wrong CREATE: partition by all columns",
        "answer",
        "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION",
        "ALL_PARTITION_COLUMNS_NOT_ALLOWED",
        "tables_1",
        "Spark's catalog refuses it first there",
    ),
    Accepted(
        "CREATE OR REPLACE TABLE AS SELECT",
        "answer",
        None,
        "INTERNAL_ERROR",
        "tables_1",
        "delta-spark commits, and then fails in Spark's replace command",
    ),
    Accepted(
        "ALTER CLUSTER BY: column twice",
        "answer",
        "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
        "DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY",
        "tables_1",
        "both conditions hold; the partitioning is looked at first",
    ),
    Accepted(
        "REPLACE TABLE AS SELECT",
        "answer",
        None,
        "INTERNAL_ERROR",
        "tables_1",
        "delta-spark commits, and then fails in Spark's replace command",
    ),
    Accepted(
        "wrong CREATE: column twice",
        "answer",
        "DELTA_DUPLICATE_COLUMNS_FOUND.DATA",
        "COLUMN_ALREADY_EXISTS",
        "tables_2",
        "Spark's catalog refuses it first there",
    ),
    Accepted(
        "wrong SET TBLPROPERTIES: 'delta.appendOnly' = 'maybe'",
        "answer",
        "DELTA_ILLEGAL_OPTION",
        "UNSUPPORTED_TABLE_CHANGE",
        "tables_2",
        "delta-spark has no condition of its own for it",
    ),
    Accepted(
        "RESTORE version",
        "commits",
        None,
        None,
        "maintenance_0",
        "we write no metadata that is the same, so the level is another",
    ),
    Accepted(
        "VACUUM negative",
        "answer",
        "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE",
        None,
        "maintenance_1",
        "delta-spark follows RETAIN only where it is 0; ours is an error",
    ),
    Accepted(
        "VACUUM negative",
        "commit",
        None,
        None,
        "maintenance_1",
        "delta-spark follows RETAIN only where it is 0; ours is an error",
    ),
    Accepted(
        "RESTORE version",
        "commit",
        None,
        None,
        "maintenance_1",
        "the newest version needs no restoring after a VACUUM that delta-spark alone ran",
    ),
    Accepted(
        "VACUUM RETAIN 200",
        "commits",
        None,
        None,
        "maintenance_1",
        "delta-spark follows RETAIN only where it is 0; we follow each",
    ),
    Accepted(
        "RESTORE version",
        "rows",
        None,
        None,
        "maintenance_1",
        "delta-spark reads the rows of CACHE TABLE from before RESTORE",
    ),
    Accepted(
        "OPTIMIZE WHERE unknown column",
        "answer",
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        "DELTA_NON_PARTITION_COLUMN_REFERENCE",
        "maintenance_2",
        "the condition is resolved first",
    ),
    Accepted(
        "REORG WHERE p < 3", "commit", None, None, "maintenance_2", "no file has rows to purge, so we rewrite none"
    ),
)
