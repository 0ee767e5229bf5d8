"""SHOW PARTITIONS of a Delta table, from its log.

What else describes a table (DESCRIBE, SHOW COLUMNS, SHOW TBLPROPERTIES, SHOW CREATE TABLE, most methods of
`spark.catalog`) is answered by Spark itself, from the table that `session_tables` gives it.
"""

from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.types import StructType

from ...core.protocol import schema as schemas
from ...core.protocol.partition_values import column_of, typed
from ...core.table.snapshot import Snapshot
from ...engine.jvm import definitions, settings
from ...engine.jvm.types import spark_type
from ...errors import InvalidArgumentError
from ...settings.spark_own import SESSION_TIME_ZONE
from . import tables
from .statement import Statement


def _show_partitions(statement: Statement) -> DataFrame | None:
    plan = statement.plan
    if plan.table().getClass().getSimpleName() != "UnresolvedTable":
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


HANDLERS = {"ShowPartitions": _show_partitions}
