"""The protocol: actions, snapshot and commit, on any store, with no Spark."""

from .deltalog import DeltaLog
from .protocol import actions
from .table.history import HistoryEntry
from .table.snapshot import Snapshot
from .txn.operation import Operation
from .txn.transaction import Committed, Transaction

__all__ = ["Committed", "DeltaLog", "HistoryEntry", "Operation", "Snapshot", "Transaction", "actions"]
