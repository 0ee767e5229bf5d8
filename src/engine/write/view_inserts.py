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
from ...errors import SchemaMismatchError, UnsupportedFeatureError
from ...settings.spark_own import STORE_ASSIGNMENT
from ..jvm import catalyst, plans
from ..jvm.connection import settings
from ..jvm.connection.frames import analyzed
from ..jvm.connection.gateway import Gateway, JavaObject, changed, changed_node
from ..jvm.connection.java_errors import thrown_by_java
from ..jvm.connection.sessions import is_classic
from ..jvm.registry.classes import FILE_INDEX_CLASS, class_name
from ..jvm.statements import inserts, statements
from ..jvm.types import read_schema
from ..read import pinning
from . import insert_casts, insert_schema
from .insert_defaults import InsertDefaults

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.table.snapshot import Snapshot

_RELATION = "LogicalRelation"
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
class Into:
    """An INSERT of a parsed statement (one of `inserts_of`), with the version of the table that it is resolved against.

    `evolves`: columns that only the rows have are added to the table, and types are widened (mergeSchema).
    """

    statement: JavaObject
    log: "DeltaLog"
    snapshot: "Snapshot"
    evolves: bool = False


@dataclass(frozen=True)
class Insert:
    """A resolved INSERT: the rows, in columns of the table, and what they replace.

    `replaces` is a condition as SQL, `""` for the whole table and None for nothing; with `by_partition`, the partitions
    of the rows are replaced. `condition` is what `replaces` prints: a text has no offset of a timestamp, for example.
    """

    frame: "DataFrame"
    replaces: str | None
    by_partition: bool
    condition: "Column | None" = None


# --- the table behind a view --------------------------------------------------------------------------------------


def mark(frame: "DataFrame", log: "DeltaLog", version: int | None) -> "DataFrame":
    """Mark the frame's plan as showing a whole table: all columns and rows, of `version` if not None.

    The mark is on the root of the plan, so a frame derived by a filter or a selection has none.
    On Spark Connect there is no INSERT INTO a view: the frame gets no mark.
    """
    if not is_classic(frame.sparkSession):
        return frame
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
        if class_name(plan) not in ("SubqueryAlias", "View") and not _selects_all(plan):
            return None
        plan = plan.child()
        text = plan.getTagValue(key)
    tag = json.loads(text.get())
    with _lock:
        log = _logs.get(tag["log"])
    return Target(tag["table"], tag["version"], log)


def shows_part(spark: "SparkSession", name: JavaObject) -> bool:
    """Whether a temporary view without a `target` reads a Delta table: a part of it, or several tables."""
    try:
        plan = inserts.resolved_plan(spark, inserts.unresolved_relation(Gateway.of(spark), name))
    except thrown_by_java():
        return False
    return pinning.reads_delta(plan)


def directories_shown(spark: "SparkSession", name: JavaObject) -> list[str]:
    """The directories of the files of other formats that a temporary view shows. (Spark refuses to write Delta's.)"""
    try:
        plan = inserts.resolved_plan(spark, inserts.unresolved_relation(Gateway.of(spark), name))
    except thrown_by_java():
        return []
    relations = [leaf.relation() for leaf in Gateway.elements(plan.collectLeaves()) if class_name(leaf) == _RELATION]
    return [
        str(path.toString())
        for relation in relations
        if class_name(relation) == "HadoopFsRelation" and class_name(relation.location()) != FILE_INDEX_CLASS
        for path in Gateway.elements(relation.location().rootPaths())
    ]


def filters_rows(spark: "SparkSession", name: JavaObject) -> bool:
    """Whether a temporary view selects rows of one Delta table by a condition."""
    gateway = Gateway.of(spark)
    plan = inserts.resolved_plan(spark, inserts.unresolved_relation(gateway, name))
    key, filtered = inserts.tag(gateway, _TAG), False
    while not plan.getTagValue(key).isDefined():
        kind = class_name(plan)
        if kind not in ("SubqueryAlias", "View", "Project", "Filter"):
            return False
        filtered = filtered or kind == "Filter"
        plan = plan.child()
    return filtered


