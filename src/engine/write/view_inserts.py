"""INSERT INTO a table: Spark resolves the statement against a substitute table that can't be written to.

Spark's own rules resolve names, positions, casts, defaults and partitions. The result is a query to store and the part
of the table that it replaces, and `dml.change.write` writes it like a DataFrame. The SQL text is neither parsed nor
changed here: Spark's parser returns the statement as a plan, and only the target in that plan is replaced.
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
    """The table behind a view. `version`: the version that the user selected; `log`: None if its handle is gone."""

    table: str
    version: int | None
    log: "DeltaLog | None"


@dataclass(frozen=True)
class Insert:
    """A resolved INSERT: the rows, in columns of the table, and what they replace.

    `replaces` is a condition as SQL, `""` for the whole table and None for nothing; with `by_partition`, the partitions
    of the rows are replaced.
    """

    frame: "DataFrame"
    replaces: str | None
    by_partition: bool


# --- the table behind a view --------------------------------------------------------------------------------------


def mark(frame: "DataFrame", log: "DeltaLog", version: int | None) -> "DataFrame":
    """Mark the frame's plan as showing a whole table: all columns and rows, of `version` if not None.

    The mark is on the root of the plan, so a frame derived by a filter or a selection has none.
    """
    with _lock:
        key = next((key for key, known in _logs.items() if known is log), None) or uuid4().hex
        _logs[key] = log
    text = json.dumps({"table": log.table, "version": version, "log": key})
    gateway = Gateway.of(frame.sparkSession)
    analyzed(frame).setTagValue(inserts.tag(gateway, _TAG), text)
    return frame


def target(spark: "SparkSession", name: JavaObject) -> Target | None:
    """The table that a name in a parsed statement (`nameParts`) refers to by a temporary view; None: no such view."""
    gateway = Gateway.of(spark)
    try:
        plan = inserts.resolved_plan(spark, inserts.unresolved_relation(gateway, name))
    except thrown_by_java():
        return None  # the name doesn't exist, or Spark can't read it
    key = inserts.tag(gateway, _TAG)
    text = plan.getTagValue(key)
    while not text.isDefined():
        if plan.getClass().getSimpleName() not in ("SubqueryAlias", "View") and not _selects_all(plan):
            return None
        plan = plan.child()
        text = plan.getTagValue(key)
    tag = json.loads(text.get())
    with _lock:
        log = _logs.get(tag["log"])
    return Target(tag["table"], tag["version"], log)


def shows_part(spark: "SparkSession", name: JavaObject) -> bool:
    """Whether a temporary view without a `target` reads a part of a Delta table, or several tables."""
    try:
        plan = inserts.resolved_plan(spark, inserts.unresolved_relation(Gateway.of(spark), name))
    except thrown_by_java():
        return False
    return pinning.reads_delta(plan)


def _selects_all(plan: JavaObject) -> bool:
    """Whether the node selects all columns of its child under their names, as a view of `SELECT *` does."""
    if plan.getClass().getSimpleName() != "Project":
        return False
    columns, below = plan.projectList(), plan.child().output()
    if columns.size() != below.size():
        return False
    for i in range(below.size()):
        column, attribute = columns.apply(i), below.apply(i)
        value = column.child() if column.getClass().getSimpleName() == "Alias" else column
        if value.getClass().getSimpleName() == "Cast" and value.dataType().equals(attribute.dataType()):
            value = value.child()  # a view casts to the types that it was created with
        if column.name() != attribute.name() or not value.fastEquals(attribute):
            return False
    return True


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


def clauses_of(statement: JavaObject) -> set[str]:
    """The clauses of an INSERT that only newer versions of Spark parse: "SchemaEvolution", "InsertReplaceUsing", ..."""
    found = {statement.productElementName(i): i for i in range(statement.productArity())}
    clauses = set()
    if "withSchemaEvolution" in found and statement.withSchemaEvolution():
        clauses.add("SchemaEvolution")
    if "replaceCriteriaOpt" in found and statement.replaceCriteriaOpt().isDefined():
        clauses.add(str(statement.replaceCriteriaOpt().get().getClass().getSimpleName()))
    return clauses


def of_frame(frame: "DataFrame", name: str, *, overwrite: bool) -> JavaObject:
    """The statement that is equivalent to `DataFrameWriter.insertInto`."""
    spark = frame.sparkSession
    relation = inserts.unresolved_relation(Gateway.of(spark), inserts.parsed_name(spark, name))
    like = statements.parsed(spark, "INSERT INTO t SELECT 1")
    return changed(like, table=relation, query=analyzed(frame), overwrite=overwrite)


def resolved(
    spark: "SparkSession",
    plan: JavaObject,
    targets: "Sequence[tuple[JavaObject, DeltaLog, Snapshot]]",
) -> list[Insert]:
    """The INSERTs of a parsed statement, resolved by Spark's analyzer against the snapshots of their tables.

    `targets`: each of `inserts_of(plan)` with its table. If there are several, all read the tables as they were before
    the first write. Raises Spark's AnalysisException.
    """
    gateway = Gateway.of(spark)
    tables = {
        statement: changed(statement, table=inserts.relation_of(gateway, _shown(spark, plan, statement, snapshot)))
        for statement, _, snapshot in targets
    }
    root = inserts.resolved_plan(spark, _exchanged(gateway, plan, tables))
    resolved_inserts = [_insert(node, plans.frame_of(spark, node.query())) for node in _writes(root)]
    if len(resolved_inserts) == 1:
        return resolved_inserts
    held = []
    for insert in resolved_inserts:
        frame = insert.frame
        for log, snapshot in {log.table: (log, snapshot) for _, log, snapshot in targets}.values():
            frame, _ = pinning.pinned(frame, log, snapshot)
        held.append(replace(insert, frame=frame))
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
    raise UnsupportedFeatureError(f"tablelog does not support {kind} of a table by SQL; use df.write or DeltaTable")


def _writes(plan: JavaObject) -> list[JavaObject]:
    if plan.getClass().getSimpleName() in ("Union", "WithCTE"):
        return [one for child in Gateway.elements(plan.children()) for one in _writes(child)]
    return [] if plan.getClass().getSimpleName() == "CTERelationDef" else [plan]


def _shown(
    spark: "SparkSession", plan: JavaObject, statement: JavaObject, snapshot: "Snapshot"
) -> inserts.InsertTarget:
    """The table with the columns for which the statement has values, if it lists them.

    The write adds the omitted columns: defaults, generated columns, identity columns.
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
        names = list(inserts.resolved_plan(spark, query).schema().fieldNames())
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
