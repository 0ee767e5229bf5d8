"""INSERT ... REPLACE USING (columns) and INSERT ... REPLACE ON condition."""

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ....core.protocol.schema import dotted
from ....dml.merge.replace import replace_matching
from ....engine.jvm.connection import settings
from ....engine.jvm.connection.gateway import Gateway
from ....engine.jvm.statements import row_changes
from ....engine.read import scan
from ....engine.read.scan import Alias
from ....engine.sql.resolution import columns_of, has_column
from ....engine.write import view_inserts
from ....engine.write.view_inserts import Into, Replaced
from ....errors import SchemaMismatchError
from ...options import Options
from ...writer import session_commit
from ..statement import LogicalPlan

_TABLE = "replaced_by_insert"
"""The table's name in the condition of REPLACE USING, in which the user names no table."""


def run(
    spark: SparkSession,
    plan: LogicalPlan,
    target: Into,
    replaced: Replaced,
    name: Alias,
    options: Options,
) -> None:
    """Run the only INSERT of a statement. `name`: the table's name, if the statement doesn't give it an alias.

    Raises SchemaMismatchError with Delta's conditions for columns that one side lacks or both sides have, and what
    `replace_matching` raises.
    """
    rows, values = view_inserts.resolved_values(spark, plan, target)
    parameters: dict[str, object]
    if replaced.condition is None:
        alias: Alias = _TABLE
        condition = _equal(rows, target, replaced.columns)
        parameters = {"replaceUsingCols": f"({', '.join(replaced.columns)})"}
    else:
        alias = replaced.alias or name
        table = scan.for_conditions(spark, target.snapshot, alias)
        _check_references(target, [table, rows], row_changes.names_in(replaced.condition))
        gateway = Gateway.of(spark)
        condition = gateway.column(row_changes.CommonTables(spark, plan).expression(replaced.condition))
        parameters = {"replaceOnCond": str(replaced.condition.sql())}
    with session_commit(spark, options) as commit:
        replace_matching(
            spark,
            target.log,
            rows,
            values,
            condition,
            alias=alias,
            evolve=target.evolves,
            parameters=parameters,
            options=commit,
        )


def _equal(rows: DataFrame, target: Into, columns: Sequence[str]) -> Column:
    """The rows whose values in the columns are equal; null is equal to nothing."""
    case_sensitive = settings.case_sensitive(rows.sparkSession)
    in_table = [f.name for f in target.snapshot.schema]
    places = []
    for column in columns:
        sides = {"table": in_table, "query": rows.columns}
        places_by_side = {side: _places(names, column, case_sensitive=case_sensitive) for side, names in sides.items()}
        for side, names in sides.items():
            if not places_by_side[side]:
                raise SchemaMismatchError(
                    f"REPLACE USING: the column {column} is not in the {side}, which has: {', '.join(names)}. Nothing "
                    "was written.",
                    condition="UNRESOLVED_INSERT_REPLACE_USING_COLUMN",
                    parameters={"colName": column, "relationType": side, "suggestion": ", ".join(sorted(names))},
                    table=target.log.table,
                )
        places.append((in_table[places_by_side["table"][0]], places_by_side["query"][0], places_by_side["table"][0]))
    if not target.statement.byName():
        moved = [name for name, in_query, place in places if in_query != place]
        if moved:
            raise SchemaMismatchError(
                f"REPLACE USING: {', '.join(moved)} must have the same place in the query as in the table, because the "
                "INSERT is by position. Use BY NAME, or change the order. Nothing was written.",
                condition="INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS",
                parameters={"misalignedReplaceUsingCols": ", ".join(dotted((name,)) for name in moved)},
                table=target.log.table,
            )
    own = columns_of(rows)
    return reduce(and_, (F.col(dotted((_TABLE, name))) == own[in_query] for name, in_query, _ in places))


def _places(names: Sequence[str], wanted: str, *, case_sensitive: bool) -> list[int]:
    return [i for i, n in enumerate(names) if n == wanted or (not case_sensitive and n.lower() == wanted.lower())]


def _check_references(target: Into, sides: Sequence[DataFrame], names: Sequence[tuple[str, ...]]) -> None:
    """Each column of a condition must be in the table or in the query, and not in both."""
    sides_with = {name: [has_column(side, name) for side in sides] for name in names}
    twice = [dotted(name) for name, there in sides_with.items() if all(there)]
    if twice:
        raise SchemaMismatchError(
            f"REPLACE ON: {', '.join(twice)} is both in the table and in the query: give the table or the query an "
            "alias, and name the columns by it. Nothing was written.",
            condition="DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION",
            parameters={"columnNames": ", ".join(twice)},
            table=target.log.table,
        )
    missing = [dotted(name) for name, there in sides_with.items() if not any(there)]
    if missing:
        raise SchemaMismatchError(
            f"REPLACE ON: {', '.join(missing)} is neither in the table nor in the query. Nothing was written.",
            condition="DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION",
            parameters={"columnNames": ", ".join(missing)},
            table=target.log.table,
        )
