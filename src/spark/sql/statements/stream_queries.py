"""Queries with `STREAM(table)`: streaming DataFrames by SQL."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ....engine.jvm import streams
from ....engine.jvm.statements import statements
from ...streaming.builders import frame
from .. import tables


def query(spark: SparkSession, text: str, args: Any) -> DataFrame | None:
    """The DataFrame of a query that reads Delta tables as streams; None if it reads none, or in WITH.

    Spark fails for such a query, because the table's provider is no source that it knows.
    """
    plan = statements.parsed_with_values(spark, text, args) if args else statements.parsed(spark, text)
    replacements = []
    for relation in streams.unresolved(plan):
        table = tables.find(spark, relation.name_parts)
        if table is not None:
            rows = frame(spark, table.log.table, relation.options).alias(relation.alias)
            replacements.append((relation, rows))
    return streams.with_relations(spark, plan, replacements) if replacements else None
