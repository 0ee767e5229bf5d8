"""Holding a frame that is about to be written to the version of the target that the write knows.

A frame without time travel reads the newest version at each execution. When it is written back into its own table,
that must be the version whose files the commit removes: a commit that lands in between would be lost, or kept twice.
"""

from typing import TYPE_CHECKING

from .file_index import FileIndex, Pinned
from .gateway import Gateway, JavaObject
from .plans import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ..core.table.snapshot import Snapshot


def pinned(frame: "DataFrame", snapshot: "Snapshot") -> "tuple[DataFrame, bool]":
    """`frame` with every scan of the snapshot's table at its newest version held to `snapshot`; whether there is one.

    Scans of a version that the user chose stay as they are, and so does what the user has cached.
    """
    spark = frame.sparkSession
    gateway = Gateway.of(spark)
    plan = frame._jdf.queryExecution().withCachedData()
    replacements = gateway.jvm.java.util.HashMap()
    for relation in _relations(gateway, plan):
        if _reads_newest(relation.relation().location(), snapshot):
            replacements.put(relation, _held(gateway, spark, relation, snapshot))
    if replacements.isEmpty():
        return frame, False
    function = gateway.jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(replacements)
    return frame_of(spark, plan.transformUpWithSubqueries(function)), True


def _relations(gateway: Gateway, plan: JavaObject) -> list[JavaObject]:
    """The relations over files in a plan and its subqueries."""
    plans = [plan, *gateway.elements(plan.subqueriesAll())]
    leaves = [leaf for one in plans for leaf in gateway.elements(one.collectLeaves())]
    return [
        leaf
        for leaf in leaves
        if leaf.getClass().getSimpleName() == "LogicalRelation"
        and leaf.relation().getClass().getSimpleName() == "HadoopFsRelation"
    ]


def _reads_newest(location: JavaObject, snapshot: "Snapshot") -> bool:
    if not gateway_proxy(location):
        return False
    text = str(location.toString())
    return text.startswith(f"tablelog[{snapshot.table}, version ") and ", newest, " in text


def gateway_proxy(value: JavaObject) -> bool:
    """Whether a JVM object is a proxy of a Python one."""
    return "Proxy" in str(value.getClass().getSimpleName())


def _held(gateway: Gateway, spark: "SparkSession", relation: JavaObject, snapshot: "Snapshot") -> JavaObject:
    index = FileIndex(gateway, spark, Pinned(snapshot))
    old = relation.relation()
    new = old.copy(
        index,
        old.partitionSchema(),
        old.dataSchema(),
        old.bucketSpec(),
        old.fileFormat(),
        old.options(),
        old.sparkSession(),
    )
    parts = [relation.productElement(i) for i in range(relation.productArity())]
    return relation.makeCopy(gateway.array(gateway.jvm.java.lang.Object, [new, *parts[1:]]))
