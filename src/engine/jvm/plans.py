"""Spark's plans for writes: bounds on the size of a frame, settings for one query, and Spark's store assignment."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...core.protocol.schema import StructField, StructType, quoted, to_json
from ...settings.spark_own import ADVISORY_PARTITION_SIZE
from . import catalyst
from .connection import frames, sessions, settings
from .connection.gateway import Gateway, JavaObject

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

MAX_ROWS = 10_000
MAX_BYTES = 1 << 20

# Nodes that return at most the rows of their input, with at most as many tasks, and that run no Python.
_PLAIN = frozenset({"Project", "Filter", "GlobalLimit", "LocalLimit", "Union"})
_SOURCES = frozenset({"LocalRelation", "OneRowRelation", "Range"})


def bounded(df: "DataFrame") -> "DataFrame | None":
    """`df` or its first rows, if `df` is certainly small and cheap to compute; otherwise `None`.

    There are two cases. In the first, Catalyst bounds the number of rows (a local relation, a range, and projections,
    filters, limits and unions of these) and estimates a small size. In the second, the rows come from a small list by
    `parallelize`. Python code may produce more rows from it, so each partition is limited to `MAX_ROWS` + 1 rows: if
    the result has more than `MAX_ROWS` rows, it may not be complete.

    An error in an expression over constants is raised here, because the optimizer evaluates such expressions.
    """
    plan = frames.optimized_plan(df)
    unbounded = _unbounded_sources(plan)
    if unbounded is None:
        return None
    if not unbounded:
        rows = plan.maxRows()
        small = rows.isDefined() and rows.get() <= MAX_ROWS and plan.stats().sizeInBytes() <= MAX_BYTES
        return df if small else None
    if any(not _is_small_list(source.rdd()) for source in unbounded):
        return None
    limited = catalyst.limited(Gateway.of(df.sparkSession), frames.analyzed(df), MAX_ROWS + 1)
    return frame_of(df.sparkSession, limited)


def collected(df: "DataFrame") -> "list[pa.RecordBatch]":
    """The rows as Arrow batches; no batch if there are no rows.

    It doesn't use `toArrow`, whose last cast fails if a struct is null and one of its fields isn't nullable.
    """
    batches: list[pa.RecordBatch] = df._collect_as_arrow()  # type: ignore[operator]
    return batches


def _unbounded_sources(plan: JavaObject) -> list[JavaObject] | None:
    """The RDDs of the plan, whose size Catalyst doesn't know; `None` if the plan has a node that isn't in `_PLAIN`."""
    name = plan.nodeName()
    if name in _SOURCES:
        return []
    if plan.getClass().getName() == "org.apache.spark.sql.execution.LogicalRDD":
        return [] if plan.maxRows().isDefined() else [plan]
    if name not in _PLAIN:
        return None
    sources: list[JavaObject] = []
    for child in Gateway.elements(plan.children()):
        of_child = _unbounded_sources(child)
        if of_child is None:
            return None
        sources += of_child
    return sources


def _is_small_list(rdd: JavaObject) -> bool:
    """Whether the RDD is computed, partition by partition, from a small list that the driver holds pickled."""
    while rdd.getClass().getName() != "org.apache.spark.rdd.ParallelCollectionRDD":
        dependencies = rdd.dependencies()
        if dependencies.size() != 1 or not dependencies.apply(0).getClass().getName().endswith("OneToOneDependency"):
            return False
        rdd = dependencies.apply(0).rdd()
    if rdd.getNumPartitions() > 16:
        return False
    total = 0
    for partition in rdd.partitions():
        values = partition.values()
        if values.size() > 64:
            return False
        for value in Gateway.elements(values):
            if not isinstance(value, bytes):
                return False
            total += len(value)
    return total <= MAX_BYTES


def frame_of(spark: "SparkSession", plan: JavaObject, session: JavaObject | None = None) -> "DataFrame":
    """The DataFrame of a logical plan. `session`: the JVM session that runs it; by default the one of `spark`."""
    dataset = Gateway.of(spark).jvm.org.apache.spark.sql.classic.Dataset
    return frames.of_dataset(dataset.ofRows(session or sessions.jvm_session(spark), plan), spark)


def with_settings(df: "DataFrame", settings: Mapping[str, str]) -> "DataFrame":
    """`df` run with these SQL settings: in a copy of its session if the session has other values."""
    spark = df.sparkSession
    if all(_in_force(spark, key) == value for key, value in settings.items()):
        return df  # the first query in a copy is slower, because the copy first creates its analyzer and planner
    copy = sessions.jvm_session(spark).cloneSession()
    for key, value in settings.items():
        copy.conf().set(key, value)
    return frame_of(spark, frames.analyzed(df), copy)


def _in_force(spark: "SparkSession", key: str) -> str | None:
    """The session's value of a setting, or Spark's default; `None` if Spark has neither."""
    from pyspark.errors import SparkNoSuchElementException

    try:
        return spark.conf.get(key)
    except SparkNoSuchElementException:
        return None


def rebalanced(df: "DataFrame", columns: Sequence[str], size: int) -> "DataFrame":
    """`df` shuffled by `columns` into partitions of about `size` bytes each.

    Adaptive execution creates the sizes; if it is disabled, the rows are only shuffled.
    """
    from pyspark.sql import functions as F

    keys = [F.col(quoted(name)) for name in columns]
    return with_settings(df.hint("rebalance", *keys), {ADVISORY_PARTITION_SIZE.key: str(size)})


def ansi_cast(spark: "SparkSession", value: JavaObject, field: StructField) -> JavaObject:
    """A resolved expression cast to the type of a column by ANSI rules, independent of the session's settings.

    The error of an overflow names `field`.
    """
    casted = _cast(spark, value, field, ansi=True)
    return Gateway.of(spark).expressions.CheckOverflowInTableInsert(casted, field.name)


def legacy_cast(spark: "SparkSession", value: JavaObject, field: StructField) -> JavaObject:
    """A resolved expression cast to the type of a column, with null for a value that can't be cast."""
    return _cast(spark, value, field, ansi=False)


