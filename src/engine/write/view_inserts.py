"""INSERT into a view of a table: Spark resolves the statement against a table that it can't write to.

Spark's own rules give names, positions, casts, defaults and partitions their meaning. What they leave is the query to
store and what it replaces, and the write is `dml.change.write`, as for a DataFrame. No text of SQL is read or changed:
Spark's parser gives the statement as a plan, and only the target in that plan is exchanged.
"""

import json
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from ...core.protocol import schema as schemas
from ...errors import UnsupportedFeatureError
from ..jvm import inserts, plans, statements
from ..jvm.frames import analyzed
from ..jvm.gateway import Gateway, JavaObject, changed
from ..jvm.java_errors import thrown_by_java
from ..jvm.types import read_schema
from ..read import pinning

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.table.snapshot import Snapshot

_TAG = "tablelog.table"

_lock = threading.Lock()
_logs: "weakref.WeakValueDictionary[str, DeltaLog]" = weakref.WeakValueDictionary()


@dataclass(frozen=True)
class Target:
    """The table that a view shows whole. `version`: the one that its user chose; `log`: None where it is gone."""

    table: str
    version: int | None
    log: "DeltaLog | None"


@dataclass(frozen=True)
class Insert:
    """A resolved INSERT: the rows, in columns of the table, and what they replace.

    `replaces` is a condition as SQL, `""` for the whole table and None for nothing; with `by_partition` the partitions
    that the rows lie in.
    """

    frame: "DataFrame"
    replaces: str | None
    by_partition: bool


# --- which table a view shows -------------------------------------------------------------------------------------


def mark(frame: "DataFrame", log: "DeltaLog", version: int | None) -> "DataFrame":
    """The same frame, whose plan says that it shows the table: all columns and all rows, of `version` if not None.

    The mark is on the root of the plan, so that a frame which filters or selects has none.
    """
    with _lock:
        key = next((key for key, known in _logs.items() if known is log), None) or uuid4().hex
        _logs[key] = log
    text = json.dumps({"table": log.table, "version": version, "log": key})
    gateway = Gateway.of(frame.sparkSession)
    analyzed(frame).setTagValue(inserts.tag(gateway, _TAG), text)
    return frame


def target(spark: "SparkSession", name: JavaObject) -> Target | None:
    """The table that a name in a parsed statement (`nameParts`) means by a temporary view; None: no such view."""
    gateway = Gateway.of(spark)
    try:
        plan = inserts.resolved_plan(spark, inserts.unresolved_relation(gateway, name))
    except thrown_by_java():
        return None  # there is nothing of that name, or nothing that Spark can read
    while plan.getClass().getSimpleName() in ("SubqueryAlias", "View"):
        plan = plan.child()
    text = plan.getTagValue(inserts.tag(gateway, _TAG))
    if not text.isDefined():
        return None
    told = json.loads(text.get())
    with _lock:
        log = _logs.get(told["log"])
    return Target(told["table"], told["version"], log)


# --- statements ---------------------------------------------------------------------------------------------------


def inserts_of(plan: JavaObject) -> list[JavaObject]:
    """The INSERTs of a parsed statement: one, those of a multi-insert, or none."""
    kind = plan.getClass().getSimpleName()
    if kind in (
        "InsertIntoStatement",
        "OverwriteByExpression",
    ):  # before Spark 4.3 REPLACE WHERE is parsed to the second
        return [plan]
    if kind in ("UnresolvedWith", "Union"):
        return [one for child in Gateway.elements(plan.children()) for one in inserts_of(child)]
    return []


def of_frame(frame: "DataFrame", name: str, *, overwrite: bool) -> JavaObject:
    """The statement that `DataFrameWriter.insertInto` means."""
    spark = frame.sparkSession
    relation = inserts.unresolved_relation(Gateway.of(spark), inserts.parsed_name(spark, name))
    like = statements.parsed(spark, "INSERT INTO t SELECT 1")
    return changed(like, table=relation, query=analyzed(frame), overwrite=overwrite)