def _selects_all(plan: JavaObject) -> bool:
    """Whether the node selects all columns of its child under their names, as a view of `SELECT *` does."""
    if class_name(plan) != "Project":
        return False
    columns, below = plan.projectList(), plan.child().output()
    if columns.size() != below.size():
        return False
    for i in range(below.size()):
        column, attribute = columns.apply(i), below.apply(i)
        value = column.child() if class_name(column) == "Alias" else column
        if class_name(value) == "Cast" and value.dataType().equals(attribute.dataType()):
            value = value.child()  # a view casts to the types that it was created with
        if column.name() != attribute.name() or not value.fastEquals(attribute):
            return False
    return True


# --- statements ---------------------------------------------------------------------------------------------------


def inserts_of(plan: JavaObject) -> list[JavaObject]:
    """The INSERTs of a parsed statement: one, those of a multi-insert, or none.

    None too if the table of one of them is named by an expression: its name has to be resolved first.
    """
    kind = class_name(plan)
    if kind in (
        "InsertIntoStatement",
        "OverwriteByExpression",
    ):  # before Spark 4.3 REPLACE WHERE is parsed to the second
        return [plan]
    if kind in ("UnresolvedWith", "Union"):
        parts = [inserts_of(child) for child in Gateway.elements(plan.children())]
        return [insert for part in parts for insert in part] if all(parts) else []
    return []


def clauses_of(statement: JavaObject) -> set[str]:
    """The clauses of an INSERT that only newer versions of Spark parse: "SchemaEvolution", "InsertReplaceUsing", ..."""
    positions = {statement.productElementName(i): i for i in range(statement.productArity())}
    clauses = set()
    if "withSchemaEvolution" in positions and statement.withSchemaEvolution():
        clauses.add("SchemaEvolution")
    if "replaceCriteriaOpt" in positions and statement.replaceCriteriaOpt().isDefined():
        clauses.add(class_name(statement.replaceCriteriaOpt().get()))
    return clauses


@dataclass(frozen=True)
class Replaced:
    """What REPLACE USING and REPLACE ON replace: the rows with equal values in `columns`, or those of a condition.

    `condition` is not resolved; `alias` is the table's name in it, if the statement gives it one.
    """

    columns: tuple[str, ...] = ()
    condition: JavaObject | None = None
    alias: str | None = None


def replaced_by(statement: JavaObject) -> Replaced | None:
    """The REPLACE USING or REPLACE ON of an INSERT; None if it has neither."""
    clauses = clauses_of(statement)
    if "InsertReplaceUsing" in clauses:
        return Replaced(tuple(map(str, Gateway.elements(statement.replaceCriteriaOpt().get().cols()))))
    if "InsertReplaceOn" in clauses:
        criteria = statement.replaceCriteriaOpt().get()
        alias = criteria.tableAliasOpt()
        return Replaced(condition=criteria.cond(), alias=str(alias.get()) if alias.isDefined() else None)
    return None


def of_frame(frame: "DataFrame", name: str, *, overwrite: bool) -> JavaObject:
    """The statement that is equivalent to `DataFrameWriter.insertInto`."""
    spark = frame.sparkSession
    relation = inserts.unresolved_relation(Gateway.of(spark), inserts.parsed_name(spark, name))
    like = statements.parsed(spark, "INSERT INTO t SELECT 1")
    return changed(like, table=relation, query=analyzed(frame), overwrite=overwrite)


def query_of(plan: JavaObject, statement: JavaObject) -> JavaObject:
    """The query of an INSERT of a parsed statement, with the statement's common tables."""
    has_clause = class_name(plan) == "UnresolvedWith"
    return changed(plan, child=statement.query()) if has_clause else statement.query()


def resolved(spark: "SparkSession", plan: JavaObject, targets: Sequence[Into]) -> list[Insert]:
    """The INSERTs of a parsed statement, resolved by Spark's analyzer against the snapshots of their tables.

    `targets`: all of `inserts_of(plan)`. If there are several, all read the tables as they were before the first write.
    Raises Spark's AnalysisException.
    """
    resolved_inserts = _resolved(spark, plan, targets)
    if len(resolved_inserts) == 1:
        return resolved_inserts
    held = []
    for insert in resolved_inserts:
        frame = insert.frame
        for log, snapshot in {target.log.table: (target.log, target.snapshot) for target in targets}.values():
            frame, _ = pinning.pinned(frame, log, snapshot)
        held.append(replace(insert, frame=frame))
    return held


