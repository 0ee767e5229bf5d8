"""Conditions of DELETE and similar commands, resolved and planned by Spark, split by the columns that they need."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ...core.log.replay import Totals
from ...core.protocol import schema as schemas
from ...core.protocol.column_mapping import ColumnMapping
from ...core.protocol.partition_values import typed_columns
from ...core.skipping import predicates
from ...errors import InvalidArgumentError, UnsupportedFeatureError
from ...settings.spark_own import MAX_TO_STRING_FIELDS
from ..connect import predicate_of, public_columns
from ..jvm.connection import settings
from ..jvm.connection.frames import analyzed
from ..jvm.connection.gateway import Gateway, JavaObject
from ..jvm.connection.messages import sql_of
from ..jvm.connection.sessions import is_classic
from ..jvm.scans import planned_scan
from ..jvm.types import spark_type, table_schema
from ..sql.column_names import columns_read
from ..sql.predicates import translate
from . import file_groups, large_log
from .file_index import FileIndex
from .pinned_versions import Pinned
from .scan_spec import ScanSpec

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.table.snapshot import Snapshot


_NUMBER = "__tablelog_number"


@dataclass(frozen=True)
class Condition:
    """A resolved condition.

    `partition` is the part on partition columns and `data` the rest. `data` is `None` if the condition uses partition
    columns only, so that a file matches as a whole or not at all (`exact_partitions` returns those that match). Both
    may contain `Opaque` parts. `sql` is the condition as Delta prints it in `commitInfo`.
    """

    partition: predicates.Predicate
    data: predicates.Predicate | None
    sql: list[str]
    _gateway: Gateway = field(repr=False)
    _expression: JavaObject = field(repr=False)
    _partition_filters: JavaObject = field(repr=False)
    _data_filters: JavaObject = field(repr=False)
    _never: bool = False

    @property
    def predicate(self) -> predicates.Predicate:
        """The whole condition."""
        return predicates.all_of([self.partition] if self.data is None else [self.partition, self.data])

    @property
    def always(self) -> bool:
        """Whether the condition is TRUE for every row, as `true` and `1 = 1` are."""
        return self.data is None and self.partition == predicates.TRUE

    def column(self, frame: "DataFrame") -> "Column":
        """The condition as a Column of another frame with the same columns, independent of that frame's alias."""
        return self._gateway.column(self._gateway.rebound(self._expression, frame))


class UnplannedCondition(Condition):
    """A condition on Spark Connect, whose plan is out of reach. `predicate_of` tells the files that may match."""

    def column(self, frame: "DataFrame") -> "Column":
        """The condition as a Column of a frame with the same columns and the same alias."""
        result: Column = self._expression
        return result


def split_condition(
    frame: "DataFrame", condition: "str | Column", mapping: ColumnMapping, alias: str | None = None
) -> Condition:
    """Resolve `condition` over `frame`, a result of `scan.for_conditions`, possibly with an alias.

    `alias` is the frame's, for Spark Connect, where only conditions are accepted that `sql_text` can check.

    A Column may be bound to another frame of the same table. Raises Spark's AnalysisException for a condition that
    doesn't resolve or isn't boolean, InvalidArgumentError for a nondeterministic one and UnsupportedFeatureError for
    one with a subquery.
    """
    spark = frame.sparkSession
    if not is_classic(spark):
        return _unplanned(frame, condition, alias)
    gateway = Gateway.of(spark)
    if not isinstance(condition, str):
        condition = gateway.column(gateway.rebound(gateway.expression(spark, condition), frame))
    filtered = frame.where(condition)
    expression = gateway.filter_condition(filtered)
    if gateway.has_subquery(expression):
        raise UnsupportedFeatureError(
            f"the condition {sql_of(expression)} has a subquery, which tablelog does not support yet: "
            "collect the subquery's result first and put it into the condition",
            condition="DELTA_UNSUPPORTED_SUBQUERY",
            parameters={"cond": sql_of(expression)},
        )
    if not expression.deterministic():
        raise InvalidArgumentError(
            f"the condition {sql_of(expression)} is not deterministic: it is evaluated more than once, and different "
            "results would lose or duplicate rows",
            condition="INVALID_NON_DETERMINISTIC_EXPRESSIONS",
            parameters={"sqlExprs": sql_of(expression)},
        )
    expression = gateway.at_one_time(analyzed(filtered)).condition()
    width = settings.of(spark, MAX_TO_STRING_FIELDS)
    sql = [str(gateway.optimized(expression, frame).simpleString(width))]
    names = {name.lower() for name in mapping.partition_columns}
    referenced = {attribute.name().lower() for attribute in gateway.references(expression)}
    planned = planned_scan(filtered)
    if planned is None:  # the optimizer proved that no row can match
        nothing = gateway.seq([])
        return Condition(predicates.Constant(False), None, sql, gateway, expression, nothing, nothing, True)
    # The scan uses physical column names; predicates use logical names.
    read = columns_read(mapping)
    partition = predicates.with_columns(translate(gateway, planned.partition_filters, read), mapping.to_logical)
    if planned.complete and referenced <= names:
        data = None
    else:
        data = predicates.with_columns(translate(gateway, planned.data_filters, read), mapping.to_logical)
        if not planned.understood:
            data = predicates.all_of([data, predicates.Opaque(sql[0], frozenset((name,) for name in frame.columns))])
    return Condition(partition, data, sql, gateway, expression, planned.partition_filters, planned.data_filters)