def resolved(
    spark: "SparkSession",
    plan: JavaObject,
    targets: "Sequence[tuple[JavaObject, DeltaLog, Snapshot]]",
    parameters: inserts.Parameters = None,
) -> list[Insert]:
    """The INSERTs of a parsed statement, each into its table as the snapshot has it, as Spark's analyzer has them.

    `targets`: each of `inserts_of(plan)` with its table. Where there are several, all read what the tables held before
    the first was written. Raises Spark's AnalysisException.
    """
    gateway = Gateway.of(spark)
    tables = {
        statement: changed(
            statement, table=inserts.relation_of(gateway, _shown(spark, plan, statement, snapshot, parameters))
        )
        for statement, _, snapshot in targets
    }
    root = inserts.resolved_plan(spark, inserts.with_parameters(spark, _exchanged(gateway, plan, tables), parameters))
    found = [_insert(node, plans.frame_of(spark, node.query())) for node in _writes(root)]
    if len(found) == 1:
        return found
    held = []
    for one in found:
        frame = one.frame
        for log, snapshot in {log.table: (log, snapshot) for _, log, snapshot in targets}.values():
            frame, _ = pinning.pinned(frame, log, snapshot)
        held.append(replace(one, frame=frame))
    return held


def _insert(node: JavaObject, frame: "DataFrame") -> Insert:
    kind = node.getClass().getSimpleName()
    if kind == "AppendData":
        return Insert(frame, None, False)
    if kind == "OverwritePartitionsDynamic":
        return Insert(frame, "", True)
    if kind == "OverwriteByExpression":
        condition = node.deleteExpr()
        whole = condition.getClass().getSimpleName() == "Literal" and condition.value() is True
        return Insert(frame, "" if whole else str(condition.sql()), False)
    raise UnsupportedFeatureError(f"tablelog has no {kind} of a table by SQL; write by df.write or DeltaTable")


def _writes(plan: JavaObject) -> list[JavaObject]:
    if plan.getClass().getSimpleName() in ("Union", "WithCTE"):
        return [one for child in Gateway.elements(plan.children()) for one in _writes(child)]
    return [] if plan.getClass().getSimpleName() == "CTERelationDef" else [plan]


def _shown(
    spark: "SparkSession", plan: JavaObject, statement: JavaObject, snapshot: "Snapshot", parameters: inserts.Parameters
) -> inserts.InsertTarget:
    """The table with the columns that the statement gives values for, where it names them.

    The write makes the columns that are left out: defaults, generated columns, identity.
    """
    gateway = Gateway.of(spark)
    readable = {f.name for f in read_schema(snapshot.schema)}
    fields = [f for f in snapshot.schema if f.name in readable]
    replaces_where = statement.getClass().getSimpleName() == "OverwriteByExpression"
    by_name = statement.isByName() if replaces_where else statement.byName()
    if not replaces_where and statement.userSpecifiedCols().nonEmpty():
        names = gateway.elements(statement.userSpecifiedCols())
    elif by_name and len(inserts_of(plan)) == 1:
        query = _exchanged(gateway, plan, {statement: statement.query()})
        names = list(
            inserts.resolved_plan(spark, inserts.with_parameters(spark, query, parameters)).schema().fieldNames()
        )
    else:
        return _target(gateway, snapshot, fields)
    if not replaces_where:
        names += gateway.elements(statement.partitionSpec().keys().toSeq())
    known = {str(name).lower() for name in names}
    return _target(gateway, snapshot, [f for f in fields if f.name.lower() in known])


def _target(gateway: Gateway, snapshot: "Snapshot", fields: "Sequence[schemas.StructField]") -> inserts.InsertTarget:
    return inserts.InsertTarget(gateway, f"delta.`{snapshot.table}`", fields, snapshot.partition_columns)


def _exchanged(gateway: Gateway, plan: JavaObject, nodes: dict[JavaObject, JavaObject]) -> JavaObject:
    return plan.transformDown(gateway.scala_map(nodes))