def _resolved(spark: "SparkSession", plan: JavaObject, targets: Sequence[Into]) -> list[Insert]:
    """The INSERTs as Spark resolves them; where its store assignment refuses their types, with the casts of Delta."""
    from pyspark.errors import AnalysisException

    gateway = Gateway.of(spark)

    def writes(*, accepts_any: bool) -> list[JavaObject]:
        defaults = InsertDefaults(spark)
        tables = {
            target.statement: _with_target(spark, plan, target, defaults, accepts_any=accepts_any) for target in targets
        }
        with defaults.used():
            return _writes(inserts.resolved_plan(spark, plan.transformDown(gateway.scala_map(tables))))

    try:
        return [_insert(node, plans.frame_of(spark, node.query())) for node in writes(accepts_any=False)]
    except AnalysisException as error:
        condition, parameters = error.getCondition() or "", error.getMessageParameters() or {}
        if condition == "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS" and not any(map(_lists, targets)):
            num_values, wanted = (parameters.get(key, "").count("`, `") + 1 for key in ("dataColumns", "tableColumns"))
            raise insert_casts.arity_error(targets[0].log.table, num_values, wanted) from error
        if not _is_cast_by_delta(spark, condition):
            raise
    cast_inserts = []
    for node in writes(accepts_any=True):
        frame = plans.frame_of(spark, node.query())
        frame = frame.select(*(value.alias(name) for name, value in _cast(frame, node, targets[0])))
        cast_inserts.append(_insert(node, frame))
    return cast_inserts


def _is_cast_by_delta(spark: "SparkSession", condition: str) -> bool:
    """Whether Delta casts what Spark's store assignment refused with this condition."""
    policy = settings.of(spark, STORE_ASSIGNMENT).upper()
    refused = policy == "ANSI" and condition == "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST"
    return refused or policy == "LEGACY"


def _cast(frame: "DataFrame", node: JavaObject, target: Into) -> "list[tuple[str, Column]]":
    """What an INSERT stores of the rows of its query (`frame`), as Delta casts it, with the names of the columns."""
    columns = schemas.parse_schema(str(node.table().schema().json()))
    ansi = settings.of(frame.sparkSession, STORE_ASSIGNMENT).upper() == "ANSI"
    return insert_casts.casted(frame, columns, target.log.table, by_name=bool(node.isByName()), ansi=ansi)


def _lists(target: Into) -> bool:
    """Whether an INSERT lists its columns."""
    replaces_where = class_name(target.statement) == "OverwriteByExpression"
    return not replaces_where and not target.statement.userSpecifiedCols().isEmpty()


def resolved_values(spark: "SparkSession", plan: JavaObject, target: Into) -> "tuple[DataFrame, dict[str, Column]]":
    """The query of the only INSERT of a statement, and what is stored of its rows, by the table's columns.

    The query keeps its own columns and aliases. Raises Spark's AnalysisException.
    """
    from pyspark.errors import AnalysisException

    gateway = Gateway.of(spark)
    frame = plans.frame_of(spark, query_of(plan, target.statement))
    statement = changed(target.statement, query=analyzed(frame), overwrite=False, replaceCriteriaOpt=gateway.none)
    target = replace(target, statement=statement)
    defaults = InsertDefaults(spark)

    def node_of(*, accepts_any: bool) -> JavaObject:
        with_target = _with_target(spark, statement, target, defaults, accepts_any=accepts_any)
        with defaults.used():
            return inserts.resolved_plan(spark, with_target)

    try:
        node = node_of(accepts_any=False)
    except AnalysisException as error:
        if not _is_cast_by_delta(spark, error.getCondition() or ""):
            raise
        node = node_of(accepts_any=True)
        return frame, dict(_cast(frame, node, target))
    query = node.query()
    names = list(node.table().schema().fieldNames())
    if class_name(query) == "Project" and query.outputSet() != analyzed(frame).outputSet():
        listed = gateway.elements(query.projectList())
        values = [expression.child() if class_name(expression) == "Alias" else expression for expression in listed]
    else:
        values = gateway.elements(query.output())
    return frame, {str(name): gateway.column(value) for name, value in zip(names, values, strict=True)}


def _insert(node: JavaObject, frame: "DataFrame") -> Insert:
    kind = class_name(node)
    if kind == "AppendData":
        return Insert(frame, None, False)
    if kind == "OverwritePartitionsDynamic":
        return Insert(frame, "", True)
    if kind == "OverwriteByExpression":
        condition = node.deleteExpr()
        if class_name(condition) == "Literal" and condition.value() is True:
            return Insert(frame, "", False)
        by_names = catalyst.by_names(frame.sparkSession, condition)
        return Insert(frame, str(condition.sql()), False, Gateway.of(frame.sparkSession).column(by_names))
    raise UnsupportedFeatureError(f"tablelog does not support {kind} of a table by SQL; use df.write or DeltaTable")