def _unplanned(frame: "DataFrame", condition: "str | Column", alias: str | None) -> Condition:
    from pyspark.sql import functions as F

    expression = public_columns.checked(frame, condition, "the condition", [] if alias is None else [alias])
    # Spark resolves it here. The client doesn't ask for the schema of `where`: it keeps that of the frame below.
    _ = frame.where(expression).select(F.lit(1)).schema
    schema, qualifiers = table_schema(frame.schema), [] if alias is None else [alias]
    if isinstance(condition, str):
        predicate = predicate_of.of_text(condition, schema, qualifiers)
    else:
        predicate = predicate_of.of_column(frame.sparkSession, condition, schema, qualifiers)
    text = public_columns.text_of(condition)
    unknown: Any = None
    return UnplannedCondition(predicates.TRUE, predicate, [text], unknown, expression, unknown, unknown)


def printed_conjuncts(spark: "SparkSession", condition: "str | Column") -> list[str]:
    """The conjuncts of a condition, as Delta prints them for OPTIMIZE. Raises ParseException."""
    return Gateway.of(spark).printed_conjuncts(spark, condition)


def planned(
    spark: "SparkSession",
    log: "DeltaLog",
    snapshot: "Snapshot",
    condition: Condition | None,
    then: "large_log.Choice | None" = None,
    *,
    grouped: bool = False,
) -> "large_log.PlannedFiles | None":
    """The files that may match, and that `then` selects, with statistics; executors find them in a large log.

    The result may have files that `exact_partitions` or `candidates` exclude. With `grouped`, many files come in groups
    (`file_groups`). None: the driver has to find the files, because the log isn't large, the executors can't read it,
    or the session is of Spark Connect.
    """
    if not is_classic(spark) or not large_log.wanted(spark, snapshot):
        return None
    chosen = file_groups.chooser(grouped=grouped)
    if condition is None:
        assert then is not None
        return chosen(spark, log, snapshot, then, None)
    if condition._never:
        return large_log.PlannedFiles(large_log.NO_FILES, Totals(), 0)
    index = FileIndex(condition._gateway, spark, Pinned(snapshot), ScanSpec(snapshot), log=log)
    of_rows = condition._gateway.seq([]) if condition.data is None else condition._data_filters
    return index.planned(snapshot, condition._partition_filters, of_rows, then=then, chosen=chosen)


def only_partitions(spark: "SparkSession", snapshot: "Snapshot", condition: Condition) -> bool:
    """Whether a condition uses partition columns only."""
    if not isinstance(condition, UnplannedCondition):
        return condition.data is None
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    try:  # Spark resolves it, for the client doesn't know all names in it
        _ = _partitions(spark, snapshot).where(condition.column(spark.range(0))).select(F.lit(1)).schema
    except AnalysisException:
        return False
    return True


def exact_partitions(spark: "SparkSession", snapshot: "Snapshot", condition: Condition) -> pa.Array:
    """Indexes in `snapshot.files` of the files for which the partition part is TRUE, evaluated by Spark."""
    if isinstance(condition, UnplannedCondition):
        return _evaluated(spark, snapshot, condition)
    return _rows(spark, snapshot, condition, condition._gateway.seq([]))


def _evaluated(spark: "SparkSession", snapshot: "Snapshot", condition: Condition) -> pa.Array:
    """`exact_partitions` on Spark Connect, where the server gets the partition values."""
    partitions = _partitions(spark, snapshot)
    found = partitions.where(condition.column(partitions)).select(_NUMBER).toArrow().column(_NUMBER)
    return found.combine_chunks().cast(pa.int32()).sort()


def _partitions(spark: "SparkSession", snapshot: "Snapshot") -> "DataFrame":
    """The partition values of each file by logical names, and its index in `snapshot.files`."""
    mapping = snapshot.mapping
    values = typed_columns(
        snapshot.files, mapping.physical, mapping.physical_partition_columns, time_zone=settings.time_zone(spark)
    ).rename_columns(list(mapping.partition_columns))
    numbered = values.append_column(_NUMBER, pa.array(range(snapshot.files.num_rows), pa.int64()))
    kinds = (*mapping.logical.select(mapping.partition_columns), schemas.StructField(_NUMBER, schemas.LONG))
    return spark.createDataFrame(numbered, spark_type(schemas.StructType(kinds)))


def partition_mask(
    spark: "SparkSession", log: "DeltaLog", snapshot: "Snapshot", condition: Condition
) -> "Callable[[pa.Table], pa.BooleanArray] | None":
    """As `exact_partitions`, as a function for pieces of a large version's files: it gives a mask of them.

    Spark evaluates the condition once for each tuple of partition values. None if the executors can't read the log.
    """
    names = snapshot.mapping.physical_partition_columns
    found = large_log.chosen(spark, log, snapshot, large_log.OneOfEachTuple(names), None)
    if found is None:
        return None
    numbers = exact_partitions(spark, snapshot.with_files(found.files), condition)
    tuples = large_log.tuples_of(found.files.take(numbers), names)
    return lambda piece: pc.is_in(large_log.tuples_of(piece, names), value_set=tuples)


def candidates(spark: "SparkSession", snapshot: "Snapshot", condition: Condition) -> pa.Array:
    """Indexes in `snapshot.files` of files that may have matching rows: by partition values, then by statistics."""
    if isinstance(condition, UnplannedCondition):
        mask = snapshot.prune_mask(condition.predicate, time_zone=settings.time_zone(spark))
        return pc.indices_nonzero(mask).cast(pa.int32())
    return _rows(spark, snapshot, condition, condition._data_filters)


def _rows(spark: "SparkSession", snapshot: "Snapshot", condition: Condition, data_filters: JavaObject) -> pa.Array:
    if condition._never:
        return pa.array([], pa.int32())
    index = FileIndex(condition._gateway, spark, Pinned(snapshot), ScanSpec(snapshot))
    plan, _ = index.plan(condition._partition_filters, data_filters)
    return pa.array(range(plan.total), pa.int32()) if plan.indices is None else plan.indices
