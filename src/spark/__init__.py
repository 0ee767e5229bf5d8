"""The public PySpark API: `from tablelog.spark import DeltaTable, enable`."""

from .delta_table.create import DeltaTableBuilder, IdentityGenerator
from .delta_table.merge import DeltaMergeBuilder
from .delta_table.optimize import DeltaOptimizeBuilder
from .delta_table.table import DeltaTable
from .sessions.enable import disable, enable
from .sessions.enabled_sessions import is_enabled
from .sessions.new_sessions import enabled_sessions

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
