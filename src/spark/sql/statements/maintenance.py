"""Runs Delta's own statements about existing tables, one function for each: VACUUM, OPTIMIZE, RESTORE and others."""

import re

from pyspark.sql import DataFrame

from ....core.schema_evolution.changes import column_of
from ....dml.alter import upgrade_uniform
from ....dml.alter.schema_changes import sync_identity
from ....dml.maintain.optimize_layout import OptimizeLayout
from ....engine.jvm.catalog import SessionCatalog
from ....engine.jvm.statements import statements
from ....errors import InvalidArgumentError, TableNotFoundError, UnsupportedFeatureError
from ... import names
from ...conf import delta_log, session_conf
from ...delta_table import describe
from ...delta_table.convert import converted, hadoop_path
from ...delta_table.optimize import frame_of, run_optimize
from ...reader import is_partition_directory, not_a_table
from ...writer import commit_of
from .. import results, targets
from ..grammar import nodes
from ..grammar.nodes import Name
from ..targets import TableName, table_of
from ..values import Values

_ALTER_COLUMN = "ALTER TABLE ... ALTER COLUMN"
_DETAIL = "DESCRIBE DETAIL"
_UPGRADE = re.compile(r"UPGRADE UNIFORM \(\s*ICEBERG_COMPAT_VERSION\s*=\s*(\d)\s*\)", re.IGNORECASE)
_HISTORY = "DESCRIBE HISTORY"


def vacuum(values: Values, node: nodes.Vacuum) -> DataFrame:
    """VACUUM. Answers the files of a dry run, else the table's path."""
    _refuse_partition_directory(values, node.table)
    table = table_of(values, node.table, "VACUUM")
    inventory = None
    if isinstance(node.inventory, Name):
        inventory = table_of(values, node.inventory, "VACUUM").delta_table.toDF()
    elif node.inventory is not None:
        inventory = values.query(node.inventory)
    hours = None if node.hours is None else values.number(node.hours)
    deletable = table.delta_table.vacuum(hours, dryRun=node.dry_run, mode=node.mode, inventory=inventory)
    return deletable if node.dry_run else results.rows(values.spark, "path STRING", [[hadoop_path(table.log.table)]])


def _refuse_partition_directory(values: Values, target: nodes.Target) -> None:
    """Raise TableNotFoundError if the target is the path of a partition directory, as Delta does for VACUUM."""
    if isinstance(target, Name):
        named = names.by_path(TableName.of(values, target).identifier)
        path = None if named is None else named[1]
    else:
        path = values.text(target)
    if path is not None and is_partition_directory(path, session_conf(values.spark, path)):
        raise targets.not_a_table(values, path, "VACUUM")


def optimize(values: Values, node: nodes.Optimize) -> DataFrame:
    """OPTIMIZE. Answers the path and the metrics."""
    table = table_of(values, node.table, "OPTIMIZE")
    where = None if node.where is None else values.condition(node.where)
    columns = [column.text for column in node.zorder_by]
    layout = OptimizeLayout.of(values.spark, by=columns, full=node.full)
    return run_optimize(values.spark, table.log, layout, where)


def reorg(values: Values, node: nodes.Reorg) -> DataFrame:
    """REORG TABLE ... APPLY (PURGE), or (UPGRADE UNIFORM (...)). Answers the path and the metrics."""
    upgrade = _UPGRADE.fullmatch(node.apply)
    if node.apply != "PURGE" and (upgrade is None or int(upgrade[1]) not in upgrade_uniform.VERSIONS):
        raise UnsupportedFeatureError(
            f"REORG TABLE ... APPLY ({node.apply}) is not supported, only APPLY (PURGE) and APPLY (UPGRADE UNIFORM "
            "(ICEBERG_COMPAT_VERSION = 2)): nothing was changed.",
            (node.apply,),
        )
    table = table_of(values, node.table, "REORG")
    where = None if node.where is None else values.condition(node.where)
    if upgrade is not None:
        if where is not None:
            raise InvalidArgumentError("REORG TABLE ... APPLY (UPGRADE UNIFORM) rewrites whole tables: leave WHERE out")
        options = commit_of(values.spark)
        return frame_of(
            values.spark, upgrade_uniform.upgrade_uniform(values.spark, table.log, int(upgrade[1]), options)
        )
    return run_optimize(values.spark, table.log, OptimizeLayout.of(values.spark, purge=True), where)


