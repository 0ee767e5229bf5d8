"""The surface that a PySpark user imports: `from tablelog.spark import DeltaTable, enable`."""

from .create import DeltaTableBuilder, IdentityGenerator
from .enable import disable, enable, is_enabled
from .table import DeltaTable

__all__ = ["DeltaTable", "DeltaTableBuilder", "IdentityGenerator", "disable", "enable", "is_enabled"]
