"""Whether a Column that a user passes to a command is one of the table: a Column may be bound to any DataFrame.

A command binds Columns to the table's rows by their names. A column of another table, or one that a DataFrame computes,
may have the name of a column of the table, so it must be refused. So the attributes of the frames that users get of a
table are kept: those of its last frames.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...core.protocol.schema import dotted
from ...errors import InvalidArgumentError
from ..jvm.connection.frames import analyzed
from ..jvm.connection.gateway import Gateway, JavaObject
from ..jvm.connection.sessions import is_classic

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_TABLES, _FRAMES = 128, 64

_noted: "OrderedDict[str, deque[tuple[JavaObject, bool]]]" = OrderedDict()
_lock = threading.Lock()


def note(frame: "DataFrame", table: str, *, by_handle: bool = False) -> "DataFrame":
    """Keep the attributes of a frame of all columns of a table. `by_handle`: it is `DeltaTable.toDF()`."""
    if not is_classic(frame.sparkSession):
        return frame
    attributes = analyzed(frame).outputSet()
    with _lock:
        _noted.setdefault(table, deque(maxlen=_FRAMES)).append((attributes, by_handle))
        _noted.move_to_end(table)
        while len(_noted) > _TABLES:
            _noted.popitem(last=False)
    return frame


def check(
    spark: "SparkSession", values: "Iterable[str | Column | None]", table: str, source: "DataFrame | None" = None
) -> None:
    """Check the Columns of a command on `table`, for MERGE with its `source`; text, and Columns by name alone, pass.

    Raises:
        InvalidArgumentError: A Column is bound to another DataFrame, or may be the table's or the source's.
    """
    columns = [value for value in values if value is not None and not isinstance(value, str)]
    if not columns or not is_classic(spark):
        return
    gateway = Gateway.of(spark)
    used = {
        str(attribute.exprId()): attribute
        for column in columns
        for attribute in gateway.references(gateway.expression(spark, column))
        if attribute.resolved()
    }
    of_source = None if source is None else analyzed(source).outputSet()
    in_source = {key: one for key, one in used.items() if of_source is not None and of_source.contains(one)}
    others = [one for key, one in used.items() if key not in in_source]
    with _lock:
        frames = list(reversed(_noted.get(table, ())))
    for attribute in others:
        if not any(attributes.contains(attribute) for attributes, _ in frames):
            raise _foreign(dotted((str(attribute.name()),)), table, source)
    for attribute in () if others else in_source.values():  # with others, it is clear which frame is the table's
        if any(by_handle and attributes.contains(attribute) for attributes, by_handle in frames):
            raise _ambiguous(dotted((str(attribute.name()),)))


def _foreign(name: str, table: str, source: "DataFrame | None") -> InvalidArgumentError:
    of_command = "MISSING_ATTRIBUTES.RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT"
    return InvalidArgumentError(
        f"the Column {name} belongs to another DataFrame than one of all columns of {table}. Use F.col(name) or SQL "
        "text for the columns of the table, or a Column of toDF()",
        condition=of_command if source is None else "DELTA_MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT",
        parameters={"missingAttributes": name, "input": table, "merge": table},
    )


def _ambiguous(name: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"the Column {name} may be the table's or the source's, because the source of MERGE is derived from a frame of "
        'a DeltaTable of the same table. Give both an alias, and write F.col("t.…") and F.col("s.…")',
        condition="AMBIGUOUS_REFERENCE",
        parameters={"name": name, "referenceNames": f"[target.{name}, source.{name}]"},
    )