def _cast(spark: "SparkSession", value: JavaObject, field: StructField, *, ansi: bool) -> JavaObject:
    gateway = Gateway.of(spark)
    cast = getattr(getattr(gateway.expressions, "Cast$"), "MODULE$")
    zone = gateway.jvm.scala.Option.apply(settings.time_zone(spark))
    wanted = gateway.schema(to_json(StructType((field,)))).apply(0).dataType()
    return cast.apply(value, wanted, zone, ansi)


def assigned(df: "DataFrame", schema_json: str, table: str) -> "DataFrame":
    """`df` converted to the columns of the schema, by name, with Spark's own `TableOutputResolver`.

    It casts by the session's `spark.sql.storeAssignmentPolicy`, and in structs recursively by name. It checks
    overflow, the lengths of char and varchar, and nulls in columns that aren't nullable. `df` must have each column of
    the schema.
    """
    spark = df.sparkSession
    gateway = Gateway.of(spark)
    attributes = gateway.jvm.org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes(gateway.schema(schema_json))
    resolver = getattr(getattr(gateway.jvm, "org.apache.spark.sql.catalyst.analysis.TableOutputResolver$"), "MODULE$")
    # The last argument is a flag in one version of Spark and an enumeration in another.
    no_defaults = getattr(resolver, "resolveOutputColumns$default$6")()
    settings = sessions.session_state(spark).conf()
    plan = resolver.resolveOutputColumns(table, attributes, frames.analyzed(df), True, settings, no_defaults)
    return frame_of(spark, plan)


def tasks(spark: "SparkSession") -> "Column":
    """The number of tasks of the stage that evaluates the column, as a bigint; 1 if the driver evaluates it.

    SQL has no such function; the column calls `TaskContext.numPartitions`.
    """
    from pyspark.sql import functions as F

    gateway = Gateway.of(spark)
    objects, types = gateway.expressions.objects, gateway.jvm.org.apache.spark.sql.types
    context = gateway.type("org.apache.spark.TaskContext")
    nothing = gateway.seq([])
    # (class, type, method, arguments, their types, null for null, may be null, deterministic, ...)
    of_task = objects.StaticInvoke(
        context, types.ObjectType(context), "get", nothing, nothing, True, True, False, gateway.none
    )
    count = objects.Invoke(of_task, "numPartitions", types.DataTypes.IntegerType, nothing, nothing, True, True, False)
    return F.coalesce(gateway.column(count).cast("bigint"), F.lit(1).cast("bigint"))
