"""Isolation levels, and the level at which a commit is checked for conflicts."""

from collections.abc import Iterable
from enum import Enum

from ...protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    DomainMetadata,
    RemoveFile,
)
from ...protocol.row_tracking import DOMAIN as ROW_TRACKING_DOMAIN


class IsolationLevel(Enum):
    """The values of `delta.isolationLevel` and of `commitInfo.isolationLevel`."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT = "SnapshotIsolation"


def level_for(actions: Iterable[Action], table_level: IsolationLevel, *, changes_data: bool) -> IsolationLevel:
    """The level at which `actions` are checked: snapshot isolation for a commit that changes no data.

    `table_level` is the table's property; `changes_data` is `Operation.changes_data`.
    """
    if table_level is IsolationLevel.WRITE_SERIALIZABLE and changes_data:
        return table_level
    for action in actions:
        if isinstance(action, AddFile | RemoveFile | AddCDCFile):
            if action.data_change:
                return table_level
        elif not (isinstance(action, DomainMetadata) and action.domain == ROW_TRACKING_DOMAIN):
            return table_level
    return IsolationLevel.SNAPSHOT


def only_adds(actions: Iterable[Action]) -> bool:
    """Whether `add` is the only kind of file action: a commit that also read nothing is then a blind append."""
    return not any(isinstance(action, RemoveFile | AddCDCFile) for action in actions)