def _writes(plan: JavaObject) -> list[JavaObject]:
    if class_name(plan) in ("Union", "WithCTE"):
        return [write for child in Gateway.elements(plan.children()) for write in _writes(child)]
    return [] if class_name(plan) == "CTERelationDef" else [plan]


def _with_target(
    spark: "SparkSession", plan: JavaObject, target: Into, defaults: InsertDefaults, *, accepts_any: bool
) -> JavaObject:
    """The INSERT with the substitute of its table, for Spark's analyzer."""
    gateway, statement = Gateway.of(spark), target.statement
    relation = inserts.relation_of(gateway, _shown(spark, plan, target, defaults, accepts_any=accepts_any))
    # The substitute has the evolved schema already.
    evolves = {"withSchemaEvolution": False} if "SchemaEvolution" in clauses_of(statement) else {}
    return changed_node(gateway, statement, table=relation, **evolves)


def _check_distinct(names: Sequence[str], table: str) -> None:
    lower = [name.lower() for name in names]
    twice = sorted({name for name in lower if lower.count(name) > 1})
    if twice:
        raise SchemaMismatchError(
            f"INSERT BY NAME: the query has a column twice: {', '.join(twice)}. Nothing was written.",
            condition="DELTA_DUPLICATE_COLUMNS_FOUND.READ_SCHEMA",
            parameters={"duplicateCols": ", ".join(twice)},
            table=table,
        )


def _check_known(names: Sequence[str], columns: schemas.StructType, table: str) -> None:
    unknown = [name for name in names if columns.get(name, case_sensitive=False) is None]
    if unknown:
        raise SchemaMismatchError(
            f"INSERT BY NAME: the table has no column {', '.join(unknown)}; it has {', '.join(columns.names)}. Nothing "
            "was written. To add the columns of the query to the table, use INSERT WITH SCHEMA EVOLUTION.",
            table=table,
        )


def _shown(
    spark: "SparkSession", plan: JavaObject, target: Into, defaults: InsertDefaults, *, accepts_any: bool
) -> inserts.InsertTarget:
    """The table with the columns for which the statement has values, if it lists them.

    The write adds the omitted columns: defaults, generated columns, identity columns.
    """
    gateway, statement, snapshot = Gateway.of(spark), target.statement, target.snapshot
    replaces_where = class_name(statement) == "OverwriteByExpression"
    by_name = statement.isByName() if replaces_where else statement.byName()
    listed, partition = [], {}
    if not replaces_where:
        listed = [str(name) for name in gateway.elements(statement.userSpecifiedCols())]
        partition_spec = statement.partitionSpec()
        partition = {
            str(key): partition_spec.apply(key).isDefined() for key in gateway.elements(partition_spec.keys().toSeq())
        }
    of_query = None
    if target.evolves or (by_name and not listed):
        query = inserts.resolved_plan(spark, query_of(plan, statement))
        of_query = schemas.parse_schema(str(query.schema().json()))
        if by_name and not listed:
            _check_distinct(of_query.names, snapshot.table)
    columns = snapshot.schema
    if target.evolves:
        assert of_query is not None
        static = {name for name, has_value in partition.items() if has_value}
        columns = insert_schema.evolved(target.log, snapshot, of_query, listed=listed, by_name=by_name, static=static)
    readable = {f.name for f in read_schema(columns)}
    fields = [f for f in columns if f.name in readable]
    names = listed or (list(of_query.names) if by_name and of_query is not None else [])
    if names:
        known = {name.lower() for name in [*names, *partition]}
        selected = [f for f in fields if f.name.lower() in known]
        if not listed:
            _check_known(names, columns, snapshot.table)
        # Spark refuses a list with an unknown name, and suggests columns of the table: of all of them.
        if not listed or known <= {f.name.lower() for f in selected}:
            fields = selected
    fields = [defaults.shown(field, columns, snapshot.table) for field in fields]
    return inserts.InsertTarget(
        gateway, f"delta.`{snapshot.table}`", fields, snapshot.partition_columns, accepts_any=accepts_any
    )
