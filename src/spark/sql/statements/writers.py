"""`df.writeTo(name)` and `df.mergeInto(name, condition)` for a Delta table, by its name, its path or a view."""

from dataclasses import replace
from typing import Any

from pyspark.sql import Column

from ....dml.change.write import write
from ....engine.jvm import builders, catalyst
from ....engine.jvm.connection.gateway import Gateway
from ...conf import session_conf
from ...options import Options, write_request
from ...writer import resetting_transaction
from .. import tables
from ..statement import Statement
from .merge import run_merge


def write_to(writer: Any, method: str, condition: Column | None = None) -> bool:
    """Run `append`, `overwrite` or `overwritePartitions` of a `DataFrameWriterV2`, which go by the columns' names.

    Returns False if the table is not a Delta table.
    """
    spark = builders.session_of(writer)
    table = tables.find(spark, builders.v2_table_name(writer))
    if table is None:
        return False
    table.check_newest()
    options, conf = Options(builders.v2_options(writer)), session_conf(spark, table.log.table)
    options.refuse("replaceWhere", "writeTo has the condition as the argument of overwrite")
    if options.boolean("overwriteSchema"):
        options.refuse("overwriteSchema", f"{method} keeps the table's columns and partitions. Use df.write")
    request = write_request(options, conf, mode="Append" if method == "append" else "Overwrite")
    request = replace(request, dynamic_partitions=method == "overwritePartitions")
    if condition is not None:
        gateway = Gateway.of(spark)
        expression = gateway.expression(spark, condition)
        by_names = gateway.column(catalyst.by_names(spark, expression))
        request = replace(request, replace_where=str(expression.sql()), replace_condition=by_names)
    with resetting_transaction(spark, conf):
        write(spark, table.log, builders.frame_of(writer), request)
    return True


def merge_into(writer: Any) -> bool:
    """Run the MERGE of a `MergeIntoWriter`. Returns False if the table is not a Delta table."""
    plan = builders.merge_statement(writer)
    return run_merge(Statement(builders.session_of(writer), "", plan)) is not None
