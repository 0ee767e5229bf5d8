"""What the log says, by the plainest replay there is."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from tablelog.core.protocol import codec
from tablelog.core.protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    FileKey,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)

from .store import Disk


class Broken(AssertionError):
    """An invariant doesn't hold."""


def require(holds: bool, what: str) -> None:
    if not holds:
        raise Broken(what)


@lru_cache(maxsize=16)
def num_rows(stats: str | None) -> int:
    """How many rows a file has by its statistics."""
    assert stats is not None
    count = json.loads(stats)["numRecords"]
    assert type(count) is int
    return count


@dataclass
class State:
    """A table at one version."""

    files: dict[FileKey, AddFile] = field(default_factory=dict)
    apps: dict[str, int] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)
    metadata: Metadata | None = None
    protocol: Protocol | None = None

    def after(self, actions: Sequence[Action]) -> "State":
        state = State(dict(self.files), self.apps, self.domains, self.metadata, self.protocol)
        for action in actions:
            if isinstance(action, AddFile):
                state.files[action.key] = action
            elif isinstance(action, RemoveFile):
                state.files.pop(action.key, None)
            elif isinstance(action, SetTransaction):
                state.apps = {**state.apps, action.app_id: action.version}
            elif isinstance(action, DomainMetadata):
                state.domains = {**state.domains, action.domain: action}
            elif isinstance(action, Metadata):
                state.metadata = action
            elif isinstance(action, Protocol):
                state.protocol = action
        return state


class Truth:
    """Every version of the table, from the commits that ever came to be on the disk, whatever was removed since."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._states: list[State] = []

    @property
    def newest(self) -> int:
        return len(self._disk.commits) - 1

    def actions(self, version: int) -> list[Action]:
        return codec.parse_commit(self._disk.commits[version][0])

    def info(self, version: int) -> CommitInfo | None:
        first = self.actions(version)[0]
        return first if isinstance(first, CommitInfo) else None

    def at(self, version: int) -> State:
        while len(self._states) <= version:
            before = self._states[-1] if self._states else State()
            self._states.append(before.after(self.actions(len(self._states))))
        return self._states[version]
