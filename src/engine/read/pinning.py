"""Pins a frame that is about to be written to the version of the target table that the write started from.

A frame without time travel reads the newest version at each execution. If it is written back to its own table, it must
read the version whose files the commit removes: otherwise a concurrent commit would be lost, or its rows duplicated.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...core.protocol import schema as schemas
from ...core.protocol.paths import canonical
from ...errors import ConcurrentWriteException, SchemaChangedError, UnsupportedFeatureError
from ..connect import client
from ..jvm.connection.frames import analyzed, with_cached_data
from ..jvm.connection.gateway import Gateway, JavaObject
from ..jvm.connection.sessions import is_classic
from ..jvm.plans import frame_of
from ..jvm.registry.classes import class_name
from .file_index import index_of
from .routes import arrow, arrow_source, listed
from .scan_spec import ScanSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.table.snapshot import Snapshot

_OUTPUT = 1  # index of the output attributes in a DataSourceV2Relation


def pinned(frame: "DataFrame", log: "DeltaLog", snapshot: "Snapshot") -> "tuple[DataFrame, bool]":
    """Pin all scans of the table's newest version in `frame` to `snapshot`; also returns whether there is such a scan.

    Scans of a version that the user selected, and data that the user cached, are not changed.
    """
    spark = frame.sparkSession
    if not is_classic(spark):
        return frame, _reads_listed(frame, snapshot)
    gateway = Gateway.of(spark)
    plan = with_cached_data(frame)
    replacements = gateway.jvm.java.util.HashMap()
    for relation in _leaves(gateway, plan):
        kind = class_name(relation)
        if kind == "LogicalRelation" and class_name(relation.relation()) == "HadoopFsRelation":
            if _reads_newest(relation.relation().location(), snapshot):
                replacements.put(relation, _held(gateway, relation, snapshot))
        elif kind == "DataSourceV2Relation" and str(relation.name()).startswith(arrow_source.NAME):
            spec = json.loads(relation.options().get("spec"))
            if spec["newest"] and spec["table"] == snapshot.table:
                replacements.put(relation, _held_of_arrow(gateway, spark, relation, spec, log, snapshot))
    if replacements.isEmpty():
        return frame, False
    function = gateway.scala_map(replacements)
    return frame_of(spark, plan.transformUpWithSubqueries(function)), True


def _reads_listed(frame: "DataFrame", snapshot: "Snapshot") -> bool:
    """Whether a frame of Spark Connect reads the newest version of the table.

    Such a frame keeps the version that was the newest when it was created, and its plan can't be changed. Raises
    ConcurrentWriteException if that version isn't `snapshot`, and UnsupportedFeatureError if the frame reads the
    table's files in a way that hides the version.
    """
    relations = client.relations(frame)
    reads = False
    accounted: set[str] = set()
    scans = []
    for relation in relations:
        scan = listed.mark_of(relation)
        if scan.get("table") != snapshot.table:
            continue
        scans.append(scan)
        accounted.update(listed.plain(path) for path in relation.read.data_source.paths)
        if not scan["newest"]:
            continue
        reads = True
        if scan["version"] != snapshot.version:
            raise ConcurrentWriteException(
                f"the data to write was read from version {scan['version']} of {snapshot.table}, whose newest version "
                f"is {snapshot.version}: what changed since would be lost. Load the table again, and repeat the write",
                table=snapshot.table,
                version=snapshot.version,
            )
    if _hides_files(relations):
        root = canonical(snapshot.table).rstrip("/") + "/"
        files = [canonical(name) for name in (*frame.inputFiles(), *client.first_files(frame))]
        hidden = any(name.startswith(root) and listed.same(name) not in accounted for name in files)
        for scan in listed.marks_in(client.analyzed_text(frame)):
            hidden |= scan["table"] == snapshot.table and scan["newest"] and scan not in scans
        if hidden:
            raise UnsupportedFeatureError(
                f"the data to write reads {snapshot.table} through a view or an SQL query, which hides the version "
                "that is read: on Spark Connect, load the table by spark.read, and derive the data from that DataFrame",
                ("writes from views of the same table on Spark Connect",),
            )
    return reads


def _hides_files(relations: "Sequence[Any]") -> bool:
    """Whether the plan has names that the server resolves."""
    return any(
        relation.WhichOneof("rel_type") == "sql"
        or (relation.WhichOneof("rel_type") == "read" and relation.read.HasField("named_table"))
        for relation in relations
    )


def reads_delta(plan: JavaObject) -> bool:
    """Whether a plan reads a Delta table by the native route or the Arrow route."""
    for relation in Gateway.elements(plan.collectLeaves()):
        kind = class_name(relation)
        if kind == "LogicalRelation" and class_name(relation.relation()) == "HadoopFsRelation":
            if index_of(relation.relation().location()) is not None:
                return True
        elif kind == "DataSourceV2Relation" and str(relation.name()).startswith(arrow_source.NAME):
            return True
    return False


def _leaves(gateway: Gateway, plan: JavaObject) -> list[JavaObject]:
    """The leaf nodes of a plan and its subqueries."""
    plans = [plan, *gateway.elements(plan.subqueriesAll())]
    return [leaf for plan in plans for leaf in gateway.elements(plan.collectLeaves())]


def _reads_newest(location: JavaObject, snapshot: "Snapshot") -> bool:
    index = index_of(location)
    return index is not None and index.table == snapshot.table and index.reads_newest


def _held(gateway: Gateway, relation: JavaObject, snapshot: "Snapshot") -> JavaObject:
    old = relation.relation()
    known = index_of(old.location())
    assert known is not None  # the JVM references it
    index = known.held(snapshot).in_jvm()
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
            f"the schema of {snapshot.table} changed between version {spec['version']}, for which this DataFrame was "
            f"created, and version {snapshot.version}. Create the DataFrame again from the table.",
            table=snapshot.table,
            version=snapshot.version,
        )
    new = arrow.frame(spark, log, ScanSpec(snapshot))
    (new_relation,) = gateway.elements(analyzed(new).collectLeaves())
    parts = [relation.productElement(i) for i in range(relation.productArity())]
    # The relation is replaced, but its output attributes stay those that the plan refers to.
    parts = [new_relation.productElement(i) if i != _OUTPUT else part for i, part in enumerate(parts)]
    return relation.makeCopy(gateway.array(gateway.jvm.java.lang.Object, parts))
