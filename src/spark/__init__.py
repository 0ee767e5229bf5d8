"""The public PySpark API: `from tablelog.spark import DeltaTable, enable`."""

from .create import DeltaTableBuilder, IdentityGenerator
from .enable import disable, enable, is_enabled
from .merge import DeltaMergeBuilder
from .optimize import DeltaOptimizeBuilder
from .table import DeltaTable

__all__ = [
    "DeltaMergeBuilder",
    "DeltaOptimizeBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
    "disable",
    "enable",
    "is_enabled",
]
