"""What must hold of a finished log: `Broken` names the first that doesn't."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tablelog.core.protocol import in_commit_timestamps, row_tracking
from tablelog.core.protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    FileKey,
    Metadata,
    Protocol,
    RemoveFile,
)
from tablelog.core.txn.conflict import IsolationLevel

from .state import Broken, State, Truth, num_rows, require
from .store import Disk


@dataclass
class Attempt:
    """One commit of one writer: what it saw, and what it was told became of it."""

    name: str
    token: str
    told: str = "nothing"  # nothing | committed | not committed | unknown | crashed
    version: int | None = None
    at: int | None = None  # where it is in truth, once the schedule is over
    read_version: int = -1
    level: IsolationLevel = IsolationLevel.SERIALIZABLE
    scope: Callable[[AddFile], bool] | None = None  # the files that it depends on: all that match
    seen: frozenset[FileKey] = frozenset()  # ... and which these were
    keys: frozenset[FileKey] = frozenset()  # single files that it depends on
    app: tuple[str, int | None] | None = None
    lets_pass: bool = False  # it changes the metadata in a way that doesn't matter to what others wrote before
    detail: str = ""


def check(disk: Disk, truth: Truth, attempts: Iterable[Attempt], table_level: IsolationLevel) -> int:
    """All of them; how many commits came after a change of the metadata that they hadn't seen."""
    versions = sorted(disk.commits)
    require(versions == list(range(len(versions))), f"versions are not contiguous: {versions}")
    require(not disk.rewritten, f"versions were written again after their commits were removed: {disk.rewritten}")
    by_token = {attempt.token: attempt for attempt in attempts}
    at: dict[str, int] = {}
    serial = _Serial(table_level)
    times, ids = _Times(disk), _RowIds()
    before = State()
    for version in versions:
        actions = truth.actions(version)
        info = actions[0]
        if not isinstance(info, CommitInfo) or info.txn_id not in by_token:
            raise Broken(f"version {version} is nobody's")
        require(info.txn_id not in at, f"{info.txn_id} was committed twice: {at.get(info.txn_id)} and {version}")
        at[info.txn_id] = version
        state = truth.at(version)
        attempt = by_token[info.txn_id]
        serial.check(attempt, info, actions, before)
        times.check(f"{attempt.name} ({attempt.detail}) at version {version}", version, info, before, state)
        ids.check(f"{attempt.name} ({attempt.detail}) at version {version}", version, actions, state)
        before = state
    for attempt in by_token.values():
        attempt.at = at.get(attempt.token)
        _check_told(attempt, attempt.at)
    return serial.passed


def _check_told(attempt: Attempt, version: int | None) -> None:
    if attempt.told == "committed":
        require(version == attempt.version, f"{attempt.name} was told {attempt.version}, and is at {version}")
    elif attempt.told == "not committed":
        require(version is None, f"{attempt.name} was told that it failed, and is at {version}: {attempt.detail}")
    elif attempt.told == "unknown":
        require(version in (None, attempt.version), f"{attempt.name} may be at {attempt.version}, and is at {version}")
    else:
        require(attempt.told == "crashed", f"{attempt.name} was told nothing")


