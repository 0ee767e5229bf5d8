"""Holding a frame that is about to be written to the version of the target that the write knows.

A frame without time travel reads the newest version at each execution. When it is written back into its own table,
that must be the version whose files the commit removes: a commit that lands in between would be lost, or kept twice.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...core.protocol import schema as schemas
from ...errors import SchemaChangedError
from ..jvm.frames import analyzed, with_cached_data
from ..jvm.gateway import Gateway, JavaObject
from ..jvm.plans import frame_of
from ..jvm.types import read_schema
from .file_index import index_of
from .routes import arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.table.snapshot import Snapshot

_OUTPUT = 1  # of the elements of a DataSourceV2Relation


def pinned(frame: "DataFrame", log: "DeltaLog", snapshot: "Snapshot") -> "tuple[DataFrame, bool]":
    """`frame` with every scan of the snapshot's table at its newest version held to `snapshot`; whether there is one.

    Scans of a version that the user chose stay as they are, and so does what the user has cached.
    """
    spark = frame.sparkSession
    gateway = Gateway.of(spark)
    plan = with_cached_data(frame)
    replacements = gateway.jvm.java.util.HashMap()
    for relation in _leaves(gateway, plan):
        kind = relation.getClass().getSimpleName()
        if kind == "LogicalRelation" and relation.relation().getClass().getSimpleName() == "HadoopFsRelation":
            if _reads_newest(relation.relation().location(), snapshot):
                replacements.put(relation, _held(gateway, relation, snapshot))
        elif kind == "DataSourceV2Relation" and str(relation.name()).startswith(arrow.NAME):
            spec = json.loads(relation.options().get("spec"))
            if spec["newest"] and spec["table"] == snapshot.table:
                replacements.put(relation, _held_of_arrow(gateway, spark, relation, spec, log, snapshot))
    if replacements.isEmpty():
        return frame, False
    function = gateway.scala_map(replacements)
    return frame_of(spark, plan.transformUpWithSubqueries(function)), True


def _leaves(gateway: Gateway, plan: JavaObject) -> list[JavaObject]:
    """The leaves of a plan and its subqueries."""
    plans = [plan, *gateway.elements(plan.subqueriesAll())]
    return [leaf for one in plans for leaf in gateway.elements(one.collectLeaves())]


def _reads_newest(location: JavaObject, snapshot: "Snapshot") -> bool:
    if not gateway_proxy(location):
        return False
    text = str(location.toString())
    return text.startswith(f"tablelog[{snapshot.table}, version ") and ", newest, " in text


def gateway_proxy(value: JavaObject) -> bool:
    """Whether a JVM object is a proxy of a Python one."""
    return "Proxy" in str(value.getClass().getSimpleName())


def _held(gateway: Gateway, relation: JavaObject, snapshot: "Snapshot") -> JavaObject:
    old = relation.relation()
    known = index_of(str(old.location().toString()))
    assert known is not None  # the JVM holds it
    index = known.held(snapshot)
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


def _held_of_arrow(
    gateway: Gateway,
    spark: "SparkSession",
    relation: JavaObject,
    spec: Mapping[str, Any],
    log: "DeltaLog",
    snapshot: "Snapshot",
) -> JavaObject:
    if spec["schema"] != schemas.to_json(snapshot.schema):
        raise SchemaChangedError(
            f"the schema of {snapshot.table} changed between version {spec['version']}, with which this DataFrame was "
            f"made, and version {snapshot.version}. Make the DataFrame again from the table."
        )
    new = arrow.frame(spark, log, read_schema(snapshot.schema), snapshot=snapshot)
    (found,) = gateway.elements(analyzed(new).collectLeaves())
    parts = [relation.productElement(i) for i in range(relation.productArity())]
    # What is read changes, and the columns stay the attributes that the plan refers to.
    parts = [found.productElement(i) if i != _OUTPUT else part for i, part in enumerate(parts)]
    return relation.makeCopy(gateway.array(gateway.jvm.java.lang.Object, parts))
