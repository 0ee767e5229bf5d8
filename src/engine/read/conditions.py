"""The condition of a DELETE (and its like), resolved and planned by Spark, taken apart by what decides it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from ...core.protocol.column_mapping import ColumnMapping
from ...core.skipping import predicates as core
from ...errors import InvalidArgumentError, UnsupportedFeatureError
from ..jvm.frames import analyzed
from ..jvm.gateway import Gateway, JavaObject
from ..jvm.messages import sql_of
from ..jvm.scans import planned_scan
from ..sql.column_names import columns_read
from ..sql.predicates import translate
from .file_index import FileIndex
from .pinned_versions import Pinned

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from ...core.table.snapshot import Snapshot


@dataclass(frozen=True)
class Condition:
    """A resolved condition.

    `partition` is what partition columns decide of it and `data` the rest, `None` where partition columns decide all
    of it, so that a file matches as a whole or not at all (`exact_partitions` says which do). Both may hold `Opaque`
    parts. `sql` is the condition as Delta prints it in `commitInfo`.
    """

    partition: core.Predicate
    data: core.Predicate | None
    sql: list[str]
    _gateway: Gateway = field(repr=False)
    _expression: JavaObject = field(repr=False)
    _partition_filters: JavaObject = field(repr=False)
    _data_filters: JavaObject = field(repr=False)
    _never: bool = False

    @property
    def predicate(self) -> core.Predicate:
        """The whole condition."""
        return core.all_of([self.partition] if self.data is None else [self.partition, self.data])

    def column(self, frame: "DataFrame") -> "Column":
        """The condition over another frame that has the same columns, whatever that frame's alias."""
        return self._gateway.column(self._gateway.rebound(self._expression, frame))


def split_condition(frame: "DataFrame", condition: "str | Column", mapping: ColumnMapping) -> Condition:
    """Resolve `condition` over `frame`, which `scan.for_conditions` made (it may have an alias).

    A Column may be bound to another frame of the same table. Raises Spark's AnalysisException for a condition that
    doesn't resolve or is no boolean, InvalidArgumentError for one that isn't deterministic and
    UnsupportedFeatureError for one with a subquery.
    """
    spark = frame.sparkSession
    gateway = Gateway.of(spark)
    if not isinstance(condition, str):
        condition = gateway.column(gateway.rebound(gateway.expression(spark, condition), frame))
    filtered = frame.where(condition)
    expression = gateway.filter_condition(filtered)
    if gateway.has_subquery(expression):
        raise UnsupportedFeatureError(
            f"the condition {sql_of(expression)} has a subquery, which comes with a later version of "
            "tablelog: collect the subquery's result first and put it into the condition",
            condition="DELTA_UNSUPPORTED_SUBQUERY",
            parameters={"cond": sql_of(expression)},
        )
    if not expression.deterministic():
        raise InvalidArgumentError(
            f"the condition {sql_of(expression)} is not deterministic: it would give another answer when the "
            "rows that stay are read, and rows would be lost or kept by chance",
            condition="INVALID_NON_DETERMINISTIC_EXPRESSIONS",
            parameters={"sqlExprs": sql_of(expression)},
        )
    expression = gateway.at_one_time(analyzed(filtered)).condition()
    width = int(str(spark.conf.get("spark.sql.debug.maxToStringFields", "25")))
    sql = [str(gateway.optimized(expression, frame).simpleString(width))]
    names = {name.lower() for name in mapping.partition_columns}
    referenced = {attribute.name().lower() for attribute in gateway.references(expression)}
    planned = planned_scan(filtered)
    if planned is None:  # the optimizer found that no row can match
        nothing = gateway.seq([])
        return Condition(core.Constant(False), None, sql, gateway, expression, nothing, nothing, True)
    # The scan knows columns as the files call them; predicates name them as the table does.
    read = columns_read(mapping)
    partition = core.with_columns(translate(gateway, planned.partition_filters, read), mapping.to_logical)
    if planned.complete and referenced <= names:
        data = None
    else:
        data = core.with_columns(translate(gateway, planned.data_filters, read), mapping.to_logical)
        if not planned.understood:
            data = core.all_of([data, core.Opaque(sql[0], frozenset((name,) for name in frame.columns))])
    return Condition(partition, data, sql, gateway, expression, planned.partition_filters, planned.data_filters)


def printed_conjuncts(spark: "SparkSession", text: str) -> list[str]:
    """The parts of a condition that AND joins, as Delta prints them of OPTIMIZE; ParseException for no condition."""
    return Gateway.of(spark).printed_conjuncts(spark, text)


def exact_partitions(spark: "SparkSession", snapshot: "Snapshot", condition: Condition) -> pa.Array:
    """Rows of `snapshot.files` for which the partition part is TRUE, as Spark itself evaluates it."""
    return _rows(spark, snapshot, condition, condition._gateway.seq([]))


def candidates(spark: "SparkSession", snapshot: "Snapshot", condition: Condition) -> pa.Array:
    """Rows of `snapshot.files` that may hold matching rows: by the partition part exactly, then by statistics."""
    return _rows(spark, snapshot, condition, condition._data_filters)


def _rows(spark: "SparkSession", snapshot: "Snapshot", condition: Condition, data_filters: JavaObject) -> pa.Array:
    if condition._never:
        return pa.array([], pa.int32())
    index = FileIndex(condition._gateway, spark, Pinned(snapshot))
    plan, _ = index.plan(condition._partition_filters, data_filters)
    return pa.array(range(plan.total), pa.int32()) if plan.indices is None else plan.indices
