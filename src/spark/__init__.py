"""The public PySpark API: `from tablelog.spark import DeltaTable, enable`."""

from .create import DeltaTableBuilder, IdentityGenerator
from .enable import disable, enable
from .enabled_sessions import is_enabled
from .merge import DeltaMergeBuilder
from .new_sessions import enabled_sessions
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
    "enabled_sessions",
    "is_enabled",
]
