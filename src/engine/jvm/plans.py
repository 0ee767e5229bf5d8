"""What a write asks of Spark's plans: how large a frame is at most, another session's settings, Spark's own casts."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...core.protocol.schema import StructField, StructType, to_json
from ...settings.spark_own import ADVISORY_PARTITION_SIZE
from . import catalyst, frames, sessions, settings
from .gateway import Gateway, JavaObject

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

MAX_ROWS = 10_000
MAX_BYTES = 1 << 20

# Nodes that make no more rows than they get, in no more tasks, and run no Python.
_PLAIN = frozenset({"Project", "Filter", "GlobalLimit", "LocalLimit", "Union"})
_SOURCES = frozenset({"LocalRelation", "OneRowRelation", "Range"})


def bounded(df: "DataFrame") -> "DataFrame | None":
    """`df`, or one that gives its first rows only, where it surely is small and cheap; else `None`.

    Surely: Catalyst bounds the number of rows (a local relation, a range, and projections, filters, limits and
    unions of these) and estimates few bytes; or the rows come from a list that went through `parallelize`, which is
    small, though Python may make more of it: there each partition is cut after `MAX_ROWS` + 1 rows, so that more than
    `MAX_ROWS` rows in the result say that it isn't all. The names of an error in an expression over constants come up
    here already, for the optimiser evaluates these.
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
    """The rows as Arrow, as Spark hands them over; no batch for no rows.

    Not by `toArrow`, whose last cast fails where a struct is null and a field inside it isn't nullable.
    """
    batches: list[pa.RecordBatch] = df._collect_as_arrow()  # type: ignore[operator]
    return batches


def _unbounded_sources(plan: JavaObject) -> list[JavaObject] | None:
    """The RDDs below the plan, whose size Catalyst doesn't know; `None` where the plan has a node that isn't plain."""
    name = plan.nodeName()
    if name in _SOURCES:
        return []
    if plan.getClass().getName() == "org.apache.spark.sql.execution.LogicalRDD":
        return [] if plan.maxRows().isDefined() else [plan]
    if name not in _PLAIN:
        return None
    found: list[JavaObject] = []
    for child in Gateway.elements(plan.children()):
        below = _unbounded_sources(child)
        if below is None:
            return None
        found += below
    return found


def _is_small_list(rdd: JavaObject) -> bool:
    """Whether the RDD is made, partition by partition, from a small list that the driver holds pickled."""
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
    """The DataFrame of a logical plan; `session` is the JVM's session to run it in, that of `spark` when not given."""
    dataset = Gateway.of(spark).jvm.org.apache.spark.sql.classic.Dataset
    return frames.of_dataset(dataset.ofRows(session or sessions.jvm_session(spark), plan), spark)


def with_settings(df: "DataFrame", settings: Mapping[str, str]) -> "DataFrame":
    """`df` run under these settings of SQL, in a copy of its session where they aren't what the session has."""
    spark = df.sparkSession
    if all(_in_force(spark, key) == value for key, value in settings.items()):
        return df  # a copy plans its first query with parts that it has to make
    copy = sessions.jvm_session(spark).cloneSession()
    for key, value in settings.items():
        copy.conf().set(key, value)
    return frame_of(spark, frames.analyzed(df), copy)


def _in_force(spark: "SparkSession", key: str) -> str | None:
    """What the session has of a setting, or Spark's default; `None` where Spark knows neither."""
    from pyspark.errors import SparkNoSuchElementException

    try:
        return spark.conf.get(key)
    except SparkNoSuchElementException:
        return None


def rebalanced(df: "DataFrame", columns: Sequence[str], size: int) -> "DataFrame":
    """`df` shuffled so that its partitions have about `size` bytes each, and rows of equal `columns` come together.

    It is for adaptive execution to see to the sizes; without that, nothing but the shuffle is done.
    """
    from pyspark.sql import functions as F

    keys = [F.col("`" + name.replace("`", "``") + "`") for name in columns]
    return with_settings(df.hint("rebalance", *keys), {ADVISORY_PARTITION_SIZE.key: str(size)})


def ansi_cast(spark: "SparkSession", value: JavaObject, field: StructField) -> JavaObject:
    """A resolved expression cast to the type of a column by the rules of ANSI, whatever the session says.

    An overflow fails with the name of `field`.
    """
    gateway = Gateway.of(spark)
    cast = getattr(getattr(gateway.expressions, "Cast$"), "MODULE$")
    zone = gateway.jvm.scala.Option.apply(settings.time_zone(spark))
    wanted = gateway.schema(to_json(StructType((field,)))).apply(0).dataType()
    return gateway.expressions.CheckOverflowInTableInsert(cast.apply(value, wanted, zone, True), field.name)


def assigned(df: "DataFrame", schema_json: str, table: str) -> "DataFrame":
    """`df` as Spark itself stores it in columns of the schema: `TableOutputResolver`, by name.

    It casts by the session's `spark.sql.storeAssignmentPolicy`, recursively by name in structs, checks overflow, the
    lengths of char and varchar, and that what isn't nullable isn't null. Each column of the schema has to be there.
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
    """The number of tasks of the stage that evaluates it, as a bigint; 1 where the driver evaluates it alone.

    No function of SQL gives it; it is what `TaskContext` says.
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
