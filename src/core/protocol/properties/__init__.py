"""Table properties: `delta.*` keys of `metaData.configuration` (PROTOCOL.md, "Table Properties")."""

from .declarations import CONSTRAINT_PREFIX, FEATURE_PREFIX, PROPERTIES, Property, get
from .parsers import column_list, interval_ms
from .table_properties import TableProperties
from .user_settings import (
    defaults_from,
    editable,
    is_protocol_property,
    proper_key,
    validate,
    without_protocol_properties,
)

__all__ = [
    "CONSTRAINT_PREFIX",
    "FEATURE_PREFIX",
    "PROPERTIES",
    "Property",
    "TableProperties",
    "column_list",
    "defaults_from",
    "editable",
    "get",
    "interval_ms",
    "is_protocol_property",
    "proper_key",
    "validate",
    "without_protocol_properties",
]
