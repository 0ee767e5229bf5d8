"""Generation expressions of partition columns, resolved by Spark, for `core.skipping.generation`."""

import json
import logging
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

from ...core.protocol import features
from ...core.protocol import schema as schemas
from ...core.skipping.generation import FORMATS, Generated, Part
from ...errors import SchemaMismatchError, UntrustedTableError
from ...settings.declarations import GENERATED_PARTITION_FILTERS
from ..jvm.connection import settings
from . import expressions
from .predicates import Node, tree

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ...core.table.snapshot import Snapshot

logger = logging.getLogger(__name__)

_TIMES = (schemas.TIMESTAMP, schemas.TIMESTAMP_NTZ, schemas.DATE)
_ALIKE = (schemas.STRING, schemas.DATE, schemas.BYTE, schemas.SHORT, schemas.INTEGER, schemas.LONG)
_UNITS = {
    "year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mon": "month", "mm": "month",
    "week": "week", "day": "day", "dd": "day", "hour": "hour",
}  # fmt: skip
_NUMBERS: dict[str, Part] = {"Year": "year", "Month": "month", "DayOfMonth": "day", "Hour": "hour"}

_KEPT = 64
_known: OrderedDict[tuple[str, tuple[str, ...]], tuple[Generated, ...]] = OrderedDict()
_lock = Lock()


def partition_columns(spark: "SparkSession", snapshot: "Snapshot") -> tuple[Generated, ...]:
    """The partition columns that are generated from another column by a known function, by logical names."""
    metadata = snapshot.metadata
    if not metadata.partition_columns or schemas.GENERATION_KEY not in metadata.schema_string:
        return ()
    if "generatedColumns" not in features.supported(snapshot.protocol):
        return ()
    if not settings.of(spark, GENERATED_PARTITION_FILTERS):
        return ()
    key = metadata.schema_string, tuple(metadata.partition_columns)
    with _lock:
        generated = _known.get(key)
    if generated is None:
        generated = tuple(_partition_columns(spark, snapshot.schema, metadata.partition_columns))
        with _lock:
            _known[key] = generated
            while len(_known) > _KEPT:
                _known.popitem(last=False)
    return generated


def _partition_columns(
    spark: "SparkSession", schema: schemas.StructType, names: "tuple[str, ...]"
) -> "list[Generated]":
    from pyspark.errors import PySparkException

    generated_columns = []
    for name in names:
        field = schema.get(name, case_sensitive=True)
        if field is None or schemas.GENERATION_KEY not in field.metadata:
            continue
        sql = str(field.metadata[schemas.GENERATION_KEY])
        try:
            resolved = expressions.evaluated(expressions.empty(spark, schema), sql, f"the column {name}", "the table")
        except (PySparkException, SchemaMismatchError, UntrustedTableError) as error:
            logger.debug("no filter is derived for the partition column %s, %s: %s", name, sql, error)
            continue
        if resolved is None or resolved.data_type != field.data_type:
            continue
        generated = _generated(tree(json.loads(resolved.expression.toJSON())), schema, field)
        if generated is not None:
            generated_columns.append(generated)
    return generated_columns


def _generated(node: Node, schema: schemas.StructType, field: schemas.StructField) -> Generated | None:
    """The generated column, if its expression is known; else `None`."""
    name, own = (field.name,), schemas.arrow_type(field.data_type)
    children = node.children

    def part(of: Node, kind: Part, types: tuple[schemas.DataType, ...], unit: str = "") -> Generated | None:
        column = _column(of, schema)
        return None if column is None or column[1] not in types else Generated(name, column[0], kind, own, unit)

    if node.kind in ("AttributeReference", "GetStructField"):
        return part(node, "same", _ALIKE)
    if node.kind == "Cast" and field.data_type == schemas.DATE:
        return part(children[0], "date", _TIMES)
    if node.kind == "ParseToDate" and len(children) == 1:
        return part(children[0], "date", _TIMES)
    if node.kind in _NUMBERS and field.data_type == schemas.INTEGER:
        return part(_uncast(children[0], "date"), _NUMBERS[node.kind], _TIMES)
    if node.kind == "DateFormatClass":
        unit = _literal(children[1]) or ""
        if unit not in FORMATS:
            return None
        # A date or timestamp_ntz is converted to a timestamp first; around a DST change it may shift by an hour.
        return part(_uncast(children[0], "timestamp"), "format", _TIMES[:1] if unit.endswith("HH") else _TIMES, unit)
    if node.kind == "TruncDate":
        unit = _UNITS.get((_literal(children[1]) or "").lower(), "")
        return part(_uncast(children[0], "date"), "trunc", _TIMES, unit) if unit not in ("", "day", "hour") else None
    if node.kind == "TruncTimestamp":
        unit = _UNITS.get((_literal(children[0]) or "").lower(), "")
        return part(children[1], "trunc", _TIMES[:1], unit) if unit else None
    if node.kind == "Substring":
        column, first, length = _column(children[0], schema), _literal(children[1]), _literal(children[2])
        if column is None or column[1] != schemas.STRING or first is None or length is None:
            return None
        kind: Part = "prefix" if first in ("0", "1") else "substring"
        return Generated(name, column[0], kind, own, first=int(first), length=max(int(length), 0))
    return None


def _uncast(node: Node, data_type: str) -> Node:
    return node.children[0] if node.kind == "Cast" and node.json.get("dataType") == data_type else node


def _literal(node: Node) -> str | None:
    return None if node.kind != "Literal" or node.json["value"] is None else str(node.json["value"])


def _column(node: Node, schema: schemas.StructType) -> tuple[schemas.Column, schemas.DataType] | None:
    """The name and type of a column, or of a field of a struct column."""
    if node.kind == "AttributeReference":
        match = schema.get(str(node.json["name"]), case_sensitive=True)
        return None if match is None else ((match.name,), match.data_type)
    if node.kind == "GetStructField":
        parent = _column(node.children[0], schema)
        if parent is not None and isinstance(parent[1], schemas.StructType):
            field = parent[1].fields[int(node.json["ordinal"])]
            return (*parent[0], field.name), field.data_type
    return None
