"""SHOW PARTITIONS of a Delta table, and the columns in SHOW TABLE EXTENDED, from its log.

What else describes a table (DESCRIBE, SHOW COLUMNS, SHOW TBLPROPERTIES, most methods of `spark.catalog`) is answered by
Spark itself, from the table that `session_tables` gives it.
"""

from pyspark.sql import DataFrame, Row, SparkSession, functions
from pyspark.sql.types import StructType

from ....core.protocol import schema as schemas
from ....core.protocol.partition_values import column_of, typed
from ....core.table.snapshot import Snapshot
from ....engine.jvm.connection import settings
from ....engine.jvm.connection.gateway import Gateway
from ....engine.jvm.registry.classes import class_name
from ....engine.jvm.statements import definitions
from ....engine.jvm.types import read_schema, spark_type
from ....errors import InvalidArgumentError, TableNotFoundError
from ....settings.spark_own import SESSION_TIME_ZONE
from .. import tables
from ..statement import Statement

_OF_DELTA = "\nProvider: delta\n"
"""What Spark prints of a table whose entry has the provider delta."""


def _show_partitions(statement: Statement) -> DataFrame | None:
    plan = statement.plan
    if class_name(plan.table()) != "UnresolvedTable":
        return None
    table = tables.find(statement.spark, plan.table().multipartIdentifier())
    if table is None or table.by_view:
        return None
    snapshot = table.log.snapshot()
    if not snapshot.partition_columns:
        raise InvalidArgumentError(
            f"SHOW PARTITIONS needs a partitioned table: {table.name} has no partition columns.",
            condition="DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE",
            parameters={"tableName": table.name},
            table=table.log.table,
        )
    pattern = definitions.option(plan.pattern())
    wanted = {} if pattern is None else definitions.texts(pattern.spec())
    known = {name.lower() for name in snapshot.partition_columns}
    wrong = [column for column in wanted if column.lower() not in known]
    if wrong:
        raise InvalidArgumentError(
            f"SHOW PARTITIONS: {', '.join(wrong)} is no partition column of {table.name}. Its partition columns are "
            f"{', '.join(snapshot.partition_columns)}.",
            condition="DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN",
            parameters={"badCols": ", ".join(wrong)},
            table=table.log.table,
        )
    frame = _partitions(statement.spark, snapshot)
    for column, value in wanted.items():
        frame = frame.where(functions.col(schemas.dotted((column,))).eqNullSafe(functions.lit(value)))
    return frame


def _partitions(spark: SparkSession, snapshot: Snapshot) -> DataFrame:
    """The distinct partition values of the table's files, as typed columns."""
    import pyarrow as pa

    fields = [field for name in snapshot.partition_columns if (field := snapshot.schema.get(name)) is not None]
    texts = snapshot.select(["partitionValues"]).column("partitionValues")
    time_zone = settings.in_force(spark, SESSION_TIME_ZONE)
    values = {}
    for field in fields:
        assert isinstance(field.data_type, schemas.PrimitiveType)
        (physical,) = snapshot.mapping.to_physical((field.name,))
        values[field.name] = typed(column_of(texts, physical), field.data_type, time_zone=time_zone)
    distinct = pa.table(values).group_by(list(values)).aggregate([])
    plain = schemas.StructType(tuple(schemas.StructField(f.name, f.data_type) for f in fields))
    schema: StructType = spark_type(plain)
    return spark.createDataFrame(distinct, schema)


def _show_tables_extended(statement: Statement) -> DataFrame:
    """SHOW TABLE EXTENDED: Spark's answer, and the columns of Delta tables, which the catalog doesn't have."""
    shown = statement.frame(statement.plan)
    rows = shown.collect()
    completed = [
        row if row.isTemporary or _OF_DELTA not in row.information else _with_columns(statement.spark, row)
        for row in rows
    ]
    return shown if completed == rows else statement.spark.createDataFrame(completed, shown.schema)


def _with_columns(spark: SparkSession, row: Row) -> Row:
    """A row of SHOW TABLE EXTENDED with the columns as Spark prints them for other tables."""
    try:
        table = tables.find(spark, Gateway.of(spark).seq([row.namespace, row.tableName]))
    except TableNotFoundError:
        return row  # the entry is there, and the table isn't
    if table is None:
        return row
    columns: StructType = spark_type(read_schema(table.log.snapshot().schema))
    return Row(**{**row.asDict(), "information": f"{row.information}Schema: {columns.treeString()}\n"})


HANDLERS = {"ShowPartitions": _show_partitions, "ShowTablesExtended": _show_tables_extended}
