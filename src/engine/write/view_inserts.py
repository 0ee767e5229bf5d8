"""INSERT INTO a view of a table: Spark resolves the statement against a substitute table that can't be written to.

Spark's own rules resolve names, positions, casts, defaults and partitions. The result is a query to store and the part
of the table that it replaces, and `dml.change.write` writes it like a DataFrame. The SQL text is neither parsed nor
changed here: Spark's parser returns the statement as a plan, and only the target in that plan is replaced.
"""

import json
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, TypeAlias
from uuid import uuid4

from ...core.protocol import schema as schemas
from ...errors import UnsupportedFeatureError
from ..jvm import plans, statements
from ..jvm.callbacks import carried
from ..jvm.gateway import Gateway, JavaObject, changed
from ..jvm.types import read_schema
from ..read import pinning

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.table.snapshot import Snapshot

Parameters: TypeAlias = "Mapping[str, Column] | Sequence[Column] | None"
"""Values of a statement's parameter markers, by name or by position."""

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
    frame._jdf.queryExecution().analyzed().setTagValue(_tag(gateway), text)
    return frame


def target(spark: "SparkSession", name: JavaObject) -> Target | None:
    """The table that a name in a parsed statement (`nameParts`) refers to by a temporary view; None: no such view."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    gateway = Gateway.of(spark)
    try:
        plan = _resolved(spark, _unresolved(gateway, name))
    except (PySparkException, Py4JJavaError):
        return None  # the name doesn't exist, or Spark can't read it
    while plan.getClass().getSimpleName() in ("SubqueryAlias", "View"):
        plan = plan.child()
    text = plan.getTagValue(_tag(gateway))
    if not text.isDefined():
        return None
    tag = json.loads(text.get())
    with _lock:
        log = _logs.get(tag["log"])
    return Target(tag["table"], tag["version"], log)


def _tag(gateway: Gateway) -> JavaObject:
    return gateway.jvm.org.apache.spark.sql.catalyst.trees.TreeNodeTag(_TAG)


def _unresolved(gateway: Gateway, name: JavaObject) -> JavaObject:
    sql = gateway.jvm.org.apache.spark.sql
    return sql.catalyst.analysis.UnresolvedRelation(name, sql.util.CaseInsensitiveStringMap.empty(), False)


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
    """The statement that is equivalent to `DataFrameWriter.insertInto`."""
    spark = frame.sparkSession
    parts = spark._jsparkSession.sessionState().sqlParser().parseMultipartIdentifier(name)
    relation = _unresolved(Gateway.of(spark), parts)
    like = statements.parsed(spark, "INSERT INTO t SELECT 1")
    query = frame._jdf.queryExecution().analyzed()
    return changed(like, table=relation, query=query, overwrite=overwrite)


def resolved(
    spark: "SparkSession",
    plan: JavaObject,
    targets: "Sequence[tuple[JavaObject, DeltaLog, Snapshot]]",
    parameters: Parameters = None,
) -> list[Insert]:
    """The INSERTs of a parsed statement, resolved by Spark's analyzer against the snapshots of their tables.

    `targets`: each of `inserts_of(plan)` with its table. If there are several, all read the tables as they were before
    the first write. Raises Spark's AnalysisException.
    """
    gateway = Gateway.of(spark)
    tables = {
        statement: changed(statement, table=_relation(gateway, _shown(spark, plan, statement, snapshot, parameters)))
        for statement, _, snapshot in targets
    }
    root = _resolved(spark, _bound(spark, _exchanged(gateway, plan, tables), parameters))
    inserts = [_insert(node, plans.frame_of(spark, node.query())) for node in _writes(root)]
    if len(inserts) == 1:
        return inserts
    held = []
    for insert in inserts:
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
    spark: "SparkSession", plan: JavaObject, statement: JavaObject, snapshot: "Snapshot", parameters: Parameters
) -> "_Table":
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
        names = list(_resolved(spark, _bound(spark, query, parameters)).schema().fieldNames())
    else:
        return _Table(gateway, snapshot, fields)
    if not replaces_where:
        names += gateway.elements(statement.partitionSpec().keys().toSeq())
    known = {str(name).lower() for name in names}
    return _Table(gateway, snapshot, [f for f in fields if f.name.lower() in known])


def _exchanged(gateway: Gateway, plan: JavaObject, nodes: dict[JavaObject, JavaObject]) -> JavaObject:
    return plan.transformDown(gateway.jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(nodes))


def _bound(spark: "SparkSession", plan: JavaObject, parameters: Parameters) -> JavaObject:
    """The plan with values for its parameter markers."""
    if not parameters:
        return plan
    gateway = Gateway.of(spark)
    analysis = gateway.jvm.org.apache.spark.sql.catalyst.analysis
    if isinstance(parameters, Mapping):
        values = gateway.seq(gateway.expression(spark, one) for one in parameters.values())
        return analysis.NameParameterizedQuery(plan, gateway.seq(parameters), values)
    return analysis.PosParameterizedQuery(plan, gateway.seq(gateway.expression(spark, one) for one in parameters))


def _resolved(spark: "SparkSession", plan: JavaObject) -> JavaObject:
    """The plan after Spark's analyzer; commands in it are not executed."""
    skip = Gateway.of(spark).jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
    return spark._jsparkSession.sessionState().executePlan(plan, skip).analyzed()


