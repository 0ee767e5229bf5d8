"""The surface that a PySpark user imports: `from tablelog.spark import DeltaTable, enable`."""

from .enable import disable, enable, is_enabled
from .table import DeltaTable

__all__ = ["DeltaTable", "disable", "enable", "is_enabled"]
