"""The protocol: actions, snapshot and commit, on any store, with no Spark."""

from .deltalog import DeltaLog
from .table.snapshot import Snapshot

__all__ = ["DeltaLog", "Snapshot"]