# --- the table that Spark resolves against ------------------------------------------------------------------------


def _relation(gateway: Gateway, table: "_Table") -> JavaObject:
    relation = gateway.jvm.org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
    return relation.create(table, gateway.none, gateway.none)


class _Table:
    """Implements `org.apache.spark.sql.connector.catalog.Table` of the JVM. It is only for analysis, not for writing.

    It also has to define Java's default methods, because Py4J forwards them all to Python.
    """

    def __init__(self, gateway: Gateway, snapshot: "Snapshot", fields: "Sequence[schemas.StructField]") -> None:
        self._gateway = gateway
        self._name = f"delta.`{snapshot.table}`"
        schema = schemas.StructType(tuple(fields))
        # The write checks nulls itself: its error names the column and the table.
        self._schema = gateway.schema(schemas.to_json(read_schema(schema))).asNullable()
        self._fields = schema.fields
        shown = set(schema.names)
        self._partitioning = [name for name in snapshot.partition_columns if name in shown]

    @carried
    def name(self) -> str:
        return self._name

    @carried
    def schema(self) -> JavaObject:
        return self._schema

    @carried
    def columns(self) -> JavaObject:
        kind = self._gateway.jvm.org.apache.spark.sql.connector.catalog.Column
        return self._gateway.array(kind, [self._column(kind, i) for i in range(len(self._fields))])

    def _column(self, kind: JavaObject, place: int) -> JavaObject:
        f, data_type = self._fields[place], self._schema.apply(place).dataType()
        default = f.metadata.get(schemas.DEFAULT_KEY)
        if default is None:
            return kind.create(f.name, data_type, True, None, None)
        connector = self._gateway.jvm.org.apache.spark.sql.connector
        # EXISTS_DEFAULT, the value for existing rows, is irrelevant here.
        before = connector.expressions.LiteralValue(None, data_type)
        return kind.create(f.name, data_type, True, None, connector.catalog.ColumnDefaultValue(default, before), None)

    @carried
    def partitioning(self) -> JavaObject:
        expressions = self._gateway.jvm.org.apache.spark.sql.connector.expressions
        quoted = ("`" + name.replace("`", "``") + "`" for name in self._partitioning)
        return self._gateway.array(expressions.Transform, [expressions.Expressions.identity(name) for name in quoted])

    @carried
    def capabilities(self) -> JavaObject:
        kinds = self._gateway.jvm.org.apache.spark.sql.connector.catalog.TableCapability
        capabilities = self._gateway.jvm.java.util.HashSet()
        for kind in (kinds.BATCH_WRITE, kinds.TRUNCATE, kinds.OVERWRITE_BY_FILTER, kinds.OVERWRITE_DYNAMIC):
            capabilities.add(kind)
        return capabilities

    @carried
    def properties(self) -> JavaObject:
        return self._gateway.jvm.java.util.HashMap()

    @carried
    def constraints(self) -> JavaObject:
        kind = self._gateway.jvm.org.apache.spark.sql.connector.catalog.constraints.Constraint
        return self._gateway.py4j.new_array(kind, 0)

    @carried
    def id(self) -> None:
        return None

    @carried
    def version(self) -> None:
        return None

    @carried
    def currentVersion(self) -> None:
        return None

    @carried
    def hashCode(self) -> int:
        return id(self) & 0x7FFFFFFF

    @carried
    def equals(self, other: JavaObject) -> bool:
        return other is not None and other.toString() == self.toString()

    @carried
    def toString(self) -> str:
        return f"tablelog[{self._name}, to be inserted into, {id(self):x}]"

    class Java:
        implements: ClassVar[list[str]] = ["org.apache.spark.sql.connector.catalog.Table"]
