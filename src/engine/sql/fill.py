"""Columns that a write leaves out: default values, generated columns, identity columns; and the checks of a write.

PROTOCOL.md, "Default Columns", "Generated Columns", "Identity Columns".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.protocol.rules import Check, Identity, Rules
from ...core.protocol.schema import StructField, StructType, dotted
from ...errors import SchemaMismatchError
from ..jvm import plans
from . import expressions
from .violations import marked

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_ROW_BITS = 33  # of the number that `monotonically_increasing_id` gives; those above are the partition's


def with_defaults(df: "DataFrame", absent: Iterable[StructField], rules: Rules, table: str) -> "DataFrame":
    """`df` with the default value of each column that it lacks and that has one.

    Raises UntrustedTableError and SchemaMismatchError for a default value that isn't evaluated.
    """
    from pyspark.sql import functions as F

    found = {f.name: rules.defaults[f.name] for f in absent if f.name in rules.defaults}
    for name, sql in found.items():
        _check_value(df, sql, f"the default value of the column {dotted((name,))}", table)
    return df.withColumns({name: F.expr(sql) for name, sql in found.items()}) if found else df


def _check_value(df: "DataFrame", sql: str, what: str, table: str) -> None:
    from pyspark.errors import AnalysisException

    try:
        found = expressions.evaluated(df, sql, what, table)
    except AnalysisException as error:
        raise SchemaMismatchError(f"{table}: {what}, {sql}, can't be evaluated: {error}") from error
    if found is None:
        raise SchemaMismatchError(f"{table}: {what}, {sql}, is no value of one row: drop it, or mend it")


def made_of_rows(absent: Iterable[StructField], rules: Rules) -> tuple[str, ...]:
    """The generated and the identity columns among those that the data lacks."""
    return tuple(f.name for f in absent if f.name in rules.generated or f.name in rules.identity)


def with_made(
    df: "DataFrame", schema: StructType, made: Sequence[str], rules: Rules, turn: "Turn", table: str
) -> "DataFrame":
    """The columns of `schema`, those of `made` by the rules from the others, which `df` has as the table has them.

    Raises UntrustedTableError and SchemaMismatchError for a generation expression that isn't evaluated.
    """
    from pyspark.sql import functions as F

    for name in made:
        if name in rules.generated:
            _check_value(df, rules.generated[name], _generation(name), table)

    def column(f: StructField) -> "Column":
        if f.name not in made:
            return df[_quoted(f.name)]
        if f.name in rules.generated:
            return F.expr(rules.generated[f.name]).alias(f.name)
        return numbers(df.sparkSession, f.name, rules.identity[f.name], turn).alias(f.name)

    return df.select(*map(column, schema))


def _generation(name: str) -> str:
    return f"the generation expression of the column {dotted((name,))}"


def checks(rules: Rules, made: Sequence[str]) -> list[Check]:
    """What the rows of a write must meet: the table's checks, and that generated columns that came along are right."""
    return [
        *(
            Check(_generation(name), f"{_quoted(name)} <=> ({sql})")
            for name, sql in rules.generated.items()
            if name not in made
        ),
        *rules.checks,
    ]


@dataclass(frozen=True)
class Turn:
    """Which of `of` frames this is, whose rows are numbered side by side and go into one commit."""

    number: int = 0
    of: int = 1


ALONE = Turn()


def numbers(spark: "SparkSession", name: str, identity: Identity, turn: Turn) -> "Column":
    """The next values of an identity column: each once, in the order of rows within a task, the tasks by turns.

    The job fails where a bigint can't hold one. A frame that has it may go through a union or a shuffle, and not
    through `coalesce`, after which tasks no longer are what they were here: that fails as well.
    """
    from pyspark.sql import functions as F

    row_of_all = F.monotonically_increasing_id()
    row, task = row_of_all.bitwiseAND(F.lit((1 << _ROW_BITS) - 1)), F.shiftright(row_of_all, _ROW_BITS)
    tasks = plans.tasks(spark)
    place = (row * tasks + task) * turn.of + turn.number
    value = F.try_add(F.lit(identity.first), F.try_multiply(F.lit(identity.step), place))

    def refused(why: str) -> "Column":
        message = f"the identity column {dotted((name,))} {why}; nothing was written"
        return F.raise_error(F.lit(marked(message))).cast("bigint")

    used_up = refused("is used up: its next value is no bigint")
    return F.when(task < tasks, F.coalesce(value, used_up)).otherwise(refused("can't be numbered by these tasks"))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