def restore(values: Values, node: nodes.Restore) -> DataFrame:
    """RESTORE TABLE. Answers the six metrics."""
    name = TableName.of(values, node.table)
    if statements.is_temporary_view(values.spark, name.seq):
        raise InvalidArgumentError(
            f"RESTORE is only supported for Delta tables, and {name.quoted} is a view: name the table itself.",
            condition="DELTA_ONLY_OPERATION",
            parameters={"operation": "RESTORE"},
        )
    table = table_of(values, node.table, "RESTORE").delta_table
    if node.at.version is not None:
        return table.restoreToVersion(values.whole(node.at.version))
    assert node.at.timestamp is not None
    return table.restoreToTimestamp(values.text(node.at.timestamp))


def describe_history(values: Values, node: nodes.DescribeHistory) -> DataFrame:
    """DESCRIBE HISTORY. Answers the columns of `DeltaTable.history()`."""
    try:
        table = table_of(values, node.table, _HISTORY)
    except TableNotFoundError as error:
        if error.condition != "DELTA_MISSING_DELTA_TABLE":
            raise
        raise targets.not_a_table(values, error.message_parameters["tableName"], _HISTORY) from error
    limit = None if node.limit is None else values.whole(node.limit)
    if limit == 0:
        return describe.history(values.spark, table.log, 1).limit(0)
    return describe.history(values.spark, table.log, limit)


def describe_detail(values: Values, node: nodes.DescribeDetail) -> DataFrame:
    """DESCRIBE DETAIL. Answers one row, also for a table of another format and for any directory."""
    spark = values.spark
    if isinstance(node.table, Name):
        name = TableName.of(values, node.table)
        targets.check_no_view(values, name, _DETAIL)
        entry = SessionCatalog(spark).find_parts(name.seq)
        if entry is not None and entry.location and not entry.is_delta:
            return describe.detail_of_entry(spark, entry)
    else:
        path = values.text(node.table)
        if not delta_log(path, session_conf(spark, path)).exists():
            if not statements.path_exists(spark, path):
                raise not_a_table(path)
            return describe.detail_of_path(spark, path)
    table = table_of(values, node.table, _DETAIL)
    return describe.detail(spark, table.log, None if table.entry is None else table.entry.name)


def generate(values: Values, node: nodes.Generate) -> DataFrame:
    """GENERATE. Answers nothing."""
    table_of(values, node.table, "GENERATE").delta_table.generate(node.mode)
    return results.nothing(values.spark)


def convert(values: Values, node: nodes.Convert) -> DataFrame:
    """CONVERT TO DELTA. Answers nothing."""
    name = TableName.of(values, node.table)
    columns = None if node.partition_columns is None else values.columns(node.partition_columns)
    if names.by_path(name.identifier) is None:
        targets.check_no_view(values, name, "CONVERT TO DELTA")
        entry = SessionCatalog(values.spark).find_parts(name.seq)
        if entry is None or not entry.location:
            targets.refuse(entry, name, "CONVERT TO DELTA")
    converted(values.spark, name.identifier, columns, statistics=node.statistics)
    return results.nothing(values.spark)


def drop_feature(values: Values, node: nodes.DropFeature) -> DataFrame:
    """ALTER TABLE ... DROP FEATURE. Answers nothing."""
    feature = node.feature if isinstance(node.feature, str) else values.text(node.feature)
    table = table_of(values, node.table, "ALTER TABLE ... DROP FEATURE").delta_table
    table.dropFeatureSupport(feature, node.truncate_history)
    return results.nothing(values.spark)


def sync(values: Values, node: nodes.SyncIdentity) -> DataFrame:
    """ALTER TABLE ... ALTER COLUMN ... SYNC IDENTITY. Answers nothing."""
    table = table_of(values, node.table, _ALTER_COLUMN)
    sync_identity(values.spark, table.log, column_of(node.column.text), options=commit_of(values.spark))
    return results.nothing(values.spark)