class _Serial:
    """Each commit would have read at its place in the log what it read: the log is a serial order.

    At WriteSerializable it may have missed what blind appends added in between, as if it had come before them.
    """

    def __init__(self, table_level: IsolationLevel) -> None:
        self._table_level = table_level
        self._blind: list[bool] = []
        self._added_at: dict[FileKey, int] = {}
        # The newest version that wrote a protocol, metadata (of both kinds), a domain.
        self._protocol = self._metadata = self._strict = -1
        self._domains: dict[str, int] = {}
        self.passed = 0

    def check(self, attempt: Attempt, info: CommitInfo, actions: Sequence[Action], before: State) -> None:
        version, files = len(self._blind), before.files
        where = f"{attempt.name} ({attempt.detail}) at version {version}"
        level = attempt.level if attempt.level is IsolationLevel.SNAPSHOT else self._table_level
        if version:
            require(info.isolation_level == level.value, f"{where} was checked at {info.isolation_level}")
        require(attempt.read_version < version, f"{where} read a later version")
        require(attempt.read_version >= 0 or version == 0, f"{where} makes a table that is there")
        self._check_header(where, attempt, actions)
        if attempt.app is not None:
            seen = before.apps.get(attempt.app[0])
            require(seen == attempt.app[1], f"{where} didn't see the transaction of {attempt.app}")
        if attempt.scope is not None:
            now = {key for key, file in files.items() if attempt.scope(file)}
            missed = now - attempt.seen
            if level is IsolationLevel.WRITE_SERIALIZABLE:
                missed = {key for key in missed if not self._blind[self._added_at[key]]}
            require(not missed, f"{where} missed {missed}")
            require(attempt.seen <= now, f"{where} read what is gone: {attempt.seen - now}")
        require(attempt.keys <= files.keys(), f"{where} read what is gone: {attempt.keys - files.keys()}")
        again = info.operation == row_tracking.BACKFILL
        gone: set[FileKey] = set()
        for action in actions:
            if isinstance(action, AddFile):
                if again:
                    require(action.key in files, f"{where} says {action.path} again, which is gone")
                    continue
                require(action.key not in files or action.key in gone, f"{where} adds {action.path} again")
                self._added_at[action.key] = version
            elif isinstance(action, RemoveFile):
                require(action.key in files, f"{where} removes {action.path}, which is gone")
                gone.add(action.key)
        self._blind.append(info.is_blind_append is True)

    def _check_header(self, where: str, attempt: Attempt, actions: Sequence[Action]) -> None:
        version, read = len(self._blind), attempt.read_version
        require(self._strict <= read, f"{where} didn't see the metadata of version {self._strict}")
        self.passed += self._metadata > read >= 0
        for action in actions:
            if isinstance(action, Metadata):
                require(self._metadata <= read, f"{where} overwrites the metadata of version {self._metadata}")
                self._metadata = version
                if not attempt.lets_pass:
                    self._strict = version
            elif isinstance(action, Protocol):
                require(self._protocol <= read, f"{where} overwrites the protocol of version {self._protocol}")
                self._protocol = version
            elif isinstance(action, DomainMetadata) and action.domain != row_tracking.DOMAIN:
                last = self._domains.get(action.domain, -1)
                require(last <= read, f"{where} overwrites the domain {action.domain} of version {last}")
                self._domains[action.domain] = version


@dataclass
class _Times:
    """In-commit timestamps: where they are enabled each commit has one, later than all before it."""

    disk: Disk
    last: int = -1

    def check(self, where: str, version: int, info: CommitInfo, before: State, state: State) -> None:
        assert state.protocol is not None
        assert state.metadata is not None
        told = info.in_commit_timestamp
        if not in_commit_timestamps.enabled(state.protocol, state.metadata):
            require(told is None, f"{where} has an in-commit timestamp, and the table has none")
            return
        if told is None:
            raise Broken(f"{where} has no in-commit timestamp")
        began = before.metadata is None or not before.metadata.configuration.get(in_commit_timestamps.ENABLED)
        if began and version:
            since = tuple(state.metadata.configuration.get(key) for key in in_commit_timestamps.PROVENANCE)
            require(since == (str(told), str(version)), f"{where} enables in-commit timestamps, and says {since}")
            require(told > self.disk.commits[version - 1][1], f"{where} is no later than the version before it")
        require(told > self.last, f"{where} is of {told}, and one before it of {self.last}")
        self.last = told


@dataclass
class _RowIds:
    """Row ids: every file of a table that supports them has its own, and none is given out twice."""

    given: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    highest: int = -1

    def check(self, where: str, version: int, actions: Sequence[Action], state: State) -> None:
        assert state.protocol is not None
        assert state.metadata is not None
        if not row_tracking.supported(state.protocol):
            return
        reached = self.highest
        for action in actions:
            if not isinstance(action, AddFile):
                continue
            base, since = action.base_row_id, action.default_row_commit_version
            if base is None or since is None:
                raise Broken(f"{where} adds {action.path} without row ids")
            known = self.given.get(action.path)
            if known is not None:
                require(known == (base, since), f"{where} changes the row ids of {action.path}: {known}, {base, since}")
                continue
            require(base == reached + 1, f"{where} gives out row ids from {base}; {reached} is the highest before it")
            require(since == version, f"{where} says that the rows of {action.path} are of version {since}")
            reached = base + num_rows(action.stats) - 1
            self.given[action.path] = base, since
        self.highest = reached
        mark = state.domains.get(row_tracking.DOMAIN)
        told = -1 if mark is None else json.loads(mark.configuration)["rowIdHighWaterMark"]
        require(told == reached, f"{where} says that row ids are given out up to {told}, and it is {reached}")
        if row_tracking.enabled(state.protocol, state.metadata):
            without = [file.path for file in state.files.values() if file.base_row_id is None]
            require(not without, f"{where}: row ids are enabled, and {without} have none")
