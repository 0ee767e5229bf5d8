"""The Delta protocol: actions, snapshots and commits, on any `LogStore`, without Spark."""

from .deltalog import DeltaLog
from .log_maintenance.problems import LogHealth
from .protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from .table.snapshot import Snapshot
from .txn.operation import Operation
from .txn.transaction import Committed, Transaction

__all__ = [
    "Action",
    "AddCDCFile",
    "AddFile",
    "CommitInfo",
    "Committed",
    "DeltaLog",
    "DomainMetadata",
    "LogHealth",
    "Metadata",
    "Operation",
    "Protocol",
    "RemoveFile",
    "SetTransaction",
    "Snapshot",
    "Transaction",
]
