"""The option `withEventTimeOrder`: the rows of the first version in the order of the query's event time."""

from functools import partial
from uuid import uuid4

from pyspark.sql import SparkSession

from ...core.deltalog import DeltaLog
from ...core.streaming.event_times import TYPES, EventTimeOrder
from ...core.table.snapshot import Snapshot
from ...engine.jvm import watermarks
from ...engine.jvm.connection import settings
from ...engine.read import stream_batch
from ...errors import InvalidArgumentError
from ...settings.declarations import EVENT_TIME_ORDER, STATS_SKIPPING
from ..options import Options

_SOURCE = "tablelogSource"  # an option by which the source is found in the plan of the query


def is_ordered(spark: SparkSession, options: Options) -> bool:
    """Whether a stream reads the rows of its first version in the order of event time, by option or setting."""
    if options.get("startingVersion") is not None or options.get("startingTimestamp") is not None:
        return False  # it reads no version as a whole
    wanted = options.boolean("withEventTimeOrder")
    return settings.of(spark, EVENT_TIME_ORDER) if wanted is None else wanted


def source_option(spark: SparkSession, options: Options) -> dict[str, str]:
    """An option of a streaming DataFrame by which `event_time_order` finds it."""
    return {_SOURCE: uuid4().hex} if is_ordered(spark, options) else {}


def event_time_order(spark: SparkSession, log: DeltaLog, read: Snapshot, options: Options) -> EventTimeOrder | None:
    """How a query that starts reads the rows of its first version in the order of event time; None: it doesn't.

    Raises:
        InvalidArgumentError: The option is set, and the query has no watermark over the table.
        UnsupportedFeatureError: The event time isn't a column of the table.
    """
    source = options.get(_SOURCE)
    if source is None:
        return None
    column = watermarks.event_time_column(spark, _SOURCE, source)
    if column is None:
        if options.boolean("withEventTimeOrder") is None:
            return None  # the setting is for all queries of the session
        raise InvalidArgumentError(
            f"withEventTimeOrder needs the event time of the query over {log.table}: set it by withWatermark, or leave "
            "out the option. Without a watermark no row is dropped.",
            condition="DELTA_ILLEGAL_OPTION",
            parameters={"input": "true", "name": "withEventTimeOrder", "explain": "the query has no watermark"},
            table=log.table,
        )
    field = read.schema.get(column)
    if field is None or getattr(field.data_type, "name", None) not in TYPES:
        raise InvalidArgumentError(
            f"withEventTimeOrder needs an event time that is a column of {log.table}, of the type timestamp "
            f"or date. The event time of the query is {column}.",
            condition="DELTA_ILLEGAL_OPTION",
            parameters={"input": "true", "name": "withEventTimeOrder", "explain": f"{column} can't be ordered"},
            table=log.table,
        )
    measure = partial(stream_batch.measured, spark, log, read)
    zone = settings.time_zone(spark)
    return EventTimeOrder(field.name, zone, measure, statistics=settings.of(spark, STATS_SKIPPING))
