"""The column of a table from which the watermark of a streaming query takes the event time."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...errors import UnsupportedFeatureError
from ...settings.spark_own import STREAMING_QUERY_ID
from .builders import string_map
from .connection.gateway import Gateway, JavaObject
from .connection.sessions import jvm_session
from .registry.classes import class_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NO_ORDER = "so that withEventTimeOrder can't order its rows"


def event_time_column(spark: "SparkSession", option: str, value: str) -> str | None:
    """The column of a source of the running query from which its watermark takes the event time.

    It is called in the thread of the query, while it starts. The source is the one whose `option` is `value`.

    Returns:
        The name of the column; None: the query has no watermark over the source.

    Raises:
        UnsupportedFeatureError: The event time isn't a column of the source, or of dates that are cast; or there are
            several.
    """
    query_id = spark.sparkContext.getLocalProperty(STREAMING_QUERY_ID.key)
    query = None if query_id is None else jvm_session(spark).streams().get(query_id)
    if query is None:
        raise UnsupportedFeatureError(
            f"The plan of the streaming query isn't known, {_NO_ORDER}. Start it in the session of the DataFrame."
        )
    columns = set()
    for watermark in _nodes(query.streamingQuery().analyzedPlan()):
        if class_name(watermark) == "EventTimeWatermark" and any(
            _is_source(leaf, option, value) for leaf in Gateway.elements(watermark.collectLeaves())
        ):
            columns.add(_traced(watermark))
    if len(columns) > 1:
        raise UnsupportedFeatureError(
            f"The query has watermarks on several columns of a table ({', '.join(sorted(columns))}), {_NO_ORDER}: load "
            "the table once for each."
        )
    return columns.pop() if columns else None


def _nodes(plan: JavaObject) -> Iterator[JavaObject]:
    yield plan
    for child in Gateway.elements(plan.children()):
        yield from _nodes(child)


def _is_source(leaf: JavaObject, option: str, value: str) -> bool:
    return class_name(leaf) == "StreamingRelation" and string_map(leaf.dataSource().options()).get(option) == value


def _traced(watermark: JavaObject) -> str:
    """The column of the source below a watermark that is its event time."""
    column, node = watermark.eventTime(), watermark.child()
    name = str(column.name())
    while True:
        if not _has(node, column):
            raise _computed(name, class_name(node))
        children = Gateway.elements(node.children())
        if not children:
            return str(column.name())
        if class_name(node) == "Project":
            column = _projected(node, column, name)
        streams = [child for child in children if child.isStreaming()]
        if len(streams) > 1:
            raise UnsupportedFeatureError(
                f"The watermark on {name} is over several streams, {_NO_ORDER}: set a watermark on each of them."
            )
        (node,) = streams


def _projected(project: JavaObject, column: JavaObject, name: str) -> JavaObject:
    """The column of a projection's input from which it takes `column`."""
    for projected in Gateway.elements(project.projectList()):
        if projected.exprId() == column.exprId():
            value = projected.child() if class_name(projected) == "Alias" else projected
            if class_name(value) == "Cast" and str(value.child().dataType().typeName()) == "date":
                value = value.child()
            if class_name(value) == "AttributeReference":
                return value
            raise _computed(name, str(value.sql()))
    raise _computed(name, class_name(project))


def _has(node: JavaObject, column: JavaObject) -> bool:
    return any(output.exprId() == column.exprId() for output in Gateway.elements(node.output()))


def _computed(name: str, by: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"The event time {name} of the watermark is computed by {by}, {_NO_ORDER}: this needs a column of the "
        "table, of the type timestamp or date. Add the event time to the table as a column."
    )
