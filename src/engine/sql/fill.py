"""Computes the columns that a write omits: defaults, generated and identity columns; and lists the checks of a write.

PROTOCOL.md, "Default Columns", "Generated Columns", "Identity Columns".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.protocol.rules import Check, Identity, Rules
from ...core.protocol.schema import DEFAULT_KEY, StructField, StructType, dotted, quoted
from ...errors import SchemaMismatchError, UnsupportedFeatureError
from ..jvm import plans
from ..jvm.connection.sessions import is_classic
from . import expressions
from .violations import marked

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_ROW_BITS = 33  # bits for the row in `monotonically_increasing_id`; higher bits are the partition


def with_defaults(df: "DataFrame", absent: Iterable[StructField], rules: Rules, table: str) -> "DataFrame":
    """Add the default values of missing columns to `df`.

    Raises UntrustedTableError and SchemaMismatchError for a default value that can't be evaluated.
    """
    from pyspark.sql import functions as F

    defaults = {f.name: rules.defaults[f.name] for f in absent if f.name in rules.defaults}
    for name, sql in defaults.items():
        _check_value(df, sql, f"the default value of the column {dotted((name,))}", table)
    return df.withColumns({name: F.expr(sql) for name, sql in defaults.items()}) if defaults else df


def check_default(spark: "SparkSession", schema: StructType, field: StructField, table: str) -> None:
    """Check the default value of a column that a statement calls DEFAULT, before Spark resolves it.

    Raises UntrustedTableError and SchemaMismatchError for one that can't be evaluated.
    """
    sql = field.metadata.get(DEFAULT_KEY)
    if sql is not None:
        what = f"the default value of the column {dotted((field.name,))}"
        _check_value(expressions.empty(spark, schema), str(sql), what, table)


def _check_value(df: "DataFrame", sql: str, what: str, table: str) -> None:
    from pyspark.errors import AnalysisException

    try:
        resolved = expressions.evaluated(df, sql, what, table)
    except AnalysisException as error:
        raise SchemaMismatchError(f"{table}: {what}, {sql}, can't be evaluated: {error}") from error
    if resolved is None:
        raise SchemaMismatchError(f"{table}: {what}, {sql}, is not a value of a single row: drop it, or correct it")


def made_of_rows(absent: Iterable[StructField], rules: Rules) -> tuple[str, ...]:
    """The generated and identity columns among the missing columns."""
    return tuple(f.name for f in absent if f.name in rules.generated or f.name in rules.identity)


def with_made(
    df: "DataFrame", schema: StructType, computed: Sequence[str], rules: Rules, turn: "Turn", table: str
) -> "DataFrame":
    """The columns of `schema`: those in `computed` by the rules, the others from `df`, in the table's types.

    Raises UntrustedTableError and SchemaMismatchError for a generation expression that can't be evaluated.
    """
    from pyspark.sql import functions as F

    for name in computed:
        if name in rules.generated:
            _check_value(df, rules.generated[name], _generation(name), table)

    def column(field: StructField) -> "Column":
        if field.name not in computed:
            return df[quoted(field.name)]
        if field.name in rules.generated:
            return F.expr(rules.generated[field.name]).alias(field.name)
        return numbers(df.sparkSession, field.name, rules.identity[field.name], turn).alias(field.name)

    return df.select(*map(column, schema))


def _generation(name: str) -> str:
    return f"the generation expression of the column {dotted((name,))}"


def checks(rules: Rules, computed: Sequence[str]) -> list[Check]:
    """The checks for the rows of a write: the table's, and one for each generated column that the data already has."""
    return [
        *(
            Check(_generation(name), f"{quoted(name)} <=> ({sql})")
            for name, sql in rules.generated.items()
            if name not in computed
        ),
        *rules.checks,
    ]


@dataclass(frozen=True)
class Turn:
    """The position of a frame among the `of` frames of a commit for which identity values are generated."""

    number: int = 0
    of: int = 1


ALONE = Turn()


def numbers(spark: "SparkSession", name: str, identity: Identity, turn: Turn) -> "Column":
    """The next values of an identity column: unique, increasing within a task, interleaved between tasks.

    The job fails if a value exceeds bigint. A frame with this column may go through a union or a shuffle, but not
    through `coalesce`, which changes the tasks: that fails as well.
    """
    from pyspark.sql import functions as F

    if not is_classic(spark):
        raise UnsupportedFeatureError(
            f"values of the identity column {dotted((name,))} can't be generated on Spark Connect: write from a "
            "classic session; nothing was written",
            ("identityColumns on Spark Connect",),
        )
    row_of_all = F.monotonically_increasing_id()
    row, task = row_of_all.bitwiseAND(F.lit((1 << _ROW_BITS) - 1)), F.shiftright(row_of_all, _ROW_BITS)
    tasks = plans.tasks(spark)
    place = (row * tasks + task) * turn.of + turn.number
    value = F.try_add(F.lit(identity.first), F.try_multiply(F.lit(identity.step), place))

    def refused(problem: str) -> "Column":
        message = f"the identity column {dotted((name,))} {problem}; nothing was written"
        return F.raise_error(F.lit(marked(message))).cast("bigint")

    used_up = refused("has no values left: its next value exceeds bigint")
    return F.when(task < tasks, F.coalesce(value, used_up)).otherwise(refused("can't be generated by these tasks"))
